"""The command line with which one program of Palestra starts another."""

import sys


def build_python_command(module: str, *arguments: str) -> list[str]:
    """Returns the command that runs a module with this Python.

    Nothing is imported from the current directory (`-P`): whoever can write there could otherwise
    replace any package, such as `yaml`, by code of their own.
    """
    return [sys.executable, "-P", "-m", module, *arguments]

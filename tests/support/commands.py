"""The fixture type and the document that tests of the commands share, and commands in process."""

import contextlib
import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import NoReturn
from unittest import mock

from palestra.cli.main import main
from tests.support import api_samples

RunCommand = Callable[..., tuple[int, str, str]]
"""Type of the fixture `palestra`: takes the arguments, returns exit code, stdout and stderr."""

DOCUMENT = json.dumps({"definition": api_samples.make_definition(), "options": {"seeds": [0]}})
"""The document that the fixture `peer` writes as `x.yaml`."""


@dataclass(frozen=True)
class CommandResult:
    """Exit code and output of a command that has ended."""

    exit_code: int
    output: str
    errors: str


def run_command(
    arguments: Sequence[str],
    variables: Mapping[str, str],
    directory: Path,
    given: str = "",
    *,
    program: Callable[[Sequence[str]], int] = main,
) -> CommandResult:
    """Runs `palestra` in this process, since a process for each command imports for long.

    A command that turns into another program, as `palestra server` does, calls its `main` instead.

    Args:
        arguments: The command and its arguments.
        variables: The whole environment of the command.
        directory: Its working directory.
        given: Its standard input.
        program: Another program that is called with the arguments.
    """
    output, errors = io.StringIO(), io.StringIO()
    with (
        mock.patch.dict(os.environ, variables, clear=True),
        mock.patch("sys.stdin", io.TextIOWrapper(io.BytesIO(given.encode()))),
        mock.patch("os.execv", _call_main),
        contextlib.chdir(directory),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(errors),
    ):
        try:
            # The command keeps the project that was named in a variable of its context.
            exit_code = copy_context().run(program, arguments)
        except SystemExit as end:
            exit_code = int(end.code or 0)
    return CommandResult(exit_code, output.getvalue(), errors.getvalue())


def _call_main(_executable: str, command: Sequence[str]) -> NoReturn:
    """Calls the `main` of `python -P -m MODULE ARGUMENTS` in place of `os.execv`."""
    name, *arguments = command[command.index("-m") + 1 :]
    module = import_module(name)
    if not hasattr(module, "main"):
        module = import_module(f"{name}.__main__")
    raise SystemExit(module.main(arguments))

"""The entry point of `palestra` and `python -m palestra.cli`."""

import sys

_INTERRUPTED = 130


def run() -> int:
    """Runs the command.

    Ctrl-C is also handled during the imports, which take a good part of a second.
    """
    try:
        from palestra.cli.main import main  # noqa: PLC0415 - as above

        return main()
    except KeyboardInterrupt:
        return _INTERRUPTED


if __name__ == "__main__":
    sys.exit(run())

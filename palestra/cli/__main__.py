"""Where `palestra` and `python -m palestra.cli` begin."""

import sys

_INTERRUPTED = 130


def run() -> int:
    """Runs the command.

    The imports take a good part of a second, so Ctrl-C already counts while they last.
    """
    try:
        from palestra.cli.main import main  # noqa: PLC0415 - as above

        return main()
    except KeyboardInterrupt:
        return _INTERRUPTED


if __name__ == "__main__":
    sys.exit(run())

"""The entry point of `palestra` and `python -m palestra.cli`."""

import signal
import sys

_INTERRUPTED = 130


def run() -> int:
    """Runs the command.

    Ctrl-C is also handled during the imports, which take a good part of a second.
    """
    try:
        from palestra.cli.main import main  # noqa: PLC0415 - as above

        exit_code = main()
    except KeyboardInterrupt:
        exit_code = _INTERRUPTED
    if exit_code == _INTERRUPTED:
        # A second Ctrl-C while the interpreter ends would kill the process without an exit code.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return exit_code


if __name__ == "__main__":
    sys.exit(run())

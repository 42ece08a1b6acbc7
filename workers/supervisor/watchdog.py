"""Outlives a killed supervisor just long enough to end what it supervised.

    python -m workers.supervisor.watchdog ATTEMPT_DIRECTORY

Its standard input is a pipe that only the supervisor can write to. A byte says that the supervisor
ended by itself. The end of the pipe without one says that it was killed: every process of the
attempt follows. The kernel already kills the trainer itself with its supervisor; this also reaches
what the trainer started.
"""

import os
import signal
import sys
from pathlib import Path

from workers.ipc.attempt_directory import AttemptDirectory
from workers.ipc.process_tree import kill_tree


def main() -> None:
    """Waits for the end of the supervisor."""
    directory = AttemptDirectory(Path(sys.argv[1]))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if os.read(0, 1) == b"":
        trainer = directory.trainer()
        kill_tree(
            directory.mark,
            trainer.pid if trainer else None,
            besides=frozenset({os.getpid()}),
            within=30.0,
        )


if __name__ == "__main__":
    main()

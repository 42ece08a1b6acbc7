"""Ends the processes of an attempt when its supervisor was killed.

    python -m workers.supervisor.watchdog ATTEMPT_DIRECTORY

Its standard input is a pipe to which only the supervisor can write. A byte means that the
supervisor ended regularly. End of file without a byte means that it was killed: the watchdog then
kills every process of the attempt. The kernel kills the trainer itself with its supervisor; the
watchdog also kills the processes that the trainer started.
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

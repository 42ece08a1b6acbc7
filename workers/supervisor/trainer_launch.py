"""Sets the kernel's options of a trainer process, then runs the trainer in it.

The process is killed when its supervisor dies, and first when memory runs out. The file
`trainer_started` of the attempt is written between the import of the trainer and its call: without
it, the worker could not start the trainer.

    python -m workers.supervisor.trainer_launch MODULE --attempt-dir DIR

The trainer is the function `main` of a module, or of the module `__main__` of a package.

The kernel's request "kill me when my parent dies" is made here, in the process itself, so that the
supervisor can fork without running Python code between fork and exec.
"""

import contextlib
import importlib
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from workers.ipc.attempt_directory import AttemptDirectory
from workers.ipc.process_tree import die_with_parent

SUPERVISOR_VARIABLE: Final = "PALESTRA_SUPERVISOR_PID"
_OUT_OF_MEMORY_SCORE: Final = "500"


def main() -> None:
    """Prepares the process and runs the module in it."""
    supervisor = os.environ.get(SUPERVISOR_VARIABLE)
    if supervisor and not die_with_parent(int(supervisor)):
        sys.exit("the supervisor is gone")
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_OUT_OF_MEMORY_SCORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    trainer = _import_trainer(sys.argv[1])
    del sys.argv[0]
    AttemptDirectory(Path(sys.argv[sys.argv.index("--attempt-dir") + 1])).trainer_started.touch()
    sys.exit(trainer())


def _import_trainer(name: str) -> Callable[[], int | None]:
    module = importlib.import_module(name)
    if hasattr(module, "__path__"):
        module = importlib.import_module(f"{name}.__main__")
    main: Callable[[], int | None] = module.main
    return main


if __name__ == "__main__":
    main()

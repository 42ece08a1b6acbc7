"""Sets the kernel's options of a trainer process, then runs the trainer in it.

The process is killed when its supervisor dies, and first when memory runs out.

    python -m workers.supervisor.trainer_launch MODULE [ARGUMENT ...]

The kernel's request "kill me when my parent dies" is made here, in the process itself, so that the
supervisor can fork without running Python code between fork and exec.
"""

import contextlib
import os
import resource
import runpy
import sys
from pathlib import Path
from typing import Final

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
    module = sys.argv[1]
    del sys.argv[0]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()

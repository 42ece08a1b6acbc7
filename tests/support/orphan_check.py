"""Checks that subprocesses end with the process that started them."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import psutil

from tests.support.waiting import PATIENCE_SECONDS, wait_for


def check_end_with_parent(
    ready: Path, parent: Callable[[Callable[[tuple[int, ...]], None]], None], count: int
) -> None:
    """Forks a parent, kills it while it runs, and checks that its subprocesses end soon.

    Args:
        ready: Path of a file that no other test uses.
        parent: Starts the subprocesses, passes their process IDs to its argument, never returns.
        count: Number of subprocesses that it starts.
    """
    pid = os.fork()
    if pid == 0:
        try:
            parent(lambda pids: _tell(ready, pids))
        finally:
            os._exit(1)
    wait_for(lambda: ready.exists() and ready.read_text().endswith("\n"), "the subprocesses run")
    processes = [psutil.Process(int(one)) for one in ready.read_text().split()]
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    gone, alive = psutil.wait_procs(processes, timeout=PATIENCE_SECONDS)
    assert (len(gone), alive) == (count, [])


def _tell(ready: Path, pids: tuple[int, ...]) -> None:
    ready.write_text(" ".join(map(str, pids)) + "\n")

"""Identities of processes and the process tree of an attempt."""

import ctypes
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from palestra.processes import PROC, has_variable, list_process_ids, read_lines, read_stat

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
"""Loaded at import, since a forked process must not wait for the loader's lock."""


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """Identifies a process unambiguously, even if its pid is reused or the machine is rebooted."""

    pid: int
    start_ticks: int
    """Start time in clock ticks since boot."""
    boot_id: str

    def is_alive(self) -> bool:
        """Returns whether this process still runs. A zombie does not."""
        if self.boot_id != boot_id():
            return False
        stat = read_stat(self.pid)
        return stat is not None and stat.is_running and stat.start_ticks == self.start_ticks

    def send(self, number: signal.Signals) -> bool:
        """Sends a signal to this process; returns false if it ended."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except OSError:
            return False
        try:
            if not self.is_alive():
                return False
            signal.pidfd_send_signal(descriptor, number)
        except ProcessLookupError:
            return False
        finally:
            os.close(descriptor)
        return True


@cache
def boot_id() -> str:
    """Returns the kernel's id of this boot."""
    return (PROC / "sys/kernel/random/boot_id").read_text().strip()


def identify(pid: int) -> ProcessIdentity:
    """Returns the identity of a running process.

    Raises:
        ProcessLookupError: If there is no such process.
    """
    stat = read_stat(pid)
    if stat is None:
        raise ProcessLookupError(pid)
    return ProcessIdentity(pid, stat.start_ticks, boot_id())


def die_with_parent(parent_pid: int) -> bool:
    """Makes the kernel kill this process when the parent's thread that started it ends.

    Returns false if the parent has ended already.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    return os.getppid() == parent_pid


def kill_lock_inheritors(path: Path) -> list[ProcessIdentity]:
    """Kills the processes that hold the `flock` of an ended process; returns their identities.

    Such a process inherited the open file. A process that took the lock itself is not killed, nor
    one that inherited the lock from a process that still has the file open.
    """
    holders = {
        pid: locker
        for pid in list_process_ids()
        if pid != os.getpid() and (locker := _find_lock_owner(pid, path)) is not None
    }
    heirs = [pid for pid, locker in holders.items() if locker not in holders]
    found = [
        ProcessIdentity(pid, stat.start_ticks, boot_id())
        for pid in heirs
        if (stat := read_stat(pid)) is not None
    ]
    return [identity for identity in found if identity.send(signal.SIGKILL)]


def _find_lock_owner(pid: int, path: Path) -> int | None:
    """Returns which process took the lock that `pid` holds on the file at `path`.

    `None` if it holds none.
    """
    try:
        descriptors = [entry.name for entry in (PROC / str(pid) / "fd").iterdir()]
    except OSError:
        # The process has ended, or belongs to another user.
        return None
    open_here = [name for name in descriptors if _is_same_file(PROC / str(pid) / "fd" / name, path)]
    lockers = [_flock_of(PROC / str(pid) / "fdinfo" / name) for name in open_here]
    return next((locker for locker in lockers if locker), None)


def _is_same_file(link: Path, path: Path) -> bool:
    try:
        return link.samefile(path)
    except OSError:
        return False


def _flock_of(information: Path) -> int:
    """Returns the PID under which the kernel lists the `flock` of an open file.

    0 for a file without one.
    """
    for line in read_lines(information):
        # The format is `lock: 1: FLOCK ADVISORY WRITE <pid> <device>:<inode> 0 EOF`.
        fields = line.split()
        if (
            len(fields) > 5
            and fields[0] == "lock:"
            and fields[2] == "FLOCK"
            and fields[5].isdigit()
        ):
            return int(fields[5])
    return 0


def adopt_orphans() -> None:
    """Makes this process the parent of all its descendants whose own parent dies."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def find_processes(
    mark: str, session: int | None, *, besides: frozenset[int] = frozenset()
) -> dict[int, ProcessIdentity]:
    """Returns the running processes of an attempt by pid.

    They have `mark` in their environment, belong to the session, or descend from one that does.

    Args:
        mark: `NAME=value`, a variable in the environment of the attempt's trainer.
        session: The trainer's session.
        besides: Pids to leave out. Their descendants count only by `mark` or `session`.
    """
    table = {
        pid: stat
        for pid in list_process_ids()
        if pid not in besides and (stat := read_stat(pid)) is not None and stat.is_running
    }
    found = {
        pid for pid, stat in table.items() if stat.session == session or has_variable(pid, mark)
    }
    members = set(found)
    while found:
        found = {pid for pid, stat in table.items() if stat.parent in found} - members
        members |= found
    return {pid: ProcessIdentity(pid, table[pid].start_ticks, boot_id()) for pid in members}


def kill_tree(
    mark: str, session: int | None, *, besides: frozenset[int] = frozenset(), within: float = 5.0
) -> bool:
    """Kills an attempt's processes until none is left.

    Returns false if some still run after `within` seconds, in uninterruptible sleep.
    """
    deadline = time.monotonic() + within
    while members := find_processes(mark, session, besides=besides):
        for identity in members.values():
            identity.send(signal.SIGKILL)
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def reap_orphans(kept: frozenset[int]) -> None:
    """Collects ended children that this process adopted.

    Args:
        kept: Children whose end other code waits for.
    """
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None or ended.si_pid in kept:
            return
        os.waitpid(ended.si_pid, os.WNOHANG)


def out_of_memory_kills() -> int:
    """Returns how many processes the kernel killed for lack of memory.

    Counts this control group; the machine where the group has no counter.
    """
    own_group = next(
        (line[3:] for line in read_lines(PROC / "self/cgroup") if line.startswith("0::")), "/"
    )
    for path in (
        Path("/sys/fs/cgroup") / own_group.lstrip("/") / "memory.events",
        PROC / "vmstat",
    ):
        for line in read_lines(path):
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


def python_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns `environ` with the directory of Palestra's packages first on `PYTHONPATH`."""
    here = str(Path(__file__).resolve().parents[2])
    paths = [
        here,
        *(
            path
            for path in environ.get("PYTHONPATH", "").split(os.pathsep)
            if path and path != here
        ),
    ]
    return {**environ, "PYTHONPATH": os.pathsep.join(paths)}


def _prctl(option: int, value: int) -> None:
    if _LIBC.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl failed")

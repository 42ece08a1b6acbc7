"""Processes as the Linux kernel lists them in `/proc`; on other systems every list is empty."""

from pathlib import Path
from typing import Final, NamedTuple

PROC: Final = Path("/proc")


class ProcessStat(NamedTuple):
    """The fields of `/proc/<pid>/stat` that identify a process and place it in its tree."""

    state: str
    parent: int
    session: int
    start_ticks: int
    """Start time in clock ticks since boot; distinguishes the process from a later one that has
    the same pid.
    """

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended; a zombie has ended."""
        return self.state not in "ZX"


def list_process_ids() -> list[int]:
    """Returns the pids of all processes."""
    return [int(path.name) for path in PROC.glob("[0-9]*")]


def read_stat(pid: int) -> ProcessStat | None:
    """Returns the fields of a process, which may be a zombie; `None` if there is none."""
    try:
        text = (PROC / str(pid) / "stat").read_text("utf-8", "replace")
    except OSError:
        return None
    # The name of the program may contain spaces and parentheses: the fields follow the last one.
    fields = text[text.rindex(")") + 2 :].split()
    return ProcessStat(fields[0], int(fields[1]), int(fields[3]), int(fields[19]))


def has_variable(pid: int, assignment: str) -> bool:
    """Returns whether a process was started with `NAME=value` in its environment."""
    try:
        variables = (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return assignment.encode() in variables


def read_lines(path: Path) -> list[str]:
    """Returns the lines of a file; none where it cannot be read."""
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def find_port_owner(port: int) -> int | None:
    """Returns the pid that listens on a TCP port, where this user can see it."""
    sockets = {
        f"socket:[{fields[9]}]"
        for table in ("net/tcp", "net/tcp6")
        for fields in map(str.split, read_lines(PROC / table)[1:])
        if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port
    }
    for descriptor in PROC.glob("[0-9]*/fd/*") if sockets else ():
        try:
            if str(descriptor.readlink()) in sockets:
                return int(descriptor.parts[2])
        except OSError:
            continue
    return None

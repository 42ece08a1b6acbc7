"""TCP ports of this machine: which are free, and who has one."""

import socket
from collections.abc import Sequence
from pathlib import Path


def keep_or_free(port: object, avoid: int = 0) -> int:
    """Returns `port` if it can be had, else any free one."""
    if isinstance(port, int) and 0 < port < 65_536 and port != avoid and is_free(port):
        return port
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_free(port: int) -> bool:
    """Tells whether a loopback port can be listened on."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def owner(port: int) -> str:
    """Returns ` by pid N` for the process that listens on a port; empty where it cannot be seen."""
    inodes: set[str] = set()
    for line in [*_lines(Path("/proc/net/tcp")), *_lines(Path("/proc/net/tcp6"))]:
        fields = line.split()
        if len(fields) > 9 and fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
            inodes.add(f"socket:[{fields[9]}]")
    for entry in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if str(entry.readlink()) in inodes:
                return f" by pid {entry.parts[2]}"
        except OSError:
            continue
    return ""


def _lines(path: Path) -> Sequence[str]:
    try:
        return path.read_text().splitlines()[1:]
    except OSError:
        return []

"""Free TCP ports on the loopback interface."""

import socket


def keep_or_free(port: object, avoid: int = 0) -> int:
    """Returns `port` if it is free and differs from `avoid`, else any free port."""
    if isinstance(port, int) and 0 < port < 65_536 and port != avoid and is_free(port):
        return port
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_free(port: int) -> bool:
    """Returns whether a process can listen on a loopback port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True

"""Checks before the server listens: address permitted, port free, SQLite file not in use.

Every refusal is one line that states what to do.
"""

import errno
import fcntl
import os
import socket as sockets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from app.address import announce_address
from app.settings import Settings
from palestra.processes import find_port_owner


class ServerStartError(Exception):
    """The server cannot start; the message is one line."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@dataclass(frozen=True, slots=True)
class Listener:
    """The bound socket of the server."""

    socket: sockets.socket
    port: int


def check_address(settings: Settings) -> None:
    """Refuses to listen beyond this machine without a permit.

    Raises:
        ServerStartError: If the address is not permitted; the message states how to permit it.
    """
    if not settings.is_loopback and not settings.allow_remote:
        message = (
            f"refuses to listen on {settings.host}, which other machines reach: put a "
            "TLS proxy before 127.0.0.1 and set public_url, "
            "or permit it with --allow-remote (PALESTRA_ALLOW_REMOTE=true)"
        )
        raise ServerStartError(message, 2)


@contextmanager
def reserve_resources(settings: Settings) -> Iterator[Listener]:
    """Holds the data directory, the SQLite file and the port for as long as the server runs.

    Raises:
        ServerStartError: If one of them is not available.
    """
    _make_directory(settings.data_dir)
    with _lock_database(settings), _bind(settings.host, settings.port) as listener:
        port = listener.getsockname()[1]
        with announce_address(settings.model_copy(update={"port": port})):
            yield Listener(listener, port)


def _make_directory(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ServerStartError(
            f"cannot use the data directory {directory}: {error.strerror}"
        ) from None


@contextmanager
def _lock_database(settings: Settings) -> Iterator[None]:
    """Locks a file beside the SQLite file, so that no second server process uses the database.

    The lock ends with the process.
    """
    path = settings.sqlite_path
    if path is None:
        yield
        return
    _check_file(path)
    lock = path.with_name(path.name + ".lock")
    try:
        handle: IO[str] = lock.open("a+", encoding="utf-8")
    except OSError as error:
        raise ServerStartError(
            f"cannot write beside the database {path}: {error.strerror}"
        ) from None
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            handle.seek(0)
            holder = handle.read().strip() or "unknown"
            raise ServerStartError(
                f"the database {path} is already open by pid {holder}: stop that server, "
                "or set another data_dir"
            ) from None
        handle.truncate(0)
        handle.write(str(os.getpid()))
        handle.flush()
        yield


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise ServerStartError(f"the database {path} is a directory: name a file")
    if not path.parent.is_dir():
        raise ServerStartError(
            f"the directory of the database {path} does not exist: make it first"
        )
    if path.exists() and not os.access(path, os.W_OK):
        raise ServerStartError(f"the database {path} is read-only: make it writable for this user")


def _bind(host: str, port: int) -> sockets.socket:
    family = sockets.AF_INET6 if ":" in host else sockets.AF_INET
    listener = sockets.socket(family, sockets.SOCK_STREAM)
    listener.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(2_048)
    except OSError as error:
        listener.close()
        raise ServerStartError(_bind_problem(host, port, error), 2) from None
    listener.set_inheritable(False)
    return listener


def _bind_problem(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        owner = find_port_owner(port)
        return (
            f"port {port} is used by "
            f"{'another process' if owner is None else f'pid {owner}'}: stop it, or choose "
            "another with --port"
        )
    if error.errno == errno.EACCES:
        return f"this user may not listen on port {port}: choose one above 1023 with --port"
    return f"cannot listen on {host} port {port}: {error.strerror or error}"

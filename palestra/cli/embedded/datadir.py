"""The data directory of an embedded Palestra and the lock that permits one instance per directory.

Defines every path below it. Does not start processes.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palestra.cli.output import CommandError


@dataclass(frozen=True, slots=True)
class DataDir:
    """Paths below one data directory."""

    root: Path

    @property
    def lock(self) -> Path:
        """The lock file of a running instance; holds its PID."""
        return self.root / "up.lock"

    @property
    def state(self) -> Path:
        """File with ports and other values that stay the same over restarts."""
        return self.root / "up.json"

    @property
    def children(self) -> Path:
        """File with records of the processes that the running or the last instance started."""
        return self.root / "children.json"

    @property
    def user_token(self) -> Path:
        """File with the token of the command line."""
        return self.root / "tokens" / "user"

    @property
    def worker_token(self) -> Path:
        """File with the token with which the worker enrols."""
        return self.root / "tokens" / "worker"

    @property
    def worker(self) -> Path:
        """Directory of the worker's slots, spools and snapshots."""
        return self.root / "worker"

    @property
    def valkey(self) -> Path:
        """Directory of the broker's data."""
        return self.root / "valkey"

    def log(self, name: str) -> Path:
        """Returns the log file of a process."""
        return self.root / "logs" / f"{name}.log"

    def prepare(self) -> None:
        """Creates the directories, readable for their owner only.

        Raises:
            CommandError: If that is not possible.
        """
        try:
            for directory in (
                self.root,
                self.root / "tokens",
                self.root / "logs",
                self.valkey,
                self.worker,
            ):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            (self.root / ".gitignore").write_text("*\n", "utf-8")
        except OSError as error:
            raise CommandError(
                f"cannot use {self.root} as the data directory: {error.strerror}"
            ) from None

    def read_state(self) -> dict[str, Any]:
        """Returns what `write_state` stored; empty if there is nothing readable."""
        return read_json(self.state)

    def write_state(self, state: dict[str, Any]) -> None:
        """Writes ports and addresses for the next start and for other commands."""
        write_private(self.state, json.dumps(state))

    @contextmanager
    def hold_lock(self) -> Iterator[None]:
        """Locks the directory for this process.

        Raises:
            CommandError: If another instance has locked it; the message names its pid.
        """
        descriptor = os.open(self.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise CommandError(self._taken(descriptor)) from None
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
            yield
            os.ftruncate(descriptor, 0)
        finally:
            os.close(descriptor)

    def _taken(self, descriptor: int) -> str:
        pid = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
        address = self.read_state().get("url", "")
        return (
            f"Palestra already runs on {self.root}: pid "
            f"{pid or 'unknown'}{f', {address}' if address else ''}"
        )


def read_json(path: Path) -> dict[str, Any]:
    """Returns the object in a JSON file; empty if there is nothing readable."""
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def write_private(path: Path, text: str) -> None:
    """Atomically replaces a file, which only its owner may read."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    draft.replace(path)

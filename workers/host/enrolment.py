"""The identity of a worker: the secret that its enrolment returned.

It is kept in the state directory, readable by its user alone.
"""

import json
import os
import secrets
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Self

from workers.ipc.attempt_directory import read_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrolment:
    """The content of `worker.json`.

    Attributes:
        name: The worker's name; a different name registers a different worker.
        number: Random number that is sent with the enrolment; a repetition returns the same secret.
        worker_id: The worker's ID on the server; empty before the first answer.
        secret: The worker's credential; empty before the first answer.
    """

    name: str
    number: str = field(repr=False)
    worker_id: str = ""
    secret: str = field(default="", repr=False)

    @classmethod
    def load_or_create(cls, state_directory: Path, name: str) -> Self:
        """Returns the enrolment that a state directory holds for a name, else creates one.

        A new enrolment is written to the state directory.

        Raises:
            OSError: If it cannot be written.
        """
        found = cls.read(state_directory)
        return (
            found if found is not None and found.name == name else cls.begin(state_directory, name)
        )

    @classmethod
    def begin(cls, state_directory: Path, name: str) -> Self:
        """Creates an enrolment and writes it to the state directory.

        Raises:
            OSError: If it cannot be written.
        """
        fresh = cls(name=name, number=secrets.token_hex(32))
        fresh.write(state_directory)
        return fresh

    @classmethod
    def read(cls, state_directory: Path) -> Self | None:
        """Reads the enrolment from a state directory.

        `None` if there is no readable one.
        """
        try:
            return cls(**read_json(_path(state_directory)))
        except TypeError:
            return None

    def write(self, state_directory: Path) -> None:
        """Writes the enrolment atomically.

        Raises:
            OSError: If it cannot be written.
        """
        draft = _path(state_directory).with_suffix(".tmp")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(asdict(self), file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(_path(state_directory))

    def record_answer(self, state_directory: Path, worker_id: str, secret: str) -> Self:
        """Returns the enrolment with the server's answer, after writing it."""
        found = replace(self, worker_id=worker_id, secret=secret)
        found.write(state_directory)
        return found


def _path(state_directory: Path) -> Path:
    return state_directory / "worker.json"

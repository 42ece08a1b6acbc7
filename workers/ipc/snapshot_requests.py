"""The files through which a continuous evaluation requests its snapshots.

The trainer writes requests and the supervisor answers, in files of the attempt directory.

The trainer counts its requests. The files of a snapshot in an answer are in
`inputs/<snapshot id>/` until the next request. Imports little, since supervisor and trainer both
use it.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from workers.ipc.attempt_directory import AttemptDirectory, read_json, write_atomically


class NoSnapshotReason(StrEnum):
    """Why a request is answered without a snapshot."""

    OVER = "over"
    """The training of the run is over, and all its snapshots were evaluated."""
    YIELD = "yield"
    """No attempt trains the run now: the slot is released, perhaps for the run's training."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A trainer's request for the next snapshot."""

    number: int = 0
    """Number of the request, from 1; 0 before the first."""
    evaluated: tuple[str, ...] = ()
    """IDs of the snapshots that this attempt evaluated last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The supervisor's answer to a request."""

    number: int
    snapshot_id: str | None = None
    end: NoSnapshotReason | None = None
    stored: int = 0
    """Number of the job's evaluations that the server has stored."""


def ask(directory: AttemptDirectory, wanted: Wanted) -> None:
    """Writes a request; only the trainer does."""
    _write(directory.wanted, asdict(wanted))


def wanted_of(directory: AttemptDirectory) -> Wanted:
    """Returns the latest request."""
    document = read_json(directory.wanted)
    number = document.get("number")
    if not isinstance(number, int):
        return Wanted()
    return Wanted(number=number, evaluated=tuple(str(one) for one in document.get("evaluated", ())))


def answer(directory: AttemptDirectory, given: Given) -> None:
    """Writes the answer to a request; only the supervisor does."""
    _write(directory.given, asdict(given))


def given_to(directory: AttemptDirectory, number: int) -> Given | None:
    """Returns the answer to a request; `None` while there is none."""
    document = read_json(directory.given)
    if document.get("number") != number:
        return None
    end = document.get("end")
    return Given(
        number=number,
        snapshot_id=document.get("snapshot_id"),
        end=None if end is None else NoSnapshotReason(end),
        stored=int(document.get("stored", 0)),
    )


def _write(path: Path, document: Mapping[str, object]) -> None:
    write_atomically(path, json.dumps(document).encode())

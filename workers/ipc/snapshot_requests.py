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
    """The reason why a request is answered without a snapshot."""

    OVER = "over"
    """The training of the run is over, and all its snapshots were evaluated."""
    YIELD = "yield"
    """No attempt trains the run now: the slot is released, perhaps for the run's training."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRequest:
    """A trainer's request for the next snapshot."""

    number: int = 0
    """Number of the request, from 1; 0 before the first."""
    evaluated: tuple[str, ...] = ()
    """IDs of the snapshots that this attempt evaluated last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotAnswer:
    """The supervisor's answer to a request."""

    number: int
    snapshot_id: str | None = None
    end: NoSnapshotReason | None = None
    stored: int = 0
    """Number of the job's evaluations that the server has stored."""


def write_request(directory: AttemptDirectory, request: SnapshotRequest) -> None:
    """Writes a request to its file; called by the trainer only."""
    _write(directory.snapshot_request, asdict(request))


def read_request(directory: AttemptDirectory) -> SnapshotRequest:
    """Returns the latest request; its number is 0 if there is none."""
    document = read_json(directory.snapshot_request)
    number = document.get("number")
    if not isinstance(number, int):
        return SnapshotRequest()
    return SnapshotRequest(
        number=number, evaluated=tuple(str(one) for one in document.get("evaluated", ()))
    )


def write_answer(directory: AttemptDirectory, answer: SnapshotAnswer) -> None:
    """Writes the answer to a request to its file; called by the supervisor only."""
    _write(directory.snapshot_answer, asdict(answer))


def read_answer(directory: AttemptDirectory, number: int) -> SnapshotAnswer | None:
    """Returns the answer to a request; `None` while there is none."""
    document = read_json(directory.snapshot_answer)
    if document.get("number") != number:
        return None
    end = document.get("end")
    return SnapshotAnswer(
        number=number,
        snapshot_id=document.get("snapshot_id"),
        end=None if end is None else NoSnapshotReason(end),
        stored=int(document.get("stored", 0)),
    )


def _write(path: Path, document: Mapping[str, object]) -> None:
    write_atomically(path, json.dumps(document).encode())

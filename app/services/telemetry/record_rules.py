"""Rules for records that their schema cannot express; each error has a code and a pointer."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from app.db.repositories.writers import CarriedRun
from app.domain.errors import ForbiddenError, InvalidError
from app.metrics import sort_records
from app.metrics.sort_records import SYSTEM_PREFIX, DecodedTable, NumberedRecord
from palestra.contract.names import MAX_SERIES_NAME, MAX_STEP
from palestra.contract.telemetry import Points, Record, SnapshotWritten, SystemMetrics, Table

MAX_FORMAT_VERSION: Final = 2**31 - 1
"""Largest version of a snapshot's format that its column holds."""


def check(new: Sequence[NumberedRecord], first_seq: int, carried: Mapping[str, CarriedRun]) -> None:
    """Refuses records that the attempt may not write or the database cannot store.

    Args:
        new: The records of the batch that are not committed yet.
        first_seq: Sequence number of the batch's first record, pointer `/records/0`.
        carried: The runs of the attempt, by their ID.

    Raises:
        ForbiddenError: `other_run`.
        InvalidError: With a pointer to the record.
    """
    for seq, record in new:
        where = f"/records/{seq - first_seq}"
        if record.run not in carried:
            raise ForbiddenError(
                "other_run", "A record names a run that this attempt does not carry.", pointer=where
            )
        if not carried[record.run].is_training and sort_records.writes_training_state(record):
            raise InvalidError(
                "not_training",
                "This attempt only reads a snapshot: it may not write training state.",
                pointer=where,
            )
        _check_content(record, where)


def _check_content(record: Record | DecodedTable, where: str) -> None:
    match record:
        case DecodedTable():
            _check_series(record.names, where)
        case Points():
            _check_series((record.series,), where)
        case Table():
            _check_series(record.series, where)
        case SystemMetrics():
            _check_names(record, where)
        case SnapshotWritten():
            _check_files(record, where)


def _check_series(names: Iterable[str], where: str) -> None:
    for name in names:
        if sort_records.parse_evaluation_series(name) is not None:
            message = (
                f"Series below {name.partition('/')[0]}/ are made from evaluations. "
                "Choose another name."
            )
            raise InvalidError("reserved_series", message, pointer=where)


def _check_names(record: SystemMetrics, where: str) -> None:
    longest = MAX_SERIES_NAME - len(SYSTEM_PREFIX)
    if any(len(name) > longest for name in record.values):
        message = (
            f"A name of a system metric has at most {longest} characters, since it is shown "
            f"below {SYSTEM_PREFIX}."
        )
        raise InvalidError("name_too_long", message, pointer=f"{where}/values")


def _check_files(record: SnapshotWritten, where: str) -> None:
    seen: set[str] = set()
    for index, file in enumerate(record.files):
        if file.name in seen:
            raise InvalidError(
                "duplicate_file",
                "The snapshot names this file twice. Name each once.",
                pointer=f"{where}/files/{index}",
            )
        seen.add(file.name)
    if sum(file.size for file in record.files) > MAX_STEP:
        raise InvalidError(
            "snapshot_too_large",
            f"The files of a snapshot have at most {MAX_STEP} bytes together.",
            pointer=f"{where}/files",
        )
    if record.format_version > MAX_FORMAT_VERSION:
        raise InvalidError(
            "unknown_format",
            f"format_version must be at most {MAX_FORMAT_VERSION}.",
            pointer=f"{where}/format_version",
        )

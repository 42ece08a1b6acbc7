"""Encodes records as JSON that fits one batch, splitting long columns into several records."""

from collections.abc import Iterator
from typing import Final

from palestra.contract.telemetry import (
    Episodes,
    Evaluation,
    LogLines,
    Note,
    Points,
    RunRecord,
    Table,
)

_COLUMNS: Final[dict[type[RunRecord], tuple[str, ...]]] = {
    Points: ("env_step", "update", "episode", "wall", "value"),
    Episodes: (
        "env_index",
        "env_step",
        "update",
        "episode",
        "wall",
        "episode_return",
        "episode_length",
        "terminated",
    ),
    LogLines: ("lines",),
    Table: ("env_step", "update", "episode", "wall"),
}


def split_to_fit(record: RunRecord, limit: int) -> Iterator[bytes]:
    """Yields `record` as JSON of at most `limit` bytes each: whole or in pieces.

    An evaluation that is too long loses the list of its returns.

    Raises:
        ValueError: If the record is too large and cannot be divided.
    """
    payload = record.model_dump_json().encode()
    if len(payload) <= limit:
        yield payload
        return
    for smaller in _divide(record, len(payload), limit):
        yield from split_to_fit(smaller, limit)


def _divide(record: RunRecord, size: int, limit: int) -> tuple[RunRecord, ...]:
    if isinstance(record, Table) and len(record.series) > 1:
        return _divide_series(record)
    names = _COLUMNS.get(type(record), ())
    half = max((len(getattr(record, name)) for name in names), default=0) // 2
    if half:
        first = {name: getattr(record, name)[:half] for name in names}
        rest = {name: getattr(record, name)[half:] for name in names}
        if isinstance(record, LogLines):
            rest["truncated"] = 0
            first["open_lines"] = ()
        if isinstance(record, Table):
            first["series"] = {name: values[:half] for name, values in record.series.items()}
            rest["series"] = {name: values[half:] for name, values in record.series.items()}
        return record.model_copy(update=first), record.model_copy(update=rest)
    if isinstance(record, Evaluation) and record.returns:
        message = (
            f"The returns of {len(record.returns)} evaluation episodes at env_step "
            f"{record.env_step} do not fit one record."
        )
        note = Note(
            run=record.run, wall=record.wall, code="evaluation_returns_dropped", message=message
        )
        return record.model_copy(update={"returns": ()}), note
    raise ValueError(
        f"a {getattr(record, 'type', 'telemetry')} record takes {size} bytes, at most {limit} are "
        "allowed: write less at once"
    )


def _divide_series(record: Table) -> tuple[Table, Table]:
    every = list(record.series.items())
    half = len(every) // 2
    return (
        record.model_copy(update={"series": dict(every[:half])}),
        record.model_copy(update={"series": dict(every[half:])}),
    )

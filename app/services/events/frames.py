"""Converts rows of the event log to frames of server-sent events.

Rows of the types `points` and `log` name the blocks whose content is inserted here.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from app.db.engine import Session
from app.db.models.events import EventRow
from app.db.models.logs import LogBlockRow, OpenLogLinesRow
from app.db.repositories import blocks as rows
from app.db.repositories import open_log_lines
from app.db.repositories.blocks import RunBatch, StoredBatch
from app.metrics import logs
from app.metrics.columns import Columns
from app.services.events.batch_points import BatchPoints, read_batch
from app.services.events.filters import EventKey
from palestra.contract.telemetry import write_number

POINTS: Final = "points"
LOG: Final = "log"
_DATA: Final = b"\ndata: "
_REPLACED: Final = frozenset({"experiment", "run", "job", "attempt", "worker", "pool", "snapshot"})
"""Types of events that hold the whole resource, so that a newer one replaces an older one."""


@dataclass(frozen=True, slots=True)
class LiveEvent:
    """An event with its frame, encoded once for all clients."""

    key: EventKey
    frame: bytes
    data_at: int
    """Position of the JSON text in the frame, which two line ends follow."""
    resource: tuple[str | None, ...] | None = None
    """Names the resource whose newest event suffices; `None` for events that all count."""

    @property
    def id(self) -> int:
        """The cursor of the event."""
        return self.key.id

    @property
    def json(self) -> bytes:
        """The `EventView` as JSON."""
        return self.frame[self.data_at : -2]


async def expand(session: Session, events: Sequence[EventRow]) -> list[LiveEvent]:
    """Returns events with the content of the blocks that they refer to.

    Events whose blocks were deleted together with their run are left out.
    """
    points = await rows.load_batches(
        session, [_get_batch(event) for event in events if event.type == POINTS]
    )
    log_events = [event for event in events if event.type == LOG]
    blocks = [event.data["block"] for event in log_events if event.data["block"] is not None]
    lines = await rows.load_log_blocks(session, blocks)
    open_lines: dict[str, list[OpenLogLinesRow]] = {}
    for row in await open_log_lines.list_for_runs(
        session, {event.run_id for event in log_events if event.run_id is not None}
    ):
        open_lines.setdefault(row.run_id, []).append(row)
    shown = ((event, _content(event, points, lines, open_lines)) for event in events)
    return [_event(event, data) for event, data in shown if data is not None]


def encode_frame(event_id: int | None, kind: str, data: Mapping[str, Any]) -> bytes:
    """Encodes one server-sent event.

    `data` is written as JSON without line breaks, so no content can start another field.
    """
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    head = "" if event_id is None else f"id: {event_id}\n"
    return f"{head}event: {kind}\ndata: {text}\n\n".encode()


def _get_batch(event: EventRow) -> RunBatch:
    first_seq = event.data["first_seq"]
    last_seq = event.data.get("last_seq", first_seq)
    return RunBatch(event.run_id or "", event.data["attempt_id"], first_seq, last_seq)


def _content(
    event: EventRow,
    points: Mapping[RunBatch, StoredBatch],
    lines: Mapping[int, LogBlockRow],
    open_lines: Mapping[str, Sequence[OpenLogLinesRow]],
) -> Mapping[str, Any] | None:
    if event.type == POINTS:
        batch = _get_batch(event)
        found = points.get(batch)
        return None if found is None else _points(batch.first_seq, read_batch(batch, found))
    if event.type == LOG:
        block_id, run_id = event.data["block"], event.run_id or ""
        block = lines.get(block_id)
        if block is None and block_id is not None:
            return None
        last_line = event.data.get("last_line", 0) if block is None else block.last_line
        return _log_content(run_id, block, last_line, open_lines.get(run_id, ()))
    return event.data


def _points(first_seq: int, found: BatchPoints) -> dict[str, Any]:
    return {
        "fence": found.fence,
        "seq": first_seq,
        "series": [_columns(name, columns) for name, columns in found.series.items()],
    }


def _columns(name: str, columns: Columns) -> dict[str, Any]:
    return {
        "name": name,
        "env_step": columns.env_step.tolist(),
        "update": columns.update.tolist(),
        "episode": columns.episode.tolist(),
        "wall": columns.wall.tolist(),
        "value": write_numbers(columns.value.tolist()),
    }


def _log_content(
    run_id: str,
    block: LogBlockRow | None,
    last_line: int,
    open_lines: Iterable[OpenLogLinesRow],
) -> dict[str, Any]:
    """Returns lines in the format of the log route's response.

    Args:
        run_id: The run.
        block: The complete lines; `None` if only open lines have changed.
        last_line: Ordinal of the last complete line.
        open_lines: The present open lines of the run.
    """
    lines = (
        []
        if block is None
        else [{**line, "n": block.first_line + i} for i, line in enumerate(_lines(block))]
    )
    return {
        "run_id": run_id,
        "lines": lines,
        "next_after": last_line,
        "complete": True,
        "open_lines": [line for row in open_lines for line in _lines(row)],
    }


def _lines(block: LogBlockRow | OpenLogLinesRow) -> list[dict[str, Any]]:
    return [
        {
            "attempt_id": block.attempt_id,
            "stream": line.stream,
            "wall": line.wall,
            "text": line.text,
        }
        for line in logs.decode(block.content)
    ]


def write_numbers(values: list[float]) -> list[float | str]:
    """Returns numbers for JSON: NaN, Infinity and -Infinity become strings."""
    return [value if math.isfinite(value) else write_number(value) for value in values]


def _event(event: EventRow, data: Mapping[str, Any]) -> LiveEvent:
    view = {
        "id": event.id,
        "type": event.type,
        "experiment_id": event.experiment_id,
        "run_id": event.run_id,
        "job_id": event.job_id,
        "at": event.at.isoformat().replace("+00:00", "Z"),
        "data": data,
    }
    frame = encode_frame(event.id, event.type, view)
    return LiveEvent(EventKey.of(event), frame, frame.index(_DATA) + len(_DATA), _resource(event))


def _resource(event: EventRow) -> tuple[str | None, ...] | None:
    if event.type == LOG and event.data["block"] is None:
        return "open_log_lines", event.project_id, event.run_id, None
    if event.type not in _REPLACED:
        return None
    name = event.data.get("id") or event.data.get("pool")
    return event.type, event.project_id, event.run_id, name

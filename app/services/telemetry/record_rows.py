"""Writes the rows of the records of batches, and appends their events.

The curves of all runs of all batches are written by common statements: a hundred attempts may send
at once, and the batch of a pack may hold the records of sixteen runs.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from app.db.engine import Session
from app.db.repositories import snapshots as snapshot_rows
from app.db.repositories import telemetry as rows
from app.db.repositories.writers import CarriedRun, Writer
from app.domain.errors import InvalidError
from app.metrics import point_tables
from app.metrics.blocks import Floats
from app.metrics.sort_records import RunProgress, RunRecords
from app.services.events import event_log
from app.services.snapshots import snapshots
from app.services.telemetry import run_logs
from app.services.views.runs import build_evaluation_view
from palestra.contract import telemetry
from palestra.contract.names import new_id
from palestra.contract.telemetry import MAX_SERIES_PER_RUN, write_number

_RATE_SECONDS: Final = 10.0
"""Time constant of the moving average of a run's env_steps per second."""


@dataclass(frozen=True, slots=True)
class RecordContext:
    """The run and the attempt under which a batch's records of one run are stored."""

    run: CarriedRun
    attempt: Writer
    first_seq: int
    """Sequence number of the batch's first new record."""
    last_seq: int
    """Sequence number of the batch's last record."""
    batch_seq: int
    """Sequence number of the batch's first record, which has the JSON pointer `/records/0`."""

    @property
    def event_ids(self) -> dict[str, str]:
        """IDs with which the events of this run are recorded."""
        run = self.run
        return {
            "project_id": run.project_id,
            "experiment_id": run.experiment_id,
            "run_id": run.id,
            "job_id": self.attempt.job_id,
        }

    def pointer(self, seq: int) -> str:
        """Returns the JSON pointer to the batch's record with the sequence number `seq`."""
        return f"/records/{seq - self.batch_seq}"

    @property
    def keys(self) -> dict[str, Any]:
        """Values of the columns that all rows of this run and attempt have."""
        return {"run_id": self.run.id, "attempt_id": self.attempt.id, "fence": self.run.fence}


def update_progress(run: CarriedRun, progress: RunProgress, elapsed: float | None) -> None:
    """Updates the progress of a run, and its speed as a moving average over about ten seconds.

    Args:
        run: The run.
        progress: The run's progress after the batch.
        elapsed: Seconds since the attempt's previous batch; `None` for its first batch.
    """
    if elapsed is not None and elapsed > 0 and progress.env_step >= run.env_step:
        rate, weight = (
            (progress.env_step - run.env_step) / elapsed,
            1 - math.exp(-elapsed / _RATE_SECONDS),
        )
        before = run.env_steps_per_second
        rate = rate if before is None else before + weight * (rate - before)
        run.env_steps_per_second = rate
    run.env_step = max(run.env_step, progress.env_step)
    run.update = max(run.update, progress.update)
    run.episode = max(run.episode, progress.episode)


RunContent = tuple[RecordContext, RunRecords]
"""The records of one run in a batch."""


@dataclass(slots=True)
class _Series:
    """A series that batches add points to."""

    id: int | None = None
    """`None` for a series that is not stored yet."""
    points: int = 0
    """New points."""
    nonfinite: int = 0
    last_env_step: int = 0
    last_value: float = math.nan

    def add(self, last_env_step: int, values: Floats) -> None:
        self.points += len(values)
        self.nonfinite += len(values) - int(np.count_nonzero(np.isfinite(values)))
        self.last_env_step, self.last_value = last_env_step, float(values[-1])

    @property
    def last(self) -> dict[str, Any]:
        """The last point."""
        return {
            "last_env_step": self.last_env_step,
            "last_value": str(write_number(self.last_value)),
        }


class Store:
    """Checks the content of batches, then writes it by statements that all batches share.

    Args:
        session: A writing session.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._series: dict[rows.SeriesKey, _Series] = {}
        self._held: Counter[str] = Counter()
        """Number of series of each run that gets new ones."""
        self._snapshot_ids: set[str] = set()
        """IDs of snapshots that exist."""

    async def load(self, content: Iterable[RunContent]) -> None:
        """Reads what the checks of some content depend on."""
        keys, snapshot_ids = set[rows.SeriesKey](), set[str]()
        for context, records in content:
            keys |= {(context.run.id, name) for table in records.tables for name in table.values}
            snapshot_ids |= {record.snapshot_id for _, record in records.snapshots}
        known = await rows.load_series(self._session, keys)
        self._series = {key: _Series(series_id) for key, series_id in known.items()}
        growing = {run_id for run_id, name in keys - known.keys()}
        if growing:
            self._held = Counter(await rows.count_series(self._session, growing))
        if snapshot_ids:
            self._snapshot_ids = await snapshot_rows.filter_existing(self._session, snapshot_ids)

    def accept(self, batch: Sequence[RunContent]) -> None:
        """Checks a batch, which `write` may then write.

        Raises:
            InvalidError: `too_many_metrics` or `snapshot_exists`.
        """
        made, held = set[str](), self._held.copy()
        new: dict[rows.SeriesKey, _Series] = {}
        for context, records in batch:
            for seq, record in records.snapshots:
                if record.snapshot_id in self._snapshot_ids | made:
                    raise InvalidError(
                        "snapshot_exists",
                        "A snapshot with that id exists. Ids are used once.",
                        pointer=context.pointer(seq),
                    )
                made.add(record.snapshot_id)
            for table in records.tables:
                for name in table.values:
                    key = (context.run.id, name)
                    if key in self._series or key in new:
                        continue
                    held[context.run.id] += 1
                    if held[context.run.id] > MAX_SERIES_PER_RUN:
                        pointer = context.pointer(int(table.seq[0]))
                        raise _build_too_many(pointer)
                    new[key] = _Series()
        self._snapshot_ids |= made
        self._held = held
        self._series |= new

    async def write(self, content: Sequence[RunContent], group: rows.GroupRows) -> None:
        """Writes accepted content: first curves and statistics, then the other records of each run.

        Args:
            content: The content of all batches.
            group: Further rows of the batches, which are written with the curves.
        """
        await self._add_curves(content, group)
        group.stats = [
            {**context.keys, "seq": seq, "body": record.model_dump_json()}
            for context, records in content
            for seq, record in records.stats
        ]
        await rows.write_group(self._session, group)
        for context, records in content:
            if records.tables:
                batch = {
                    "attempt_id": context.attempt.id,
                    "first_seq": context.first_seq,
                    "last_seq": context.last_seq,
                }
                event_log.record(self._session, "points", batch, **context.event_ids)
            if records.lines or records.open_lines:
                await run_logs.append(
                    self._session,
                    context.attempt.id,
                    context.event_ids,
                    records.lines,
                    records.open_lines,
                )
            for seq, snapshot in records.snapshots:
                origin = snapshots.Origin(context.run, context.attempt.id, context.run.fence, seq)
                await snapshots.add_written(self._session, origin, snapshot)
            if records.evaluations:
                await _write_evaluations(self._session, context, records)
            for seq, one in records.stats:
                _record_stats_event(self._session, context, seq, one)

    async def _add_curves(self, content: Sequence[RunContent], group: rows.GroupRows) -> None:
        changed: dict[rows.SeriesKey, _Series] = {}
        for context, records in content:
            for table in records.tables:
                for name, values in table.values.items():
                    series = changed[context.run.id, name] = self._series[context.run.id, name]
                    series.add(int(table.env_step[-1]), values)
        if not changed:
            return
        new = {key: one for key, one in changed.items() if one.id is None}
        group.series = [
            {
                "key": one.id,
                "more_points": one.points,
                "more_nonfinite": one.nonfinite,
                **one.last,
            }
            for one in changed.values()
            if one.id is not None
        ]
        added = await rows.add_series(
            self._session,
            [
                {
                    "run_id": run_id,
                    "name": name,
                    "points": one.points,
                    "nonfinite": one.nonfinite,
                    **one.last,
                }
                for (run_id, name), one in new.items()
            ],
        )
        for one, series_id in zip(new.values(), added, strict=True):
            one.id = series_id
        group.tails = [
            {
                "run_id": context.run.id,
                "attempt_id": context.attempt.id,
                "fence": context.run.fence,
                "first_seq": context.first_seq,
                "last_seq": context.last_seq,
                "points": point_tables.count_points(records.tables),
                "content": point_tables.encode(records.tables),
            }
            for context, records in content
            if records.tables
        ]


def _build_too_many(pointer: str) -> InvalidError:
    message = f"A run holds at most {MAX_SERIES_PER_RUN} series. Use fewer names."
    return InvalidError("too_many_metrics", message, pointer=pointer)


async def _write_evaluations(session: Session, context: RecordContext, content: RunRecords) -> None:
    read = {
        record.snapshot_id for _, record in content.evaluations if record.snapshot_id is not None
    }
    superseded = await snapshot_rows.filter_superseded(session, context.run.id, read)
    new = [_evaluation(context, seq, record, superseded) for seq, record in content.evaluations]
    for row in await rows.add_evaluations(session, new):
        event_log.record(session, "evaluation", build_evaluation_view(row), **context.event_ids)


def _evaluation(
    context: RecordContext, seq: int, record: telemetry.Evaluation, superseded: set[str]
) -> dict[str, Any]:
    return {
        **context.keys,
        "id": new_id("evl"),
        "project_id": context.run.project_id,
        "experiment_id": context.run.experiment_id,
        "job_id": context.attempt.job_id,
        "snapshot_id": record.snapshot_id,
        "seq": seq,
        "env_step": record.env_step,
        "update": record.update,
        "score": record.mean if math.isfinite(record.mean) else None,
        "source": record.source,
        "superseded": record.snapshot_id in superseded,
        "body": record.model_dump_json(),
    }


def _record_stats_event(
    session: Session, context: RecordContext, seq: int, stats: telemetry.EpochStatsRecord
) -> None:
    shown = stats.model_dump(mode="json", exclude={"run", "type"})
    source = {"attempt_id": context.attempt.id, "fence": context.run.fence, "seq": seq}
    event_log.record(session, "stats", {**shown, **source}, **context.event_ids)

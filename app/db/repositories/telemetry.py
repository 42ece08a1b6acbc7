"""Rows that the ingest writes: batches, series and their blocks, log lines, epochs, evaluations."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from sqlalchemy import Table, bindparam, event, func, insert, select, update

from app.db import prepared
from app.db.engine import Session
from app.db.list_parameters import is_any_pair
from app.db.models.curves import (
    EpochStatsRow,
    EvaluationRow,
    SeriesRow,
    TailRow,
    TelemetryBatchRow,
)
from app.db.models.experiments import RunRow
from app.db.models.jobs import AttemptRow
from app.db.models.logs import LogBlockRow
from app.db.prepared import Write
from app.db.repositories.writers import CarriedRun

SeriesKey = tuple[str, str]
"""Run and name."""


async def lock_runs(session: Session, run_ids: Collection[str]) -> Mapping[str, RunRow]:
    """Returns runs, locked against other ingests and claims, always in the same order."""
    query = (
        select(RunRow)
        .where(RunRow.id.in_(run_ids))
        .order_by(RunRow.id)
        .with_for_update(key_share=True)
    )
    return {
        run.id: run
        for run in await session.scalars(query.execution_options(populate_existing=True))
    }


async def list_batches(
    session: Session, attempt_id: str, first_seq: int, last_seq: int
) -> Sequence[TelemetryBatchRow]:
    """Returns an attempt's committed batches that hold records from `first_seq` to `last_seq`."""
    query = select(TelemetryBatchRow).where(
        TelemetryBatchRow.attempt_id == attempt_id,
        TelemetryBatchRow.first_seq <= last_seq,
        TelemetryBatchRow.last_seq >= first_seq,
    )
    return (await session.scalars(query.order_by(TelemetryBatchRow.first_seq))).all()


async def load_series(session: Session, keys: Collection[SeriesKey]) -> dict[SeriesKey, int]:
    """Returns the IDs of those series of `keys` that exist."""
    wanted = set(keys)
    found = {
        (run_id, name): _known[run_id][name]
        for run_id, name in wanted
        if name in _known.get(run_id, ())
    }
    missing = wanted - found.keys()
    if not missing:
        return found
    query = select(SeriesRow.run_id, SeriesRow.name, SeriesRow.id).where(
        is_any_pair(SeriesRow.run_id, SeriesRow.name, missing)
    )
    loaded = {(run_id, name): series_id for run_id, name, series_id in await session.execute(query)}
    if loaded:
        _remember_after_commit(session, loaded)
    return found | loaded


_known: Final[dict[str, dict[str, int]]] = {}
"""IDs of committed series by run and name. A series lives as long as its run."""
_MAX_RUNS: Final = 2_000
"""Runs whose series are kept in memory."""


def _remember_after_commit(session: Session, loaded: Mapping[SeriesKey, int]) -> None:
    @event.listens_for(session.sync_session, "after_commit", once=True)
    def remember(_: object) -> None:
        for (run_id, name), series_id in loaded.items():
            of_run = _known.pop(run_id, {})
            of_run[name] = series_id
            _known[run_id] = of_run
        while len(_known) > _MAX_RUNS:
            del _known[next(iter(_known))]


async def count_series(session: Session, run_ids: Collection[str]) -> dict[str, int]:
    """Returns how many series each run has."""
    query = (
        select(SeriesRow.run_id, func.count())
        .where(SeriesRow.run_id.in_(run_ids))
        .group_by(SeriesRow.run_id)
    )
    return dict((await session.execute(query)).all())


async def add_series(session: Session, rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """Adds series; returns their ids in the same order."""
    if not rows:
        return []
    connection = await session.connection()
    added = list((await connection.execute(_ADD_SERIES, list(rows))).scalars())
    keys = [(row["run_id"], row["name"]) for row in rows]
    _remember_after_commit(session, dict(zip(keys, added, strict=True)))
    return added


_series, _runs = cast("Table", SeriesRow.__table__), cast("Table", RunRow.__table__)
_ADD_SERIES: Final = insert(_series).returning(_series.c.id, sort_by_parameter_order=True)
_attempts = cast("Table", AttemptRow.__table__)
_ADD_POINTS: Final = (
    update(_series)
    .where(_series.c.id == bindparam("key"))
    .values(
        points=_series.c.points + bindparam("more_points"),
        nonfinite=_series.c.nonfinite + bindparam("more_nonfinite"),
        last_env_step=bindparam("last_env_step"),
        last_value=bindparam("last_value"),
    )
)
ADD_TAILS: Final = insert(cast("Table", TailRow.__table__))
_ADD_BATCHES: Final = insert(cast("Table", TelemetryBatchRow.__table__))
_ADD_STATS: Final = insert(cast("Table", EpochStatsRow.__table__))
_ACKNOWLEDGE: Final = (
    update(_attempts)
    .where(_attempts.c.id == bindparam("key"))
    .values(acked_seq=bindparam("acked_seq"))
)
_ADVANCE: Final = (
    update(_runs)
    .where(_runs.c.id == bindparam("key"))
    .values(
        env_step=bindparam("new_env_step"),
        update_count=bindparam("new_update"),
        episode=bindparam("new_episode"),
        env_steps_per_second=bindparam("rate"),
    )
)


@dataclass(slots=True)
class GroupRows:
    """Rows that a group of batches writes."""

    series: list[dict[str, Any]] = field(default_factory=list)
    """`key`, `more_points`, `more_nonfinite`, `last_env_step`, `last_value`."""
    tails: list[dict[str, Any]] = field(default_factory=list)
    batches: list[dict[str, Any]] = field(default_factory=list)
    stats: list[dict[str, Any]] = field(default_factory=list)
    """Statistics of epochs."""
    acked: list[dict[str, Any]] = field(default_factory=list)
    """`key` and `acked_seq` of each attempt."""
    runs: list[CarriedRun] = field(default_factory=list)
    """Runs with new progress."""


async def write_group(session: Session, group: GroupRows) -> None:
    """Writes the rows of a group of batches."""
    progress = [
        {
            "key": run.id,
            "new_env_step": run.env_step,
            "new_update": run.update,
            "new_episode": run.episode,
            "rate": run.env_steps_per_second,
        }
        for run in {run.id: run for run in group.runs}.values()
    ]
    writes = [
        Write(_ADD_POINTS, group.series),
        Write(ADD_TAILS, group.tails),
        Write(_ADD_BATCHES, group.batches),
        Write(_ADD_STATS, group.stats),
        Write(_ACKNOWLEDGE, group.acked),
        Write(_ADVANCE, progress),
    ]
    await prepared.write(session, writes)


async def add_evaluations(
    session: Session, rows: Sequence[Mapping[str, Any]]
) -> Sequence[EvaluationRow]:
    """Adds evaluations; returns them in the same order."""
    found = [EvaluationRow(**row) for row in rows]
    session.add_all(found)
    await session.flush()
    for row in found:
        await session.refresh(row, ["created_at"])
    return found


async def read_log_end(session: Session, run_id: str) -> tuple[int, int]:
    """Returns the last line of a run's log and the bytes of all its lines."""
    query = select(LogBlockRow.last_line, LogBlockRow.total_bytes).where(
        LogBlockRow.run_id == run_id
    )
    row = (await session.execute(query.order_by(LogBlockRow.first_line.desc()).limit(1))).first()
    return (0, 0) if row is None else (row[0], row[1])


async def add_log(session: Session, row: Mapping[str, Any]) -> int:
    """Adds log lines as a block; returns the ID of the block."""
    found: int = (
        await session.execute(insert(LogBlockRow).returning(LogBlockRow.id), [dict(row)])
    ).scalar_one()
    return found

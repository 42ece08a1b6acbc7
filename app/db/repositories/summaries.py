"""Rows of the summaries of runs: how far they are, what they need, and what they hold."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple, cast

from sqlalchemy import Table, and_, bindparam, delete, or_, select, update

from app.db import prepared
from app.db.engine import Session
from app.db.list_parameters import is_any_of
from app.db.models.base import Base
from app.db.models.curves import BlockRow, SeriesRow
from app.db.models.events import EventRow
from app.db.models.experiments import ExperimentRow, RunRow
from app.db.models.summaries import (
    RunSummaryRow,
    SeriesNameRow,
    SeriesSummaryRow,
    SetupRow,
    SummaryProgressRow,
    ThresholdCrossingRow,
    ThresholdRow,
)
from app.db.prepared import Write
from app.db.repositories.stale_summaries import mark_stale
from app.db.upsert import build_insert, insert_new

_CHANGES: Final = ("points", "evaluation", "run")
"""Types of the events after which the summary of a run may differ."""
_PROGRESS: Final = 1
_states: Final = cast("Table", RunSummaryRow.__table__)
_ADVANCE: Final = (
    update(_states)
    .where(_states.c.run_id == bindparam("key"))
    .values(
        version=bindparam("new_version"),
        fence=bindparam("fence"),
        places=bindparam("places"),
        first_wall=bindparam("first_wall"),
    )
)


class Change(NamedTuple):
    """A run about which there are events of a type."""

    run_id: str
    type: str


class SummarisedRun(NamedTuple):
    """What the summary of a run depends on beside its records."""

    id: str
    project_id: str
    experiment_id: str
    fence: int
    agent: str
    env: str
    kind: str


class SummaryState(NamedTuple):
    """How far a run is summarised."""

    run_id: str
    fence: int
    version: int
    places: Mapping[str, int]
    first_wall: float | None


class BlockPlace(NamedTuple):
    """A block of a series of a run, in the order of their points."""

    fence: int
    attempt_id: str
    first_seq: int
    id: int
    name: str


class KeptCrossing(NamedTuple):
    """The first crossing of a threshold as it is stored."""

    env_step: int
    wall: float
    seconds: float


@dataclass(frozen=True, slots=True)
class NewSummary:
    """What is written of a run."""

    run: SummarisedRun
    state: SummaryState | None
    """What was read; `None` for a run without a row."""
    places: Mapping[str, int]
    first_wall: float | None
    replaces: bool
    """Whether rows that are not among `series` are deleted."""
    series: Mapping[str, Mapping[str, Any]]
    """Columns of the summary of each series by name."""
    crossings: Mapping[int, KeptCrossing]
    """New or changed first crossings by the ID of the threshold."""


async def read_progress(session: Session) -> int:
    """Returns the ID of the last event that was considered."""
    return await session.scalar(select(SummaryProgressRow.event_id)) or 0


async def set_progress(session: Session, event_id: int) -> None:
    """Stores the ID of the last event that was considered, unless it is a lower one."""
    row = {"id": _PROGRESS, "event_id": event_id}
    await session.execute(insert_new(session, SummaryProgressRow, [row]))
    await session.execute(
        update(SummaryProgressRow)
        .where(SummaryProgressRow.event_id < event_id)
        .values(event_id=event_id)
        .execution_options(synchronize_session=False)
    )


async def list_changes(session: Session, after: int, last: int) -> list[Change]:
    """Returns the runs with events after `after` up to `last`, once for each type."""
    query = select(EventRow.run_id, EventRow.type).distinct()
    query = query.where(
        EventRow.id > after,
        EventRow.id <= last,
        EventRow.run_id.is_not(None),
        EventRow.type.in_(_CHANGES),
    )
    return [Change(run_id or "", kind) for run_id, kind in await session.execute(query)]


async def load_runs(session: Session, run_ids: Collection[str]) -> list[SummarisedRun]:
    """Returns those of the runs that exist."""
    if not run_ids:
        return []
    columns = (RunRow.id, RunRow.project_id, RunRow.experiment_id, RunRow.fence)
    query = select(*columns, ExperimentRow.agent, ExperimentRow.env, ExperimentRow.kind).join(
        ExperimentRow,
        (ExperimentRow.project_id == RunRow.project_id)
        & (ExperimentRow.id == RunRow.experiment_id),
    )
    return [
        SummarisedRun(*row)
        for row in await session.execute(query.where(is_any_of(RunRow.id, run_ids)))
    ]


async def load_states(session: Session, run_ids: Collection[str]) -> dict[str, SummaryState]:
    """Returns how far runs are summarised."""
    if not run_ids:
        return {}
    query = select(
        RunSummaryRow.run_id,
        RunSummaryRow.fence,
        RunSummaryRow.version,
        RunSummaryRow.places,
        RunSummaryRow.first_wall,
    )
    return {
        row[0]: SummaryState(*row)
        for row in await session.execute(query.where(is_any_of(RunSummaryRow.run_id, run_ids)))
    }


async def load_series(
    session: Session, run_ids: Collection[str]
) -> dict[str, dict[str, SeriesSummaryRow]]:
    """Returns the summaries of the series of runs by name."""
    found: dict[str, dict[str, SeriesSummaryRow]] = {run_id: {} for run_id in run_ids}
    if not found:
        return found
    query = select(SeriesSummaryRow, SeriesNameRow.name).join(
        SeriesNameRow, SeriesNameRow.id == SeriesSummaryRow.name_id
    )
    rows = await session.execute(query.where(is_any_of(SeriesSummaryRow.run_id, run_ids)))
    for row, name in rows:
        found[row.run_id][name] = row
    return found


async def list_blocks(
    session: Session, run_id: str, fence: int | None = None, places: Mapping[str, int] | None = None
) -> list[BlockPlace]:
    """Returns the blocks of a run in the order of their points, without contents.

    Args:
        session: A session.
        run_id: The run.
        fence: Only blocks with this fence.
        places: Only blocks with points after the last summarised record of their attempt.
    """
    query = (
        select(BlockRow.fence, BlockRow.attempt_id, BlockRow.first_seq, BlockRow.id, SeriesRow.name)
        .join(SeriesRow, SeriesRow.id == BlockRow.series_id)
        .where(SeriesRow.run_id == run_id)
    )
    if fence is not None:
        query = query.where(BlockRow.fence == fence)
    if places:
        new = [
            and_(BlockRow.attempt_id == attempt_id, BlockRow.last_seq > seq)
            for attempt_id, seq in places.items()
        ]
        query = query.where(or_(BlockRow.attempt_id.not_in(places), *new))
    return sorted(BlockPlace(*row) for row in await session.execute(query))


async def load_thresholds(
    session: Session, project_ids: Collection[str]
) -> dict[str, list[ThresholdRow]]:
    """Returns the thresholds of projects by name."""
    found: dict[str, list[ThresholdRow]] = {project_id: [] for project_id in project_ids}
    query = select(ThresholdRow).where(ThresholdRow.project_id.in_(project_ids))
    for row in await session.scalars(query.order_by(ThresholdRow.name)):
        found[row.project_id].append(row)
    return found


async def load_crossings(
    session: Session, run_ids: Collection[str]
) -> dict[str, dict[int, KeptCrossing]]:
    """Returns where runs first reached thresholds, by run and ID of the threshold."""
    row = ThresholdCrossingRow
    query = select(row.run_id, row.threshold_id, row.env_step, row.wall, row.seconds)
    found: dict[str, dict[int, KeptCrossing]] = defaultdict(dict)
    if not run_ids:
        return found
    for one in await session.execute(query.where(is_any_of(row.run_id, run_ids))):
        found[one.run_id][one.threshold_id] = KeptCrossing(one.env_step, one.wall, one.seconds)
    return found


async def write(session: Session, summaries: Sequence[NewSummary]) -> set[str]:
    """Writes the summaries of runs that no other process has changed meanwhile.

    Returns the IDs of these runs.
    """
    taken = await _advance(session, summaries)
    names = await _find_names(session, {name for one in taken for name in one.series})
    setups = await _find_setups(session, {one.run[1:2] + one.run[4:6] for one in taken})
    replaced = [one.run.id for one in taken if one.replaces]
    if replaced:
        for model in (SeriesSummaryRow, ThresholdCrossingRow):
            await session.execute(
                delete(model)
                .where(is_any_of(model.run_id, replaced))
                .execution_options(synchronize_session=False)
            )
    rows = [
        {
            "run_id": one.run.id,
            "name_id": names[name],
            "setup_id": setups[one.run[1:2] + one.run[4:6]],
            **columns,
        }
        for one in taken
        for name, columns in one.series.items()
    ]
    if rows:
        dialect = session.get_bind().dialect.name
        await session.execute(_build_replacement(dialect, SeriesSummaryRow), rows)
    await _write_crossings(session, taken)
    return {one.run.id for one in taken}


async def _write_crossings(session: Session, taken: Sequence[NewSummary]) -> None:
    wanted = {threshold_id for one in taken for threshold_id in one.crossings}
    # One that was removed since it was read has no crossings any more.
    query = select(ThresholdRow.id).where(ThresholdRow.id.in_(wanted))
    present = set(await session.scalars(query)) if wanted else set()
    crossings = [
        {"run_id": one.run.id, "threshold_id": threshold_id, **kept._asdict()}
        for one in taken
        for threshold_id, kept in one.crossings.items()
        if threshold_id in present
    ]
    if crossings:
        dialect = session.get_bind().dialect.name
        await session.execute(_build_replacement(dialect, ThresholdCrossingRow), crossings)


@cache
def _build_replacement(dialect: str, model: type[Base]) -> Any:
    """Returns the statement that adds rows of a table or replaces them."""
    table = cast("Table", model.__table__)
    statement = build_insert(dialect, table)
    keys = [column.name for column in table.primary_key]
    replaced = {
        column.name: statement.excluded[column.name]
        for column in table.columns
        if column.name not in keys
    }
    return statement.on_conflict_do_update(index_elements=keys, set_=replaced)


async def _advance(session: Session, summaries: Sequence[NewSummary]) -> list[NewSummary]:
    """Writes how far runs are summarised; returns those that no other process wrote meanwhile."""
    known_ids = [one.run.id for one in summaries if one.state is not None]
    query = select(RunSummaryRow.run_id, RunSummaryRow.version).order_by(RunSummaryRow.run_id)
    query = query.where(is_any_of(RunSummaryRow.run_id, known_ids)).with_for_update()
    versions = dict((await session.execute(query)).all()) if known_ids else {}
    taken = []
    for one in summaries:
        if one.state is None:
            is_taken = await _add_state(session, one)
        else:
            is_taken = versions.get(one.run.id) == one.state.version
        if is_taken:
            taken.append(one)
    advanced = [
        {"key": one.run.id, "new_version": one.state.version + 1, **_list_progress(one)}
        for one in taken
        if one.state is not None
    ]
    await prepared.write(session, [Write(_ADVANCE, advanced)])
    return taken


async def _add_state(session: Session, one: NewSummary) -> bool:
    """Adds the row of a run; returns false if another process did before."""
    row = {"run_id": one.run.id, "version": 0, **_list_progress(one)}
    statement = insert_new(session, RunSummaryRow, [row]).returning(RunSummaryRow.run_id)
    return (await session.execute(statement)).first() is not None


def _list_progress(one: NewSummary) -> dict[str, Any]:
    return {"fence": one.run.fence, "places": dict(one.places), "first_wall": one.first_wall}


async def _find_names(session: Session, names: Collection[str]) -> dict[str, int]:
    """Returns the IDs of names of series, which are added where they are missing."""
    if not names:
        return {}
    query = select(SeriesNameRow.name, SeriesNameRow.id)

    async def find(some: Collection[str]) -> dict[str, int]:
        return dict((await session.execute(query.where(is_any_of(SeriesNameRow.name, some)))).all())

    found = await find(names)
    missing = sorted(set(names) - found.keys())
    if not missing:
        return found
    await session.execute(insert_new(session, SeriesNameRow), [{"name": name} for name in missing])
    return found | await find(missing)


Setup = tuple[str, str, str]
"""Project, agent and environment."""


async def _find_setups(session: Session, setups: Collection[Any]) -> dict[Setup, int]:
    return {setup: await find_setup(session, *setup) for setup in sorted(setups)}


async def find_setup(session: Session, project_id: str, agent: str, env: str) -> int:
    """Returns the ID of a setup, which is added if it is missing."""
    query = select(SetupRow.id).where(
        SetupRow.project_id == project_id, SetupRow.agent == agent, SetupRow.env == env
    )
    found = await session.scalar(query)
    if found is None:
        row = {"project_id": project_id, "agent": agent, "env": env}
        await session.execute(insert_new(session, SetupRow, [row]))
        found = await session.scalar(query)
    assert found is not None
    return found


async def move(session: Session, run_ids: Any, setup_id: int) -> None:
    """Gives the summaries of runs another setup, and lets the runs be summarised anew.

    Their crossings are removed, since thresholds belong to projects. A summary that is being
    computed with the setup of before is not written any more.

    Args:
        session: A writing session.
        run_ids: Query of the IDs of the runs.
        setup_id: The setup.
    """
    await session.execute(
        update(SeriesSummaryRow)
        .where(SeriesSummaryRow.run_id.in_(run_ids))
        .values(setup_id=setup_id)
        .execution_options(synchronize_session=False)
    )
    await session.execute(
        delete(ThresholdCrossingRow)
        .where(ThresholdCrossingRow.run_id.in_(run_ids))
        .execution_options(synchronize_session=False)
    )
    await mark_stale(session, RunSummaryRow.run_id.in_(run_ids))

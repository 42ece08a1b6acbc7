"""Rows of experiments, submissions and runs."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    and_,
    false,
    func,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.orm import InstrumentedAttribute

from app.db.bulk_insert import insert_rows
from app.db.clock import db_now
from app.db.engine import Session
from app.db.models.experiments import ExperimentRow, RunRow, SubmissionRow
from app.db.models.jobs import AttemptRow, AttemptRunRow
from app.db.models.summaries import DefinitionMemberRow
from app.db.upsert import insert_new
from app.domain.definition_members import Member
from palestra.contract.states import Cause, RunState

ExperimentKey = tuple[str, str]
"""IDs of a project and of an experiment of it."""


@dataclass(frozen=True, slots=True)
class FailedRuns:
    """Runs of an experiment that failed with the same cause and message."""

    project_id: str
    experiment_id: str
    cause: Cause | None
    message: str
    runs: int
    run_id: str
    """ID of the first such run."""


async def insert_experiment(session: Session, row: dict[str, Any]) -> bool:
    """Inserts an experiment; `False` if the project has one of this identity.

    Waits for an open transaction that inserts the same identity.
    """
    statement = insert_new(session, ExperimentRow, [row]).returning(ExperimentRow.id)
    return (await session.execute(statement)).first() is not None


async def add_members(
    session: Session, project_id: str, experiment_id: str, members: Iterable[Member]
) -> None:
    """Adds the members of the definition of a new experiment."""
    key = {"project_id": project_id, "experiment_id": experiment_id}
    rows = [{**key, **member._asdict()} for member in members]
    if rows:
        await insert_rows(session, DefinitionMemberRow, rows)


async def find_by_identity(
    session: Session, project_id: str, identity_hash: str
) -> ExperimentRow | None:
    """Returns the project's experiment with that identity.

    The row is locked against a concurrent submission until the transaction ends.
    """
    query = select(ExperimentRow).where(
        ExperimentRow.project_id == project_id, ExperimentRow.identity_hash == identity_hash
    )
    return await session.scalar(query.with_for_update().execution_options(populate_existing=True))


async def find(session: Session, project_id: str, experiment_id: str) -> ExperimentRow | None:
    """Returns an experiment of the project."""
    return await session.get(ExperimentRow, (project_id, experiment_id), populate_existing=True)


async def list_by_public_id(
    session: Session, project_ids: Collection[str], experiment_id: str
) -> Sequence[ExperimentRow]:
    """Returns the experiments of that ID in the given projects."""
    query = select(ExperimentRow).where(
        ExperimentRow.project_id.in_(project_ids), ExperimentRow.id == experiment_id
    )
    return (await session.scalars(query.execution_options(populate_existing=True))).all()


async def lock_against_moves(session: Session, project_id: str, experiment_id: str) -> bool:
    """Keeps an experiment in its project until the transaction ends.

    Returns false if the project has no such experiment any more.
    """
    query = select(ExperimentRow.id).where(
        ExperimentRow.project_id == project_id, ExperimentRow.id == experiment_id
    )
    query = query.with_for_update(read=True, key_share=True)
    return await session.scalar(query) is not None


async def set_archived(session: Session, experiment: ExperimentRow, *, archived: bool) -> None:
    """Sets or clears the archived flag of an experiment."""
    mine = (ExperimentRow.project_id == experiment.project_id, ExperimentRow.id == experiment.id)
    value = func.coalesce(ExperimentRow.archived_at, db_now()) if archived else None
    statement = (
        update(ExperimentRow)
        .where(*mine)
        .values(archived_at=value)
        .returning(ExperimentRow.archived_at)
    )
    experiment.archived_at = (await session.execute(statement)).scalar_one()


def matches_experiments(
    project_id: InstrumentedAttribute[str],
    experiment_id: InstrumentedAttribute[str],
    keys: Collection[ExperimentKey],
) -> ColumnElement[bool]:
    """Returns the condition that the columns identify one of the given experiments.

    One comparison per project uses the index, which a comparison of pairs does not on SQLite.
    """
    ids: dict[str, list[str]] = {}
    for project, experiment in keys:
        ids.setdefault(project, []).append(experiment)
    return or_(
        false(),
        *(and_(project_id == project, experiment_id.in_(some)) for project, some in ids.items()),
    )


async def count_runs(
    session: Session, keys: Collection[ExperimentKey]
) -> dict[ExperimentKey, dict[RunState, int]]:
    """Returns, per experiment, the number of its runs in each state."""
    columns = (RunRow.project_id, RunRow.experiment_id, RunRow.state)
    query = select(*columns, func.count()).group_by(*columns)
    rows = await session.execute(
        query.where(matches_experiments(RunRow.project_id, RunRow.experiment_id, keys))
    )
    counts: dict[ExperimentKey, dict[RunState, int]] = {key: {} for key in keys}
    for project_id, experiment_id, state, count in rows:
        counts[project_id, experiment_id][state] = count
    return counts


async def list_failures(
    session: Session, keys: Collection[ExperimentKey], most: int
) -> Sequence[FailedRuns]:
    """Returns, per experiment, at most `most` reasons why runs failed, the most frequent first."""
    message = func.coalesce(RunRow.failure["message"].as_string(), "")
    count, first = func.count().label("runs"), func.min(RunRow.id).label("run_id")
    rank = (
        func.row_number()
        .over(
            partition_by=(RunRow.project_id, RunRow.experiment_id),
            order_by=(func.count().desc(), func.min(RunRow.id)),
        )
        .label("rank")
    )
    same = (RunRow.project_id, RunRow.experiment_id, RunRow.cause)
    grouped = select(*same, message.label("message"), count, first, rank).where(
        matches_experiments(RunRow.project_id, RunRow.experiment_id, keys),
        RunRow.state == RunState.FAILED,
    )
    ranked = grouped.group_by(*same, message).subquery()
    names = ("project_id", "experiment_id", "cause", "message", "runs", "run_id")
    rows = await session.execute(
        select(*(ranked.c[name] for name in names))
        .where(ranked.c.rank <= most)
        .order_by(ranked.c.project_id, ranked.c.experiment_id, ranked.c.rank)
    )
    return [FailedRuns(*row) for row in rows]


async def insert_submission(
    session: Session, experiment: ExperimentRow, provenance: dict[str, Any], user_id: str
) -> SubmissionRow:
    """Adds the record of a submission, and flushes."""
    row = SubmissionRow(
        project_id=experiment.project_id,
        experiment_id=experiment.id,
        provenance=provenance,
        created_by=user_id,
    )
    session.add(row)
    await session.flush()
    return row


async def find_submission(session: Session, submission_id: int) -> SubmissionRow | None:
    """Returns the recorded provenance of a submission."""
    return await session.get(SubmissionRow, submission_id)


async def list_runs_for_seeds(
    session: Session, experiment: ExperimentRow, seeds: Collection[int]
) -> Sequence[RunRow]:
    """Returns the first replicates of the given seeds, by seed."""
    mine = (
        RunRow.project_id == experiment.project_id,
        RunRow.experiment_id == experiment.id,
        RunRow.replicate == 0,
    )
    return (
        await session.scalars(
            select(RunRow).where(*mine, RunRow.seed.in_(seeds)).order_by(RunRow.seed)
        )
    ).all()


async def insert_runs(session: Session, rows: Sequence[dict[str, Any]]) -> list[RunRow]:
    """Adds one run per dict.

    Returns:
        The runs, of which the session knows nothing.
    """
    return await insert_rows(session, RunRow, rows)


async def find_place_of_run(session: Session, run: RunRow) -> int:
    """Returns the index of a run among the runs of its experiment, 0 for the oldest."""
    query = (
        select(func.count())
        .select_from(RunRow)
        .where(
            RunRow.project_id == run.project_id,
            RunRow.experiment_id == run.experiment_id,
            tuple_(RunRow.created_at, RunRow.id) < tuple_(run.created_at, run.id),
        )
    )
    return (await session.scalar(query)) or 0


async def find_run(session: Session, project_ids: Collection[str], run_id: str) -> RunRow | None:
    """Returns a run of one of the given projects."""
    query = select(RunRow).where(RunRow.project_id.in_(project_ids), RunRow.id == run_id)
    return await session.scalar(query.execution_options(populate_existing=True))


async def list_runs(session: Session, run_ids: Iterable[str]) -> Sequence[RunRow]:
    """Returns runs by ID, read from the database again."""
    return (
        await session.scalars(
            select(RunRow)
            .where(RunRow.id.in_(tuple(run_ids)))
            .execution_options(populate_existing=True)
        )
    ).all()


async def lock_run(session: Session, run_id: str) -> None:
    """Locks a run against concurrent submissions of jobs until the transaction ends."""
    await session.execute(select(RunRow.id).where(RunRow.id == run_id).with_for_update())


async def set_jobs(session: Session, jobs: Sequence[tuple[RunRow, str]]) -> None:
    """Sets the latest training job of new runs, which the session does not hold."""
    for run, job_id in jobs:
        run.job_id = job_id
    await session.execute(update(RunRow), [{"id": run.id, "job_id": job} for run, job in jobs])


def change_run(run: RunRow, values: Mapping[str, Any]) -> None:
    """Sets columns of a run."""
    for name, value in values.items():
        setattr(run, name, value)


def set_progress(run: RunRow, env_step: int, update_count: int, episode: int) -> None:
    """Sets the position of a run, whose speed is unknown there."""
    run.env_step, run.update, run.episode = env_step, update_count, episode
    run.env_steps_per_second = None


def set_max_running(experiment: ExperimentRow, max_running: int | None) -> None:
    """Sets how many jobs of an experiment may run at once; `None`: any number."""
    experiment.max_running = max_running


async def load_by_keys(
    session: Session, keys: Collection[ExperimentKey]
) -> dict[ExperimentKey, ExperimentRow]:
    """Returns experiments by project ID and ID."""
    query = select(ExperimentRow).where(
        matches_experiments(ExperimentRow.project_id, ExperimentRow.id, keys)
    )
    return {(row.project_id, row.id): row for row in await session.scalars(query)}


async def load_definitions(
    session: Session, keys: Collection[ExperimentKey]
) -> dict[ExperimentKey, str]:
    """Returns the stored definitions of experiments."""
    query = select(ExperimentRow.project_id, ExperimentRow.id, ExperimentRow.definition)
    rows = await session.execute(
        query.where(matches_experiments(ExperimentRow.project_id, ExperimentRow.id, keys))
    )
    return {(project_id, experiment_id): text for project_id, experiment_id, text in rows}


async def list_attempts_for_run(session: Session, run_id: str) -> Sequence[AttemptRow]:
    """Returns the attempts that carried a run, oldest first."""
    query = (
        select(AttemptRow)
        .join(AttemptRunRow, AttemptRunRow.attempt_id == AttemptRow.id)
        .where(AttemptRunRow.run_id == run_id)
    )
    return (await session.scalars(query.order_by(AttemptRow.started_at, AttemptRow.id))).all()

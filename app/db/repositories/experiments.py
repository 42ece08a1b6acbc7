"""Rows of experiments, submissions and runs."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Select, exists, func, select, update
from sqlalchemy.orm import InstrumentedAttribute

from app.db.clock import db_now
from app.db.engine import Session
from app.db.models.experiments import Experiment, Run, Submission
from app.db.models.jobs import Attempt, AttemptRun, JobRun
from app.db.models.projects import User
from app.db.repositories.keysets import paged
from app.db.upsert import insert_new
from app.domain.derived import EXPERIMENT_ORDER
from app.domain.paging import Keyset
from palestra.contract.states import RunState

EXPERIMENT_COLUMNS: Final[Mapping[str, InstrumentedAttribute[Any]]] = {"created_at": Experiment.created_at, "name": Experiment.name}
RUN_COLUMNS: Final[Mapping[str, InstrumentedAttribute[Any]]] = {"created_at": Run.created_at, "seed": Run.seed, "env_step": Run.env_step}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentFilter:
    """Which experiments to list; `None` takes all."""

    state: RunState | None = None
    agent: str | None = None
    env: str | None = None
    text: str | None = None
    """Part of the name or of the ID, in any case."""
    archived: bool | None = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs to list; `None` takes all."""

    experiment_id: str | None = None
    state: RunState | None = None


@dataclass(frozen=True, slots=True)
class FailedRuns:
    """Runs of an experiment that failed with the same cause and message."""

    experiment_id: str
    cause: str | None
    message: str
    runs: int
    run_id: str
    """The first of them."""


async def insert_experiment(session: Session, row: dict[str, Any]) -> bool:
    """Inserts an experiment; `False` if the project has one of this identity. Waits for an insert that is under way."""
    statement = insert_new(session, Experiment, [row]).returning(Experiment.id)
    return (await session.execute(statement)).first() is not None


async def by_identity(session: Session, project_id: str, identity_hash: str) -> Experiment | None:
    """Returns the project's experiment of that identity, locked against a concurrent submission until the transaction ends."""
    query = select(Experiment).where(Experiment.project_id == project_id, Experiment.identity_hash == identity_hash)
    return await session.scalar(query.with_for_update().execution_options(populate_existing=True))


async def get(session: Session, project_id: str, experiment_id: str) -> Experiment | None:
    """Returns an experiment of the project."""
    return await session.get(Experiment, (project_id, experiment_id), populate_existing=True)


async def set_archived(session: Session, experiment: Experiment, *, archived: bool) -> None:
    """Archives an experiment, or brings it back."""
    mine = (Experiment.project_id == experiment.project_id, Experiment.id == experiment.id)
    value = func.coalesce(Experiment.archived_at, db_now()) if archived else None
    statement = update(Experiment).where(*mine).values(archived_at=value).returning(Experiment.archived_at)
    experiment.archived_at = (await session.execute(statement)).scalar_one()


async def page(session: Session, project_id: str, wanted: ExperimentFilter, keys: Keyset) -> Sequence[Experiment]:
    """Returns a page of experiments and one row more."""
    query = select(Experiment).where(Experiment.project_id == project_id)
    equal = {Experiment.agent: wanted.agent, Experiment.env: wanted.env}
    query = query.where(*(column == value for column, value in equal.items() if value is not None))
    if wanted.archived is not None:
        query = query.where(Experiment.archived_at.is_not(None) if wanted.archived else Experiment.archived_at.is_(None))
    if wanted.text:
        query = query.where(
            func.lower(Experiment.name).contains(wanted.text.lower(), autoescape=True)
            | Experiment.id.contains(wanted.text.lower(), autoescape=True)
        )
    if wanted.state is not None:
        query = _in_state(query, wanted.state)
    return (await session.scalars(paged(query, keys, EXPERIMENT_COLUMNS, Experiment.id))).all()


def _in_state(query: Select[Experiment], state: RunState) -> Select[Experiment]:
    """The rule of `app.domain.derived.experiment_state` in SQL."""
    own = (Run.project_id == Experiment.project_id, Run.experiment_id == Experiment.id)
    before = [other.value for other in EXPERIMENT_ORDER[: EXPERIMENT_ORDER.index(state)]]
    return query.where(exists().where(*own, Run.state == state.value), ~exists().where(*own, Run.state.in_(before)))


async def run_counts(session: Session, project_id: str, experiment_ids: Collection[str]) -> dict[str, dict[RunState, int]]:
    """Returns, per experiment, how many of its runs are in which state."""
    query = select(Run.experiment_id, Run.state, func.count()).group_by(Run.experiment_id, Run.state)
    rows = await session.execute(query.where(Run.project_id == project_id, Run.experiment_id.in_(experiment_ids)))
    counts: dict[str, dict[RunState, int]] = {experiment_id: {} for experiment_id in experiment_ids}
    for experiment_id, state, count in rows:
        counts[experiment_id][RunState(state)] = count
    return counts


async def failures(session: Session, project_id: str, experiment_ids: Collection[str], most: int) -> Sequence[FailedRuns]:
    """Returns why runs failed, per experiment the `most` frequent reasons, the most frequent first."""
    message = func.coalesce(Run.failure["message"].as_string(), "")
    count, first = func.count().label("runs"), func.min(Run.id).label("run_id")
    rank = func.row_number().over(partition_by=Run.experiment_id, order_by=(func.count().desc(), func.min(Run.id))).label("rank")
    grouped = select(Run.experiment_id, Run.cause, message.label("message"), count, first, rank)
    grouped = grouped.where(Run.project_id == project_id, Run.experiment_id.in_(experiment_ids), Run.state == RunState.FAILED.value)
    ranked = grouped.group_by(Run.experiment_id, Run.cause, message).subquery()
    columns = (ranked.c[name] for name in ("experiment_id", "cause", "message", "runs", "run_id"))
    rows = await session.execute(select(*columns).where(ranked.c.rank <= most).order_by(ranked.c.experiment_id, ranked.c.rank))
    return [FailedRuns(*row) for row in rows]


async def insert_submission(session: Session, experiment: Experiment, provenance: dict[str, Any], user_id: str) -> int:
    """Adds what a submitter recorded; returns its id."""
    row = Submission(project_id=experiment.project_id, experiment_id=experiment.id, provenance=provenance, created_by=user_id)
    session.add(row)
    await session.flush()
    return row.id


async def submission(session: Session, submission_id: int) -> Submission | None:
    """Returns what a submitter recorded."""
    return await session.get(Submission, submission_id)


async def seeds_of(session: Session, experiment: Experiment) -> frozenset[int]:
    """Returns the seeds that the experiment has a first replicate of."""
    query = select(Run.seed).where(Run.project_id == experiment.project_id, Run.experiment_id == experiment.id, Run.replicate == 0)
    return frozenset(await session.scalars(query))


async def runs_of_seeds(session: Session, experiment: Experiment, seeds: Collection[int]) -> Sequence[Run]:
    """Returns the first replicates of some seeds, by seed."""
    mine = (Run.project_id == experiment.project_id, Run.experiment_id == experiment.id, Run.replicate == 0)
    return (await session.scalars(select(Run).where(*mine, Run.seed.in_(seeds)).order_by(Run.seed))).all()


async def insert_runs(session: Session, rows: list[dict[str, Any]]) -> list[Run]:
    """Adds runs."""
    added = [Run(**row) for row in rows]
    session.add_all(added)
    await session.flush()
    return added


async def run(session: Session, project_id: str, run_id: str) -> Run | None:
    """Returns a run of the project."""
    query = select(Run).where(Run.project_id == project_id, Run.id == run_id)
    return await session.scalar(query.execution_options(populate_existing=True))


async def runs(session: Session, run_ids: Iterable[str]) -> Sequence[Run]:
    """Returns runs by id, as they are in the database now."""
    return (await session.scalars(select(Run).where(Run.id.in_(tuple(run_ids))).execution_options(populate_existing=True))).all()


async def runs_of_job(session: Session, job_id: str, *, lock: bool = False) -> Sequence[Run]:
    """Returns the runs of a job in their order; locked, in the order of their ids, against concurrent claims."""
    query = select(Run).join(JobRun, JobRun.run_id == Run.id).where(JobRun.job_id == job_id).execution_options(populate_existing=True)
    if lock:
        locked = (await session.scalars(query.order_by(Run.id).with_for_update(of=Run))).all()
        places = dict((await session.execute(select(JobRun.run_id, JobRun.position).where(JobRun.job_id == job_id))).all())
        return sorted(locked, key=lambda row: places[row.id])
    return (await session.scalars(query.order_by(JobRun.position))).all()


async def run_page(session: Session, project_id: str, wanted: RunFilter, keys: Keyset) -> Sequence[Run]:
    """Returns a page of runs and one row more."""
    query = select(Run).where(Run.project_id == project_id)
    if wanted.experiment_id is not None:
        query = query.where(Run.experiment_id == wanted.experiment_id)
    if wanted.state is not None:
        query = query.where(Run.state == wanted.state.value)
    return (await session.scalars(paged(query, keys, RUN_COLUMNS, Run.id))).all()


async def lock_run(session: Session, run_id: str) -> None:
    """Holds a run against concurrent submissions of jobs until the transaction ends."""
    await session.execute(select(Run.id).where(Run.id == run_id).with_for_update())


async def set_run(session: Session, run_id: str, values: dict[str, Any]) -> None:
    """Writes columns of a run."""
    await session.execute(update(Run).where(Run.id == run_id).values(**values))


async def definitions(session: Session, project_id: str, experiment_ids: Collection[str]) -> dict[str, str]:
    """Returns the stored definitions of experiments."""
    query = select(Experiment.id, Experiment.definition)
    rows = await session.execute(query.where(Experiment.project_id == project_id, Experiment.id.in_(experiment_ids)))
    return dict(rows.all())


async def user_names(session: Session, user_ids: Collection[str]) -> dict[str, str]:
    """Returns the names of users."""
    rows = await session.execute(select(User.id, User.name).where(User.id.in_(user_ids)))
    return dict(rows.all())


async def attempts_of_run(session: Session, run_id: str) -> Sequence[Attempt]:
    """Returns the attempts that carried a run, oldest first."""
    query = select(Attempt).join(AttemptRun, AttemptRun.attempt_id == Attempt.id).where(AttemptRun.run_id == run_id)
    return (await session.scalars(query.order_by(Attempt.started_at, Attempt.id))).all()

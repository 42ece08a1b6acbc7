"""What lists show of their runs, by statements that are built once for each dialect.

A list of 100 runs spent more time on building statements with 100 parameters, and on objects of
the mapper, than the database took to answer.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    String,
    bindparam,
    case,
    func,
    literal_column,
    select,
    union,
)
from sqlalchemy import any_ as sql_any
from sqlalchemy.orm import InstrumentedAttribute

from app.db.engine import Session
from app.db.models.curves import EvaluationRow
from app.db.models.experiments import ExperimentRow, RunRow
from app.db.models.jobs import AttemptRow, AttemptRunRow
from app.db.models.projects import ProjectRow, UserRow
from app.db.models.snapshots import SnapshotRow
from app.db.repositories.combined_reads import Read, fetch_all
from app.db.repositories.experiments import ExperimentKey
from app.domain.definition_members import write_text
from palestra.contract.names import EvaluationSource
from palestra.contract.states import SnapshotState

_FARTHEST: Final = (
    EvaluationRow.env_step.desc(), EvaluationRow.update.desc(), EvaluationRow.id.desc(),
)  # fmt: skip
_RUN: Final = (
    "id", "project_id", "experiment_id", "seed", "replicate", "fence", "state", "cause", "failure",
    "job_id", "resume_quality", "env_step", "update", "episode", "env_steps_per_second",
    "created_by", "created_at", "started_at", "finished_at",
)  # fmt: skip
_EVALUATION: Final = (
    "id", "run_id", "job_id", "attempt_id", "snapshot_id", "superseded", "created_at", "body",
    "score", "env_step", "update",
)  # fmt: skip


async def load_runs(
    session: Session, run_ids: Sequence[str], project_ids: Collection[str]
) -> list[Any]:
    """Returns those of some runs that belong to some projects, in the order of `run_ids`.

    The rows have the columns of `RunRow` that lists show, under the same names.
    """
    dialect = session.get_bind().dialect.name
    (rows,) = await fetch_all(session, [_read(_select_runs, dialect, ids=run_ids)])
    found = {row.id: row for row in rows if row.project_id in project_ids}
    return [found[run_id] for run_id in run_ids if run_id in found]


@dataclass(frozen=True, slots=True)
class ListedParts:
    """What lists show of runs beside their rows.

    Attributes:
        evaluations: The latest and the best evaluation of each run that has any. The latest one is
            that at the latest position of the run's history, the best one that with the highest
            finite mean return. Of several the one at the latest position is taken, then the newest.
        definitions: The stored definitions of the experiments.
        users: Login names by ID.
        slugs: Slugs of projects by ID.
        progress: Per run, the env_step of the newest snapshot and of the newest stored snapshot;
            superseded ones do not count.
        backlogs: What the live attempts that train the runs have not uploaded, by run.
    """

    evaluations: Mapping[str, tuple[Any, Any | None]]
    definitions: Mapping[ExperimentKey, str]
    users: Mapping[str, str]
    slugs: Mapping[str, str]
    progress: Mapping[str, tuple[int | None, int | None]]
    backlogs: Mapping[str, Mapping[str, Any] | None]


async def load_parts(session: Session, runs: Sequence[Any]) -> ListedParts:
    """Returns what lists show of runs, given their rows."""
    dialect = session.get_bind().dialect.name
    ids = [run.id for run in runs]
    projects = sorted({run.project_id for run in runs})
    experiments = sorted({run.experiment_id for run in runs})
    users = sorted({run.created_by for run in runs})
    found = await fetch_all(
        session,
        [
            _read(_select_evaluations, dialect, ids=ids),
            _read(_select_definitions, dialect, ids=experiments, projects=projects),
            _read(_select_users, dialect, ids=users),
            _read(_select_slugs, dialect, ids=projects),
            _read(_select_progress, dialect, ids=ids),
            _read(_select_backlogs, dialect, ids=ids),
        ],
    )
    of_run: dict[str, list[Any]] = {}
    for row in found[0]:
        of_run.setdefault(row.run_id, []).append(row)
    return ListedParts(
        {run_id: (max(rows, key=_place), _find_best(rows)) for run_id, rows in of_run.items()},
        {(row.project_id, row.id): row.definition for row in found[1]},
        {row.id: row.name for row in found[2]},
        {row.id: row.slug for row in found[3]},
        {row.run_id: (row.written, row.verified) for row in found[4]},
        {row.run_id: row.backlog for row in found[5]},
    )


def _place(row: Any) -> tuple[int, int, str]:
    return row.env_step, row.update, row.id


def _find_best(rows: Iterable[Any]) -> Any | None:
    scored = [row for row in rows if row.score is not None]
    return max(scored, key=lambda row: (row.score, *_place(row)), default=None)


def _read(build: Any, dialect: str, **lists: Sequence[str]) -> Read:
    values = {
        name: write_text(list(some)) if dialect == "sqlite" else list(some)
        for name, some in lists.items()
    }
    return Read(build(dialect), values)


def _is_asked(
    dialect: str, column: InstrumentedAttribute[Any], parameter: str = "ids"
) -> ColumnElement[bool]:
    """Returns the condition that a column is one of the values of a parameter."""
    if dialect == "sqlite":
        asked = func.json_each(bindparam(parameter, type_=String)).table_valued("value")
        return column.in_(select(asked.c.value))
    return column == sql_any(bindparam(parameter, type_=ARRAY(String)))


def _list_columns(row: type[Any], names: Iterable[str]) -> list[Any]:
    return [getattr(row, name).label(name) for name in names]


@cache
def _select_runs(dialect: str) -> Any:
    return select(*_list_columns(RunRow, _RUN)).where(_is_asked(dialect, RunRow.id))


@cache
def _select_evaluations(dialect: str) -> Any:
    latest = _first_of_run(order=_FARTHEST)
    best = _first_of_run(
        EvaluationRow.score.is_not(None), order=(EvaluationRow.score.desc(), *_FARTHEST)
    )
    asked = _is_asked(dialect, RunRow.id)
    chosen: Any = union(select(latest).where(asked), select(best).where(asked))
    return select(*_list_columns(EvaluationRow, _EVALUATION)).where(EvaluationRow.id.in_(chosen))


def _first_of_run(*conditions: ColumnElement[bool], order: tuple[ColumnElement[Any], ...]) -> Any:
    """Returns the ID of the first evaluation of a run, found at the end of an index.

    Numbering all evaluations of the runs would take longer with each that they have.
    """
    return (
        select(EvaluationRow.id)
        .where(
            EvaluationRow.run_id == RunRow.id,
            # The conditions of the indexes, without parameters: else they would not be used.
            ~EvaluationRow.superseded,
            EvaluationRow.source == literal_column(f"'{EvaluationSource.EVALUATION.value}'"),
            *conditions,
        )
        .order_by(*order)
        .limit(literal_column("1"))
        .correlate(RunRow)
        .scalar_subquery()
    )


@cache
def _select_progress(dialect: str) -> Any:
    is_stored = SnapshotRow.state == literal_column(f"'{SnapshotState.VERIFIED.value}'")
    stored = func.max(case((is_stored, SnapshotRow.env_step))).label("verified")
    return (
        select(SnapshotRow.run_id, func.max(SnapshotRow.env_step).label("written"), stored)
        .where(_is_asked(dialect, SnapshotRow.run_id), ~SnapshotRow.superseded)
        .group_by(SnapshotRow.run_id)
    )


@cache
def _select_backlogs(dialect: str) -> Any:
    return (
        select(AttemptRunRow.run_id, AttemptRow.backlog)
        .join(AttemptRow, AttemptRow.id == AttemptRunRow.attempt_id)
        .where(_is_asked(dialect, AttemptRunRow.run_id), AttemptRunRow.live_training)
    )


@cache
def _select_definitions(dialect: str) -> Any:
    row = ExperimentRow
    return select(row.project_id, row.id, row.definition).where(
        _is_asked(dialect, row.project_id, "projects"), _is_asked(dialect, row.id)
    )


@cache
def _select_users(dialect: str) -> Any:
    return select(UserRow.id, UserRow.name).where(_is_asked(dialect, UserRow.id))


@cache
def _select_slugs(dialect: str) -> Any:
    return select(ProjectRow.id, ProjectRow.slug).where(_is_asked(dialect, ProjectRow.id))

"""What lists show of their runs, by statements that are built once.

A list of 100 runs spent more time on building statements with 100 parameters, and on objects of
the mapper, than the database took to answer. What never changes, definitions and evaluations, is
read only where the process does not keep it (`KnownContents`).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Generic, TypeVar

from sqlalchemy import ColumnElement, case, func, literal_column, select

from app.db.list_parameters import is_listed
from app.db.models.curves import EvaluationRow
from app.db.models.experiments import ExperimentRow, RunRow
from app.db.models.jobs import AttemptRow, AttemptRunRow
from app.db.models.projects import ProjectRow, UserRow
from app.db.models.snapshots import SnapshotRow
from app.db.models.summaries import FindingRow
from app.db.prepared import Plan, Read
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
)  # fmt: skip
_FINDING: Final = ("run_id", "rule", "sentence", "remedy", "series", "env_step")
Content = TypeVar("Content")


class KnownContents(Generic[Content]):
    """What a process knows of rows that never change, by key; the oldest contents are dropped.

    Connections look for keys in threads of their own; contents are added in one thread.

    Args:
        capacity: Largest number of contents.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._contents: dict[str, Content] = {}

    def find(self, keys: Iterable[str]) -> dict[str, Content]:
        """Returns the contents that are known."""
        contents = self._contents
        return {key: value for key in keys if (value := contents.get(key)) is not None}

    def add(self, key: str, content: Content) -> None:
        """Adds a content, and drops the oldest one if there are too many."""
        self._contents[key] = content
        while len(self._contents) > self._capacity:
            del self._contents[next(iter(self._contents))]


@dataclass(frozen=True, slots=True)
class ListedRuns:
    """Runs and what lists show beside their rows.

    Attributes:
        rows: Columns of `RunRow` that lists show under the same names; `user_name` and `slug`;
            `definition_hash`; and `latest_id` and `best_id`, the evaluations of each run that has
            any. The latest one is that at the latest position of the run's history, the best one
            that with the highest finite mean return. Of several the one at the latest position is
            taken, then the newest.
        progress: Per run, the env_step of the newest snapshot and of the newest stored snapshot;
            superseded ones do not count.
        attempts: The live attempts that train the runs, by run: their `backlog` and `phase`.
        findings: What health rules find wrong with the runs that have a finding, the gravest first.
        definitions: What the process knows of the definitions by their hash.
        evaluations: What the process knows of the evaluations by their ID.
        new_definitions: Rows of the definitions of which it knew nothing.
        new_evaluations: Rows of the evaluations of which it knew nothing.
    """

    rows: Sequence[Any]
    progress: Mapping[str, tuple[int | None, int | None]]
    attempts: Mapping[str, Any]
    findings: Mapping[str, Sequence[Any]]
    definitions: Mapping[str, Any]
    evaluations: Mapping[str, Any]
    new_definitions: Sequence[Any] = ()
    new_evaluations: Sequence[Any] = ()


def plan_page(
    run_ids: Sequence[str],
    project_ids: Collection[str] | None,
    definitions: KnownContents[Any],
    evaluations: KnownContents[Any],
) -> Plan[ListedRuns]:
    """Reads those of some runs that belong to some projects, in the order of `run_ids`.

    Args:
        run_ids: IDs of runs.
        project_ids: The projects; `None` for all.
        definitions: What the process knows of definitions, by their hash.
        evaluations: What it knows of evaluations, by their ID.
    """
    ids = {"ids": run_ids}
    selects = (_select_runs, _select_progress, _select_attempts, _select_findings)
    runs, progress, attempts, findings = yield [Read(build(), ids) for build in selects]
    by_id = {row.id: row for row in runs if project_ids is None or row.project_id in project_ids}
    rows = [by_id[run_id] for run_id in run_ids if run_id in by_id]
    of_runs: dict[str, list[Any]] = {}
    for row in findings:
        of_runs.setdefault(row.run_id, []).append(row)
    loops = definitions.find({row.definition_hash for row in rows})
    shown = {one for row in rows for one in (row.latest_id, row.best_id) if one is not None}
    scores = evaluations.find(shown)
    # One experiment of each definition.
    undefined = {row.definition_hash: row for row in rows if row.definition_hash not in loops}
    new_ids = sorted(shown - scores.keys())
    new: Sequence[Sequence[Any]] = (), ()
    if undefined or new_ids:
        new = yield [
            Read(_select_definitions(), _list_experiments(undefined.values())),
            Read(_select_evaluations(), {"ids": new_ids}),
        ]
    return ListedRuns(
        rows,
        {row.run_id: (row.written, row.verified) for row in progress},
        {row.run_id: row for row in attempts},
        of_runs,
        loops,
        scores,
        *new,
    )


def _list_experiments(runs: Iterable[Any]) -> Mapping[str, Any]:
    return {
        "projects": sorted({run.project_id for run in runs}),
        "ids": sorted({run.experiment_id for run in runs}),
    }


def _list_columns(row: type[Any], names: Iterable[str]) -> list[Any]:
    return [getattr(row, name).label(name) for name in names]


@cache
def _select_runs() -> Any:
    best = _first_of_run(
        EvaluationRow.score.is_not(None), order=(EvaluationRow.score.desc(), *_FARTHEST)
    )
    return (
        select(
            *_list_columns(RunRow, _RUN),
            UserRow.name.label("user_name"),
            ProjectRow.slug.label("slug"),
            ExperimentRow.definition_hash.label("definition_hash"),
            _first_of_run(order=_FARTHEST).label("latest_id"),
            best.label("best_id"),
        )
        .join(ProjectRow, ProjectRow.id == RunRow.project_id)
        .join(
            ExperimentRow,
            (ExperimentRow.project_id == RunRow.project_id)
            & (ExperimentRow.id == RunRow.experiment_id),
        )
        .outerjoin(UserRow, UserRow.id == RunRow.created_by)
        .where(is_listed(RunRow.id))
    )


@cache
def _select_evaluations() -> Any:
    query = select(*_list_columns(EvaluationRow, _EVALUATION))
    return query.where(is_listed(EvaluationRow.id))


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
            EvaluationRow.source == literal_column(f"'{EvaluationSource.EVALUATION}'"),
            *conditions,
        )
        .order_by(*order)
        .limit(literal_column("1"))
        .correlate(RunRow)
        .scalar_subquery()
    )


@cache
def _select_progress() -> Any:
    is_stored = SnapshotRow.state == literal_column(f"'{SnapshotState.VERIFIED}'")
    stored = func.max(case((is_stored, SnapshotRow.env_step))).label("verified")
    return (
        select(SnapshotRow.run_id, func.max(SnapshotRow.env_step).label("written"), stored)
        .where(is_listed(SnapshotRow.run_id), ~SnapshotRow.superseded)
        .group_by(SnapshotRow.run_id)
    )


@cache
def _select_attempts() -> Any:
    return (
        select(AttemptRunRow.run_id, AttemptRow.backlog, AttemptRow.phase)
        .join(AttemptRow, AttemptRow.id == AttemptRunRow.attempt_id)
        .where(is_listed(AttemptRunRow.run_id), AttemptRunRow.live_training)
    )


@cache
def _select_findings() -> Any:
    query = select(*_list_columns(FindingRow, _FINDING))
    order = FindingRow.run_id, FindingRow.place
    return query.where(is_listed(FindingRow.run_id)).order_by(*order)


@cache
def _select_definitions() -> Any:
    row = ExperimentRow
    return select(row.definition_hash, row.definition).where(
        is_listed(row.project_id, "projects"), is_listed(row.id)
    )

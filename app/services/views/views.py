"""Rows as the resources of the API, many at a time: a list costs a fixed number of queries."""

import statistics
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, TypeVar

from app.db.engine import Session
from app.db.models.curves import EvaluationRow
from app.db.models.experiments import ExperimentRow, RunRow
from app.db.models.jobs import AttemptRow, JobRow
from app.db.models.workers import WorkerRow
from app.db.repositories import attempts as attempt_rows
from app.db.repositories import evaluations as evaluation_rows
from app.db.repositories import experiments as experiment_rows
from app.db.repositories import jobs as job_rows
from app.db.repositories import snapshots as snapshot_rows
from app.db.repositories import workers as worker_rows
from app.db.repositories.experiments import FailedRuns
from app.domain import waiting_reason
from app.domain.derived_states import experiment_state, worker_state
from app.domain.waiting_reason import PoolFacts, Waiting
from palestra.contract import telemetry
from palestra.contract.definition import Definition, LoopSpec, SupervisedEvaluation, SupervisedLoop
from palestra.contract.names import Schedule
from palestra.contract.resources import (
    AttemptView,
    BacklogView,
    EvaluationView,
    ExperimentView,
    JobView,
    ProgressView,
    RunView,
    ScoreView,
    SlotView,
    SnapshotProgressView,
    WorkerView,
)
from palestra.contract.sizes import size_in_words
from palestra.contract.states import AttemptState, JobState, RunState
from palestra.contract.upgrade import load_definition
from palestra.contract.views import View
from palestra.contract.work_order import Backlog

_View = TypeVar("_View", bound=View)

_FAILURES: Final = 5
"""Reasons of failure that an experiment's view names."""


async def experiment_views(session: Session, rows: Sequence[ExperimentRow]) -> list[ExperimentView]:
    """Returns the views of experiments of one project."""
    if not rows:
        return []
    project_id = rows[0].project_id
    ids = [row.id for row in rows]
    counts = await experiment_rows.run_counts(session, project_id, ids)
    scores = await _scores(session, project_id, ids)
    failed = await experiment_rows.failures(session, project_id, ids, _FAILURES)
    names = await experiment_rows.user_names(session, {row.created_by for row in rows})
    return [
        _experiment_view(
            row,
            counts[row.id],
            scores.get(row.id, []),
            failures=[one for one in failed if one.experiment_id == row.id],
            created_by=names[row.created_by],
        )
        for row in rows
    ]


async def _scores(
    session: Session, project_id: str, experiment_ids: Collection[str]
) -> dict[str, list[float]]:
    scores: dict[str, list[float]] = {}
    for experiment_id, score in await evaluation_rows.latest_scores(
        session, project_id, experiment_ids
    ):
        scores.setdefault(experiment_id, []).append(score)
    return scores


def _experiment_view(
    row: ExperimentRow,
    counts: Mapping[RunState, int],
    scores: Sequence[float],
    *,
    failures: Sequence[FailedRuns],
    created_by: str,
) -> ExperimentView:
    return _view_of(
        ExperimentView,
        {
            **_columns(
                row,
                "id",
                "name",
                "notes",
                "kind",
                "agent",
                "env",
                "schema_version",
                "definition_hash",
                "code",
            ),
            **_columns(row, "created_at", "archived_at"),
            "created_by": created_by,
            "state": experiment_state(counts),
            "runs": dict(counts),
            "latest_evaluation": _score_view(row, scores),
            "failures": [_columns(one, "cause", "message", "runs", "run_id") for one in failures],
        },
    )


def _score_view(row: ExperimentRow, scores: Sequence[float]) -> ScoreView | None:
    if not scores:
        return None
    metric, values = None, scores
    if isinstance(evaluation := load_definition(row.definition).evaluation, SupervisedEvaluation):
        sign = -1.0 if evaluation.goal == "minimize" else 1.0
        metric, values = evaluation.metric, [sign * score for score in scores]
    spread = statistics.stdev(values) if len(values) > 1 else None
    return ScoreView(
        runs=len(values),
        metric=metric,
        mean=statistics.fmean(values),
        stdev=spread,
        min=min(values),
        max=max(values),
    )


async def run_views(session: Session, rows: Sequence[RunRow]) -> list[RunView]:
    """Returns the views of runs of one project."""
    if not rows:
        return []
    ids = [row.id for row in rows]
    latest = await evaluation_rows.latest(session, ids)
    best = await evaluation_rows.best(session, ids)
    stored = await experiment_rows.definitions(
        session, rows[0].project_id, {row.experiment_id for row in rows}
    )
    loops = {experiment_id: load_definition(raw).loop for experiment_id, raw in stored.items()}
    progress = await snapshot_rows.progress(session, ids)
    backlogs = await attempt_rows.backlogs_of_runs(session, ids)
    evaluations = {row.id: (latest.get(row.id), best.get(row.id)) for row in rows}
    return [
        _run_view(
            row,
            loops[row.experiment_id],
            *evaluations[row.id],
            progress.get(row.id, (None, None)),
            backlogs.get(row.id),
        )
        for row in rows
    ]


def _run_view(
    row: RunRow,
    loop: LoopSpec | SupervisedLoop,
    latest: EvaluationRow | None,
    best: EvaluationRow | None,
    saved: tuple[int | None, int | None],
    backlog: Mapping[str, Any] | None,
) -> RunView:
    columns = (
        "id",
        "experiment_id",
        "seed",
        "replicate",
        "state",
        "cause",
        "failure",
        "fence",
        "resume_quality",
        "job_id",
    )
    return _view_of(
        RunView,
        {
            **_columns(row, *columns, "created_at", "started_at", "finished_at"),
            "progress": _progress(row, loop),
            "latest_evaluation": None if latest is None else evaluation_view(latest),
            "best_evaluation": None if best is None else evaluation_view(best),
            "snapshots": SnapshotProgressView(written=saved[0], verified=saved[1]),
            "not_uploaded": backlog_view(backlog),
        },
    )


def backlog_view(stored: Mapping[str, Any] | None) -> BacklogView | None:
    """Returns what people see of an attempt's `Backlog`.

    `None` while there is nothing to say: uploads go on beside the training.
    """
    if not stored:
        return None
    backlog = Backlog(**stored)
    if not backlog.delivering and backlog.problem is None:
        return None
    what = "result not uploaded yet" if backlog.delivering else "snapshots not uploaded yet"
    count = (
        f"{backlog.files} file{'' if backlog.files == 1 else 's'}, {size_in_words(backlog.size)}"
    )
    message = f"{what} ({count})" + ("" if backlog.problem is None else f": {backlog.problem}")
    return BacklogView(**backlog.model_dump(), message=message)


def _progress(row: RunRow, loop: LoopSpec | SupervisedLoop) -> ProgressView:
    bounds: tuple[tuple[int, int | None], ...] = ((row.update, loop.updates),)
    if isinstance(loop, LoopSpec):
        bounds += ((row.env_step, loop.env_steps), (row.episode, loop.episodes))
    fraction = max((done / bound for done, bound in bounds if bound is not None), default=None)
    return ProgressView(
        env_step=row.env_step,
        update=row.update,
        episode=row.episode,
        fraction=None if fraction is None else min(1.0, fraction),
        env_steps_per_second=row.env_steps_per_second,
    )


def evaluation_view(row: EvaluationRow) -> EvaluationView:
    """Returns the view of an evaluation."""
    record = telemetry.Evaluation.model_validate_json(row.body).model_dump(
        exclude={"run", "type", "snapshot_id"}
    )
    columns = _columns(
        row, "id", "run_id", "job_id", "attempt_id", "snapshot_id", "superseded", "created_at"
    )
    return _view_of(EvaluationView, {**record, "returns": list(record["returns"]), **columns})


async def job_views(session: Session, rows: Sequence[JobRow]) -> list[JobView]:
    """Returns the views of jobs of one project."""
    if not rows:
        return []
    ids = [row.id for row in rows]
    runs = await job_rows.run_ids(session, ids)
    workers = await job_rows.live_workers(session, ids)
    names = await experiment_rows.user_names(session, {row.created_by for row in rows})
    places, reasons = await _waiting(session, [row for row in rows if row.state == JobState.QUEUED])
    backlogs = await attempt_rows.backlogs_of_jobs(session, ids)
    return [
        _view_of(
            JobView,
            {
                **_columns(
                    row,
                    "id",
                    "experiment_id",
                    "schedule",
                    "state",
                    "cause",
                    "failure",
                    "pool",
                    "priority",
                ),
                **_columns(
                    row,
                    "resources",
                    "limits",
                    "evaluate",
                    "created_at",
                    "started_at",
                    "finished_at",
                ),
                **_columns(row, "afresh", "allow_code_change"),
                "run_ids": runs[row.id],
                "attempts": row.attempt,
                "worker_id": workers.get(row.id),
                "created_by": names[row.created_by],
                "position": places.get(row.id),
                "waiting": reasons.get(row.id),
                "not_uploaded": backlog_view(backlogs.get(row.id)),
            },
        )
        for row in rows
    ]


async def _waiting(
    session: Session, queued: Sequence[JobRow]
) -> tuple[dict[str, int], dict[str, str]]:
    if not queued:
        return {}, {}
    pools = {row.pool for row in queued}
    places = await job_rows.positions(session, queued[0].project_id, pools)
    facts = await pool_facts(session, queued[0].project_id, pools)
    delays = await job_rows.seconds_until(
        session, {row.not_before for row in queued if row.not_before is not None}
    )
    held = await job_rows.held(
        session, [row.id for row in queued if Schedule(row.schedule).follows_training]
    )
    reasons = {}
    for row in queued:
        delay = delays[row.not_before] if row.not_before is not None else 0.0
        job = Waiting(
            gpus=row.gpus,
            version=row.work_order_version,
            position=places.get(row.id, 0),
            delay_seconds=delay,
            held=row.id in held,
        )
        reasons[row.id] = waiting_reason.explain(job, facts[row.pool])
    return places, reasons


async def pool_facts(
    session: Session, project_id: str, pools: Collection[str] | None = None
) -> dict[str, PoolFacts]:
    """Returns what a project's pools offer now.

    Of all pools that have workers where none is named.
    """
    registered = await worker_rows.registered(session, project_id)
    offers = [
        offer
        for offer in await worker_rows.offers(session, pools)
        if offer.project_id == project_id
    ]
    return {
        pool: PoolFacts(
            name=pool,
            registered=registered.get(pool, 0),
            workers=sum(offer.pool == pool for offer in offers),
            slots=sum(offer.slots for offer in offers if offer.pool == pool),
            free_slots=sum(
                max(0, offer.slots - offer.live) for offer in offers if offer.pool == pool
            ),
            most_gpus=max((offer.gpus for offer in offers if offer.pool == pool), default=0),
            versions=frozenset().union(*(offer.versions for offer in offers if offer.pool == pool)),
        )
        for pool in (registered if pools is None else pools)
    }


async def attempt_views(session: Session, rows: Sequence[AttemptRow]) -> list[AttemptView]:
    """Returns the views of attempts."""
    if not rows:
        return []
    carried = await attempt_rows.runs_of(session, [row.id for row in rows])
    names = await worker_rows.names(session, {row.worker_id for row in rows})
    return [
        _view_of(
            AttemptView,
            {
                **_columns(
                    row,
                    "id",
                    "job_id",
                    "number",
                    "worker_id",
                    "slot",
                    "state",
                    "outcome",
                    "cause",
                    "failure",
                ),
                **_columns(row, "resume_quality", "started_at", "ended_at", "acked_seq"),
                "worker_name": names[row.worker_id],
                "other_code": (row.provenance or {}).get("other_code"),
                "fences": {run.run_id: run.fence for run in carried[row.id]},
                "resumed_from": {
                    run.run_id: run.snapshot_id if run.training else None for run in carried[row.id]
                },
            },
        )
        for row in rows
    ]


async def worker_views(session: Session, rows: Sequence[WorkerRow]) -> list[WorkerView]:
    """Returns the views of workers."""
    if not rows:
        return []
    ids = [row.id for row in rows]
    silence = await worker_rows.silence(session, ids)
    live = await attempt_rows.live_on(session, ids)
    carried = await attempt_rows.runs_of(session, [attempt.id for attempt in live])
    return [
        _view_of(
            WorkerView,
            {
                **_columns(
                    row,
                    "id",
                    "name",
                    "pool",
                    "host",
                    "version",
                    "gpus",
                    "registered_at",
                    "last_heartbeat_at",
                ),
                "state": worker_state(silence[row.id], row.silent_seconds, draining=row.draining),
                "slots": _slots(
                    row, [attempt for attempt in live if attempt.worker_id == row.id], carried
                ),
            },
        )
        for row in rows
    ]


def _slots(
    worker: WorkerRow, live: Sequence[AttemptRow], carried: Mapping[str, Sequence[Any]]
) -> list[SlotView]:
    taken = {attempt.slot: attempt for attempt in live if attempt.state != AttemptState.ENDED}
    slots = []
    for index in range(max([worker.slots, *(slot + 1 for slot in taken)])):
        attempt = taken.get(index)
        run_ids = [] if attempt is None else [run.run_id for run in carried[attempt.id]]
        slots.append(
            SlotView(
                index=index,
                attempt_id=attempt and attempt.id,
                job_id=attempt and attempt.job_id,
                run_ids=run_ids,
            )
        )
    return slots


def definition_of(row: ExperimentRow) -> Definition:
    """Returns an experiment's definition in the current schema."""
    return load_definition(row.definition)


def _view_of(kind: type[_View], values: Mapping[str, Any]) -> _View:
    """Returns a view of columns, some of which hold JSON.

    The documents in a view are strict: of Python values they take tuples and enumerations only,
    while a JSON column reads as lists and strings. They were validated before they were stored.
    """
    return kind.model_validate(values, strict=False)


def _columns(row: object, *names: str) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}

"""Views of jobs and attempts, many at a time: a list costs a fixed number of queries."""

from collections.abc import Collection, Sequence

from app.db.engine import Session
from app.db.models.jobs import AttemptRow, JobRow
from app.db.repositories import access as access_rows
from app.db.repositories import attempts as attempt_rows
from app.db.repositories import job_queue
from app.db.repositories import jobs as job_rows
from app.db.repositories import pools as pool_rows
from app.db.repositories import workers as worker_rows
from app.domain import waiting_reason
from app.domain.waiting_reason import PoolFacts, WaitingJob
from app.services.views.columns import columns_of, view_of
from app.services.views.login_names import login_names
from app.services.views.runs import backlog_view
from palestra.contract.names import Schedule
from palestra.contract.resources import (
    AttemptView,
    JobView,
)
from palestra.contract.states import JobState


async def job_views(session: Session, rows: Sequence[JobRow]) -> list[JobView]:
    """Returns the views of jobs in the order of their rows."""
    if not rows:
        return []
    ids = [row.id for row in rows]
    runs = await job_rows.load_run_ids(session, ids)
    workers = await job_rows.load_workers(session, ids)
    names = await login_names(session, {row.created_by for row in rows})
    slugs = await access_rows.load_project_slugs(session, {row.project_id for row in rows})
    places, reasons = await _waiting(session, [row for row in rows if row.state == JobState.QUEUED])
    backlogs = await attempt_rows.load_backlogs_by_job(session, ids)
    return [
        view_of(
            JobView,
            {
                **columns_of(
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
                **columns_of(
                    row,
                    "resources",
                    "limits",
                    "evaluate",
                    "created_at",
                    "started_at",
                    "finished_at",
                ),
                **columns_of(row, "afresh", "allow_code_change"),
                "run_ids": runs[row.id],
                "attempts": row.attempt,
                "worker_id": workers.get(row.id),
                "created_by": names[row.created_by],
                "project": slugs[row.project_id],
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
    places = await job_queue.load_positions(session, pools)
    facts = await pool_facts(session, pools)
    admitted = await pool_rows.list_admitted_pairs(session, pools)
    delays = await job_rows.measure_seconds_until(
        session, {row.not_before for row in queued if row.not_before is not None}
    )
    held = await job_queue.filter_idle_evaluations(
        session, [row.id for row in queued if Schedule(row.schedule).follows_training]
    )
    reasons = {}
    for row in queued:
        delay = delays[row.not_before] if row.not_before is not None else 0.0
        job = WaitingJob(
            gpus=row.gpus,
            version=row.work_order_version,
            position=places.get(row.id, 0),
            delay_seconds=delay,
            held=row.id in held,
            admitted=(row.pool, row.project_id) in admitted,
        )
        reasons[row.id] = waiting_reason.explain(job, facts[row.pool])
    return places, reasons


async def pool_facts(session: Session, pools: Collection[str]) -> dict[str, PoolFacts]:
    """Returns what some pools offer now."""
    registered = await worker_rows.count_registered(session, pools)
    offers = await worker_rows.list_offers(session, pools)
    paused = {
        pool.name: pool.pause_reason
        for pool in await pool_rows.list_by_names(session, pools)
        if pool.paused_at is not None
    }
    return {
        pool: PoolFacts(
            name=pool,
            paused=paused.get(pool),
            registered=registered.get(pool, 0),
            workers=sum(offer.pool == pool for offer in offers),
            slots=sum(offer.slots for offer in offers if offer.pool == pool),
            free_slots=sum(
                max(0, offer.slots - offer.live) for offer in offers if offer.pool == pool
            ),
            most_gpus=max((offer.gpus for offer in offers if offer.pool == pool), default=0),
            versions=frozenset().union(*(offer.versions for offer in offers if offer.pool == pool)),
        )
        for pool in pools
    }


async def attempt_views(session: Session, rows: Sequence[AttemptRow]) -> list[AttemptView]:
    """Returns the views of attempts."""
    if not rows:
        return []
    carried = await attempt_rows.load_runs(session, [row.id for row in rows])
    names = await worker_rows.load_names(session, {row.worker_id for row in rows})
    return [
        view_of(
            AttemptView,
            {
                **columns_of(
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
                **columns_of(row, "resume_quality", "started_at", "ended_at", "acked_seq"),
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

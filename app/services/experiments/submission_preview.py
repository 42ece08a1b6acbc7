"""Previews a submission: what it would queue, behind which jobs, and when that would start."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from app.db.engine import Session
from app.db.models.jobs import JobRow
from app.db.repositories.runtimes import build_kind
from app.domain.queue import decision
from app.domain.queue.runtimes import JobKind
from app.domain.queue.start_order import QueuedJob
from app.domain.queue.start_simulation import Simulated
from app.domain.queue.waiting import Waiting
from app.domain.queue.waiting import explain as explain_waiting
from app.services.experiments.submission_plan import SubmissionPlan
from app.services.queue import queue_facts, start_forecasts
from app.services.queue.equipped_workers import EquippedWorkers
from app.services.queue.pool_queue import PoolQueue
from app.services.queue.start_estimates import build_unknown
from palestra.contract.documents import encode_canonical_json
from palestra.contract.durations import describe_wait
from palestra.contract.identity import hash_definition
from palestra.contract.queue import StartEstimate, SubmissionPreview, WaitReason
from palestra.contract.states import JobState

_IN_TURN = {WaitReason.BEHIND_JOBS, WaitReason.SLOTS_BUSY, WaitReason.STARTS_NOW}
"""Reasons of jobs that start once it is their turn."""


_TOO_FAR = "Its start is not estimated: it is not among the first 1,000 jobs of the pool."


async def preview(session: Session, plan: SubmissionPlan) -> SubmissionPreview:
    """Returns the jobs that a submission would queue, and estimates of their starts.

    Args:
        session: A reading session.
        plan: The submission, checked.
    """
    there = set(plan.submission.options.seeds) - set(plan.seeds)
    found = SubmissionPreview(
        project=plan.project,
        experiment_id=plan.experiment_id,
        exists=plan.exists,
        seeds=plan.seeds,
        seeds_there=tuple(seed for seed in plan.submission.options.seeds if seed in there),
        jobs=len(plan.jobs),
        packs=plan.packs,
        pool=plan.submission.options.pool,
        priority_class=plan.submission.options.priority_class,
        reason=None,
        sentence="Nothing would be queued: the experiment has runs with all of these seeds.",
        ahead=0,
        ahead_is_cut=False,
        first=None,
        last=None,
        warnings=plan.warnings,
    )
    return await _add_start(session, plan, found) if plan.jobs else found


async def _add_start(
    session: Session, plan: SubmissionPlan, found: SubmissionPreview
) -> SubmissionPreview:
    equipped = EquippedWorkers()
    equipped.add_needs(plan.jobs[0].job.requirements, plan.needs)
    queue = PoolQueue(session, found.pool, equipped)
    state, order = await queue.read_first_jobs(queue_facts.MAX_PLACES, plan.jobs)
    own = {one.job.id for one in plan.jobs}
    first = next((job for job in order if job.id in own), plan.jobs[0].job)
    ahead = decision.jobs_ahead(state, first, queue_facts.MAX_PLACES)
    row = _build_row(plan)
    waiting, facts = (await queue_facts.read_waiting_jobs(session, [row]))[row.id]
    slots, free_slots = queue.count_slots(state, first)
    why = explain_waiting(
        replace(
            waiting,
            slots=slots,
            free_slots=free_slots,
            ahead=len(ahead.jobs),
            ahead_is_cut=ahead.is_cut,
            hold=ahead.hold,
        ),
        facts,
    )
    kind = (_find_kind(plan), plan.jobs[0].job.wall_seconds)
    simulated = await start_forecasts.load_pool(
        session, found.pool, state, dict.fromkeys(sorted(own), kind)
    )
    start, last = await _estimate(simulated, order, own)
    return found.model_copy(
        update={
            "reason": why.reason,
            "sentence": _describe(why, start, len(ahead.jobs), is_cut=ahead.is_cut),
            "ahead": len(ahead.jobs),
            "ahead_is_cut": ahead.is_cut,
            "first": start,
            "last": last,
        }
    )


async def _estimate(
    simulated: Simulated, order: Sequence[QueuedJob], own: Collection[str]
) -> tuple[StartEstimate, StartEstimate]:
    """Returns when the first and the last of some jobs start."""
    mine = [job.id for job in order if job.id in own]
    if not mine:
        unknown = build_unknown(_TOO_FAR)
        return unknown, unknown
    ends = {mine[0], mine[-1]}
    made = await start_forecasts.forecast(simulated, ends)
    first = made.build_view(mine[0])
    last = made.build_view(mine[-1]) if len(mine) == len(own) else build_unknown(_TOO_FAR)
    return first, last


def _find_kind(plan: SubmissionPlan) -> JobKind:
    definition = plan.submission.definition
    return build_kind(
        definition_hash=hash_definition(definition),
        agent=plan.needs.agent,
        environment=plan.needs.environment,
        definition=encode_canonical_json(definition).decode(),
        schedule=plan.submission.options.schedule,
        runs=plan.packs[0],
    )


def _build_row(plan: SubmissionPlan) -> JobRow:
    """Returns a job of the plan as a row that is never stored."""
    options, job = plan.submission.options, plan.jobs[0].job
    return JobRow(
        id=job.id,
        project_id=plan.project_id,
        experiment_id=plan.experiment_id,
        schedule=options.schedule,
        state=JobState.QUEUED,
        pool=options.pool,
        priority_class=options.priority_class,
        gpus=job.gpus,
        limits={"wall_seconds": job.wall_seconds, "grace_seconds": job.grace_seconds},
        work_order_version=job.version,
        created_by=plan.user_id,
    )


def _describe(why: Waiting, start: StartEstimate, ahead: int, *, is_cut: bool) -> str:
    if why.reason not in _IN_TURN:
        return f"Would wait. {why.sentence}"
    if why.reason is WaitReason.STARTS_NOW:
        return "Would start at once: a slot is free for it."
    if start.median is None or start.made_at is None:
        return f"Would wait. {why.sentence} {start.unknown}"
    jobs = f"{'more than ' if is_cut else ''}{ahead:,} {'job' if ahead == 1 else 'jobs'}"
    wait = describe_wait((start.median - start.made_at).total_seconds())
    return f"Would start {wait}{f', behind {jobs}' if ahead else ''}."

"""Leases: claim, renew, release. No claim, no start; a stale attempt is refused and told so."""

import hashlib
from typing import Any, Final

from app.db.engine import Session
from app.db.models.experiments import ExperimentRow, RunRow
from app.db.models.jobs import AttemptRow, AttemptRunRow, JobRow
from app.db.models.workers import WorkerRow
from app.db.repositories import attempts as rows
from app.db.repositories import experiments as experiment_rows
from app.db.repositories import jobs as job_rows
from app.db.repositories import workers as worker_rows
from app.domain.errors import ConflictError, InvalidError, NotFoundError
from app.domain.principal import Principal
from app.domain.secrets import derive_secret, hash_secret
from app.services import offers
from app.services.access.own_worker import check_own
from app.services.attempts import endings
from app.services.curves import series
from app.services.jobs import job_state
from app.services.jobs.job_state import Why
from app.services.snapshots import snapshots
from app.services.views import views
from app.settings import Settings
from palestra.contract.documents import canonical_json
from palestra.contract.job_options import EvaluateOptions
from palestra.contract.names import Schedule, new_id
from palestra.contract.resources import AttemptView
from palestra.contract.states import AttemptState, JobState, Order, ResumeQuality
from palestra.contract.work_order import (
    Claim,
    ClaimAnswer,
    Follow,
    Release,
    Renewal,
    RenewalAnswer,
    RunOrder,
    SnapshotRef,
    WorkOrder,
)

_ORDERS: Final = {
    JobState.PAUSING: Order.PAUSE,
    JobState.CANCELLING: Order.CANCEL,
    JobState.PREEMPTING: Order.DRAIN,
}


async def claim(
    session: Session, principal: Principal, body: Claim, settings: Settings
) -> ClaimAnswer:
    """Makes the next attempt of a queued job and raises the fence of every run that it trains.

    Of many claims at once one succeeds. The attempt holds its lease, and its token is good, until
    it ends. The same claim again, by the same credential, answers the same lease with the same
    token while no supervisor has renewed it: the first answer may have been lost.

    Raises:
        NotFoundError: If the project has no such worker or job.
        ConflictError: If the doorbell is out of date (`not_claimable`), the worker drains
            (`worker_draining`), the job does not fit it (`does_not_fit`), its slot has a live
            attempt (`slot_busy`) or a run does (`run_busy`). The worker drops the doorbell.
        ForbiddenError: `other_worker` if the secret belongs to another worker.
        InvalidError: If the worker has no such slot.
    """
    worker = await _worker(session, principal, body)
    job = await _job(session, principal, body)
    held = await _held(session, principal, job, body, settings)
    if held is not None:
        orders = await _orders_again(session, job, held)
        return await _answer(session, principal, job, held, orders, settings)
    await _check_claimable(session, job, body, worker)
    ended = await job_rows.ends(session, job.id)
    runs = [
        run
        for run in await experiment_rows.runs_of_job(session, job.id, lock=True)
        if run.id not in ended
    ]
    orders = await _run_orders(session, job, runs)
    await job_state.move(
        session,
        job,
        JobState.STARTING,
        _why_claim(worker, job, orders),
        claim=body.expected_attempt,
    )
    attempt = await _insert(session, principal, job, worker, body, settings)
    await _carry(session, job, attempt, orders)
    await endings.tell_attempt(session, job, attempt)
    return await _answer(session, principal, job, attempt, orders, settings)


async def _answer(
    session: Session,
    principal: Principal,
    job: JobRow,
    attempt: AttemptRow,
    orders: list[RunOrder],
    settings: Settings,
) -> ClaimAnswer:
    return ClaimAnswer(
        work_order=await _work_order(session, job, attempt, orders),
        token=token_of(principal, attempt.id),
        lease_seconds=settings.lease_seconds,
        renew_seconds=settings.renew_seconds,
    )


async def _worker(session: Session, principal: Principal, body: Claim) -> WorkerRow:
    check_own(principal, body.worker_id)
    worker = await worker_rows.get(session, principal.project_id, body.worker_id)
    if worker is None:
        raise NotFoundError("worker")
    if body.slot >= worker.slots:
        raise InvalidError(
            "unknown_slot", f"This worker has the slots 0 to {worker.slots - 1}.", pointer="/slot"
        )
    return worker


async def _job(session: Session, principal: Principal, body: Claim) -> JobRow:
    job = await job_rows.get(session, principal.project_id, body.job_id, lock=True)
    if job is None:
        raise NotFoundError("job")
    return job


async def _held(
    session: Session, principal: Principal, job: JobRow, body: Claim, settings: Settings
) -> AttemptRow | None:
    """Returns the attempt that this very claim made before.

    `None` if it made none or a supervisor has it.

    Its lease begins anew.
    """
    attempt = await rows.live_of_job(session, job.id)
    if attempt is None or (attempt.number, attempt.worker_id, attempt.slot) != (
        body.expected_attempt,
        body.worker_id,
        body.slot,
    ):
        return None
    if attempt.token_hash != hash_secret(token_of(principal, attempt.id)):
        return None
    return (
        attempt if await rows.begin_lease_anew(session, attempt, settings.lease_seconds) else None
    )


def token_of(principal: Principal, attempt_id: str) -> str:
    """Returns the token of an attempt that a worker's credential claimed: the same one at every
    call.
    """
    return derive_secret("pla", principal.derivation_key, attempt_id)


async def _check_claimable(session: Session, job: JobRow, body: Claim, worker: WorkerRow) -> None:
    if worker.draining:
        raise ConflictError(
            "worker_draining", "This worker takes no new jobs: it is being drained."
        )
    if job.state != JobState.QUEUED or body.expected_attempt != job.attempt + 1:
        raise ConflictError(
            "not_claimable", "This doorbell is out of date: the job has moved on. Drop it."
        )
    if (
        job.pool != worker.pool
        or job.gpus > worker.gpu_count
        or job.work_order_version not in worker.work_order_versions
    ):
        raise ConflictError(
            "does_not_fit",
            "This worker cannot take the job: other pool, too few GPUs, or another version. Drop it.",
        )
    if await offers.is_for_another(session, worker, job, await _experiment(session, job)):
        raise ConflictError(
            "does_not_fit",
            "Another worker of the pool has what this job needs: its code, its agent or its environment. Drop it.",
        )


async def _orders_again(session: Session, job: JobRow, attempt: AttemptRow) -> list[RunOrder]:
    carried = {row.run_id: row for row in (await rows.runs_of(session, [attempt.id]))[attempt.id]}
    runs = [run for run in await experiment_rows.runs_of_job(session, job.id) if run.id in carried]
    if not Schedule(job.schedule).writes_training_state:
        return await _run_orders(session, job, runs)
    return [
        _training_order(run, carried[run.id].fence, await _resumed_from(session, carried[run.id]))
        for run in runs
    ]


async def _resumed_from(session: Session, carried: AttemptRunRow) -> SnapshotRef | None:
    return (
        None
        if carried.snapshot_id is None
        else await snapshots.resolve(session, carried.run_id, carried.snapshot_id)
    )


def _training_order(run: RunRow, fence: int, snapshot: SnapshotRef | None) -> RunOrder:
    return RunOrder(
        run_id=run.id, seed=run.seed, replicate=run.replicate, fence=fence, snapshot=snapshot
    )


async def _run_orders(session: Session, job: JobRow, runs: list[RunRow]) -> list[RunOrder]:
    if Schedule(job.schedule).writes_training_state:
        fences = await rows.raise_fences(session, [run.id for run in runs])
        afresh = job.afresh and job.attempt == 0
        return [
            _training_order(
                run,
                fences[run.id],
                None if afresh else await snapshots.newest_verified(session, run.id),
            )
            for run in runs
        ]
    if Schedule(job.schedule).starts_runs:
        return [
            RunOrder(run_id=run.id, seed=run.seed, replicate=run.replicate, fence=run.fence)
            for run in runs
        ]
    options = EvaluateOptions.model_validate_json(canonical_json(job.evaluate or {}))
    return [await _reading_order(session, job, run, options) for run in runs]


async def _reading_order(
    session: Session, job: JobRow, run: RunRow, options: EvaluateOptions
) -> RunOrder:
    follows = Schedule(job.schedule).follows_training
    snapshot = None if follows else await snapshots.resolve(session, run.id, options.snapshot)
    return RunOrder(
        run_id=run.id,
        seed=run.seed,
        replicate=run.replicate,
        fence=run.fence,
        snapshot=snapshot,
        episodes=options.episodes,
        evaluation_seed=options.seed if options.seed is not None else fresh_seed(job.id, run.id),
        formats=options.formats or await _export_formats(session, job),
        follow=_follow(options) if follows else None,
    )


def _follow(options: EvaluateOptions) -> Follow:
    names = ("throttle_seconds", "delay_seconds", "only_once")
    return Follow(
        **{name: getattr(options, name) for name in names}, same_episodes=options.seed is not None
    )


def fresh_seed(job_id: str, run_id: str) -> int:
    """Returns a seed for the episodes of an evaluation that nothing else uses: 32 bits of a hash of
    the job and the run.
    """
    return int.from_bytes(hashlib.sha256(f"{job_id}/{run_id}".encode()).digest()[:4])


async def _export_formats(session: Session, job: JobRow) -> tuple[Any, ...]:
    if job.schedule != Schedule.EXPORT:
        return ()
    return views.definition_of(await _experiment(session, job)).export.formats or ("weights",)


def _why_claim(worker: WorkerRow, job: JobRow, orders: list[RunOrder]) -> Why:
    training = Schedule(job.schedule).writes_training_state
    return Why(
        actor=f"worker:{worker.id}",
        resume_quality=_expected_quality(orders[0].snapshot) if training else None,
    )


def _expected_quality(snapshot: SnapshotRef | None) -> ResumeQuality:
    if snapshot is None:
        return ResumeQuality.FRESH
    return ResumeQuality.EXACT if snapshot.resume_exact else ResumeQuality.STATISTICAL


async def _insert(
    session: Session,
    principal: Principal,
    job: JobRow,
    worker: WorkerRow,
    body: Claim,
    settings: Settings,
) -> AttemptRow:
    experiment = await _experiment(session, job)
    attempt_id = new_id("att")
    row = {
        "id": attempt_id,
        "project_id": job.project_id,
        "job_id": job.id,
        "number": body.expected_attempt,
        "worker_id": worker.id,
        "slot": body.slot,
        "boot_id": worker.boot_id,
        "token_hash": hash_secret(token_of(principal, attempt_id)),
        "state": AttemptState.STARTING.value,
        "ran_with": {
            "code": experiment.code,
            "palestra": worker.version,
            "packages": worker.packages,
            "hardware": worker.hardware,
            "gpus": worker.gpus,
        },
    }
    attempt = await rows.insert(session, row, settings.lease_seconds)
    if attempt is None:
        raise ConflictError(
            "slot_busy",
            "This slot has an attempt that has not ended. Report it as dead if it is, then claim again.",
        )
    return attempt


async def _carry(
    session: Session, job: JobRow, attempt: AttemptRow, orders: list[RunOrder]
) -> None:
    training = Schedule(job.schedule).writes_training_state
    carried = [
        {
            "attempt_id": attempt.id,
            "run_id": order.run_id,
            "fence": order.fence,
            "training": training,
            "live_training": training,
            "snapshot_id": None if order.snapshot is None else order.snapshot.snapshot_id,
        }
        for order in orders
    ]
    if not await rows.insert_runs(session, carried):
        raise ConflictError(
            "run_busy", "Another attempt trains a run of this job. Drop the doorbell."
        )
    if training:
        for order in orders:
            await series.supersede(session, order.run_id)


async def _work_order(
    session: Session, job: JobRow, attempt: AttemptRow, orders: list[RunOrder]
) -> WorkOrder:
    experiment = await _experiment(session, job)
    document = {
        "attempt_id": attempt.id,
        "attempt_number": attempt.number,
        "job_id": job.id,
        "experiment_id": job.experiment_id,
        "schedule": job.schedule,
        "definition": views.definition_of(experiment).model_dump(mode="json"),
        "code": experiment.code,
        "resources": job.resources,
        "limits": job.limits,
        "allow_code_change": job.allow_code_change,
        "runs": [order.model_dump(mode="json") for order in orders],
    }
    return WorkOrder.model_validate_json(canonical_json(document))


async def _experiment(session: Session, job: JobRow) -> ExperimentRow:
    experiment = await experiment_rows.get(session, job.project_id, job.experiment_id)
    assert experiment is not None
    return experiment


async def renew(
    session: Session, attempt_id: str, body: Renewal, settings: Settings
) -> RenewalAnswer:
    """Renews a lease and answers what the supervisor is to do; `stale` once the attempt has ended.

    The first renewal shows that the supervisor lives: the job runs from then on. A lease that
    lapsed but was not reclaimed is renewed.

    Raises:
        NotFoundError: If there is no such attempt.
    """
    attempt = await _attempt(session, attempt_id)
    job = await job_rows.by_id(session, attempt.job_id, lock=attempt.state == AttemptState.STARTING)
    assert job is not None
    values: dict[str, Any] = body.model_dump(
        include={"env_step", "update", "spooled_seq", "trainer_pid"}
    )
    shown = views.backlog_view(attempt.backlog)
    values["backlog"] = endings.cleaned(body.backlog.model_dump(mode="json"))
    if not await rows.renew(session, attempt, values, settings.lease_seconds):
        return RenewalAnswer(
            order=Order.STALE, acked_seq=attempt.acked_seq, lease_seconds=settings.lease_seconds
        )
    if job.state == JobState.STARTING:
        await job_state.move(session, job, JobState.RUNNING, Why(actor=f"attempt:{attempt.id}"))
    if views.backlog_view(attempt.backlog) != shown:
        await job_state.tell(session, job)
    order = _ORDERS.get(JobState(job.state), Order.CONTINUE)
    return RenewalAnswer(
        order=order,
        acked_seq=attempt.acked_seq,
        lease_seconds=settings.lease_seconds,
        give_up=attempt.gives_up,
    )


async def release(session: Session, attempt_id: str, body: Release) -> AttemptView:
    """Ends an attempt as its report says; repeating it changes nothing.

    Raises:
        NotFoundError: If there is no such attempt.
        ConflictError: `stale_attempt` if the attempt was given up as lost; `telemetry_missing`
            while records of its spool are not acknowledged, with the next one as `expected_seq`.
    """
    seen = await _attempt(session, attempt_id)
    job = await job_rows.by_id(session, seen.job_id, lock=True)
    attempt = await _attempt(session, attempt_id)
    assert job is not None
    if attempt.state == AttemptState.LOST:
        raise ConflictError(
            "stale_attempt", "This attempt was given up as lost. Stop; a newer one has the runs."
        )
    if attempt.state != AttemptState.ENDED:
        if attempt.acked_seq < body.last_seq:
            detail = "Records of this attempt are missing. Send them, then release again."
            raise ConflictError("telemetry_missing", detail, expected_seq=attempt.acked_seq + 1)
        await endings.by_report(session, job, attempt, body.report)
    (view,) = await views.attempt_views(session, [attempt])
    return view


async def _attempt(session: Session, attempt_id: str) -> AttemptRow:
    attempt = await rows.get(session, attempt_id)
    if attempt is None:
        raise NotFoundError("attempt")
    return attempt


__all__ = ["claim", "fresh_seed", "release", "renew", "token_of"]

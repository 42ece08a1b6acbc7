"""Claims: the requests with which a worker creates an attempt of a queued job."""

from collections.abc import Sequence

from app.db.engine import Session
from app.db.models.experiments import RunRow
from app.db.models.jobs import AttemptRow, AttemptRunRow, JobRow
from app.db.models.workers import WorkerRow
from app.db.repositories import attempts as rows
from app.db.repositories import claims as claim_rows
from app.db.repositories import experiments as experiment_rows
from app.db.repositories import jobs as job_rows
from app.db.repositories import pools as pool_rows
from app.db.repositories import workers as worker_rows
from app.db.repositories.claims import JobToClaim
from app.domain.errors import ConflictError, NotFoundError
from app.domain.principal import Principal
from app.domain.secrets import derive_secret, hash_secret
from app.services import offers, pools
from app.services.access.own_worker import confirm_own
from app.services.attempts import claimed_slots, endings, work_orders
from app.services.curves import series
from app.services.jobs import job_state
from app.services.jobs.job_state import TransitionDetails
from app.settings import Settings
from palestra.contract.names import new_id
from palestra.contract.states import AttemptState, JobState, ResumeQuality
from palestra.contract.work_order import (
    Claim,
    ClaimAnswer,
    RunOrder,
    SnapshotRef,
)


async def claim(
    session: Session, principal: Principal, body: Claim, settings: Settings
) -> ClaimAnswer:
    """Creates the next attempt of a queued job and raises the fence of every run that it trains.

    Of concurrent claims for a job one succeeds. The token is valid until the attempt ends. A
    claim that is repeated with the same credential returns the same attempt and token until a
    supervisor has renewed the lease, since the first answer may have been lost.

    Raises:
        NotFoundError: If there is no such worker, or no such job of a project that the worker's
            pool admits.
        ConflictError: If the dispatch message is out of date (`not_claimable`), the project is
            deleted (`project_deleted`), the worker drains (`worker_draining`), the job is assigned
            to another worker (`not_assigned`) or does not fit
            the worker (`does_not_fit`), its pool is paused (`pool_paused`) or does not admit the
            job's project any more (`project_not_admitted`), or a slot (`slot_busy`) or one of the
            runs (`run_busy`) has a live attempt. The worker drops the dispatch message.
        ForbiddenError: `other_worker` if the secret belongs to another worker.
        InvalidError: If the worker has no such slot, or a slot is named twice.
    """
    worker = await _worker(session, principal, body)
    wanted = await _job(session, worker, body)
    job = wanted.job
    held = await _repeat_claim(session, principal, worker, job, body, settings)
    if held is not None:
        orders = await work_orders.repeat_run_orders(session, job, held)
        return await _answer(session, principal, wanted, held, orders, settings)
    await _check_claimable(session, wanted, body, worker)
    links = await job_rows.list_runs_with_links(session, job.id, lock=True)
    runs = [run for run, link in links if link.outcome is None]
    # The rows of the runs are written once, with their fences and their states.
    with session.no_autoflush:
        orders = await work_orders.make_run_orders(session, job, runs)
        await job_state.move(
            session,
            job,
            JobState.STARTING,
            _claim_details(worker, job, orders),
            claim=body.expected_attempt,
            runs=links,
        )
    attempt = await _insert(session, principal, wanted, worker, body, settings)
    carried = await _carry(session, job, attempt, orders)
    if job.schedule.writes_training_state:
        await _supersede(session, runs)
    endings.append_attempt_event(session, job, attempt, carried, worker.name)
    return await _answer(session, principal, wanted, attempt, orders, settings)


async def _answer(
    session: Session,
    principal: Principal,
    wanted: JobToClaim,
    attempt: AttemptRow,
    orders: list[RunOrder],
    settings: Settings,
) -> ClaimAnswer:
    return ClaimAnswer(
        work_order=await work_orders.make_work_order(
            session, wanted.job, wanted.experiment, attempt, orders
        ),
        token=derive_attempt_token(principal, attempt.id),
        lease_seconds=settings.lease_seconds,
        renew_seconds=settings.renew_seconds,
    )


async def _worker(session: Session, principal: Principal, body: Claim) -> WorkerRow:
    await confirm_own(session, principal, body.worker_id)
    worker = await worker_rows.find_for_claim(session, body.worker_id)
    if worker is None:
        raise NotFoundError("worker")
    await claimed_slots.check_slots(session, worker, body)
    return worker


async def _job(session: Session, worker: WorkerRow, body: Claim) -> JobToClaim:
    found = await claim_rows.lock_job(session, body.job_id)
    # A job of another pool is one that exists only where the worker's pool admits its project.
    if found is None or (
        found.job.pool != worker.pool
        and (worker.pool, found.job.project_id)
        not in await pool_rows.list_admitted_pairs(session, [worker.pool])
    ):
        raise NotFoundError("job")
    return found


async def _repeat_claim(
    session: Session,
    principal: Principal,
    worker: WorkerRow,
    job: JobRow,
    body: Claim,
    settings: Settings,
) -> AttemptRow | None:
    """Returns the attempt that the same claim created before, with a new lease.

    If the worker's secret was rotated in between, the attempt gets a token of the new secret.

    `None` if the claim is new, or if a supervisor has renewed the lease.
    """
    if job.attempt < body.expected_attempt:
        return None
    attempt = await rows.find_live_by_job(session, job.id)
    if attempt is None or (
        attempt.number,
        attempt.worker_id,
        claimed_slots.list_slots(attempt),
    ) != (body.expected_attempt, body.worker_id, (body.slot, *body.further_slots)):
        return None
    token_hash = hash_secret(derive_attempt_token(principal, attempt.id))
    if attempt.token_hash != token_hash and not _was_rotated_since(worker, attempt):
        return None
    if not await rows.restart_lease(session, attempt, settings.lease_seconds):
        return None
    if attempt.token_hash != token_hash:
        rows.set_token(attempt, token_hash)
    return attempt


def _was_rotated_since(worker: WorkerRow, attempt: AttemptRow) -> bool:
    return worker.secret_since is not None and worker.secret_since >= attempt.started_at


def derive_attempt_token(principal: Principal, attempt_id: str) -> str:
    """Returns the token of an attempt that a worker's credential claimed.

    The same arguments give the same token.
    """
    return derive_secret("pla", principal.derivation_key, attempt_id)


async def _check_claimable(
    session: Session, wanted: JobToClaim, body: Claim, worker: WorkerRow
) -> None:
    job = wanted.job
    if worker.draining:
        raise ConflictError(
            "worker_draining", "This worker takes no new jobs: it is being drained."
        )
    if wanted.is_project_deleted:
        raise ConflictError(
            "project_deleted", "The project of this job is deleted. Drop the dispatch message."
        )
    if job.state != JobState.QUEUED or body.expected_attempt != job.attempt + 1:
        raise ConflictError(
            "not_claimable",
            "The dispatch message is out of date: the job has changed since. Drop it.",
        )
    if not await worker_rows.listens_for(session, worker, job.assigned_worker_id):
        raise ConflictError(
            "not_assigned",
            "The job is not assigned to this worker any more. Drop the dispatch message.",
        )
    claimed_slots.check_number(job, body)
    if (
        job.pool != worker.pool
        or job.gpus > worker.gpu_count
        or job.work_order_version not in worker.work_order_versions
    ):
        raise ConflictError(
            "does_not_fit",
            (
                "This worker cannot take the job: other pool, too few GPUs, or another "
                "version. Drop it."
            ),
        )
    await pools.check_start(session, job)
    if await offers.is_for_another(session, worker, job, wanted.experiment):
        raise ConflictError(
            "does_not_fit",
            (
                "Another worker of the pool has what this job needs: its code, its agent or "
                "its environment. Drop it."
            ),
        )
    await claimed_slots.check_free(session, worker, body)


def _claim_details(worker: WorkerRow, job: JobRow, orders: list[RunOrder]) -> TransitionDetails:
    training = job.schedule.writes_training_state
    return TransitionDetails(
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
    wanted: JobToClaim,
    worker: WorkerRow,
    body: Claim,
    settings: Settings,
) -> AttemptRow:
    job = wanted.job
    attempt_id = new_id("att")
    row = {
        "id": attempt_id,
        "project_id": job.project_id,
        "job_id": job.id,
        "number": body.expected_attempt,
        "worker_id": worker.id,
        "slot": body.slot,
        "further_slots": list(body.further_slots) or None,
        "slot_count": 1 + len(body.further_slots),
        "boot_id": worker.boot_id,
        "token_hash": hash_secret(derive_attempt_token(principal, attempt_id)),
        "state": AttemptState.STARTING,
        "phase": job_state.first_phase(job),
        "ran_with": {
            "code": wanted.experiment.code,
            "palestra": worker.version,
            "packages": worker.packages,
            "hardware": worker.hardware,
            "gpus": worker.gpus,
        },
    }
    attempt = await rows.insert(session, row, settings.lease_seconds)
    if attempt is None:
        raise claimed_slots.busy_error([body.slot])
    return attempt


async def _carry(
    session: Session, job: JobRow, attempt: AttemptRow, orders: list[RunOrder]
) -> Sequence[AttemptRunRow]:
    training = job.schedule.writes_training_state
    carried = await rows.insert_runs(
        session,
        [
            {
                "attempt_id": attempt.id,
                "run_id": order.run_id,
                "fence": order.fence,
                "training": training,
                "live_training": training,
                "snapshot_id": None if order.snapshot is None else order.snapshot.snapshot_id,
            }
            for order in orders
        ],
    )
    if carried is None:
        raise ConflictError(
            "run_busy", "Another attempt trains a run of this job. Drop the dispatch message."
        )
    return carried


async def _supersede(session: Session, runs: Sequence[RunRow]) -> None:
    """Removes from the history of runs what an attempt that trains them makes anew."""
    for run in runs:
        if run.fence == work_orders.FIRST_FENCE:
            # There are no snapshots and no evaluations yet, but a test may have made progress.
            experiment_rows.set_progress(run, 0, 0, 0)
        else:
            await series.supersede(session, run.id)

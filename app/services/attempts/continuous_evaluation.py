"""Continuous evaluations: selects the next snapshot, and reports the state of the training.

Called with the attempt's own token only. Nothing here changes the state of a job: the attempt
ends with its own report.
"""

from typing import Literal

from app.db.engine import Database, Session
from app.db.models.jobs import AttemptRunRow, JobRow
from app.db.models.snapshots import SnapshotRow
from app.db.repositories import attempts as rows
from app.db.repositories import evaluations as evaluation_rows
from app.db.repositories import jobs as job_rows
from app.db.repositories import snapshots as snapshot_rows
from app.domain.errors import ConflictError, ForbiddenError, NotFoundError
from app.services.snapshots import snapshots
from palestra.contract.states import LIVE_ATTEMPT_STATES, LIVE_JOB_STATES, SnapshotState
from palestra.contract.work_order import FollowAnswer, FollowRequest


async def find_next_snapshot(
    database: Database, attempt_id: str, body: FollowRequest
) -> FollowAnswer:
    """Returns the newest verified snapshot that a continuous evaluation has not evaluated yet.

    The snapshot is marked as in use by the attempt, so that its files are not deleted, until the
    attempt requests another one.

    Raises:
        NotFoundError: If there is no such attempt.
        ForbiddenError: `not_following` for an attempt of another schedule, `other_run` for a run
            that does not belong to the attempt.
        ConflictError: `stale_attempt` once it has ended.
    """
    async with database.read() as session:
        answer, chosen = await _look(session, attempt_id, body)
    if chosen is None:
        return answer
    async with database.write() as session:
        answer, chosen = await _look(session, attempt_id, body, lock=True)
        if chosen is None:
            return answer
        return answer.model_copy(
            update={"snapshot": await snapshots.make_reference(session, chosen)}
        )


async def _look(
    session: Session, attempt_id: str, body: FollowRequest, *, lock: bool = False
) -> tuple[FollowAnswer, SnapshotRow | None]:
    job, carried = await _follower(session, attempt_id, body.run_id, lock=lock)
    # Read before the snapshots: if the training is over now, its last snapshot is stored already.
    training = await find_training_state(session, body.run_id)
    count, evaluated = await evaluation_rows.load_job_progress(session, job.id)
    verified = await snapshot_rows.list_verified(session, body.run_id)
    new = [
        snapshot
        for snapshot in verified
        if snapshot.id not in evaluated and snapshot.id not in body.evaluated
    ]
    chosen = new[0] if new else None
    if chosen is None and verified and body.again and training == "live":
        chosen = verified[0]
    if chosen is not None and lock:
        chosen = await _hold(session, carried, chosen)
    return FollowAnswer(training=training, evaluated=count), chosen


async def _follower(
    session: Session, attempt_id: str, run_id: str, *, lock: bool
) -> tuple[JobRow, AttemptRunRow]:
    attempt = await rows.find(session, attempt_id, lock=lock)
    job = None if attempt is None else await job_rows.find_by_id(session, attempt.job_id)
    if attempt is None or job is None:
        raise NotFoundError("attempt")
    if attempt.state not in LIVE_ATTEMPT_STATES:
        raise ConflictError("stale_attempt", "The attempt has ended. It gets no more snapshots.")
    if not job.schedule.follows_training:
        raise ForbiddenError("not_following", "Only a continuous evaluation asks for snapshots.")
    for carried in (await rows.load_runs(session, [attempt_id]))[attempt_id]:
        if carried.run_id == run_id:
            return job, carried
    raise ForbiddenError("other_run", "The attempt does not carry that run.")


async def find_training_state(session: Session, run_id: str) -> Literal["live", "waiting", "over"]:
    """Returns whether the training of a run is `live`, `waiting` or `over`.

    The state is `live` while an attempt trains the run, and `waiting` while its training job is
    queued or paused.
    """
    job = await job_rows.find_unfinished_training(session, run_id)
    if job is None:
        return "over"
    return "live" if job.state in LIVE_JOB_STATES else "waiting"


async def _hold(
    session: Session, carried: AttemptRunRow, chosen: SnapshotRow
) -> SnapshotRow | None:
    locked = await snapshot_rows.find(session, chosen.id, lock=True)
    if locked is None or locked.state != SnapshotState.VERIFIED:
        return None
    rows.set_snapshot(carried, locked.id)
    return locked

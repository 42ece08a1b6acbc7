"""Files that a worker has not uploaded: the server shows them, skips overtaken snapshots, and lets
a worker adopt an attempt or a user give up its results.
"""

import pytest

from app.domain.errors import ConflictError, InvalidError, NotFoundError
from app.services.artifacts import artifacts
from app.services.attempts import adoption, claims, endings
from app.services.jobs import unstored_results
from palestra.contract.names import Schedule
from palestra.contract.states import Cause, JobState, Outcome, RunState, SnapshotState
from palestra.contract.work_order import Adoption, Backlog
from tests.support.artifact_store import AttemptWithStore, yield_chunks
from tests.support.server_fixture import advance_clock

FULL = "The disk of the server's artifact store is full."


async def _give_up(live_run: AttemptWithStore) -> None:
    async with live_run.database.write() as session:
        await unstored_results.give_up(session, live_run.world.admin, live_run.job_id, "no room")


async def test_a_run_with_results_to_upload_shows_them_and_is_not_final(
    live_run: AttemptWithStore,
) -> None:
    """Regression: the run did not show that its ended training was waiting for an upload."""
    world = live_run.world
    assert (await world.run(live_run.run_id)).not_uploaded is None
    await world.renew(live_run.attempt_id, backlog=Backlog(files=3, size=3 * 2**20))
    assert (await world.run(live_run.run_id)).not_uploaded is None, (
        "uploads beside the training are no news"
    )
    await world.renew(live_run.attempt_id, backlog=Backlog(files=3, size=3 * 2**20, problem=FULL))
    held = (await world.run(live_run.run_id)).not_uploaded
    assert held is not None
    assert held.message == f"snapshots not uploaded yet (3 files, 3.0 MiB): {FULL}"
    await world.renew(
        live_run.attempt_id, backlog=Backlog(files=1, size=2**19, problem=FULL, delivering=True)
    )
    run, job = await world.run(live_run.run_id), await world.job(live_run.job_id)
    assert (run.state, job.state) == (RunState.RUNNING, JobState.RUNNING)
    assert run.not_uploaded == job.not_uploaded
    assert run.not_uploaded is not None
    assert run.not_uploaded.message == f"result not uploaded yet (1 file, 512.0 KiB): {FULL}"
    await world.release(live_run.attempt_id, Outcome.SUCCEEDED, Cause.BUDGET, last_seq=live_run.seq)
    assert (await world.run(live_run.run_id)).not_uploaded is None


async def test_only_a_user_can_give_up_results(live_run: AttemptWithStore) -> None:
    """Results can be given up only while the ended attempt waits for its uploads."""
    world = live_run.world
    with pytest.raises(ConflictError) as refused:
        await _give_up(live_run)
    assert refused.value.code == "nothing_to_give_up"
    await world.renew(live_run.attempt_id, backlog=Backlog(files=1, size=1, problem=FULL))
    with pytest.raises(ConflictError):
        await _give_up(live_run)
    waiting = Backlog(files=1, size=1, problem=FULL, delivering=True)
    assert (await world.renew(live_run.attempt_id, backlog=waiting)).give_up is False
    await _give_up(live_run)
    await _give_up(live_run)
    assert (await world.renew(live_run.attempt_id, backlog=waiting)).give_up is True


async def _adopt(live_run: AttemptWithStore, worker_id: str | None = None) -> str:
    async with live_run.database.write() as session:
        body = Adoption(worker_id=worker_id or live_run.worker_id)
        answer = await adoption.adopt(
            session,
            live_run.world.own[body.worker_id],
            live_run.attempt_id,
            body,
            live_run.world.settings,
        )
    assert answer.slot == 0
    return answer.token


async def test_a_worker_adopts_only_its_own_live_attempt(
    live_run: AttemptWithStore,
) -> None:
    """Regression: if a supervisor ended during its uploads, the attempt was marked as lost and the
    only copies of its results were deleted.
    """
    other = (await live_run.world.register(name="w2")).worker_id
    with pytest.raises(NotFoundError):
        await _adopt(live_run, other)
    assert await _adopt(live_run) == claims.derive_attempt_token(
        live_run.world.own[live_run.worker_id], live_run.attempt_id
    )
    assert (await live_run.put("policy", b"result")).stored
    await live_run.world.release(live_run.attempt_id, Outcome.SUCCEEDED, Cause.BUDGET)
    with pytest.raises(ConflictError) as refused:
        await _adopt(live_run)
    assert refused.value.code == "stale_attempt"


@pytest.mark.parametrize(
    ("delivering", "state"), [(True, JobState.RUNNING), (False, JobState.QUEUED)]
)
async def test_an_uploading_attempt_stays_with_its_worker_after_a_reboot(
    live_run: AttemptWithStore, delivering: bool, state: JobState
) -> None:
    """The results are still on the worker's disk."""
    await live_run.world.renew(
        live_run.attempt_id, backlog=Backlog(files=1, size=1, delivering=delivering)
    )
    await live_run.world.register(slots=12, boot_id="boot-2")
    assert (await live_run.world.job(live_run.job_id)).state is state


async def test_snapshots_older_than_verified_ones_are_skipped(
    live_run: AttemptWithStore,
) -> None:
    """Regression: such snapshots stayed in the state `uploading`."""
    old = [
        await live_run.write_snapshot(step, upload=False, score=score)
        for step, score in ((100, 1.0), (200, 90.0), (300, 2.0))
    ]
    await live_run.put("memory", b"shared", old[0])
    newer = [await live_run.write_snapshot(step, score=50.0) for step in (400, 500)]
    states = {name: view.state for name, view in (await live_run.list_snapshots()).items()}
    assert [states[name] for name in old] == [
        SnapshotState.SKIPPED,
        SnapshotState.UPLOADING,
        SnapshotState.SKIPPED,
    ]
    assert {states[name] for name in newer} == {SnapshotState.VERIFIED}
    with pytest.raises(ConflictError) as refused:
        await live_run.declare("memory", b"shared", old[2])
    assert refused.value.code == "snapshot_skipped"
    await live_run.put("memory", b"shared", old[1])
    await live_run.put("state", f"state at 200 {old[1]}".encode(), old[1])
    assert (await live_run.list_snapshots())[old[1]].best, "the best one may still come"
    await artifacts.sweep(live_run.database, live_run.store)
    assert len(live_run.read_files()) == 4


async def test_the_files_of_a_snapshot_skipped_during_its_upload_are_deleted(
    live_run: AttemptWithStore,
) -> None:
    """The snapshot is skipped because a newer one was verified meanwhile."""
    old = await live_run.write_snapshot(100, upload=False)
    content = f"state at 100 {old}".encode()
    declared = await live_run.declare("state", content, old)
    for step in (200, 300):
        await live_run.write_snapshot(step)
    with pytest.raises(NotFoundError):
        await artifacts.upload(
            live_run.database,
            live_run.store,
            live_run.attempt_id,
            declared.id,
            yield_chunks(content),
        )
    assert content not in live_run.read_files()


@pytest.mark.parametrize("end", ["released", "lost", "expired"])
async def test_no_snapshot_stays_uploading_once_its_attempt_has_ended(
    live_run: AttemptWithStore, end: str
) -> None:
    """Regression: snapshots of ended attempts, also of succeeded runs, stayed in the state
    `uploading`.
    """
    snapshot_id = await live_run.write_snapshot(100, upload=False)
    await live_run.put("memory", b"shared", snapshot_id)
    if end == "released":
        await live_run.world.release(
            live_run.attempt_id, Outcome.SUCCEEDED, Cause.BUDGET, last_seq=live_run.seq
        )
    elif end == "lost":
        await live_run.world.send_heartbeat(live_run.worker_id, dead=[live_run.attempt_id])
    else:
        advance_clock(10_000)
        async with live_run.database.write() as session:
            assert await endings.end_as_expired(
                session, live_run.attempt_id, 100.0, "daemon:reaper"
            )
    assert (await live_run.list_snapshots())[snapshot_id].state is SnapshotState.SKIPPED
    await artifacts.sweep(live_run.database, live_run.store)
    assert live_run.read_files() == []
    with pytest.raises(InvalidError, match="not kept"):
        await live_run.world.add_job(
            live_run.run_id, Schedule.EVALUATE, evaluate={"snapshot": snapshot_id}
        )


async def test_a_run_shows_how_far_its_stored_snapshots_are_behind(
    live_run: AttemptWithStore,
) -> None:
    """The run page shows the difference in env_steps."""
    saved = (await live_run.world.run(live_run.run_id)).snapshots
    assert (saved.written, saved.verified) == (None, None)
    await live_run.write_snapshot(100)
    await live_run.write_snapshot(700, upload=False)
    saved = (await live_run.world.run(live_run.run_id)).snapshots
    assert (saved.written, saved.verified) == (700, 100)

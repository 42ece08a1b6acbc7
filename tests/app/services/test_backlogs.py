"""Lines 15.1 and 15.4 on the server: what is not uploaded is shown, skipped, taken back or given
up, and never open for ever.
"""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from sqlalchemy import update

from app.db.models import AttemptRow, SnapshotRow
from app.domain.errors import ConflictError, InvalidError, NotFoundError
from app.services.artifacts import artifacts
from app.services.attempts import adoption, claims, endings
from app.services.jobs import unstored_results
from palestra.contract.names import Schedule
from palestra.contract.states import Cause, JobState, Outcome, RunState, SnapshotState
from palestra.contract.work_order import Adoption, Backlog
from tests.support.artifact_store import Storing, chunks
from tests.support.server_fixture import pass_time

FULL = "The disk of the server's artifact store is full."


async def _give_up(storing: Storing) -> None:
    async with storing.database.write() as session:
        await unstored_results.give_up(session, storing.world.admin, storing.job_id, "no room")


async def test_a_run_whose_results_are_not_stored_says_so_and_is_not_final(
    storing: Storing,
) -> None:
    """Line 15.1: it was not shown that an ended training waited for its upload."""
    world = storing.world
    assert (await world.run(storing.run_id)).not_uploaded is None
    await world.renew(storing.attempt_id, backlog=Backlog(files=3, size=3 * 2**20))
    assert (await world.run(storing.run_id)).not_uploaded is None, (
        "uploads beside the training are no news"
    )
    await world.renew(storing.attempt_id, backlog=Backlog(files=3, size=3 * 2**20, problem=FULL))
    held = (await world.run(storing.run_id)).not_uploaded
    assert held is not None
    assert held.message == f"snapshots not uploaded yet (3 files, 3.0 MiB): {FULL}"
    await world.renew(
        storing.attempt_id, backlog=Backlog(files=1, size=2**19, problem=FULL, delivering=True)
    )
    run, job = await world.run(storing.run_id), await world.job(storing.job_id)
    assert (run.state, job.state) == (RunState.RUNNING, JobState.RUNNING)
    assert run.not_uploaded == job.not_uploaded
    assert run.not_uploaded is not None
    assert run.not_uploaded.message == f"result not uploaded yet (1 file, 512.0 KiB): {FULL}"
    await world.release(storing.attempt_id, Outcome.SUCCEEDED, Cause.BUDGET, last_seq=storing.seq)
    assert (await world.run(storing.run_id)).not_uploaded is None


async def test_only_a_person_gives_up_results(storing: Storing) -> None:
    """Line 15.1: only a user may discard results."""
    world = storing.world
    with pytest.raises(ConflictError) as refused:
        await _give_up(storing)
    assert refused.value.code == "nothing_to_give_up"
    await world.renew(storing.attempt_id, backlog=Backlog(files=1, size=1, problem=FULL))
    with pytest.raises(ConflictError):
        await _give_up(storing)
    waiting = Backlog(files=1, size=1, problem=FULL, delivering=True)
    assert (await world.renew(storing.attempt_id, backlog=waiting)).give_up is False
    await _give_up(storing)
    await _give_up(storing)
    assert (await world.renew(storing.attempt_id, backlog=waiting)).give_up is True


async def _adopt(storing: Storing, worker_id: str | None = None) -> str:
    async with storing.database.write() as session:
        body = Adoption(worker_id=worker_id or storing.worker_id)
        answer = await adoption.adopt(
            session,
            storing.world.own[body.worker_id],
            storing.attempt_id,
            body,
            storing.world.settings,
        )
    assert answer.slot == 0
    return answer.token


async def test_a_worker_takes_back_its_own_attempt_alone_and_only_while_it_lives(
    storing: Storing,
) -> None:
    """Line 15.1: an attempt whose supervisor died while it uploaded was lost, and with it the only
    copy.
    """
    other = (await storing.world.register(name="w2")).worker_id
    with pytest.raises(NotFoundError):
        await _adopt(storing, other)
    assert await _adopt(storing) == claims.token_of(
        storing.world.own[storing.worker_id], storing.attempt_id
    )
    assert (await storing.put("policy", b"result")).stored
    await storing.world.release(storing.attempt_id, Outcome.SUCCEEDED, Cause.BUDGET)
    with pytest.raises(ConflictError) as refused:
        await _adopt(storing)
    assert refused.value.code == "stale_attempt"


@pytest.mark.parametrize(
    ("delivering", "state"), [(True, JobState.RUNNING), (False, JobState.QUEUED)]
)
async def test_a_restart_of_the_machine_leaves_the_attempt_that_was_uploading_to_its_worker(
    storing: Storing, delivering: bool, state: JobState
) -> None:
    """Line 15.1: the results are still on the disk."""
    await storing.world.renew(
        storing.attempt_id, backlog=Backlog(files=1, size=1, delivering=delivering)
    )
    await storing.world.register(slots=12, boot_id="boot-2")
    assert (await storing.world.job(storing.job_id)).state is state


async def test_snapshots_that_newer_ones_overtook_are_marked_and_not_wanted(
    storing: Storing,
) -> None:
    """Line 15.4: such snapshots kept the state `uploading`."""
    old = [
        await storing.snapshot(step, upload=False, score=score)
        for step, score in ((100, 1.0), (200, 90.0), (300, 2.0))
    ]
    await storing.put("memory", b"shared", old[0])
    newer = [await storing.snapshot(step, score=50.0) for step in (400, 500)]
    states = {name: view.state for name, view in (await storing.snapshots()).items()}
    assert [states[name] for name in old] == [
        SnapshotState.SKIPPED,
        SnapshotState.UPLOADING,
        SnapshotState.SKIPPED,
    ]
    assert {states[name] for name in newer} == {SnapshotState.VERIFIED}
    with pytest.raises(ConflictError) as refused:
        await storing.declare("memory", b"shared", old[2])
    assert refused.value.code == "snapshot_skipped"
    await storing.put("memory", b"shared", old[1])
    await storing.put("state", f"state at 200 {old[1]}".encode(), old[1])
    assert (await storing.snapshots())[old[1]].best, "the best one may still come"
    await artifacts.sweep(storing.database, storing.store)
    assert len(storing.files()) == 4


async def test_a_snapshot_that_is_skipped_while_it_arrives_leaves_nothing(storing: Storing) -> None:
    """Line 15.4: the files of a skipped snapshot are deleted."""
    old = await storing.snapshot(100, upload=False)
    content = f"state at 100 {old}".encode()
    declared = await storing.declare("state", content, old)
    for step in (200, 300):
        await storing.snapshot(step)
    with pytest.raises(NotFoundError):
        await artifacts.upload(
            storing.database, storing.store, storing.attempt_id, declared.id, chunks(content)
        )
    assert content not in storing.files()


@pytest.mark.parametrize("end", ["released", "lost", "expired"])
async def test_no_snapshot_stays_uploading_once_its_attempt_has_ended(
    storing: Storing, end: str
) -> None:
    """Line 15.4: a normal session left 19 such rows, also on succeeded runs."""
    snapshot_id = await storing.snapshot(100, upload=False)
    await storing.put("memory", b"shared", snapshot_id)
    if end == "released":
        await storing.world.release(
            storing.attempt_id, Outcome.SUCCEEDED, Cause.BUDGET, last_seq=storing.seq
        )
    elif end == "lost":
        await storing.world.heartbeat(storing.worker_id, dead=[storing.attempt_id])
    else:
        pass_time(10_000)
        async with storing.database.write() as session:
            assert await endings.as_expired(session, storing.attempt_id, 100.0, "daemon:reaper")
    assert (await storing.snapshots())[snapshot_id].state is SnapshotState.SKIPPED
    await artifacts.sweep(storing.database, storing.store)
    assert storing.files() == []
    with pytest.raises(InvalidError, match="not kept"):
        await storing.world.add_job(
            storing.run_id, Schedule.EVALUATE, evaluate={"snapshot": snapshot_id}
        )


async def test_a_run_shows_how_far_its_stored_snapshots_are_behind(storing: Storing) -> None:
    """Line 15.4: the run page did not show it."""
    saved = (await storing.world.run(storing.run_id)).snapshots
    assert (saved.written, saved.verified) == (None, None)
    await storing.snapshot(100)
    await storing.snapshot(700, upload=False)
    saved = (await storing.world.run(storing.run_id)).snapshots
    assert (saved.written, saved.verified) == (700, 100)


def _migration() -> ModuleType:
    path = next((Path(__file__).parents[3] / "migrations" / "versions").glob("*_backlogs.py"))
    spec = importlib.util.spec_from_file_location("backlogs_migration", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def test_rows_that_older_versions_left_uploading_are_repaired_at_upgrade(
    storing: Storing,
) -> None:
    """Line 15.4: the database of an older version holds such rows."""
    left = await storing.snapshot(100, upload=False)
    await storing.world.release(
        storing.attempt_id, Outcome.SUCCEEDED, Cause.BUDGET, last_seq=storing.seq
    )
    live = await storing.world.add_job(storing.run_id, Schedule.TRAIN)
    attempt = (await storing.world.start(live.id, storing.worker_id, slot=7)).work_order.attempt_id
    storing.attempt_id, storing.seq = attempt, 0
    fresh = await storing.snapshot(200, upload=False)
    async with storing.database.write() as session:
        await session.execute(
            update(SnapshotRow).where(SnapshotRow.id == left).values(state="uploading")
        )
        assert await session.get(AttemptRow, attempt) is not None
    condition = _migration()._LEFT_BEHIND
    async with storing.database.write() as session:
        connection = await session.connection()
        await connection.exec_driver_sql(
            f"UPDATE snapshots SET state = 'skipped' WHERE {condition}"
        )
    states = {name: view.state for name, view in (await storing.snapshots()).items()}
    assert states == {left: SnapshotState.SKIPPED, fresh: SnapshotState.UPLOADING}

"""Concurrent writers of a run: a stale pack, a resumed run and a `continuous_eval`.

None of them overwrites the records of another.
"""

from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import update

from app.db.engine import Database
from app.db.models import RunRow
from app.domain.errors import ConflictError, InvalidError
from app.services.artifacts.blob_store import BlobStore
from palestra.contract.names import Schedule
from palestra.contract.states import Cause, Outcome
from palestra.contract.work_order import WorkOrder
from tests.support import records
from tests.support.artifact_store import AttemptWithStore, make_file_entry
from tests.support.server_fixture import World
from tests.support.stored_points import read_columns

pytestmark = pytest.mark.both_databases(
    "Rows are locked on PostgreSQL, where transactions write concurrently.",
    of=(
        "app.db.repositories.attempts",
        "app.db.repositories.writers",
    ),
)


EVALUATION_SLOT = 5


@pytest.fixture
async def pack(world: World, database: Database, tmp_path: Path) -> AttemptWithStore:
    """A live attempt that trains two runs as one pack.

    The methods of `AttemptWithStore` act on the first run.
    """
    registered = await world.register(slots=12)
    first = await world.submit_one_job(seeds=(0, 1), resources={"pack": 2})
    order = (await world.start(first.id, registered.worker_id)).work_order
    directory = tmp_path / "blobs"
    run_id = first.run_ids[0]
    return AttemptWithStore(
        world,
        database,
        BlobStore(directory),
        directory,
        run_id,
        first.id,
        registered.worker_id,
        order.attempt_id,
    )


async def _lose_pack(pack: AttemptWithStore) -> None:
    """Marks the attempt of the pack as lost and cancels its job; its process may still run."""
    await pack.world.send_heartbeat(pack.worker_id, dead=[pack.attempt_id])
    await pack.world.cancel(pack.job_id)


async def _resume_first_run(pack: AttemptWithStore) -> AttemptWithStore:
    """Resumes the first run of a lost pack in a job of its own."""
    job = await pack.world.add_job(pack.run_id, Schedule.TRAIN)
    return await _take(pack, job.id, slot=1)


async def _start_continuous_eval(training: AttemptWithStore) -> AttemptWithStore:
    """Starts a `continuous_eval` of the run concurrently with its training."""
    job = await training.world.add_job(training.run_id, Schedule.CONTINUOUS_EVAL)
    return await _take(training, job.id, slot=EVALUATION_SLOT)


async def _take(live_run: AttemptWithStore, job_id: str, *, slot: int) -> AttemptWithStore:
    order = (await live_run.world.start(job_id, live_run.worker_id, slot=slot)).work_order
    return replace(live_run, job_id=job_id, attempt_id=order.attempt_id, seq=0)


async def _read_values(live_run: AttemptWithStore, name: str) -> list[list[float]]:
    """Returns the values of a series of the first run: one list per stored block, in order."""
    async with live_run.database.read() as session:
        found = await read_columns(session, live_run.run_id, name)
        return [columns.value.tolist() for columns in found]


async def _send_refused(writer: AttemptWithStore, *content: records.Json) -> str:
    """Sends a batch that must be refused; returns the error code."""
    with pytest.raises((ConflictError, InvalidError)) as refusal:
        await writer.send(*content)
    return refusal.value.code


async def test_a_pack_raises_the_fence_of_each_of_its_runs(pack: AttemptWithStore) -> None:
    both = (await pack.world.job(pack.job_id)).run_ids
    assert [(await pack.world.run(run_id)).fence for run_id in both] == [1, 1]
    await pack.world.send_heartbeat(pack.worker_id, dead=[pack.attempt_id])
    order: WorkOrder = (await pack.world.claim(pack.job_id, pack.worker_id, attempt=2)).work_order
    assert [(run.run_id, run.fence) for run in order.runs] == [(run_id, 2) for run_id in both]


async def test_a_run_of_a_live_pack_gets_no_second_training_job(pack: AttemptWithStore) -> None:
    for run_id in (await pack.world.job(pack.job_id)).run_ids:
        with pytest.raises(ConflictError) as refusal:
            await pack.world.add_job(run_id, Schedule.TRAIN)
        assert refusal.value.code == "run_busy"


async def test_late_batches_of_a_pack_are_refused_after_one_run_was_resumed(
    pack: AttemptWithStore,
) -> None:
    """This holds for records of the resumed run and of the run that no attempt trains."""
    partner = (await pack.world.job(pack.job_id)).run_ids[1]
    first = await pack.write_snapshot(100)
    await pack.send(
        records.make_points(pack.run_id, "loss", [50, 150]),
        records.make_points(partner, "loss", [50]),
    )
    await _lose_pack(pack)
    alone = await _resume_first_run(pack)
    await alone.send(
        records.make_points(alone.run_id, "loss", [150], [7.0]),
        records.make_evaluation(alone.run_id, 150, 3.0),
    )
    late = records.make_snapshot(
        pack.run_id, "snp_" + "0" * 26, 200, [make_file_entry("state", b"late")]
    )
    for content in (
        records.make_points(pack.run_id, "loss", [160]),
        records.make_points(partner, "loss", [160]),
        late,
    ):
        assert (
            await _send_refused(pack, content, records.make_evaluation(pack.run_id, 150, 9.0))
            == "stale_attempt"
        )
    with pytest.raises(ConflictError, match="ended"):
        await pack.declare("state", b"late", "snp_" + "0" * 26)
    assert [row.mean for row in await alone.list_evaluations(superseded=True)] == [3.0]
    assert {name: view.superseded for name, view in (await alone.list_snapshots()).items()} == {
        first: False
    }
    assert await _read_values(alone, "loss") == [[50.0, 150.0], [7.0]]
    assert (await pack.world.run(pack.run_id)).progress.env_step == 150


async def test_a_live_pack_is_stale_once_the_fence_of_one_run_is_higher(
    pack: AttemptWithStore,
) -> None:
    """After a network partition heals, only the fence may show that an attempt is stale."""
    async with pack.database.write() as session:
        await session.execute(
            update(RunRow).where(RunRow.id == pack.run_id).values(fence=RunRow.fence + 1)
        )
    partner = (await pack.world.job(pack.job_id)).run_ids[1]
    assert await _send_refused(pack, records.make_points(partner, "loss", [1])) == "stale_attempt"


async def test_a_continuous_eval_continues_after_its_pack_is_stale(pack: AttemptWithStore) -> None:
    """The `continuous_eval` may send evaluations but no training points; the pack may send
    neither.
    """
    first = await pack.write_snapshot(100)
    start_continuous_eval = await _start_continuous_eval(pack)
    await _lose_pack(pack)
    assert (
        await _send_refused(pack, records.make_evaluation(pack.run_id, 100, 1.0, snapshot_id=first))
        == "stale_attempt"
    )
    await start_continuous_eval.send(
        records.make_evaluation(pack.run_id, 100, 8.0, snapshot_id=first)
    )
    assert (
        await _send_refused(start_continuous_eval, records.make_points(pack.run_id, "loss", [100]))
        == "not_training"
    )
    assert [(row.mean, row.superseded) for row in await pack.list_evaluations(superseded=True)] == [
        (8.0, False)
    ]
    assert (await pack.world.run(pack.run_id)).fence == 1, "who only reads raises no fence"


async def test_a_continuous_eval_continues_concurrently_with_a_resumed_run(
    pack: AttemptWithStore,
) -> None:
    """Its evaluation of a superseded snapshot is kept and marked as superseded."""
    first = await pack.write_snapshot(100)
    start_continuous_eval = await _start_continuous_eval(pack)
    await start_continuous_eval.send(
        records.make_evaluation(pack.run_id, 100, 8.0, snapshot_id=first)
    )
    left_behind = await pack.write_snapshot(200, upload=False)
    await _lose_pack(pack)
    alone = await _resume_first_run(pack)
    await alone.send(records.make_evaluation(alone.run_id, 150, 3.0))
    await start_continuous_eval.send(
        records.make_evaluation(pack.run_id, 200, 9.0, snapshot_id=left_behind)
    )
    shown = [(row.mean, row.superseded) for row in await alone.list_evaluations(superseded=True)]
    assert sorted(shown) == [(3.0, False), (8.0, False), (9.0, True)]
    assert (
        await _send_refused(start_continuous_eval, records.make_episodes(pack.run_id, [1]))
        == "not_training"
    )
    await pack.world.release(
        start_continuous_eval.attempt_id,
        Outcome.SUCCEEDED,
        Cause.BUDGET,
        last_seq=start_continuous_eval.seq,
    )
    await alone.send(records.make_points(alone.run_id, "loss", [150]))
    assert (await pack.world.run(pack.run_id)).fence == 2

"""Artifacts and snapshots: complete uploads, retention, and snapshots superseded by a resume."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from app.domain.errors import ConflictError, DomainError, InvalidError, NotFoundError
from app.domain.paging import PageRequest
from app.services.artifacts import artifacts
from app.services.snapshots import snapshots
from palestra.contract.names import Schedule, new_id
from palestra.contract.resources import ArtifactView
from palestra.contract.states import Cause, Outcome, SnapshotState
from tests.support import records
from tests.support.artifact_store import AttemptWithStore, chunks, file_entry
from tests.support.server_fixture import token_of


async def test_content_comes_back_as_it_was_sent(storing: AttemptWithStore) -> None:
    stored = await storing.put("policy.safetensors", b"x" * 1000)
    assert stored.stored
    async with storing.database.read() as session:
        content = await artifacts.content(session, storing.world.admin, stored.id, storing.store)
    assert content.path.read_bytes() == b"x" * 1000
    assert "policy" not in str(content.path)
    assert [path.name for path in (storing.directory / "incoming").iterdir()] == []


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"12345678901", "size_mismatch"),
        (b"123456789", "size_mismatch"),
        (b"123456789X", "hash_mismatch"),
    ],
)
async def test_content_that_differs_from_its_declaration_is_refused_and_deleted(
    storing: AttemptWithStore, sent: bytes, code: str
) -> None:
    declared = await storing.declare("a", b"1234567890")
    with pytest.raises(InvalidError) as refusal:
        await storing.upload(declared.id, sent)
    assert refusal.value.code == code
    assert storing.files() == []
    assert (await storing.upload(declared.id, b"1234567890")).stored


async def test_an_interrupted_upload_leaves_no_file_and_can_be_repeated(
    storing: AttemptWithStore,
) -> None:
    declared = await storing.declare("a", b"1234567890")

    async def broken() -> AsyncIterator[bytes]:
        yield b"12345"
        raise ConnectionResetError

    with pytest.raises((ConnectionResetError, DomainError)):
        await artifacts.upload(
            storing.database, storing.store, storing.attempt_id, declared.id, broken()
        )
    assert storing.files() == []
    assert (await storing.upload(declared.id, b"1234567890")).stored


async def test_an_empty_file_can_be_stored(storing: AttemptWithStore) -> None:
    assert (await storing.put("empty", b"")).stored


async def test_the_same_declaration_answers_the_same_artifact_and_other_content_is_a_conflict(
    storing: AttemptWithStore,
) -> None:
    first = await storing.declare("a.bin", b"one")
    assert (await storing.declare("a.bin", b"one")).id == first.id
    with pytest.raises(ConflictError) as refusal:
        await storing.declare("a.bin", b"two")
    assert refusal.value.code == "artifact_exists"
    assert (await storing.declare("A.bin", b"two")).id != first.id


async def test_names_that_differ_only_in_unicode_form_are_one_name(
    storing: AttemptWithStore,
) -> None:
    first = await storing.declare("caf\u00e9", b"one")
    assert (await storing.declare("cafe\u0301", b"one")).id == first.id


async def test_content_that_the_project_holds_is_not_sent_twice(storing: AttemptWithStore) -> None:
    await storing.put("a", b"same")
    assert (await storing.declare("b", b"same")).stored
    assert storing.files() == [b"same"]


async def test_stored_content_never_changes(storing: AttemptWithStore) -> None:
    stored = await storing.put("a", b"one")
    with pytest.raises(ConflictError) as refusal:
        await storing.upload(stored.id, b"two")
    assert refusal.value.code == "already_stored"


async def test_two_parallel_uploads_store_once(storing: AttemptWithStore) -> None:
    declared = await storing.declare("a", b"one" * 1000)
    answers = await asyncio.gather(
        *(storing.upload(declared.id, b"one" * 1000) for _ in range(4)), return_exceptions=True
    )
    assert sum(isinstance(answer, ArtifactView) for answer in answers) == 1
    assert {answer.code for answer in answers if isinstance(answer, DomainError)} == {
        "already_stored"
    }
    assert storing.files() == [b"one" * 1000]


@pytest.mark.parametrize(
    "name",
    ["../x", "a/../b", "/etc/passwd", "C:\\x", "", ".", "nul.txt", "a\x00b", "a\u202eb", "x" * 256],
)
async def test_bad_names_are_refused(storing: AttemptWithStore, name: str) -> None:
    with pytest.raises(InvalidError) as refusal:
        await storing.declare(name, b"x")
    assert refusal.value.pointer == "/name"


async def test_an_artifact_of_another_project_is_not_found(storing: AttemptWithStore) -> None:
    stored = await storing.put("a", b"one")
    stranger = token_of("u", "tok", "prj_other")
    async with storing.database.read() as session:
        with pytest.raises(NotFoundError):
            await artifacts.content(session, stranger, stored.id, storing.store)


async def test_a_stale_attempt_may_not_store(storing: AttemptWithStore) -> None:
    old = storing.attempt_id
    declared = await storing.declare("a", b"one")
    await storing.resume(2)
    with pytest.raises(ConflictError) as refusal:
        await artifacts.upload(storing.database, storing.store, old, declared.id, chunks(b"one"))
    assert refusal.value.code == "stale_attempt"
    assert storing.files() == []


async def test_a_snapshot_is_verified_once_all_its_files_are_stored(
    storing: AttemptWithStore,
) -> None:
    snapshot_id = await storing.snapshot(100, upload=False)
    assert (await storing.snapshots())[snapshot_id].state == SnapshotState.UPLOADING
    async with storing.database.read() as session:
        assert await snapshots.find_newest_verified(session, storing.run_id) is None
    await storing.put("memory", b"shared", snapshot_id)
    assert (await storing.snapshots())[snapshot_id].state == SnapshotState.UPLOADING
    await storing.put("state", f"state at 100 {snapshot_id}".encode(), snapshot_id)
    view = (await storing.snapshots())[snapshot_id]
    assert (view.state, view.newest) == (SnapshotState.VERIFIED, True)
    async with storing.database.read() as session:
        ref = await snapshots.find_newest_verified(session, storing.run_id)
    assert ref is not None
    assert (ref.snapshot_id, [file.name for file in ref.files]) == (
        snapshot_id,
        ["memory", "state"],
    )


async def test_files_may_come_before_the_snapshots_record(storing: AttemptWithStore) -> None:
    snapshot_id = new_id("snp")
    await storing.put("state", b"early", snapshot_id)
    await storing.send(
        records.snapshot(storing.run_id, snapshot_id, 10, [file_entry("state", b"early")])
    )
    assert (await storing.snapshots())[snapshot_id].state == SnapshotState.VERIFIED


async def test_a_file_that_the_record_does_not_list_is_refused(storing: AttemptWithStore) -> None:
    snapshot_id = await storing.snapshot(100, upload=False)
    with pytest.raises(InvalidError) as refusal:
        await storing.declare("state", b"other content", snapshot_id)
    assert refusal.value.code == "not_in_snapshot"


async def test_retention_keeps_the_last_snapshots_and_the_best_and_deletes_the_others(
    storing: AttemptWithStore,
) -> None:
    scores = [10.0, 90.0, 20.0, 30.0, "NaN"]
    ids = [await storing.snapshot(100 * (i + 1), score=score) for i, score in enumerate(scores)]
    views = await storing.snapshots()
    states = [views[snapshot_id].state for snapshot_id in ids]
    gone, kept = SnapshotState.DELETED, SnapshotState.VERIFIED
    assert states == [gone, kept, gone, kept, kept]
    assert [views[snapshot_id].best for snapshot_id in ids] == [False, True, False, False, False]
    assert storing.files() == sorted(
        [b"shared", *(f"state at {100 * (i + 1)} {ids[i]}".encode() for i in (1, 3, 4))]
    )
    async with storing.database.read() as session:
        assert (await snapshots.resolve(session, storing.run_id, "best")).snapshot_id == ids[1]
        assert (await snapshots.resolve(session, storing.run_id, "newest")).snapshot_id == ids[4]
        with pytest.raises(InvalidError) as refusal:
            await snapshots.resolve(session, storing.run_id, ids[0])
    assert refusal.value.code == "snapshot_deleted"


async def test_a_snapshot_that_a_live_attempt_reads_is_kept(storing: AttemptWithStore) -> None:
    first = await storing.snapshot(100)
    job = await storing.world.add_job(storing.run_id, Schedule.EVALUATE)
    await storing.world.start(job.id, storing.worker_id, slot=5)
    for step in (200, 300, 400):
        await storing.snapshot(step)
    assert (await storing.snapshots())[first].state == SnapshotState.VERIFIED


async def test_a_resume_supersedes_records_after_its_snapshot(storing: AttemptWithStore) -> None:
    run = storing.run_id
    await storing.send(records.evaluation(run, 50, 1.0))
    first = await storing.snapshot(100)
    await storing.send(
        records.evaluation(run, 100, 2.0),
        records.evaluation(run, 150, 3.0),
        records.points(run, "loss", [150]),
    )
    unfinished = await storing.snapshot(200, upload=False)
    assert (await storing.world.run(run)).progress.env_step == 200
    await storing.resume(2)
    view = await storing.world.run(run)
    assert (view.progress.env_step, view.fence) == (100, 2)
    assert [row.mean for row in await storing.evaluations(superseded=False)] == [1.0, 2.0]
    assert [row.superseded for row in await storing.evaluations(superseded=True)] == [
        False,
        False,
        True,
    ]
    found = await storing.snapshots()
    assert (found[first].superseded, found[unfinished].superseded) == (False, True)


async def test_an_evaluation_is_superseded_exactly_when_its_snapshot_is(
    storing: AttemptWithStore,
) -> None:
    first, second = await storing.snapshot(100), await storing.snapshot(200)
    job = await storing.world.add_job(
        storing.run_id, Schedule.EVALUATE, evaluate={"snapshot": second}
    )
    reader = (await storing.world.start(job.id, storing.worker_id, slot=5)).work_order.attempt_id
    kept_seq, storing.seq = storing.seq, 0
    await storing.send(
        records.evaluation(storing.run_id, 200, 9.0, snapshot_id=second), attempt_id=reader
    )
    storing.seq = kept_seq
    await storing.resume(2)
    assert not (await storing.snapshots())[second].superseded
    assert [row.superseded for row in await storing.evaluations(superseded=True)] == [False]
    assert not (await storing.snapshots())[first].superseded


async def test_an_attempt_that_only_reads_may_not_write_training_state(
    storing: AttemptWithStore,
) -> None:
    await storing.snapshot(100)
    job = await storing.world.add_job(storing.run_id, Schedule.EVALUATE)
    reader = (await storing.world.start(job.id, storing.worker_id, slot=5)).work_order.attempt_id
    storing.seq = 0
    for record in (
        records.points(storing.run_id, "loss", [1]),
        records.evaluation(storing.run_id, 1, 1.0),
        records.episodes(storing.run_id, [1]),
    ):
        with pytest.raises(InvalidError) as refusal:
            await storing.send(record, attempt_id=reader)
        assert refusal.value.code == "not_training"
    await storing.send(
        records.system(storing.run_id, cpu=1.0),
        records.log(storing.run_id, "evaluates"),
        attempt_id=reader,
    )


async def test_orphaned_and_unused_blobs_are_deleted(
    storing: AttemptWithStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await storing.put("a", b"kept")
    orphan = storing.store.path("ab" * 16)
    orphan.parent.mkdir(parents=True, exist_ok=True)
    orphan.write_bytes(b"orphan")
    assert await artifacts.sweep(storing.database, storing.store) == 0
    monkeypatch.setattr("app.services.artifacts.blob_store._ORPHAN_SECONDS", -1.0)
    assert await artifacts.sweep(storing.database, storing.store) == 1
    assert storing.files() == [b"kept"]


async def test_a_finished_run_keeps_its_artifacts(storing: AttemptWithStore) -> None:
    await storing.snapshot(100)
    await storing.world.release(
        storing.attempt_id, Outcome.SUCCEEDED, Cause.BUDGET, last_seq=storing.seq
    )
    assert await artifacts.sweep(storing.database, storing.store) == 0
    assert len(storing.files()) == 2


async def test_a_video_has_the_env_step_of_its_evaluation(storing: AttemptWithStore) -> None:
    with pytest.raises(InvalidError) as refusal:
        await storing.declare("000000000010-episode-0.mp4", b"video", kind="video")
    assert (refusal.value.code, refusal.value.pointer) == ("env_step_needed", "/env_step")
    declared = await storing.declare(
        "000000000010-episode-0.mp4", b"video", kind="video", env_step=10
    )
    assert (await storing.upload(declared.id, b"video")).env_step == 10
    again = await storing.declare("000000000010-episode-0.mp4", b"video", kind="video", env_step=10)
    assert (again.id, again.stored) == (declared.id, True)
    await storing.put("policy.safetensors", b"weights")
    async with storing.database.read() as session:
        request = PageRequest(limit=10, sort="created_at")
        page = await artifacts.list_for_run(
            session, storing.world.admin, storing.run_id, request, "video"
        )
    assert [item.id for item in page.items] == [declared.id]
    with pytest.raises(ConflictError):
        await storing.declare("000000000010-episode-0.mp4", b"video", kind="video", env_step=20)

"""Artifacts and snapshots: complete uploads, retention, and snapshots superseded by a resume."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import select

from app.db.models import EventRow
from app.domain.errors import ConflictError, DomainError, InvalidError, NotFoundError
from app.domain.paging import PageRequest
from app.services.artifacts import artifacts
from app.services.snapshots import snapshots
from palestra.contract.names import Schedule, new_id
from palestra.contract.resources import ArtifactView
from palestra.contract.states import Cause, Outcome, SnapshotState
from tests.support import records
from tests.support.artifact_store import AttemptWithStore, make_file_entry, yield_chunks
from tests.support.server_fixture import make_token_caller

both_databases = pytest.mark.both_databases(
    "Uploads lock rows of blobs on PostgreSQL, where transactions write concurrently.",
    of=("app.db.repositories.artifacts",),
)


async def test_content_is_returned_as_it_was_sent(live_run: AttemptWithStore) -> None:
    stored = await live_run.put("policy.safetensors", b"x" * 1000)
    assert stored.stored
    async with live_run.database.read() as session:
        content = await artifacts.find_content(
            session, live_run.world.admin, stored.id, live_run.store
        )
    assert content.path.read_bytes() == b"x" * 1000
    assert "policy" not in str(content.path)
    assert [path.name for path in (live_run.directory / "incoming").iterdir()] == []


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"12345678901", "size_mismatch"),
        (b"123456789", "size_mismatch"),
        (b"123456789X", "hash_mismatch"),
    ],
)
async def test_content_that_differs_from_its_declaration_is_refused_and_deleted(
    live_run: AttemptWithStore, sent: bytes, code: str
) -> None:
    declared = await live_run.declare("a", b"1234567890")
    with pytest.raises(InvalidError) as refusal:
        await live_run.upload(declared.id, sent)
    assert refusal.value.code == code
    assert live_run.read_files() == []
    assert (await live_run.upload(declared.id, b"1234567890")).stored


async def test_an_interrupted_upload_leaves_no_file_and_can_be_repeated(
    live_run: AttemptWithStore,
) -> None:
    declared = await live_run.declare("a", b"1234567890")

    async def yield_and_fail() -> AsyncIterator[bytes]:
        yield b"12345"
        raise ConnectionResetError

    with pytest.raises((ConnectionResetError, DomainError)):
        await artifacts.upload(
            live_run.database, live_run.store, live_run.attempt_id, declared.id, yield_and_fail()
        )
    assert live_run.read_files() == []
    assert (await live_run.upload(declared.id, b"1234567890")).stored


async def test_an_empty_file_can_be_stored(live_run: AttemptWithStore) -> None:
    assert (await live_run.put("empty", b"")).stored


@both_databases
async def test_the_same_declaration_answers_the_same_artifact_and_other_content_is_a_conflict(
    live_run: AttemptWithStore,
) -> None:
    first = await live_run.declare("a.bin", b"one")
    assert (await live_run.declare("a.bin", b"one")).id == first.id
    with pytest.raises(ConflictError) as refusal:
        await live_run.declare("a.bin", b"two")
    assert refusal.value.code == "artifact_exists"
    assert (await live_run.declare("A.bin", b"two")).id != first.id


@both_databases
async def test_names_that_differ_only_in_unicode_form_are_one_name(
    live_run: AttemptWithStore,
) -> None:
    first = await live_run.declare("caf\u00e9", b"one")
    assert (await live_run.declare("cafe\u0301", b"one")).id == first.id


async def test_content_that_the_project_holds_is_not_sent_twice(live_run: AttemptWithStore) -> None:
    await live_run.put("a", b"same")
    assert (await live_run.declare("b", b"same")).stored
    assert live_run.read_files() == [b"same"]


async def test_stored_content_never_changes(live_run: AttemptWithStore) -> None:
    stored = await live_run.put("a", b"one")
    with pytest.raises(ConflictError) as refusal:
        await live_run.upload(stored.id, b"two")
    assert refusal.value.code == "already_stored"


@both_databases
async def test_two_parallel_uploads_store_once(live_run: AttemptWithStore) -> None:
    declared = await live_run.declare("a", b"one" * 1000)
    answers = await asyncio.gather(
        *(live_run.upload(declared.id, b"one" * 1000) for _ in range(4)), return_exceptions=True
    )
    assert sum(isinstance(answer, ArtifactView) for answer in answers) == 1
    assert {answer.code for answer in answers if isinstance(answer, DomainError)} == {
        "already_stored"
    }
    assert live_run.read_files() == [b"one" * 1000]


@pytest.mark.parametrize(
    "name",
    ["../x", "a/../b", "/etc/passwd", "C:\\x", "", ".", "nul.txt", "a\x00b", "a\u202eb", "x" * 256],
)
async def test_bad_names_are_refused(live_run: AttemptWithStore, name: str) -> None:
    with pytest.raises(InvalidError) as refusal:
        await live_run.declare(name, b"x")
    assert refusal.value.pointer == "/name"


async def test_an_artifact_of_another_project_is_not_found(live_run: AttemptWithStore) -> None:
    stored = await live_run.put("a", b"one")
    stranger = make_token_caller("u", "tok", "prj_other")
    async with live_run.database.read() as session:
        with pytest.raises(NotFoundError):
            await artifacts.find_content(session, stranger, stored.id, live_run.store)


async def test_a_stale_attempt_may_not_store(live_run: AttemptWithStore) -> None:
    old = live_run.attempt_id
    declared = await live_run.declare("a", b"one")
    await live_run.resume(2)
    with pytest.raises(ConflictError) as refusal:
        await artifacts.upload(
            live_run.database, live_run.store, old, declared.id, yield_chunks(b"one")
        )
    assert refusal.value.code == "stale_attempt"
    assert live_run.read_files() == []


async def test_a_snapshot_is_verified_once_all_its_files_are_stored(
    live_run: AttemptWithStore,
) -> None:
    snapshot_id = await live_run.write_snapshot(100, upload=False)
    assert (await live_run.list_snapshots())[snapshot_id].state == SnapshotState.UPLOADING
    async with live_run.database.read() as session:
        assert await snapshots.find_newest_verified(session, live_run.run_id) is None
    await live_run.put("memory", b"shared", snapshot_id)
    assert (await live_run.list_snapshots())[snapshot_id].state == SnapshotState.UPLOADING
    await live_run.put("state", f"state at 100 {snapshot_id}".encode(), snapshot_id)
    view = (await live_run.list_snapshots())[snapshot_id]
    assert (view.state, view.newest) == (SnapshotState.VERIFIED, True)
    async with live_run.database.read() as session:
        ref = await snapshots.find_newest_verified(session, live_run.run_id)
    assert ref is not None
    assert (ref.snapshot_id, [file.name for file in ref.files]) == (
        snapshot_id,
        ["memory", "state"],
    )


async def test_files_may_come_before_the_snapshots_record(live_run: AttemptWithStore) -> None:
    snapshot_id = new_id("snp")
    await live_run.put("state", b"early", snapshot_id)
    await live_run.send(
        records.make_snapshot(
            live_run.run_id, snapshot_id, 10, [make_file_entry("state", b"early")]
        )
    )
    assert (await live_run.list_snapshots())[snapshot_id].state == SnapshotState.VERIFIED


async def test_a_file_that_the_record_does_not_list_is_refused(live_run: AttemptWithStore) -> None:
    snapshot_id = await live_run.write_snapshot(100, upload=False)
    with pytest.raises(InvalidError) as refusal:
        await live_run.declare("state", b"other content", snapshot_id)
    assert refusal.value.code == "not_in_snapshot"


async def test_retention_keeps_the_last_snapshots_and_the_best_and_deletes_the_others(
    live_run: AttemptWithStore,
) -> None:
    scores = [10.0, 90.0, 20.0, 30.0, "NaN"]
    ids = [
        await live_run.write_snapshot(100 * (i + 1), score=score) for i, score in enumerate(scores)
    ]
    views = await live_run.list_snapshots()
    states = [views[snapshot_id].state for snapshot_id in ids]
    gone, kept = SnapshotState.DELETED, SnapshotState.VERIFIED
    assert states == [gone, kept, gone, kept, kept]
    assert [views[snapshot_id].best for snapshot_id in ids] == [False, True, False, False, False]
    assert live_run.read_files() == sorted(
        [b"shared", *(f"state at {100 * (i + 1)} {ids[i]}".encode() for i in (1, 3, 4))]
    )
    async with live_run.database.read() as session:
        assert (await snapshots.resolve(session, live_run.run_id, "best")).snapshot_id == ids[1]
        assert (await snapshots.resolve(session, live_run.run_id, "newest")).snapshot_id == ids[4]
        with pytest.raises(InvalidError) as refusal:
            await snapshots.resolve(session, live_run.run_id, ids[0])
    assert refusal.value.code == "snapshot_deleted"


async def test_the_final_snapshot_takes_the_place_of_that_before_the_final_evaluation(
    live_run: AttemptWithStore,
) -> None:
    ids = [await live_run.write_snapshot(step) for step in (100, 200, 200)]
    assert await list_kept(live_run, ids) == ids[1:], "the retention rule keeps two"
    final = await live_run.write_snapshot(200, reason="finish")
    assert await list_kept(live_run, [*ids, final]) == [ids[1], final]


async def list_kept(run: AttemptWithStore, ids: list[str]) -> list[str]:
    views = await run.list_snapshots()
    return [one for one in ids if views[one].state == SnapshotState.VERIFIED]


async def test_a_snapshot_that_a_live_attempt_reads_is_kept(live_run: AttemptWithStore) -> None:
    first = await live_run.write_snapshot(100)
    job = await live_run.world.add_job(live_run.run_id, Schedule.EVALUATE)
    await live_run.world.start(job.id, live_run.worker_id, slot=5)
    for step in (200, 300, 400):
        await live_run.write_snapshot(step)
    assert (await live_run.list_snapshots())[first].state == SnapshotState.VERIFIED


async def test_a_resume_supersedes_records_after_its_snapshot(live_run: AttemptWithStore) -> None:
    run = live_run.run_id
    await live_run.send(records.make_evaluation(run, 50, 1.0))
    first = await live_run.write_snapshot(100)
    await live_run.send(
        records.make_evaluation(run, 100, 2.0),
        records.make_evaluation(run, 150, 3.0),
        records.make_points(run, "loss", [150]),
    )
    unfinished = await live_run.write_snapshot(200, upload=False)
    assert (await live_run.world.run(run)).progress.env_step == 200
    await live_run.resume(2)
    view = await live_run.world.run(run)
    assert (view.progress.env_step, view.fence) == (100, 2)
    assert [row.mean for row in await live_run.list_evaluations(superseded=False)] == [1.0, 2.0]
    assert [row.superseded for row in await live_run.list_evaluations(superseded=True)] == [
        False,
        False,
        True,
    ]
    found = await live_run.list_snapshots()
    assert (found[first].superseded, found[unfinished].superseded) == (False, True)


async def test_an_evaluation_is_superseded_exactly_when_its_snapshot_is(
    live_run: AttemptWithStore,
) -> None:
    first, second = await live_run.write_snapshot(100), await live_run.write_snapshot(200)
    job = await live_run.world.add_job(
        live_run.run_id, Schedule.EVALUATE, evaluate={"snapshot": second}
    )
    reader = (await live_run.world.start(job.id, live_run.worker_id, slot=5)).work_order.attempt_id
    kept_seq, live_run.seq = live_run.seq, 0
    await live_run.send(
        records.make_evaluation(live_run.run_id, 200, 9.0, snapshot_id=second), attempt_id=reader
    )
    live_run.seq = kept_seq
    await live_run.resume(2)
    assert not (await live_run.list_snapshots())[second].superseded
    assert [row.superseded for row in await live_run.list_evaluations(superseded=True)] == [False]
    assert not (await live_run.list_snapshots())[first].superseded


async def test_an_attempt_that_only_reads_may_not_write_training_state(
    live_run: AttemptWithStore,
) -> None:
    await live_run.write_snapshot(100)
    job = await live_run.world.add_job(live_run.run_id, Schedule.EVALUATE)
    reader = (await live_run.world.start(job.id, live_run.worker_id, slot=5)).work_order.attempt_id
    live_run.seq = 0
    for record in (
        records.make_points(live_run.run_id, "loss", [1]),
        records.make_evaluation(live_run.run_id, 1, 1.0),
        records.make_episodes(live_run.run_id, [1]),
    ):
        with pytest.raises(InvalidError) as refusal:
            await live_run.send(record, attempt_id=reader)
        assert refusal.value.code == "not_training"
    await live_run.send(
        records.make_system_record(live_run.run_id, cpu=1.0),
        records.make_log(live_run.run_id, "evaluates"),
        attempt_id=reader,
    )


@both_databases
async def test_orphaned_and_unused_blobs_are_deleted(
    live_run: AttemptWithStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await live_run.put("a", b"kept")
    orphan = live_run.store.path("ab" * 16)
    orphan.parent.mkdir(parents=True, exist_ok=True)
    orphan.write_bytes(b"orphan")
    assert await artifacts.sweep(live_run.database, live_run.store) == 0
    monkeypatch.setattr("app.services.artifacts.blob_store._ORPHAN_SECONDS", -1.0)
    assert await artifacts.sweep(live_run.database, live_run.store) == 1
    assert live_run.read_files() == [b"kept"]


async def test_a_finished_run_keeps_its_artifacts(live_run: AttemptWithStore) -> None:
    await live_run.write_snapshot(100)
    await live_run.world.release(
        live_run.attempt_id, Outcome.SUCCEEDED, Cause.BUDGET, last_seq=live_run.seq
    )
    assert await artifacts.sweep(live_run.database, live_run.store) == 0
    assert len(live_run.read_files()) == 2


async def test_a_video_has_the_env_step_of_its_evaluation(live_run: AttemptWithStore) -> None:
    with pytest.raises(InvalidError) as refusal:
        await live_run.declare("000000000010-episode-0.mp4", b"video", kind="video")
    assert (refusal.value.code, refusal.value.pointer) == ("env_step_needed", "/env_step")
    declared = await live_run.declare(
        "000000000010-episode-0.mp4", b"video", kind="video", env_step=10
    )
    assert (await live_run.upload(declared.id, b"video")).env_step == 10
    again = await live_run.declare(
        "000000000010-episode-0.mp4", b"video", kind="video", env_step=10
    )
    assert (again.id, again.stored) == (declared.id, True)
    await live_run.put("policy.safetensors", b"weights")
    async with live_run.database.read() as session:
        request = PageRequest(limit=10, sort="created_at")
        page = await artifacts.list_for_run(
            session, live_run.world.admin, live_run.run_id, request, "video"
        )
    assert [item.id for item in page.items] == [declared.id]
    with pytest.raises(ConflictError):
        await live_run.declare("000000000010-episode-0.mp4", b"video", kind="video", env_step=20)


async def read_artifact_events(live_run: AttemptWithStore) -> list[tuple[str | None, str]]:
    """Returns run and name of each event of a stored file, all of which say so."""
    async with live_run.database.read() as session:
        query = select(EventRow).where(EventRow.type == "artifact").order_by(EventRow.id)
        found = (await session.scalars(query)).all()
    assert all(event.data["stored"] for event in found)
    return [(event.run_id, event.data["name"]) for event in found]


async def test_each_stored_file_is_one_event_but_those_of_snapshots(
    live_run: AttemptWithStore,
) -> None:
    await live_run.declare("weights", b"w")
    assert await read_artifact_events(live_run) == [], "nothing is stored yet"
    await live_run.put("weights", b"w")
    await live_run.declare("weights", b"w")
    await live_run.put("same", b"w")
    await live_run.write_snapshot(100)
    video = await live_run.declare("episode.mp4", b"v", kind="video", env_step=5)
    with pytest.raises(InvalidError):
        await live_run.upload(video.id, b"other")
    run = live_run.run_id
    assert await read_artifact_events(live_run) == [(run, "weights"), (run, "same")]
    await live_run.upload(video.id, b"v")
    assert (await read_artifact_events(live_run))[2:] == [(run, "episode.mp4")]

"""Moving an experiment that has curves, snapshots and stored files."""

from dataclasses import replace

import pytest
from sqlalchemy import func, select

from app.db.engine import Database
from app.db.models import ArtifactRow, Base, BlobRow, ProjectRow, UsageEntryRow
from app.db.repositories import artifacts as blob_rows
from app.domain.errors import ConflictError
from app.domain.paging import PageRequest
from app.domain.principal import Principal
from app.services import moves
from app.services.artifacts import artifacts
from app.services.projects import projects
from palestra.contract.names import Schedule
from palestra.contract.projects import ProjectChange
from palestra.contract.states import Cause, Outcome, SnapshotState
from tests.support import records
from tests.support.artifact_store import AttemptWithStore
from tests.support.server_fixture import make_definition

OWN, SHARED, EQUAL = b"of this run alone", b"of both experiments", b"stored by the target too"
KEPT = {
    "audit",
    "events",
    "memberships",
    "project_pools",
    "queue_groups",
    "tokens",
    "usage_accounts",
    "usage_entries",
}
"""Tables of a project whose rows stay with it."""


async def _experiment_id(live_run: AttemptWithStore) -> str:
    return (await live_run.world.run(live_run.run_id)).experiment_id


async def _move(live_run: AttemptWithStore, mover: Principal) -> None:
    await _move_experiment(live_run, mover, await _experiment_id(live_run))


async def _move_experiment(
    live_run: AttemptWithStore, mover: Principal, experiment_id: str
) -> None:
    async with live_run.database.write() as session:
        await moves.move(session, mover, live_run.store, "default", experiment_id, "target")


async def _usage(database: Database) -> dict[str, tuple[int, int]]:
    """Returns, per project, the storage counter and the bytes of its blobs."""
    async with database.read() as session:
        query = (
            select(ProjectRow.slug, ProjectRow.storage_used, func.sum(BlobRow.size))
            .outerjoin(BlobRow, BlobRow.project_id == ProjectRow.id)
            .group_by(ProjectRow.slug, ProjectRow.storage_used)
        )
        return {slug: (used, int(size or 0)) for slug, used, size in await session.execute(query)}


async def _share(live_run: AttemptWithStore, content: bytes) -> str:
    """Makes an artifact of a second experiment refer to a stored file of the first one."""
    job = await live_run.world.submit_one_job(
        document=make_definition(loop={"env_steps": 20_000}), seeds=[1]
    )
    async with live_run.database.write() as session:
        blob_id = await session.scalar(select(BlobRow.id).where(BlobRow.size == len(content)))
        own = await session.scalar(select(ArtifactRow).where(ArtifactRow.blob_id == blob_id))
        assert own is not None
        columns = {column.key: getattr(own, column.key) for column in ArtifactRow.__table__.c}
        session.add(ArtifactRow(**{**columns, "id": "art_second", "run_id": job.run_ids[0]}))
    return job.run_ids[0]


async def _store_in_target(live_run: AttemptWithStore, mover: Principal, content: bytes) -> None:
    """Adds a blob with the given content to the target, as an upload there would."""
    own = await live_run.put("known", content)
    target = mover.memberships[-1].project_id
    async with live_run.database.write() as session:
        source = await session.get(ArtifactRow, own.id)
        assert source is not None
        assert source.blob_id is not None
        (copy_id,) = live_run.store.copy([source.blob_id])
        row = {"id": copy_id, "project_id": target}
        await blob_rows.add_blob(session, {**row, "sha256": own.sha256, "size": own.size})


async def _end(live_run: AttemptWithStore) -> None:
    await live_run.world.release(
        live_run.attempt_id, Outcome.SUCCEEDED, Cause.BUDGET, last_seq=live_run.seq
    )


async def _content_of(live_run: AttemptWithStore, caller: Principal, run_id: str) -> list[bytes]:
    async with live_run.database.read() as session:
        request = PageRequest(limit=100, sort="created_at")
        page = await artifacts.list_for_run(session, caller, run_id, request, None)
        found = [
            await artifacts.find_content(session, caller, one.id, live_run.store)
            for one in page.items
        ]
    return sorted(one.path.read_bytes() for one in found)


async def test_stored_files_move_and_each_project_counts_its_own(
    live_run: AttemptWithStore, mover: Principal
) -> None:
    await live_run.put("own", OWN)
    await live_run.put("shared", SHARED)
    await _store_in_target(live_run, mover, EQUAL)
    second = await _share(live_run, SHARED)
    await _end(live_run)
    await _move(live_run, mover)
    only_target = replace(mover, memberships=mover.memberships[-1:])
    moved = await _content_of(live_run, only_target, live_run.run_id)
    assert moved == sorted([OWN, SHARED, EQUAL])
    assert await _content_of(live_run, live_run.world.admin, second) == [SHARED]
    usage = await _usage(live_run.database)
    assert all(used == stored for used, stored in usage.values())
    # The equal file of the source is dropped by the next sweep, since nothing refers to it.
    assert usage["target"][0] == len(OWN) + len(SHARED) + len(EQUAL)
    assert usage["default"][0] == len(SHARED) + len(EQUAL)
    await artifacts.sweep(live_run.database, live_run.store)
    assert (await _usage(live_run.database))["default"] == (len(SHARED), len(SHARED))
    assert await _content_of(live_run, only_target, live_run.run_id) == moved


async def test_snapshots_curves_and_evaluations_move_and_usage_stays(
    live_run: AttemptWithStore, mover: Principal
) -> None:
    await live_run.send(
        records.make_points(live_run.run_id, "loss", [1, 2, 3]),
        records.make_evaluation(live_run.run_id, 5, 1.0),
    )
    snapshot_id = await live_run.write_snapshot(10)
    await _end(live_run)
    await _move(live_run, mover)
    live_run.world.admin = replace(mover, memberships=mover.memberships[-1:])
    assert list(await live_run.list_snapshots()) == [snapshot_id]
    assert len(await live_run.list_evaluations(superseded=False)) == 1
    async with live_run.database.read() as session:
        entries = list(await session.scalars(select(UsageEntryRow)))
        left = {
            table.name
            for table in Base.metadata.sorted_tables
            if "project_id" in table.c
            and table.name not in KEPT
            and await session.scalar(
                select(func.count())
                .select_from(table)
                .where(table.c.project_id == live_run.world.project_id)
            )
        }
    assert {entry.project_id for entry in entries} == {live_run.world.project_id}
    assert left == set()


async def test_a_move_is_refused_while_a_claimed_job_runs(
    live_run: AttemptWithStore, mover: Principal
) -> None:
    await live_run.put("own", OWN)
    with pytest.raises(ConflictError) as refusal:
        await _move(live_run, mover)
    assert refusal.value.code == "experiment_active"
    assert await _usage(live_run.database) == {
        "default": (len(OWN), len(OWN)),
        "target": (0, 0),
    }


async def test_dependencies_move_with_their_jobs_and_none_is_open(
    live_run: AttemptWithStore, mover: Principal
) -> None:
    """Both experiments of a dependency stay until its jobs have ended; then each moves alone."""
    world = live_run.world
    (first,) = await world.list_jobs()
    document = make_definition(loop={"env_steps": 20_000})
    waits = await world.submit_one_job(document=document, seeds=[1], after=[first.id])
    for experiment_id in (first.experiment_id, waits.experiment_id):
        with pytest.raises(ConflictError) as refusal:
            await _move_experiment(live_run, mover, experiment_id)
        assert refusal.value.code == "experiment_active"
    await _end(live_run)
    with pytest.raises(ConflictError) as refusal:
        await _move_experiment(live_run, mover, waits.experiment_id)
    assert refusal.value.code == "experiment_active", "its job may start now, and has not ended"
    await _move_experiment(live_run, mover, first.experiment_id)
    released = await world.job(waits.id)
    assert (released.state, released.position, released.after) == ("queued", 1, [first.id])
    await world.cancel(waits.id)
    await _move_experiment(live_run, mover, waits.experiment_id)
    world.admin = replace(mover, memberships=mover.memberships[-1:])
    moved = await world.job(waits.id)
    assert (moved.project, moved.after, moved.on) == ("target", [first.id], "success")


async def test_a_chain_of_jobs_of_one_run_keeps_its_order_when_it_moves(
    live_run: AttemptWithStore, mover: Principal
) -> None:
    world = live_run.world
    (train,) = await world.list_jobs()
    evaluate = await world.add_job(live_run.run_id, Schedule.EVALUATE, after=[train.id], on="any")
    export = await world.add_job(live_run.run_id, Schedule.EXPORT, after=[evaluate.id])
    await _end(live_run)
    # Without a snapshot the evaluation fails, and the export that needs its success is cancelled.
    await _move(live_run, mover)
    world.admin = replace(mover, memberships=mover.memberships[-1:])
    after = {job.id: (job.project, job.after, job.on) for job in await world.list_jobs()}
    assert after == {
        train.id: ("target", [], "success"),
        evaluate.id: ("target", [train.id], "any"),
        export.id: ("target", [evaluate.id], "success"),
    }


async def test_a_full_target_refuses_a_move(live_run: AttemptWithStore, mover: Principal) -> None:
    await live_run.put("own", OWN)
    await _end(live_run)
    async with live_run.database.write() as session:
        change = ProjectChange(storage_limit=len(OWN) - 1)
        await projects.change(session, mover, "target", change)
    with pytest.raises(ConflictError) as refusal:
        await _move(live_run, mover)
    assert refusal.value.code == "storage_limit_reached"
    assert "The other project stores 0 B of files and may store 16 B" in str(refusal.value)
    assert "The experiment would add 17 B. Ask an administrator" in str(refusal.value)
    async with live_run.database.write() as session:
        await projects.change(session, mover, "target", ProjectChange(storage_limit=len(OWN)))
    await _move(live_run, mover)
    assert (await _usage(live_run.database))["target"] == (len(OWN), len(OWN))


async def test_a_full_project_stores_snapshots_and_refuses_videos_and_exports(
    live_run: AttemptWithStore,
) -> None:
    async with live_run.database.write() as session:
        change = ProjectChange(storage_limit=10)
        await projects.change(session, live_run.world.admin, "default", change)
    await live_run.put("small", b"0123456789")
    for kind in ("export", "video"):
        with pytest.raises(ConflictError) as refusal:
            await live_run.declare("more", b"x", kind=kind, env_step=1)
        assert refusal.value.code == "storage_limit_reached"
        assert "stores 10 B of files and may store 10 B. This file has 1 B." in str(refusal.value)
    snapshot_id = await live_run.write_snapshot(10)
    assert (await live_run.list_snapshots())[snapshot_id].state == SnapshotState.VERIFIED

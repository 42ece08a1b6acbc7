"""Moves beside submissions and uploads, and the counters of storage after many changes."""

import asyncio
import random
from collections.abc import Coroutine
from typing import Any

import pytest
from sqlalchemy import delete, func, select, update

from app.db.engine import Database
from app.db.models import ArtifactRow, BlobRow, JobRow, ProjectRow
from app.db.repositories import artifacts as blob_rows
from app.db.repositories import project_content
from app.db.repositories.projects import lock_for_storage
from app.domain.errors import ConflictError, NotFoundError
from app.domain.principal import Principal
from app.services import moves
from app.services.artifacts import artifacts
from app.services.experiments.submission import submit as submit_definition
from palestra.contract.names import Schedule
from palestra.contract.states import Cause, Outcome
from tests.support.artifact_store import AttemptWithStore
from tests.support.locks import until_locked_out
from tests.support.server_fixture import make_definition, make_submission
from tests.support.statements import note_statements

both_databases = pytest.mark.both_databases(
    "Projects and experiments are locked on PostgreSQL, where transactions write concurrently.",
    of=(
        "app.db.repositories.experiment_moves",
        "app.db.repositories.experiments",
        "app.db.repositories.projects",
    ),
)


async def _end(live_run: AttemptWithStore) -> None:
    await live_run.world.release(
        live_run.attempt_id, Outcome.SUCCEEDED, Cause.BUDGET, last_seq=live_run.seq
    )


async def _move(live_run: AttemptWithStore, mover: Principal, session: Any) -> str:
    experiment_id = (await live_run.world.run(live_run.run_id)).experiment_id
    await moves.move(session, mover, live_run.store, "default", experiment_id, "target")
    return experiment_id


async def _send_during_move(
    live_run: AttemptWithStore, mover: Principal, request: Coroutine[Any, Any, Any]
) -> Any:
    """Returns the answer of a request that begins while the transaction of a move is open."""
    async with live_run.database.write() as session:
        await _move(live_run, mover, session)
        asked = asyncio.create_task(request)
        await until_locked_out(live_run.database, asked)
        assert not asked.done()
    return await asked


@both_databases
async def test_a_submission_beside_a_move_makes_the_experiment_anew(
    live_run: AttemptWithStore, mover: Principal
) -> None:
    await _end(live_run)
    document = make_definition(snapshot={"keep_last": 2, "keep_best": True})
    moved = (await live_run.world.run(live_run.run_id)).experiment_id
    submission = live_run.world.submit(document, seeds=[0])
    made, is_new = await _send_during_move(live_run, mover, submission)
    assert (made.id, made.project, is_new) == (moved, "default", True)
    (job,) = await live_run.world.list_jobs()
    assert job.run_ids != (live_run.run_id,)


@both_databases
async def test_a_job_on_a_run_that_is_being_moved_is_refused(
    live_run: AttemptWithStore, mover: Principal
) -> None:
    await _end(live_run)
    job = live_run.world.add_job(live_run.run_id, Schedule.TRAIN)
    with pytest.raises(NotFoundError):
        await _send_during_move(live_run, mover, job)


@both_databases
async def test_a_move_beside_a_submission_sees_its_jobs(
    live_run: AttemptWithStore, mover: Principal
) -> None:
    await _end(live_run)

    async def move() -> None:
        async with live_run.database.write() as session:
            await _move(live_run, mover, session)

    experiment_id = (await live_run.world.run(live_run.run_id)).experiment_id
    document = make_definition(snapshot={"keep_last": 2, "keep_best": True})
    async with live_run.database.write() as session:
        await submit_definition(session, live_run.world.admin, make_submission(document, seeds=[1]))
        asked = asyncio.create_task(move())
        await until_locked_out(live_run.database, asked)
        assert not asked.done()
    with pytest.raises(ConflictError) as refusal:
        await asked
    assert refusal.value.code == "experiment_active"
    assert (await live_run.world.run(live_run.run_id)).experiment_id == experiment_id


@both_databases
async def test_opposite_moves_and_uploads_at_once_keep_the_counters(
    live_run: AttemptWithStore, mover: Principal
) -> None:
    for number in range(4):
        await live_run.put(f"file-{number}", b"%d" % number * 9)
    await _end(live_run)
    experiment_id = (await live_run.world.run(live_run.run_id)).experiment_id
    own, target = (one.project_id for one in mover.memberships)

    async def move(source: str, to: str) -> None:
        async with live_run.database.write() as session:
            await moves.move(session, mover, live_run.store, source, experiment_id, to)

    async def add(project_id: str, number: int) -> None:
        async with live_run.database.write() as session:
            row = {"id": f"{random.getrandbits(128):032x}", "project_id": project_id}
            await blob_rows.add_blob(session, {**row, "sha256": f"{number:064d}", "size": number})

    await move("default", "target")
    changes = [add(project_id, n % 7 + 1) for n in range(20) for project_id in (own, target)]
    sweeps = [blob_sweep(live_run.database) for _ in range(5)]
    back = move("target", "default")
    await asyncio.gather(*changes[:20], back, *sweeps, *changes[20:])
    assert await faults(live_run.database) == []


async def blob_sweep(database: Database) -> None:
    async with database.write() as session:
        await blob_rows.drop_unused_blobs(session)


async def faults(database: Database) -> list[tuple[str, int, int]]:
    """Returns the projects whose counter differs from the bytes of their blobs."""
    stored = func.coalesce(func.sum(BlobRow.size), 0)
    query = (
        select(ProjectRow.slug, ProjectRow.storage_used, stored)
        .outerjoin(BlobRow, BlobRow.project_id == ProjectRow.id)
        .group_by(ProjectRow.id)
    )
    async with database.read() as session:
        rows = (await session.execute(query)).all()
    assert len(rows) >= 2
    return [(slug, used, int(size)) for slug, used, size in rows if used != size]


@pytest.mark.parametrize("seed", range(4))
async def test_the_counter_is_the_size_of_the_blobs_after_any_sequence_of_changes(
    live_run: AttemptWithStore, mover: Principal, seed: int
) -> None:
    random_numbers = random.Random(seed)
    for number in range(3):
        await live_run.put(f"file-{number}", b"%d" % number * (number + 5))
    await _end(live_run)
    changes = _Changes(live_run, mover, random_numbers)
    done = []
    for _ in range(25):
        change = random_numbers.choice([changes.add, changes.drop, changes.move, changes.remove])
        await change()
        done.append(change.__name__)
        assert await faults(live_run.database) == [], done
    assert set(done) == {"add", "drop", "move", "remove"}


class _Changes:
    """Changes of the stored files of two projects."""

    def __init__(
        self, live_run: AttemptWithStore, mover: Principal, random_numbers: random.Random
    ) -> None:
        self._live_run, self._mover, self._random = live_run, mover, random_numbers
        self._slugs = [one.slug for one in mover.memberships]
        self._ids = [one.project_id for one in mover.memberships]

    async def add(self) -> None:
        number = self._random.randint(1, 6)
        async with self._live_run.database.write() as session:
            row = {"id": f"{self._random.getrandbits(128):032x}", "size": number}
            project_id = self._random.choice(self._ids)
            content = {"project_id": project_id, "sha256": f"{number:064d}"}
            await blob_rows.add_blob(session, {**row, **content})

    async def drop(self) -> None:
        await artifacts.drop_unused(self._live_run.database, self._live_run.store)

    async def move(self) -> None:
        run = await self._find_run()
        async with self._live_run.database.write() as session:
            await moves.move(
                session, self._mover, self._live_run.store, self._slugs[0], run, self._slugs[1]
            )
        self._slugs.reverse()
        self._ids.reverse()

    async def _find_run(self) -> str:
        self._live_run.world.admin = self._mover
        return (await self._live_run.world.run(self._live_run.run_id)).experiment_id

    async def remove(self) -> None:
        """Removes some files of a project as its deletion does."""
        async with self._live_run.database.write() as session:
            await lock_for_storage(session, self._ids)
            await session.execute(delete(ArtifactRow).where(ArtifactRow.project_id == self._ids[1]))
            await project_content.remove_blobs(session, self._ids[1], 2)


async def test_a_move_of_1000_runs_takes_no_more_statements_than_one_of_two(
    live_run: AttemptWithStore, mover: Principal
) -> None:
    few = await _move_runs(live_run, mover, 2)
    many = await _move_runs(live_run, mover, 1_000)
    assert len(many) <= len(few)


async def _move_runs(live_run: AttemptWithStore, mover: Principal, number: int) -> list[str]:
    """Moves a new experiment with so many runs, and returns the statements of the move."""
    document = make_definition(loop={"env_steps": 30_000 + number})
    made, _ = await live_run.world.submit(document, seeds=list(range(number)))
    async with live_run.database.write() as session:
        of_experiment = JobRow.experiment_id == made.id
        await session.execute(update(JobRow).where(of_experiment).values(state="cancelled"))
    with note_statements(live_run.database) as statements:
        async with live_run.database.write() as session:
            moved = await moves.move(session, mover, live_run.store, "default", made.id, "target")
    assert sum(moved.runs.values()) == number
    return statements

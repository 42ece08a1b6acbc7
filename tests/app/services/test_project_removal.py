"""Removing the content of deleted projects: completely, resumably, beside whoever still writes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from app.daemons.remover import ProjectRemover
from app.daemons.summariser import Summariser
from app.db.engine import Database, Session
from app.db.models import (
    AuditRow,
    Base,
    PoolRow,
    PoolWindowRow,
    ProjectRow,
    QuotaRow,
    SavedViewRow,
    ThresholdRow,
    UserRow,
)
from app.db.repositories import project_content
from app.domain.errors import ConflictError, NotFoundError
from app.domain.principal import Membership, Principal
from app.metrics import pyramid
from app.services.access import service_accounts
from app.services.artifacts import artifacts
from app.services.curves import health
from app.services.projects import deletion, projects, removal
from app.services.telemetry import compaction, epoch_compaction
from app.settings import Settings
from palestra.contract.permissions import Role
from palestra.contract.projects import ProjectRequest
from palestra.contract.service_accounts import ServiceAccountRequest
from palestra.contract.states import Order
from tests.app.services.continuous_evaluations import start_continuous_eval
from tests.support import records
from tests.support.artifact_store import AttemptWithStore, yield_chunks
from tests.support.server_fixture import World, advance_clock, make_definition

both_databases = pytest.mark.both_databases(
    "Removals skip locked rows on PostgreSQL, and delete between other writers on SQLite.",
    of=("app.db.repositories.deleted_projects",),
)

DAY = 86_400
SHARED = {
    "alembic_version", "audit", "audit_chain", "dispatcher_lease", "enrolment_tokens",
    "pool_hours", "pools", "server_uptime", "start_estimates", "usage_accounts", "usage_entries",
    "summary_progress", "users", "workers",
}  # fmt: skip
"""Tables of which a removal deletes nothing that these tests look at."""


async def add_rows_to_every_table(live_run: AttemptWithStore) -> None:
    """Gives the project a row in every table that a project can have rows in."""
    run = live_run.run_id
    steps = list(range(pyramid.LEAST_POINTS))
    await live_run.send(records.make_points(run, "loss", steps))
    await compaction.compact_tail(live_run.database, run)
    await live_run.send(records.make_stats(run, 1))
    await epoch_compaction.compact_run(live_run.database, run)
    await live_run.send(
        records.make_points(run, "loss", [1, 2, 3]),
        records.make_points(run, "loss/td", [1], ["NaN"]),
        records.make_episodes(run, [1]),
        records.make_stats(run, 5),
        records.make_log(run, "a line", open_lines=["50%"]),
        records.make_evaluation(run, 5, 1.0),
    )
    await live_run.write_snapshot(10)
    await live_run.put("model.onnx", b"exported")
    another, _ = await live_run.world.submit(make_definition(name="another"), seeds=[1, 2])
    (first, *_) = await live_run.world.list_jobs(experiment_id=another.id)
    third = make_definition(name="third", loop={"env_steps": 77})
    await live_run.world.submit(third, seeds=[1], after=[first.id])
    await _limit_and_reserve_the_pool(live_run)
    async with live_run.database.write() as session:
        request = ServiceAccountRequest(name="robot", role=Role.MEMBER)
        await service_accounts.create(session, live_run.world.admin, request)
    evaluation = await start_continuous_eval(live_run)
    await evaluation.world.job(evaluation.job_id)
    await Summariser(live_run.database).tick()
    assert await health.judge_and_keep(live_run.database, [run])


async def _limit_and_reserve_the_pool(live_run: AttemptWithStore) -> None:
    project_id = live_run.world.project_id
    begin = datetime.now(UTC) + timedelta(days=1)
    async with live_run.database.write() as session:
        pool_id = await session.scalar(select(PoolRow.id).where(PoolRow.name == "default"))
        session.add(
            ThresholdRow(
                project_id=project_id, name="ten", series="loss", value=10.0, is_at_least=True
            )
        )
        session.add(
            SavedViewRow(
                id="viw_1",
                project_id=project_id,
                owner_id=live_run.world.admin.user_id,
                name="mine",
                visibility="private",
                state={},
            )
        )
        session.add(QuotaRow(pool_id=pool_id, project_id=project_id, subject="", running=100))
        session.add(
            PoolWindowRow(
                id="win_1",
                pool_id=pool_id,
                kind="reservation",
                starts_at=begin,
                ends_at=begin + timedelta(hours=1),
                workers=[],
                project_id=project_id,
                created_by="usr",
            )
        )


async def delete(world: World, *, after: float = 30 * DAY + 1) -> None:
    """Archives and deletes the project, and advances the clock by `after` seconds."""
    async with world.database.write() as session:
        await projects.archive(session, world.admin, "default")
        await deletion.delete(session, world.admin, "default", "default", Settings())
    advance_clock(after)


async def count_rows(database: Database) -> dict[str, int]:
    """Returns the number of rows of each table that is not empty."""
    async with database.read() as session:
        found = {
            table.name: await session.scalar(select(func.count()).select_from(table))
            for table in Base.metadata.sorted_tables
        }
    return {name: count for name, count in found.items() if count}


@pytest.fixture
def remover(live_run: AttemptWithStore) -> ProjectRemover:
    return ProjectRemover(live_run.database, live_run.store)


async def make_other_project(world: World) -> World:
    """Makes a second project with an experiment; returns the world as its maintainer sees it."""
    async with world.database.write() as session:
        made = await projects.create(session, world.admin, ProjectRequest(name="other"))
    own = Membership(project_id=made.id, slug="other", name="other", role=Role.MAINTAINER)
    admin: Principal = replace(world.admin, memberships=(own,))
    theirs = replace(world, project_id=made.id, admin=admin)
    await theirs.submit(make_definition(name="kept"), seeds=[1])
    return theirs


@both_databases
async def test_everything_of_the_project_is_removed_and_nothing_else(
    live_run: AttemptWithStore, remover: ProjectRemover, world: World, database: Database
) -> None:
    other = await make_other_project(world)
    kept = {
        name: count for name, count in (await count_rows(database)).items() if name not in SHARED
    }
    filled = await _fill_and_count(live_run)
    missing = {table.name for table in Base.metadata.sorted_tables} - set(filled) - SHARED
    assert missing <= {"idempotency_keys", "invitations", "login_links", "login_sessions", "tokens"}
    await delete(world)
    assert await remover.tick() > 40
    left = await count_rows(database)
    (job,) = await other.list_jobs()
    assert job.state == "queued"
    of_first = {"experiments": 1, "runs": 1, "jobs": 1, "submissions": 1, "job_runs": 1}
    assert {name: left[name] for name in of_first} == of_first
    rest = {"projects", "project_pools", "memberships", "events", "queue_groups"}
    rest |= {"definition_members", "run_summaries", "setups"}
    assert set(left) - SHARED == {*of_first, *rest}
    assert left["project_pools"] == 1
    assert live_run.read_files() == []
    async with database.read() as session:
        assert list(await session.scalars(select(ProjectRow.slug))) == ["other"]
        names = set(await session.scalars(select(UserRow.name)))
        actions = [
            row.action
            for row in await session.scalars(
                select(AuditRow).where(AuditRow.object_id == world.project_id).order_by(AuditRow.id)
            )
        ]
        moves = await session.scalar(
            select(func.count()).where(
                AuditRow.project_id == world.project_id, AuditRow.action == "job.move"
            )
        )
    assert names == {"admin", "bea"}
    assert actions == ["project.archive", "project.delete", "project.remove"]
    assert moves, "entries about the project's jobs stay"
    assert kept["experiments"] == 2


async def _fill_and_count(live_run: AttemptWithStore) -> dict[str, int]:
    await add_rows_to_every_table(live_run)
    return await count_rows(live_run.database)


async def test_name_and_slug_are_free_after_the_removal(
    live_run: AttemptWithStore, remover: ProjectRemover, world: World
) -> None:
    await delete(world, after=30 * DAY - 60)
    assert await remover.tick() == 0, "a minute before the end of the window"
    async with world.database.write() as session:
        with pytest.raises(ConflictError):
            await projects.create(session, world.admin, ProjectRequest(name="default"))
    advance_clock(61)
    await remover.tick()
    async with world.database.write() as session:
        made = await projects.create(session, world.admin, ProjectRequest(name="default"))
    assert made.slug == "default"
    assert made.id != world.project_id


class SimulatedKillError(Exception):
    """Simulates the end of the process: only the test catches it."""


async def test_a_removal_that_is_killed_anywhere_goes_on(
    live_run: AttemptWithStore,
    world: World,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Kills the removal before and after the commit of every transaction, and then goes on."""
    monkeypatch.setattr(removal, "STEP_SECONDS", 0.0)
    await add_rows_to_every_table(live_run)
    await delete(world)
    fragile = _FragileDatabase(database)
    kills = 0
    while await count_rows(database) and fragile.last_kill < fragile.transactions + 1:
        fragile.reset()
        try:
            await ProjectRemover(fragile, live_run.store).tick()  # type: ignore[arg-type]
            break
        except SimulatedKillError:
            kills += 1
    assert kills > 20
    async with database.read() as session:
        assert list(await session.scalars(select(ProjectRow.id))) == []
    assert set(await count_rows(database)) <= {*SHARED, "events"}
    swept = await artifacts.sweep(database, live_run.store)
    assert swept == 0, "files of removed blobs are young: the compactor takes them after an hour"


class _FragileDatabase:
    """A database whose process ends at the third transaction after `reset`.

    At every other kill that transaction is committed.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.transactions = 0
        self.last_kill = 0
        self._commits = False

    def reset(self) -> None:
        self.last_kill = self.transactions
        self._commits = not self._commits

    def read(self) -> Any:
        return self._database.read()

    @asynccontextmanager
    async def write(self) -> AsyncIterator[Session]:
        self.transactions += 1
        kills = self.transactions - self.last_kill >= 3
        async with self._database.write() as session:
            yield session
            if kills and not self._commits:
                raise SimulatedKillError
        if kills:
            raise SimulatedKillError


@both_databases
async def test_a_project_cannot_be_restored_while_it_is_being_removed(
    live_run: AttemptWithStore, world: World, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "STEP_SECONDS", 0.0)
    await add_rows_to_every_table(live_run)
    await delete(world)
    fragile = _FragileDatabase(database)
    with pytest.raises(SimulatedKillError):
        await ProjectRemover(fragile, live_run.store).tick()  # type: ignore[arg-type]
    advance_clock(-30 * DAY - 1)
    async with database.write() as session:
        with pytest.raises(ConflictError) as caught:
            await deletion.undelete(session, world.admin, "default")
    assert caught.value.code == "removal_started"
    (view,) = await _list_deleted(world)
    assert view.removal_started_at is not None


async def _list_deleted(world: World) -> list[Any]:
    async with world.database.read() as session:
        request = deletion.PageRequest(limit=10, sort="name")
        return (await deletion.list_deleted(session, world.admin, request)).items


async def test_a_running_attempt_is_cancelled_and_may_finish_until_the_removal(
    live_run: AttemptWithStore, world: World, remover: ProjectRemover
) -> None:
    """A restored project has the snapshots that the cancelled training saved."""
    await delete(world, after=0)
    assert (await world.renew(live_run.attempt_id)).order is Order.CANCEL
    await live_run.write_snapshot(20)
    (view,) = await _list_deleted(world)
    assert view.unfinished_jobs == 1
    assert await remover.tick() == 0
    await live_run.send(records.make_points(live_run.run_id, "loss", [30]))


async def test_requests_during_the_removal_are_refused_with_their_own_code(
    live_run: AttemptWithStore,
    world: World,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(removal, "STEP_SECONDS", 0.0)
    declared = await live_run.declare("model.onnx", b"exported")
    await delete(world)
    async with database.write() as session:
        assert await deletion.rows.start_removal(session, world.project_id)
    # A live attempt may still write.
    await live_run.send(records.make_points(live_run.run_id, "loss", [1]))
    await removal.end_attempts(database, world.project_id)
    for refused in (
        live_run.send(records.make_points(live_run.run_id, "loss", [2])),
        live_run.declare("more.onnx", b"more"),
        live_run.upload(declared.id, b"exported"),
    ):
        with pytest.raises(ConflictError) as caught:
            await refused
        assert caught.value.code == "project_deleted"
    assert (await world.renew(live_run.attempt_id)).order is Order.STALE
    await ProjectRemover(database, live_run.store).tick()
    with pytest.raises(NotFoundError):
        await live_run.send(records.make_points(live_run.run_id, "loss", [2]))


@both_databases
async def test_an_upload_that_ends_during_the_removal_leaves_no_file(
    live_run: AttemptWithStore, world: World, database: Database
) -> None:
    """The content is still being sent while the project is removed."""
    declared = await live_run.declare("model.onnx", b"exported")
    await delete(world)

    async def yield_slowly() -> AsyncIterator[bytes]:
        async for chunk in yield_chunks(b"exported"):
            yield chunk
        await ProjectRemover(database, live_run.store).tick()

    with pytest.raises(NotFoundError):
        await artifacts.upload(
            database, live_run.store, live_run.attempt_id, declared.id, yield_slowly()
        )
    assert live_run.read_files() == []


async def test_jobs_beyond_the_first_hundred_are_cancelled_by_the_daemon(
    world: World, database: Database, tmp_path: Path
) -> None:
    await world.submit(seeds=list(range(230)), resources={"pack": "off"})
    await world.register()
    await delete(world, after=0)
    (view,) = await _list_deleted(world)
    assert 130 <= view.unfinished_jobs < 230, "the deletion ends as many as its time permits"
    queued = next(job for job in await world.list_jobs() if job.state == "queued")
    (worker_id,) = world.own
    with pytest.raises(ConflictError) as caught:
        await world.claim(queued.id, worker_id)
    assert caught.value.code == "project_deleted"
    await ProjectRemover(database, removal.BlobStore(tmp_path)).tick()
    assert {job.state for job in await world.list_jobs()} == {"cancelled"}


def test_every_table_is_removed_or_named_here() -> None:
    """A new table with content of projects must be removed with its project."""
    removed = {
        "curve_tails", "curve_rollups", "curve_blocks", "series", "log_blocks", "open_log_lines",
        "epoch_stats",
        "epoch_blocks", "evaluations", "snapshot_files",
        "snapshots", "artifacts", "attempt_runs", "job_runs", "runs", "telemetry_batches",
        "attempts", "jobs", "submissions", "experiments", "events", "tokens", "memberships",
        "blobs", "project_pools", "projects", "queue_groups", "definition_members", "setups",
        "run_summaries", "series_summaries", "series_names", "thresholds", "threshold_crossings",
        "run_findings", "views",
    }  # fmt: skip
    others = {
        "audit": "stays",
        "audit_chain": "of the server",
        "dispatcher_lease": "of the server",
        "enrolment_tokens": "of pools",
        "idempotency_keys": "of users, and short-lived",
        "invitations": "of the server",
        "job_dependencies": "go with their jobs",
        "login_links": "of users",
        "login_sessions": "of users",
        "pool_hours": "of pools",
        "pool_windows": "reservations go with their project, maintenance windows stay",
        "pools": "of the server",
        "quotas": "go with their project",
        "server_uptime": "of the server",
        "summary_progress": "of the server",
        "start_estimates": "of pools, forgotten a month after the start",
        "usage_accounts": "outlive the project, whose usage they hold",
        "usage_entries": "outlive the project, whose usage they hold",
        "users": "service accounts go, people stay",
        "workers": "of pools",
    }
    assert {table.name for table in Base.metadata.sorted_tables} == removed | set(others)
    count = len(project_content.OF_RUN + project_content.OF_ATTEMPT + project_content.OF_PROJECT)
    assert count == len(removed) - 3, (
        "blobs and the project have functions of their own; admissions to pools go with its row"
    )

"""A run with a running attempt, an artifact store, and the time that a test took."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from app.db.engine import Database
from app.domain.principal import Membership, Principal
from app.services.artifacts.blob_store import BlobStore
from app.services.projects import projects
from palestra.contract.permissions import Role
from palestra.contract.projects import ProjectRequest
from tests.app.services.telemetry_training import training as training
from tests.support.artifact_store import AttemptWithStore
from tests.support.server_fixture import World, make_definition


@pytest.fixture
def passed_seconds() -> Callable[[], float]:
    """Returns the seconds since the test began, by which the database's clock moved by itself."""
    began = time.monotonic()
    return lambda: time.monotonic() - began


@pytest.fixture
async def live_run(world: World, database: Database, tmp_path: Path) -> AttemptWithStore:
    registered = await world.register(slots=12)
    document = make_definition(snapshot={"keep_last": 2, "keep_best": True})
    job = await world.submit_one_job(document=document)
    order = (await world.start(job.id, registered.worker_id)).work_order
    directory = tmp_path / "blobs"
    run_id = order.runs[0].run_id
    return AttemptWithStore(
        world,
        database,
        BlobStore(directory),
        directory,
        run_id,
        job.id,
        registered.worker_id,
        order.attempt_id,
    )


@pytest.fixture
async def mover(live_run: AttemptWithStore) -> Principal:
    """A maintainer of the project and of a second, empty one."""
    async with live_run.database.write() as session:
        made = await projects.create(session, live_run.world.admin, ProjectRequest(name="target"))
    target = Membership(project_id=made.id, slug="target", name="target", role=Role.MAINTAINER)
    admin = live_run.world.admin
    return replace(admin, memberships=(*admin.memberships, target))


@pytest.fixture
async def worker(world: World) -> str:
    return (await world.register()).worker_id

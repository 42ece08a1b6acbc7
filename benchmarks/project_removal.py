"""Time that the removal of a large project adds to the requests of another project.

A project with many runs, blocks of points and stored files is removed. Meanwhile, requests of
another project read its list of runs and store a batch of points, in turn. The same requests are
measured without the removal.

    python -m benchmarks.project_removal [--runs 1000] [--database sqlite | postgresql]
"""

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import structlog
from sqlalchemy import func, insert, select

from app.daemons.remover import ProjectRemover
from app.db.engine import Database, Session
from app.db.migrate import upgrade
from app.db.models import (
    ArtifactRow,
    AttemptRow,
    AttemptRunRow,
    BlobRow,
    BlockRow,
    JobRow,
    JobRunRow,
    ProjectRow,
    RunRow,
    SeriesRow,
    SnapshotFileRow,
    SnapshotRow,
    TelemetryBatchRow,
)
from app.domain.paging import PageRequest
from app.metrics.pyramid import AXES
from app.services.artifacts.blob_store import BlobStore
from app.services.projects import deletion, projects
from app.services.runs import runs
from app.services.runs.runs import RunFilter
from app.services.telemetry import batches
from app.settings import Settings
from benchmarks._report import describe_machine
from benchmarks.audit_log import database_url
from palestra.contract.names import new_id
from tests.app.services.test_project_removal import make_other_project
from tests.support.records import make_delivery, make_points
from tests.support.server_fixture import World, make_world

SERIES, BLOCKS, POINTS, BATCHES, SNAPSHOTS, FILES = 10, 5, 100, 20, 5, 2
"""Of each run: series, blocks of each, points of each block, batches, snapshots, files of each."""
BLOCK_BYTES, FILE_BYTES = 1_200, 4_096
FIRST_SERIES = 10**9
"""Beyond what the database numbers by itself."""
ALONE = 300
"""Requests of each kind that are measured without the removal."""


class TimedDatabase:
    """A database whose writing transactions are timed from their first statement to the commit."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.held: list[float] = []

    def read(self) -> Any:
        return self._database.read()

    @asynccontextmanager
    async def write(self) -> AsyncIterator[Session]:
        begun = 0.0
        async with self._database.write() as session:
            await session.connection()
            begun = time.perf_counter()
            yield session
        self.held.append(time.perf_counter() - begun)


async def fill(world: World, store: BlobStore, count: int) -> None:
    """Adds `count` trained runs with their points and files to the world's project."""
    registered = await world.register()
    job = await world.submit_one_job()
    order = (await world.start(job.id, registered.worker_id)).work_order
    async with world.database.read() as session:
        model = {
            kind: dict((await session.execute(select(kind.__table__))).mappings().first() or {})
            for kind in (RunRow, JobRow, AttemptRow)
        }
    for number in range(count):
        rows = _run(world, model, number, FIRST_SERIES + number * SERIES)
        async with world.database.write() as session:
            for kind, some in rows.items():
                await session.execute(insert(kind), some)
        for blob in rows[BlobRow]:
            path = store.path(blob["id"])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(bytes(FILE_BYTES))
    assert order.runs


def _run(world: World, model: dict[Any, Any], number: int, first: int) -> dict[Any, list[Any]]:
    run, job, attempt = new_id("run"), new_id("job"), new_id("att")
    own = {"project_id": world.project_id, "run_id": run, "attempt_id": attempt}
    ids = [new_id("snp") for _ in range(SNAPSHOTS)]
    files = [
        (snapshot, f"file-{n}", os.urandom(16).hex()) for snapshot in ids for n in range(FILES)
    ]
    zero = dict.fromkeys(("fence", "seq", "env_step", "update_count", "episode", "size"), 1)
    series = range(first + 1, first + 1 + SERIES)
    ended = {"id": job, "state": "succeeded"}
    content = {"sha256": "0" * 64, "size": FILE_BYTES}
    counted = {"points": POINTS * BLOCKS, "nonfinite": 0, "last_env_step": 1, "last_value": "1"}
    return {
        RunRow: [model[RunRow] | {"id": run, "seed": number + 1_000, "job_id": job}],
        JobRow: [model[JobRow] | ended],
        JobRunRow: [{"job_id": job, "run_id": run, "position": 0}],
        AttemptRow: [
            model[AttemptRow]
            | {"id": attempt, "job_id": job, "token_hash": attempt, "state": "ended"}
        ],
        AttemptRunRow: [
            {"attempt_id": attempt, "run_id": run, "fence": 1, "training": True}
            | {"live_training": False}
        ],
        SeriesRow: [counted | {"id": n, "run_id": run, "name": f"series-{n}"} for n in series],
        BlockRow: [
            {"series_id": n, "attempt_id": attempt, "fence": 1, "first_seq": place}
            | {"last_seq": place, "points": POINTS, "content": os.urandom(BLOCK_BYTES)}
            | {f"{axis}_{end}": 0 for axis in AXES for end in ("low", "high")}
            | {"levels": 0}
            for n in series
            for place in range(BLOCKS)
        ],
        TelemetryBatchRow: [
            {"attempt_id": attempt, "first_seq": n, "last_seq": n, "digests": b""}
            for n in range(BATCHES)
        ],
        SnapshotRow: [
            {k: v for k, v in zero.items() if k != "update_count"}
            | {"update": 1, "id": snapshot, "experiment_id": "x", "state": "verified"}
            | {"reason": "periodic", "format_version": 1, "resume_exact": True}
            | own
            for snapshot in ids
        ],
        BlobRow: [
            {"id": blob, "project_id": world.project_id, "sha256": blob, "size": FILE_BYTES}
            for _, _, blob in files
        ],
        ArtifactRow: [
            own
            | content
            | {"id": new_id("art"), "folder": snapshot, "name": name, "kind": "snapshot"}
            | {"blob_id": blob, "sha256": blob}
            for snapshot, name, blob in files
        ],
        SnapshotFileRow: [
            {"snapshot_id": snapshot, "name": name} | content for snapshot, name, _ in files
        ],
    }


class OtherProjectRequests:
    """Reads runs and writes points in a project that is not being removed."""

    def __init__(self, world: World, run_id: str, attempt_id: str) -> None:
        self._world, self._run, self._attempt = world, run_id, attempt_id
        self._seq = 0

    async def read(self) -> None:
        async with self._world.database.read() as session:
            page = await runs.list_runs(session, self._world.admin, RunFilter(), PageRequest())
        page.encode()

    async def write(self) -> None:
        self._seq += 1
        record = make_points(self._run, "loss", range(self._seq * 10, self._seq * 10 + 10))
        batch = make_delivery(self._attempt, self._seq, [record])
        async with self._world.database.write() as session:
            await batches.take(session, batch)

    async def measure_until(
        self, done: asyncio.Event, count: int = 10**9
    ) -> dict[str, list[float]]:
        """Sends requests until `done` is set; returns the seconds of each request, by kind."""
        found: dict[str, list[float]] = {"read": [], "write": []}
        while not done.is_set() and len(found["write"]) < count:
            for kind, request in (("read", self.read), ("write", self.write)):
                begun = time.perf_counter()
                await request()
                found[kind].append(time.perf_counter() - begun)
            await asyncio.sleep(0.02)
        return found


async def measure(url: str, directory: Path, count: int) -> None:
    upgrade(url)
    database, store = Database(url), BlobStore(directory / "blobs")
    world = await make_world(database)
    await fill(world, store, count)
    other = await make_other_project(world)
    (job,) = await other.list_jobs()
    registered = await other.register(name="w2", by=await other.make_enrolment())
    order = (await other.start(job.id, registered.worker_id)).work_order
    beside = OtherProjectRequests(other, job.run_ids[0], order.attempt_id)
    alone = await beside.measure_until(asyncio.Event(), ALONE)
    async with database.write() as session:
        await projects.archive(session, world.admin, "default")
        settings = Settings(project_restore_days=0)
        await deletion.delete(session, world.admin, "default", "default", settings)
    watched, done = TimedDatabase(database), asyncio.Event()
    requests = asyncio.create_task(beside.measure_until(done))
    begun = time.perf_counter()
    rows = await ProjectRemover(watched, store).tick()  # type: ignore[arg-type]
    seconds = time.perf_counter() - begun
    done.set()
    during = await requests
    async with database.read() as session:
        assert await session.scalar(select(func.count()).select_from(ProjectRow)) == 1
    left = sum(1 for path in (directory / "blobs").rglob("*") if path.is_file())
    assert left == 0
    print(
        f"  {count:,} runs, {count * SERIES * BLOCKS * POINTS:,} points, "
        f"{count * SNAPSHOTS * FILES:,} files: {rows:,} rows in {seconds:.1f} s, "
        f"{len(watched.held):,} transactions"
    )
    print(f"  transaction of the removal   {_figures(watched.held)}")
    for kind in ("read", "write"):
        print(f"  {kind:5} of another, alone       {_figures(alone[kind])}")
        print(f"  {kind:5} of another, beside it   {_figures(during[kind])}")
    await database.dispose()


def _figures(seconds: Iterable[float]) -> str:
    found = sorted(1e3 * value for value in seconds)
    p99 = statistics.quantiles(found, n=100)[98]
    return f"p50 {statistics.median(found):6.1f} ms  p99 {p99:6.1f} ms  max {found[-1]:6.1f} ms"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--database", choices=("sqlite", "postgresql"), help="both by default")
    values = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    print(describe_machine())
    for kind in (values.database,) if values.database else ("sqlite", "postgresql"):
        print(kind)
        with database_url(kind) as url, tempfile.TemporaryDirectory() as directory:
            asyncio.run(measure(url, Path(directory), values.runs))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

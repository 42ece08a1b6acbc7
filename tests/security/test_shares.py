"""Limits per credential and per query, and what an attempt's token may read."""

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from app.bus import MemoryBus
from app.db.engine import Database
from app.db.models import ArtifactRow, RunRow
from app.domain.errors import TooLargeError, TooManyRequestsError
from app.services.curves import curves, logs
from app.services.events.filters import StreamFilter
from app.services.events.hub import ASSURED, EventHub
from app.services.telemetry import batches
from palestra.contract.names import new_id
from palestra.contract.queries import SeriesQuery
from tests.app.api.serving import AppServer, serve
from tests.security.target import Target
from tests.support.records import make_delivery, make_log
from tests.support.server_fixture import World, make_token_caller
from tests.support.statements import note_statements
from tests.support.waiting import wait_for


@pytest.fixture
async def server(database_url: str, tmp_path: Path) -> AsyncIterator[AppServer]:
    async with serve(database_url, tmp_path) as started:
        yield started


async def test_streams_of_a_token_do_not_count_for_the_login(database: Database) -> None:
    """Regression: streams were counted per user, so a read token could use up its owner's limit."""
    hub = EventHub(database, MemoryBus(), most=1_000, most_per_user=10, most_per_credential=6)
    wanted = [StreamFilter(project_ids=frozenset({"prj"}))]
    with contextlib.ExitStack() as held:

        def open_all(credential: str) -> int:
            for opened in range(100):
                try:
                    held.enter_context(hub.open(wanted, make_token_caller("usr", credential)))
                except TooManyRequestsError:
                    return opened
            return 100

        assert open_all("token 1") == 6
        assert open_all("token 2") == 4
        assert open_all("token 3") == ASSURED
        assert open_all("login") == ASSURED


def _query(run: str, groups: int, times: int, buckets: int = 600) -> dict[str, Any]:
    group = {"series": "loss", "run_ids": [run] * times}
    return {
        "groups": [{**group, "name": f"g{index}"} for index in range(groups)],
        "buckets": buckets,
    }


async def test_a_repeated_run_is_read_once_per_group(server: AppServer) -> None:
    """Regression: 100 groups of one repeated ID took 30 s, since only distinct curves
    were limited.
    """
    run = server.names["live_run"]
    async with server.client("reader") as client:
        answer = await client.post("/api/v1/series:query", json=_query(run, 1, 2))
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["pointer"] == "/groups/0/run_ids"
        with note_statements(server.database) as statements:
            huge = await client.post("/api/v1/series:query", json=_query(run, 100, 1_000))
            assert huge.status_code in {413, 422}
            assert not [one for one in statements if "curve" in one or "tails" in one]
            once = await client.post("/api/v1/series:query", json=_query(run, 100, 1))
    assert once.status_code == 200
    assert len(statements) < 20


async def test_every_mention_of_a_curve_counts_towards_the_limit(world: World) -> None:
    job = await world.submit_one_job()
    select = [{"run_id": job.run_ids[0], "series": "loss"}] * 1_000
    groups = _query(job.run_ids[0], 100, 1)["groups"]
    for index in range(100):
        groups[index] |= {"run_ids": [new_id("run") for _ in range(20)]}
    body = {"select": select, "groups": groups, "buckets": 1_500}
    wanted = SeriesQuery.model_validate_json(json.dumps(body))
    with pytest.raises(TooLargeError):
        await curves.query(world.database, world.admin, wanted)


async def test_an_attempt_reads_only_the_snapshots_of_its_runs(server: AppServer) -> None:
    """Regression: an attempt's token could read every artifact of its project."""
    names = server.names
    kept = {
        "its snapshot": ("live_run", names["uploading_snapshot"]),
        "its log": ("live_run", ""),
        "another run's": ("finished_run", names["finished_snapshot"]),
        "another project's": ("foreign_run", names["foreign_snapshot"]),
    }
    ids = {name: await store_artifact(server, *place) for name, place in kept.items()}

    async def get_statuses(who: str) -> dict[str, int]:
        async with server.client(who) as client:
            return {
                name: (await client.get(f"/api/v1/artifacts/{artifact}/content")).status_code
                for name, artifact in ids.items()
            }

    assert await get_statuses("live_attempt") == {
        "its snapshot": 200,
        "its log": 404,
        "another run's": 404,
        "another project's": 404,
    }
    assert set((await get_statuses("finished_attempt")).values()) == {404}
    assert (await get_statuses("reader"))["another run's"] == 200


async def store_artifact(served: AppServer, run: str, folder: str) -> str:
    """Stores an artifact of a run; returns its ID."""
    from app.db.repositories import artifacts as rows

    blob_id = os.urandom(16).hex()
    path = served.app.state.store.path(blob_id)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"1234")
    async with served.database.write() as session:
        owner = await session.get(RunRow, served.names[run])
        assert owner is not None
        digest = os.urandom(32).hex()
        blob = {"id": blob_id, "project_id": owner.project_id, "sha256": digest, "size": 4}
        kept = await rows.add_blob(session, blob)
        artifact = ArtifactRow(
            id=new_id("art"),
            project_id=owner.project_id,
            run_id=owner.id,
            attempt_id=served.names["finished_attempt"],
            folder=folder,
            name=f"{blob_id}.bin",
            kind="snapshot" if folder else "other",
            size=4,
            sha256=digest,
            blob_id=kept,
        )
        session.add(artifact)
    return str(artifact.id)


async def test_an_answer_with_log_lines_has_a_size_limit(world: World) -> None:
    """Regression: 5,000 lines of 32 KiB were sent in one answer."""
    job = await world.submit_one_job()
    worker = (await world.register()).worker_id
    attempt = (await world.start(job.id, worker)).work_order.attempt_id
    run = job.run_ids[0]
    lines = [f"{index} " + "x" * 30_000 for index in range(100)]
    async with world.database.write() as session:
        await batches.take(
            session, make_delivery(attempt, 1, [make_log(run, line) for line in lines])
        )
    seen: list[str] = []
    after, complete = 0, False
    while not complete:
        async with world.database.read() as session:
            view = await logs.read(session, world.admin, run, after=after, limit=5_000)
        assert sum(len(line.text) for line in view.lines) < logs.MAX_TEXT + 32_768
        seen += [line.text for line in view.lines]
        after, complete = view.next_after, view.complete
    assert seen == lines


@pytest.mark.processes
def test_an_interrupted_body_is_logged_without_a_traceback(target: Target) -> None:
    """Regression: 750 interrupted bodies wrote 750 tracebacks to the log."""
    token = target.tokens["user"]
    before = target.log("server").count("request.cut")
    head = (
        f"POST /api/v1/experiments HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
    )
    head += "Content-Type: application/json\r\nContent-Length: 1000\r\n"
    head += "Expect: 100-continue\r\n\r\n{"
    for _ in range(50):
        with socket.create_connection(("127.0.0.1", target.port)) as opened:
            opened.sendall(head.encode())
            assert opened.recv(100).startswith(b"HTTP/1.1 100 "), "it reads the body"
    assert target.request("GET", "/api/v1/session").status_code == 200
    wait_for(lambda: target.log("server").count("request.cut") == before + 50, "all are logged")
    written = target.log("server")
    assert "Traceback" not in written
    assert "request.crashed" not in written


@pytest.mark.processes
def test_the_server_warns_once_when_it_runs_as_root(target: Target) -> None:
    assert target.log("server").count("server.runs_as_root") == (1 if os.geteuid() == 0 else 0)


@pytest.mark.parametrize(("uid", "warned"), [(0, 1), (10_001, 0)])
def test_the_worker_warns_when_it_runs_as_root(uid: int, warned: int, tmp_path: Path) -> None:
    """Runs in a subprocess, since a worker configures logging and signals for its whole process."""
    token = tmp_path / "token"
    token.write_text("plr_x")
    token.chmod(0o600)
    place = [
        "--server",
        "http://127.0.0.1:9",
        "--token-file",
        str(token),
        "--state-dir",
        str(tmp_path / "state"),
    ]
    program = f"""
import os
os.geteuid = lambda: {uid}
from workers.host import worker
from workers.host.options import parse_options
from workers.ipc.json_log import configure
configure()
worker._Worker(parse_options({place!r}))._warn()
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr.count("worker.runs_as_root") == warned

"""A database that is busy, cannot be reached or takes too long is answered 503."""

from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import text

from app.api import errors
from app.db.engine import Database
from tests.app.api.serving import AppServer, serve
from tests.support.server_fixture import make_definition
from tests.support.statements import ENDLESS

pytestmark = pytest.mark.both_databases(
    "Locks, pools and lost connections have errors of each database.",
    of=("app.db.faults", "app.db.engine"),
)

PATHS = ("/api/v1/runs", "/api/v1/jobs", "/api/v1/experiments")


def is_busy(answer: httpx.Response) -> bool:
    assert answer.status_code == 503, answer.text
    assert answer.json()["code"] == "database_busy"
    return int(answer.headers["Retry-After"]) > 0


async def submit(served: AppServer) -> httpx.Response:
    document = {"definition": make_definition(), "options": {"seeds": [0]}}
    async with served.client("user") as client:
        return await client.post("/api/v1/experiments", json=document)


async def check_that_trainings_go_on(served: AppServer) -> None:
    """Checks that workers, attempts and `/readyz` are answered by connections of their own."""
    worker_id, attempt_id = served.names["worker"], served.names["live_attempt"]
    async with served.client("own_worker") as client:
        heartbeat = {"live_attempts": [attempt_id]}
        path = f"/api/v1/workers/{worker_id}:heartbeat"
        assert (await client.post(path, json=heartbeat)).status_code == 200
        assert (await client.get("/readyz")).status_code == 200
    async with served.client("live_attempt") as client:
        renewal = await client.post(f"/api/v1/leases/{attempt_id}:renew", json={})
        assert renewal.status_code == 200, renewal.text


async def test_a_pool_without_a_free_connection_is_answered_503(
    database_url: str, tmp_path: Path
) -> None:
    async with serve(database_url, tmp_path) as served:
        usual = served.database
        busy = Database(database_url, pool_size=1, wait_seconds=0.05)
        async with AsyncExitStack() as holders:
            holders.push_async_callback(busy.dispose)
            for opened in (busy.write, busy.read):
                while True:
                    try:
                        session = await holders.enter_async_context(opened())
                        await session.connection()
                    # Every connection is held now.
                    except Exception:  # noqa: BLE001
                        break
            served.app.state.database = busy
            assert is_busy(await submit(served))
            async with served.client("user") as client:
                assert all([is_busy(await client.get(path)) for path in PATHS])
            await check_that_trainings_go_on(served)
            served.app.state.database = usual
        assert (await submit(served)).is_success


async def test_a_database_that_another_writer_locks_is_answered_503(
    sqlite_file: Path, tmp_path: Path
) -> None:
    url = f"sqlite:///{sqlite_file}"
    async with serve(url, tmp_path) as served:
        usual = served.database
        impatient = Database(url, wait_seconds=0.05)
        async with usual.write() as session:
            await session.execute(text("SELECT 1"))
            served.app.state.database = impatient
            assert is_busy(await submit(served))
        served.app.state.database = usual
        await impatient.dispose()
        assert (await submit(served)).is_success


async def test_a_database_that_cannot_be_reached_is_answered_503(
    database_url: str, tmp_path: Path
) -> None:
    async with serve(database_url, tmp_path) as served:
        usual = served.database
        missing = (
            "postgresql://palestra@127.0.0.1:9/palestra"
            if database_url.startswith("postgres")
            else f"sqlite:///{tmp_path / 'missing' / 'palestra.db'}"
        )
        unreachable = Database(missing)
        served.app.state.database = unreachable
        assert is_busy(await submit(served))
        served.app.state.database = usual
        await unreachable.dispose()


async def test_a_statement_over_its_deadline_is_answered_with_the_limit(database_url: str) -> None:
    app = FastAPI()
    errors.install(app)
    app.state.database = Database(database_url, statement_seconds=0.05)

    @app.get("/slow")
    async def answer_slowly() -> None:
        async with app.state.database.read() as session:
            await session.execute(text(ENDLESS))

    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
        answer = await client.get("/slow")
    await app.state.database.dispose()
    assert (answer.status_code, answer.json()["code"]) == (503, "statement_deadline")
    assert "after 0.05 s, its limit" in answer.json()["detail"]

"""A person's changes are made one after the other; those of others and of workers go on."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
from fastapi import FastAPI
from fastapi.dependencies.models import Dependant

from app.api.auth import (
    authenticate,
    get_principal,
    limit_to_project,
    limit_to_project_of_path,
)
from app.api.deps import write_session
from app.api.openapi import list_api_routes
from app.api.turns import Turns
from app.db.engine import Database, Session
from app.main import create_app
from app.settings import Settings
from tests.app.api.serving import AppServer, serve
from tests.support.server_fixture import make_definition


async def submit(served: AppServer, who: str = "user") -> httpx.Response:
    document = {"definition": make_definition(), "options": {"seeds": [0]}}
    async with served.client(who) as client:
        return await client.post("/api/v1/experiments", json=document)


async def test_changes_of_a_person_wait_for_each_other_and_hold_up_nobody_else(
    database_url: str, tmp_path: Path
) -> None:
    async with serve(database_url, tmp_path) as served:
        served.app.state.writes = Turns(1, "too_many_writes", "changes", wait_seconds=0.05)
        async with served.app.state.writes.take_turn(served.world.admin.user_id):
            refused = await submit(served)
            assert (refused.status_code, refused.json()["code"]) == (429, "too_many_writes")
            assert refused.headers["Retry-After"] == "1"
            assert (await submit(served, "member")).is_success
            async with served.client("own_worker") as worker:
                path = f"/api/v1/workers/{served.names['worker']}:heartbeat"
                heartbeat = {"live_attempts": [served.names["live_attempt"]]}
                assert (await worker.post(path, json=heartbeat)).is_success
        assert (await submit(served)).is_success


class CountingDatabase(Database):
    """A database that counts its sessions that write."""

    open = 0
    most_open = 0

    @asynccontextmanager
    async def write(self) -> AsyncIterator[Session]:
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        async with super().write() as session:
            yield session
        self.open -= 1


async def test_many_changes_of_a_person_at_once_open_one_session_after_the_other(
    database_url: str, tmp_path: Path
) -> None:
    """Regression: fifty equal submissions took all connections, and lists of others waited."""
    async with serve(database_url, tmp_path) as served:
        usual = served.database
        counting = served.app.state.database = CountingDatabase(database_url)
        answers = await asyncio.gather(*(submit(served) for _ in range(8)))
        served.app.state.database = usual
        await counting.dispose()
        assert all(answer.is_success for answer in answers)
        assert counting.most_open == 1


def list_calls(dependant: Dependant) -> Iterator[object]:
    """Yields the dependencies of a route in the order in which FastAPI calls them."""
    for dependency in dependant.dependencies:
        yield from list_calls(dependency)
        yield dependency.call


def test_no_dependency_reads_the_caller_before_a_project_limits_it() -> None:
    calls = [list(list_calls(route.dependant)) for route in list_api_routes(create_app(Settings()))]
    limits = (limit_to_project, limit_to_project_of_path)
    limited = [called for called in calls if not set(limits).isdisjoint(called)]
    assert len(limited) == 25
    for called in limited:
        (limit,) = (index for index, call in enumerate(called) if call in limits)
        assert called.index(authenticate) < limit < called.index(get_principal)


def test_who_makes_a_change_is_known_before_its_session_opens() -> None:
    app: FastAPI = create_app(Settings())
    calls = [list(list_calls(route.dependant)) for route in list_api_routes(app)]
    changing = [called for called in calls if write_session in called]
    assert changing
    for called in changing:
        assert called.index(authenticate) < called.index(write_session)

"""Storage limits and request rates."""

import asyncio
from typing import Any

import pytest

import palestra
from app.api.errors import HttpProblemError
from app.api.request_rate import RequestRate
from app.db.repositories import projects as project_rows
from app.settings import Settings
from palestra.contract.projects import ProjectRequest
from tests.app.api.serving import AppServer
from tests.app.api.test_projects import ask, create
from tests.support.listening import listening
from tests.support.server_fixture import make_definition, make_token_caller

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def submit(served: AppServer, slug: str, name: str, who: str = "user") -> tuple[int, Any]:
    body = {"definition": make_definition(name=name)}
    return await ask(served, who, "POST", f"/experiments?project={slug}", body)


async def test_nothing_is_submitted_once_the_storage_limit_is_reached(shared: AppServer) -> None:
    made = await create(shared, "full", storage_limit=0)
    status, problem = await submit(shared, "full", "no room")
    assert (status, problem["code"]) == (409, "storage_limit_reached")
    assert "stores 0 B of files and may store 0 B" in problem["detail"]
    assert "palestra projects change full --storage-limit" in problem["detail"]
    await ask(shared, "user", "PATCH", "/projects/full", {"storage_limit": 2048})
    assert (await submit(shared, "full", "room"))[0] == 201
    async with shared.database.write() as session:
        await project_rows.add_storage(session, made["id"], 2048)
    status, problem = await submit(shared, "full", "another")
    assert (status, problem["code"]) == (409, "storage_limit_reached")
    assert "stores 2.0 KiB of files and may store 2.0 KiB" in problem["detail"]


async def test_requests_of_a_credential_beyond_its_rate_are_refused() -> None:
    rate = RequestRate(Settings(api_requests_per_second=2, api_burst=3))
    one, other = make_token_caller("usr_a", "tok_a"), make_token_caller("usr_a", "tok_b")
    for _ in range(3):
        rate.check(one, 100.0)
    with pytest.raises(HttpProblemError) as caught:
        rate.check(one, 100.0)
    assert (caught.value.status, caught.value.code) == (429, "too_many_requests")
    assert caught.value.headers["Retry-After"] == "1"
    assert caught.value.headers["RateLimit"] == '"credential";r=0;t=1'
    rate.check(other, 100.0)
    rate.check(one, 100.5)
    unlimited = RequestRate(Settings(api_requests_per_second=0, api_burst=1))
    for _ in range(5):
        unlimited.check(one, 100.0)


async def test_requests_beyond_the_rate_are_answered_429_and_repeated_by_the_client(
    shared: AppServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    rate = RequestRate(Settings(api_requests_per_second=1, api_burst=2))
    monkeypatch.setattr(shared.app.state.request_rate, "check", rate.check)
    async with shared.client("user") as client:
        answers = [await client.get("/api/v1/projects") for _ in range(3)]
    assert [one.status_code for one in answers] == [200, 200, 429]
    refused = answers[-1]
    assert refused.json()["code"] == "too_many_requests"
    assert refused.headers["retry-after"] == "1"
    async with listening(shared.app) as url:
        client = palestra.Client(url, shared.tokens["user"])
        # Refused at first and sent again, though a POST is not repeated after other faults.
        made = await asyncio.to_thread(client.create_project, ProjectRequest(name="patient"))
        client.close()
    assert made.slug == "patient"

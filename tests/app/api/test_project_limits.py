"""Storage limits, request rates, and moves of experiments between projects."""

import asyncio
from typing import Any

import pytest

import palestra
from app.api.errors import HttpProblemError
from app.api.request_rate import RequestRate
from app.db.repositories import projects as project_rows
from app.settings import Settings
from palestra.cli.main import main
from palestra.contract.projects import ProjectRequest
from tests.app.api.serving import AppServer
from tests.app.api.test_projects import ask, create, person, put
from tests.support.listening import listening
from tests.support.server_fixture import definition, token_of

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def submit(served: AppServer, slug: str, name: str, who: str = "user") -> tuple[int, Any]:
    body = {"definition": definition(name=name)}
    return await ask(served, who, "POST", f"/projects/{slug}/experiments", body)


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
    one, other = token_of("usr_a", "tok_a"), token_of("usr_a", "tok_b")
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


async def test_an_experiment_moves_with_its_runs_and_jobs(shared: AppServer) -> None:
    for slug in ("move-a", "move-b"):
        await create(shared, slug)
    _, made = await submit(shared, "move-a", "traveller")
    path = f"/projects/move-a/experiments/{made['id']}"
    move = ("user", "POST", f"{path}:move", {"to": "move-b"})
    status, problem = await ask(shared, *move)
    assert (status, problem["code"]) == (409, "experiment_active")
    _, jobs = await ask(shared, "user", "GET", "/projects/move-a/jobs")
    await ask(shared, "user", "POST", f"/jobs/{jobs['items'][0]['id']}:cancel")
    status, moved = await ask(shared, *move)
    assert (status, moved["project"], moved["id"]) == (200, "move-b", made["id"])
    assert (await ask(shared, "user", "GET", path))[0] == 404
    for kind in ("runs", "jobs", "experiments"):
        _, left = await ask(shared, "user", "GET", f"/projects/move-a/{kind}")
        _, there = await ask(shared, "user", "GET", f"/projects/move-b/{kind}")
        assert (len(left["items"]), len(there["items"])) == (0, 1)
    for slug, action in (("move-a", "experiment.move_out"), ("move-b", "experiment.move_in")):
        _, audit = await ask(shared, "user", "GET", f"/projects/{slug}/audit?action={action}")
        assert len(audit["items"]) == 1


async def test_a_move_is_refused_where_the_target_cannot_take_it(shared: AppServer) -> None:
    await person(shared, "gus")
    for slug, role in (("from-a", "maintainer"), ("to-b", "member")):
        await create(shared, slug)
        await put(shared, "user", slug, "gus", role)
    _, made = await submit(shared, "from-a", "twin")
    path = f"/projects/from-a/experiments/{made['id']}:move"
    faults = {
        ("gus", "to-b"): (403, "missing_permission"),
        ("gus", "default"): (422, "no_such_project"),
        ("user", "from-a"): (422, "same_project"),
        ("user", "never-was"): (422, "no_such_project"),
    }
    for (who, to), expected in faults.items():
        status, problem = await ask(shared, who, "POST", path, {"to": to})
        assert (status, problem["code"]) == expected
    _, jobs = await ask(shared, "user", "GET", "/projects/from-a/jobs")
    await ask(shared, "user", "POST", f"/jobs/{jobs['items'][0]['id']}:cancel")
    await submit(shared, "to-b", "twin")
    status, problem = await ask(shared, "user", "POST", path, {"to": "to-b"})
    assert (status, problem["code"]) == (409, "id_taken")
    await ask(shared, "user", "POST", "/projects/to-b:archive")
    status, problem = await ask(shared, "user", "POST", path, {"to": "to-b"})
    assert (status, problem["code"]) == (409, "project_archived")


async def test_a_client_and_a_command_move_an_experiment(
    shared: AppServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for slug in ("command-a", "command-b"):
        await create(shared, slug)
    _, made = await submit(shared, "command-a", "commuter")
    _, jobs = await ask(shared, "user", "GET", "/projects/command-a/jobs")
    await ask(shared, "user", "POST", f"/jobs/{jobs['items'][0]['id']}:cancel")
    async with listening(shared.app) as url:
        monkeypatch.setenv("PALESTRA_SERVER", url)
        monkeypatch.setenv("PALESTRA_TOKEN", shared.tokens["user"])

        async def move(*arguments: str) -> int:
            return await asyncio.to_thread(main, ["move", made["id"], *arguments])

        assert await move("--to", "Not A Slug") == 2
        assert "this is no slug of a project" in capsys.readouterr().err
        assert await move("--to", "command-b") == 0
        assert capsys.readouterr().out == f"moved  {made['id']} to command-b\n"
        assert await move("--to", "command-b") != 0
        assert "is in this project already" in capsys.readouterr().err
        client = palestra.Client(url, shared.tokens["user"])
        method = client.move_experiment
        moved = await asyncio.to_thread(method, made["id"], "command-a", project="command-b")
        assert (moved.project, moved.id) == ("command-a", made["id"])
        client.close()


async def test_requests_beyond_the_rate_are_answered_429_and_repeated_by_the_client(
    shared: AppServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    rate = RequestRate(Settings(api_requests_per_second=1, api_burst=2))
    monkeypatch.setattr(shared.app.state, "request_rate", rate)
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

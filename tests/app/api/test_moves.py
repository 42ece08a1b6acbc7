"""Moves of experiments between projects over the API, with the client and with the command."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import select

import palestra
from app.db.models import EventRow
from palestra.cli.main import main
from tests.app.api.serving import AppServer
from tests.app.api.test_project_limits import submit
from tests.app.api.test_projects import add_person, ask, create, put
from tests.support.listening import listening

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def submit_ended(served: AppServer, slug: str, name: str) -> str:
    """Submits an experiment whose job is cancelled; returns its ID."""
    _, made = await submit(served, slug, name)
    _, jobs = await ask(served, "user", "GET", f"/jobs?project={slug}")
    for job in jobs["items"]:
        if job["experiment_id"] == made["id"] and job["state"] == "queued":
            await ask(served, "user", "POST", f"/jobs/{job['id']}:cancel")
    return str(made["id"])


async def move(served: AppServer, who: str, slug: str, experiment_id: str, to: str) -> Any:
    """Returns status and code of a move."""
    path = f"/projects/{slug}/experiments/{experiment_id}:move"
    status, answer = await ask(served, who, "POST", path, {"to": to})
    return status, answer["code"] if status >= 400 else None


async def test_only_maintainers_of_both_projects_move(shared: AppServer) -> None:
    await add_person(shared, "ida")
    made = {slug: await create(shared, slug) for slug in ("left", "right")}
    experiment_id = await submit_ended(shared, "left", "guarded")
    expected = {
        (None, "maintainer"): (404, "not_found"),
        ("viewer", "maintainer"): (403, "missing_permission"),
        ("member", "maintainer"): (403, "missing_permission"),
        ("maintainer", None): (422, "no_such_project"),
        ("maintainer", "viewer"): (403, "missing_permission"),
        ("maintainer", "member"): (403, "missing_permission"),
        ("maintainer", "maintainer"): (200, None),
    }
    assert len(made) == 2
    for roles, answer in expected.items():
        for slug, role in zip(made, roles, strict=True):
            if role is None:
                await ask(shared, "user", "DELETE", f"/projects/{slug}/members/ida")
            else:
                await put(shared, "user", slug, "ida", role)
        assert await move(shared, "ida", "left", experiment_id, "right") == answer, roles


async def test_both_projects_learn_of_a_move_and_neither_event_names_the_other(
    shared: AppServer,
) -> None:
    ids = {slug: (await create(shared, slug))["id"] for slug in ("told-a", "told-b")}
    experiment_id = await submit_ended(shared, "told-a", "announced")
    assert await move(shared, "user", "told-a", experiment_id, "told-b") == (200, None)
    query = select(EventRow).where(
        EventRow.experiment_id == experiment_id, EventRow.type.in_(["moved", "experiment"])
    )
    async with shared.database.read() as session:
        rows = (await session.scalars(query.order_by(EventRow.id))).all()
    told = {(row.project_id, row.type): row.data for row in rows}
    same = {"id": experiment_id}
    assert told[ids["told-a"], "moved"] == {**same, "project": "told-a", "has_left": True}
    assert told[ids["told-b"], "moved"] == {**same, "project": "told-b", "has_left": False}
    assert told[ids["told-b"], "experiment"]["project"] == "told-b"


async def test_a_later_job_needs_a_pool_that_admits_the_new_project(shared: AppServer) -> None:
    await create(shared, "pool-a")
    await create(shared, "pool-b", pools=[])
    experiment_id = await submit_ended(shared, "pool-a", "swimmer")
    assert await move(shared, "user", "pool-a", experiment_id, "pool-b") == (200, None)
    _, runs = await ask(shared, "user", "GET", "/runs?project=pool-b")
    path = f"/runs/{runs['items'][0]['id']}/jobs"
    status, problem = await ask(shared, "user", "POST", path, {"schedule": "train"})
    assert (status, problem["code"]) == (422, "unknown_pool")


async def test_an_experiment_moves_with_its_runs_and_jobs(shared: AppServer) -> None:
    for slug in ("move-a", "move-b"):
        await create(shared, slug)
    _, made = await submit(shared, "move-a", "traveller")
    path = f"/projects/move-a/experiments/{made['id']}:move"
    move = ("user", "POST", path, {"to": "move-b"})
    status, problem = await ask(shared, *move)
    assert (status, problem["code"]) == (409, "experiment_active")
    _, jobs = await ask(shared, "user", "GET", "/jobs?project=move-a")
    await ask(shared, "user", "POST", f"/jobs/{jobs['items'][0]['id']}:cancel")
    status, moved = await ask(shared, *move)
    assert (status, moved["project"], moved["id"]) == (200, "move-b", made["id"])
    former = f"/experiments/{made['id']}?project=move-a"
    assert (await ask(shared, "user", "GET", former))[0] == 404
    for kind in ("runs", "jobs", "experiments"):
        _, left = await ask(shared, "user", "GET", f"/{kind}?project=move-a")
        _, there = await ask(shared, "user", "GET", f"/{kind}?project=move-b")
        assert (len(left["items"]), len(there["items"])) == (0, 1)
    for slug, action in (("move-a", "experiment.move_out"), ("move-b", "experiment.move_in")):
        _, audit = await ask(shared, "user", "GET", f"/audit?action={action}&project={slug}")
        assert len(audit["items"]) == 1


async def test_a_move_is_refused_where_the_target_cannot_take_it(shared: AppServer) -> None:
    await add_person(shared, "gus")
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
    _, jobs = await ask(shared, "user", "GET", "/jobs?project=from-a")
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
    _, jobs = await ask(shared, "user", "GET", "/jobs?project=command-a")
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

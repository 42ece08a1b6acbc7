"""Saved views through the API: rights, faults, and what of a view still exists."""

import itertools
from typing import Any

import pytest
from sqlalchemy import delete, select

from app.daemons.summariser import Summariser
from app.db.models import SeriesNameRow, SeriesSummaryRow
from app.services.lists import saved_views
from tests.app.api.serving import AppServer
from tests.support import records
from tests.support.server_fixture import make_definition
from tests.support.training import make_evaluations, train

pytestmark = pytest.mark.asyncio(loop_scope="module")

_names = itertools.count()
STATE = {
    "filter": "agent:dqn state:running,queued",
    "sort": "-evaluation/mean.best",
    "columns": ["name", "agent.gamma", "evaluation/mean.best"],
    "pinned": ["name"],
    "widths": {"name": 240},
    "group_by": ["agent"],
    "show": "table",
    "split": 40,
    "board": {"smooth": 0.6, "axis": "env_step", "log": True, "pins": ["loss/td"]},
}


async def call(
    shared: AppServer, who: str, method: str, path: str, body: Any = None
) -> tuple[int, Any]:
    async with shared.client(who) as client:
        answer = await client.request(method, f"/api/v1{path}", json=body)
    return answer.status_code, answer.json() if answer.content else None


async def save(
    shared: AppServer, who: str = "member", visibility: str = "private", **state: Any
) -> Any:
    body = {"name": f"view {next(_names)}", "visibility": visibility, "state": state or STATE}
    status, made = await call(shared, who, "POST", "/views?project=default", body)
    assert status == 201, made
    return made


async def test_a_view_is_saved_read_changed_and_deleted(shared: AppServer) -> None:
    made = await save(shared)
    assert made["state"] == {**made["state"], **STATE}
    assert (made["owner"], made["project"], made["visibility"]) == ("member", "default", "private")
    path = f"/views/{made['id']}"
    status, read = await call(shared, "member", "GET", path)
    assert (status, read) == (200, made)
    change = {"name": "renamed", "visibility": "project"}
    status, changed = await call(shared, "member", "PATCH", path, change)
    assert (status, changed["name"], changed["state"]) == (200, "renamed", made["state"])
    assert changed["updated_at"] >= made["updated_at"]
    status, listed = await call(shared, "member", "GET", "/views?project=default")
    assert changed["id"] in [one["id"] for one in listed["items"]]
    assert (await call(shared, "member", "DELETE", path))[0] == 204
    assert (await call(shared, "member", "GET", path))[0] == 404


async def test_a_private_view_is_its_owners_and_a_shared_one_the_projects(
    shared: AppServer,
) -> None:
    mine, ours = await save(shared), await save(shared, visibility="project")
    seen = {}
    for who in ("member", "maintainer", "viewer", "reader", "service", "foreign", "administrator"):
        _, listed = await call(shared, who, "GET", "/views?limit=500")
        ids = {one["id"] for one in listed["items"]}
        statuses = [
            (await call(shared, who, "GET", f"/views/{view['id']}"))[0] for view in (mine, ours)
        ]
        assert [one["id"] in ids for one in (mine, ours)] == [status == 200 for status in statuses]
        seen[who] = statuses
    both, shared_one, none = [200, 200], [404, 200], [404, 404]
    assert seen == {
        "member": both,
        "maintainer": shared_one,
        "viewer": shared_one,
        "reader": shared_one,
        "service": shared_one,
        "foreign": none,
        "administrator": none,
    }


@pytest.mark.parametrize(
    ("who", "private", "project"),
    [("maintainer", 404, 200), ("viewer", 403, 403), ("service", 404, 403), ("foreign", 404, 404)],
)
async def test_others_change_no_view_but_maintainers_the_shared_ones(
    shared: AppServer, who: str, private: int, project: int
) -> None:
    for visibility, expected in (("private", private), ("project", project)):
        view = await save(shared, visibility=visibility)
        path = f"/views/{view['id']}"
        status, _ = await call(shared, who, "PATCH", path, {"visibility": "project"})
        assert status == expected, visibility
        status, _ = await call(shared, who, "DELETE", path)
        assert status == (204 if expected == 200 else expected), visibility


async def test_viewers_and_tokens_that_only_read_save_no_views(shared: AppServer) -> None:
    body = {"name": "x", "state": {}}
    for who in ("viewer", "reader"):
        status, problem = await call(shared, who, "POST", "/views?project=default", body)
        assert (status, "needs" in problem["detail"]) == (403, True)


@pytest.mark.parametrize(
    ("state", "pointer", "code"),
    [
        ({"filter": "agent>3"}, "/state/filter", "filter_wrong_operator"),
        ({"filter": "agnet:dqn"}, "/state/filter", "unknown_filter_field"),
        ({"filter": "x" * 1_001}, "/state/filter", "length"),
        ({"sort": "nothing"}, "/state/sort", "invalid_sort"),
        ({"sort": "agent,nothing"}, "/state/sort", "invalid_sort"),
        ({"sort": "agent,-agent"}, "/state/sort", "duplicate_sort_key"),
        ({"columns": ["name", "nothing"]}, "/state/columns/1", "unknown_column"),
        ({"columns": ["name"] * 51}, "/state/columns", "length"),
        ({"group_by": ["a.b", "a.c", "a.d", "a.e", "a.f"]}, "/state/group_by", "length"),
        ({"widths": {"name": 0}}, "/state/widths/name", "out_of_range"),
        ({"show": "nothing"}, "/state/show", "not_a_choice"),
        ({"board": {"x": "y" * 501}}, "/state/board/x", "invalid_value"),
        ({"board": {"x": ["y"] * 101}}, "/state/board/x", "invalid_value"),
        ({"board": {"x": [1]}}, "/state/board/x", "invalid_value"),
        ({"board": {"x": {"y": 1}}}, "/state/board/x", "invalid_value"),
        ({"board": {"x": None}}, "/state/board/x", "invalid_value"),
        ({"other": 1}, "/state/other", "unknown_field"),
    ],
)
async def test_a_state_that_no_page_can_show_is_refused(
    shared: AppServer, state: dict[str, Any], pointer: str, code: str
) -> None:
    body = {"name": "refused", "state": state}
    status, problem = await call(shared, "member", "POST", "/views?project=default", body)
    assert status == 422, problem
    assert (pointer, code) in [(one["pointer"], one["code"]) for one in problem["errors"]], problem


async def test_a_person_has_one_view_of_a_name(
    shared: AppServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, other = await save(shared), await save(shared)
    body = {"name": made["name"], "state": {}}
    status, problem = await call(shared, "member", "POST", "/views?project=default", body)
    assert (status, problem["code"]) == (409, "name_taken")
    status, problem = await call(
        shared, "member", "PATCH", f"/views/{other['id']}", {"name": made["name"]}
    )
    assert (status, problem["code"]) == (409, "name_taken")
    status, _ = await call(shared, "maintainer", "POST", "/views?project=default", body)
    assert status == 201
    monkeypatch.setattr(saved_views, "MAX_VIEWS", 1)
    body["name"] = "one more"
    status, problem = await call(shared, "member", "POST", "/views?project=default", body)
    assert (status, problem["code"]) == (409, "too_many_views")


async def test_a_view_keeps_what_exists_and_names_the_nearest_of_what_does_not(
    shared: AppServer,
) -> None:
    world = shared.world
    worker = (await world.register(name="of-views", slots=1)).worker_id
    experiment, _ = await world.submit(make_definition(name="viewed", loop={"env_steps": 91}))
    (job,) = await world.list_jobs(experiment_id=experiment.id)
    points = [records.make_points("", name, [1], [0.5]) for name in ("loss/td", "loss/tdd")]
    await train(world, job, (worker, 0), [*make_evaluations(3.0), *points])
    await Summariser(world.database).tick()
    view = await save(
        shared,
        visibility="project",
        filter='agent:dqn loss/td<1 agent.gama>0.5 not name:"a b"',
        sort="-loss/td.best",
        columns=["name", "loss/td", "agent.gamma"],
        group_by=["agent.gama"],
    )
    first, second = view["problems"]
    assert (first["pointer"], first["code"]) == ("/state/filter", "unknown_filter_field")
    assert first["message"].startswith("`agent.gama>0.5` ")
    assert "did you mean agent.gamma?" in first["message"]
    assert second["pointer"] == "/state/group_by/0"
    async with world.database.write() as session:
        name_id = select(SeriesNameRow.id).where(SeriesNameRow.name == "loss/td").scalar_subquery()
        await session.execute(delete(SeriesSummaryRow).where(SeriesSummaryRow.name_id == name_id))
    _, found = await call(shared, "viewer", "GET", f"/views/{view['id']}")
    assert [one["pointer"] for one in found["problems"]] == [
        "/state/filter",
        "/state/filter",
        "/state/columns/1",
        "/state/group_by/0",
        "/state/sort",
    ]
    assert all("did you mean loss/tdd?" in found["problems"][place]["message"] for place in (0, 2))
    usable = found["usable_state"]
    assert usable["filter"] == 'agent:dqn not name:"a b"'
    assert usable["columns"] == ["name", "agent.gamma"]
    assert (usable["group_by"], usable["sort"]) == ([], "")
    assert found["state"] == view["state"]
    params = {"project": "default", "filter": usable["filter"], "columns": usable["columns"]}
    async with shared.client("viewer") as client:
        answer = await client.get("/api/v1/runs", params=params)
    assert answer.status_code == 200, answer.text


async def test_a_view_is_sorted_by_all_keys_that_lists_take(shared: AppServer) -> None:
    view = await save(shared, sort="agent,-created_at")
    assert view["problems"] == []
    assert view["usable_state"]["sort"] == "agent,-created_at"

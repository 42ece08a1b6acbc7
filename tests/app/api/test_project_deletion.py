"""Deleting and restoring projects: routes, rights, errors, audit."""

from typing import Any

import pytest
from sqlalchemy import select

from app.db.models import AuditRow
from palestra.contract.access import TokenRequest
from palestra.contract.names import Scope
from tests.app.api.serving import AppServer
from tests.app.api.test_projects import add_person, ask, create, put
from tests.support.server_fixture import advance_clock, make_definition

pytestmark = pytest.mark.asyncio(loop_scope="module")

DAY = 86_400


async def make_archived_project(served: AppServer, slug: str) -> dict[str, Any]:
    made = await create(served, slug)
    await ask(served, "user", "POST", f"/projects/{slug}:archive")
    return made


async def delete(served: AppServer, who: str, slug: str, confirm: str = "") -> tuple[int, Any]:
    return await ask(served, who, "DELETE", f"/projects/{slug}?confirm={confirm or slug}")


async def list_deleted(served: AppServer) -> dict[str, Any]:
    _, found = await ask(served, "user", "GET", "/projects:deleted?limit=200")
    return {one["slug"]: one for one in found["items"]}


async def test_a_deleted_project_is_hidden_and_can_be_restored(shared: AppServer) -> None:
    made = await make_archived_project(shared, "gone")
    status, answer = await delete(shared, "user", "gone")
    assert (status, answer["slug"], answer["deleted_by"]) == (200, "gone", "admin")
    assert answer["removal_started_at"] is None
    for path in ("/projects/gone", "/projects/gone/members", "/experiments?project=gone"):
        assert (await ask(shared, "user", "GET", path))[0] == 404
    _, every = await ask(shared, "user", "GET", "/projects?limit=200")
    assert "gone" not in {one["slug"] for one in every["items"]}
    _, session = await ask(shared, "user", "GET", "/session")
    assert "gone" not in str(session)
    assert (await list_deleted(shared))["gone"] == answer
    status, found = await ask(shared, "user", "POST", "/projects/gone:undelete")
    assert (status, found["id"], found["archived_at"] is None) == (200, made["id"], False)
    assert "gone" not in await list_deleted(shared)
    async with shared.database.read() as session_:
        entries = (
            await session_.scalars(
                select(AuditRow).where(AuditRow.object_id == made["id"]).order_by(AuditRow.id)
            )
        ).all()
    assert [entry.action for entry in entries] == [
        "project.create",
        "project.archive",
        "project.delete",
        "project.undelete",
    ]


async def test_only_an_archived_project_can_be_deleted(shared: AppServer) -> None:
    await create(shared, "in-use")
    status, problem = await delete(shared, "user", "in-use")
    assert (status, problem["code"]) == (409, "project_not_archived")
    assert "Archive it first" in problem["detail"]
    assert (await ask(shared, "user", "GET", "/projects/in-use"))[0] == 200


async def test_the_slug_is_typed_again(shared: AppServer) -> None:
    await make_archived_project(shared, "typed")
    status, problem = await delete(shared, "user", "typed", "typo")
    assert (status, problem["code"]) == (422, "confirmation_mismatch")
    assert problem["errors"][0]["pointer"] == "query/confirm"
    assert "typo" not in str(problem)
    status, problem = await ask(shared, "user", "DELETE", "/projects/typed")
    assert (status, problem["errors"][0]["pointer"]) == (422, "query/confirm")
    assert (await ask(shared, "user", "GET", "/projects/typed"))[0] == 200


async def test_a_second_deletion_says_so_to_administrators_alone(shared: AppServer) -> None:
    await add_person(shared, "dora")
    await make_archived_project(shared, "twice")
    await create(shared, "kept")
    for slug in ("twice", "kept"):
        await put(shared, "user", slug, "dora", "maintainer")
    assert (await delete(shared, "dora", "twice"))[0] == 200
    status, problem = await delete(shared, "user", "twice")
    assert (status, problem["code"]) == (409, "already_deleted")
    status, problem = await delete(shared, "dora", "twice")
    assert (status, problem["code"]) == (404, "not_found")
    status, problem = await delete(shared, "user", "never-was")
    assert (status, problem["code"]) == (404, "not_found")


async def test_maintainers_delete_and_members_do_not(shared: AppServer) -> None:
    for name, role in (("eva", "member"), ("fay", "maintainer")):
        await add_person(shared, name)
        if name == "eva":
            await make_archived_project(shared, "whose")
        await put(shared, "user", "whose", name, role)
    status, problem = await delete(shared, "eva", "whose")
    assert (status, problem["code"]) == (403, "missing_permission")
    status, problem = await delete(shared, "foreign", "whose")
    assert (status, problem["code"]) == (404, "not_found")
    assert (await delete(shared, "fay", "whose"))[0] == 200
    for path in ("/projects/whose:undelete", "/projects:deleted"):
        method = "GET" if path.endswith(":deleted") else "POST"
        status, problem = await ask(shared, "fay", method, path)
        assert (status, problem["code"]) == (403, "missing_permission")


async def test_name_and_slug_stay_taken(shared: AppServer) -> None:
    await make_archived_project(shared, "reserved")
    await delete(shared, "user", "reserved")
    status, problem = await ask(shared, "user", "POST", "/projects", {"name": "reserved"})
    assert (status, problem["code"]) == (409, "name_taken")
    body = {"name": "other name", "slug": "reserved"}
    status, problem = await ask(shared, "user", "POST", "/projects", body)
    assert (status, problem["code"]) == (409, "slug_taken")
    assert "can still be restored" in problem["detail"]


async def test_jobs_of_a_deleted_project_are_cancelled_and_its_credentials_end(
    shared: AppServer,
) -> None:
    await create(shared, "busy")
    body = {"definition": make_definition(name="busy"), "options": {"seeds": [1, 2, 3]}}
    assert (await ask(shared, "user", "POST", "/experiments?project=busy", body))[0] == 201
    _, jobs = await ask(shared, "user", "GET", "/jobs?project=busy")
    paused = jobs["items"][0]["id"]
    await ask(shared, "user", "POST", f"/jobs/{paused}:pause")
    account = ("POST", "/projects/busy/service-accounts", {"name": "ci", "role": "member"})
    assert (await ask(shared, "user", *account))[0] == 201
    token = ("POST", "/projects/busy/service-accounts/ci/tokens")
    request = TokenRequest(name="ci", scopes=(Scope.READ,)).model_dump(mode="json")
    status, made = await ask(shared, "user", *token, request)
    assert status == 201, made
    shared.tokens["ci"] = made["secret"]
    assert (await ask(shared, "ci", "GET", "/session"))[0] == 200
    await ask(shared, "user", "POST", "/projects/busy:archive")
    status, answer = await delete(shared, "user", "busy")
    assert (answer["runs"], answer["unfinished_jobs"]) == (3, 0)
    assert (await ask(shared, "ci", "GET", "/session"))[0] == 401
    assert (await ask(shared, "user", "GET", f"/jobs/{paused}"))[0] == 404
    await ask(shared, "user", "POST", "/projects/busy:undelete")
    _, jobs = await ask(shared, "user", "GET", "/jobs?project=busy")
    assert {job["state"] for job in jobs["items"]} == {"cancelled"}
    assert (await ask(shared, "ci", "GET", "/session"))[0] == 200


async def test_a_project_is_not_restored_after_the_window(shared: AppServer) -> None:
    await make_archived_project(shared, "late")
    await delete(shared, "user", "late")
    status, problem = await ask(shared, "user", "POST", "/projects/never-was:undelete")
    assert (status, problem["code"]) == (404, "not_found")
    advance_clock(30 * DAY + 1)
    try:
        status, problem = await ask(shared, "user", "POST", "/projects/late:undelete")
    finally:
        advance_clock(-30 * DAY - 1)
    assert (status, problem["code"]) == (409, "restore_window_over")
    assert "could be restored until 20" in problem["detail"]

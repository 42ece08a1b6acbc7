"""Projects and their members: routes, rights, errors, audit."""

from typing import Any

import pytest
from sqlalchemy import select

from app.db.models import AuditRow, UserRow
from app.db.repositories import artifacts
from app.services.access import tokens
from palestra.contract.access import TokenRequest
from palestra.contract.names import Scope, new_id
from tests.app.api.serving import AppServer
from tests.support.server_fixture import make_definition

pytestmark = pytest.mark.asyncio(loop_scope="module")

both_databases = pytest.mark.both_databases(
    "Names and slugs are inserted once by a statement of each database.",
    of=("app.db.repositories.projects",),
)

ALL = (Scope.READ, Scope.SUBMIT, Scope.ADMIN)


async def add_person(served: AppServer, name: str, **columns: Any) -> str:
    """Adds a user without a membership, whose token has the user's name; returns the ID."""
    user = UserRow(id=new_id("usr"), name=name, **columns)
    async with served.database.write() as session:
        session.add(user)
        await session.flush()
        request = TokenRequest(name=name, scopes=ALL)
        served.tokens[name] = (
            await tokens.issue_token(session, None, user.id, request)
        ).secret or ""
    return user.id


async def ask(
    served: AppServer, who: str, method: str, path: str, body: Any = None
) -> tuple[int, Any]:
    """Sends a request; returns the status and the JSON of the answer."""
    async with served.client(who) as client:
        answer = await client.request(method, f"/api/v1{path}", json=body)
    return answer.status_code, answer.json() if answer.content else None


async def create(served: AppServer, slug: str, **members: Any) -> dict[str, Any]:
    status, made = await ask(
        served, "user", "POST", "/projects", {"name": slug, "slug": slug, **members}
    )
    assert status == 201, made
    return made  # type: ignore[no-any-return]


async def put(served: AppServer, who: str, slug: str, name: str, role: str) -> tuple[int, Any]:
    return await ask(served, who, "PUT", f"/projects/{slug}/members/{name}", {"role": role})


async def test_an_administrator_creates_a_project_and_maintains_it(shared: AppServer) -> None:
    status, made = await ask(
        shared, "user", "POST", "/projects", {"name": "Réseau A", "description": "arms"}
    )
    assert status == 201
    assert (made["slug"], made["name"], made["role"]) == ("reseau-a", "Réseau A", "maintainer")
    assert "project.members" in made["permissions"]
    assert (made["members"], made["experiments"], made["storage_used"]) == (1, 0, 0)
    assert (await ask(shared, "user", "GET", "/projects/reseau-a"))[1] == made
    status, refused = await ask(shared, "foreign", "POST", "/projects", {"name": "mine"})
    assert (status, refused["code"]) == (403, "missing_permission")


@both_databases
@pytest.mark.parametrize(
    ("body", "code", "pointer"),
    [
        ({"name": "taken-a"}, "name_taken", "/name"),
        ({"name": "another", "slug": "taken-a"}, "slug_taken", "/slug"),
    ],
)
async def test_a_name_or_slug_that_is_taken_is_refused(
    shared: AppServer, body: dict[str, str], code: str, pointer: str
) -> None:
    if (await ask(shared, "user", "GET", "/projects/taken-a"))[0] == 404:
        await create(shared, "taken-a")
    status, problem = await ask(shared, "user", "POST", "/projects", body)
    assert (status, problem["code"], problem["errors"][0]["pointer"]) == (409, code, pointer)
    assert "Choose another" in problem["detail"]


@both_databases
async def test_a_rename_to_a_taken_name_changes_nothing(shared: AppServer) -> None:
    await create(shared, "rename-a")
    await create(shared, "rename-b")
    status, problem = await ask(
        shared, "user", "PATCH", "/projects/rename-b", {"name": "rename-a", "description": "x"}
    )
    assert (status, problem["code"]) == (409, "name_taken")
    _, found = await ask(shared, "user", "GET", "/projects/rename-b")
    assert (found["name"], found["description"]) == ("rename-b", "")
    status, found = await ask(shared, "user", "PATCH", "/projects/rename-b", {"name": "B"})
    assert (status, found["name"], found["slug"]) == (200, "B", "rename-b")


async def test_people_see_their_projects_and_administrators_see_all_with_counts(
    shared: AppServer,
) -> None:
    _, mine = await ask(shared, "foreign", "GET", "/projects")
    assert [one["slug"] for one in mine["items"]] == ["elsewhere"]
    assert (mine["items"][0]["experiments"], mine["items"][0]["runs"]) == (1, 1)
    _, every = await ask(shared, "user", "GET", "/projects?limit=200")
    found = {one["slug"]: one for one in every["items"]}
    assert {"default", "elsewhere"} <= set(found)
    assert (found["elsewhere"]["role"], found["elsewhere"]["permissions"]) == (None, [])
    assert found["elsewhere"]["jobs"] == 1
    status, _ = await ask(shared, "user", "GET", "/experiments?project=elsewhere")
    assert status == 404, "an administrator reads no project without a membership"
    status, problem = await ask(shared, "foreign", "GET", "/projects/default")
    assert (status, problem["code"]) == (404, "not_found")


async def test_storage_is_the_size_of_the_stored_files(shared: AppServer) -> None:
    made = await create(shared, "stored", storage_limit=5)
    async with shared.database.write() as session:
        for size in (3, 4, 4):
            row = {"id": new_id("blob"), "sha256": f"{size:064d}", "size": size}
            await artifacts.add_blob(session, {**row, "project_id": made["id"]})
    _, found = await ask(shared, "user", "GET", "/projects/stored")
    assert (found["storage_used"], found["storage_limit"]) == (7, 5)


async def test_only_administrators_of_the_server_set_the_storage_limit(shared: AppServer) -> None:
    status, problem = await ask(
        shared, "foreign", "PATCH", "/projects/elsewhere", {"storage_limit": 1, "name": "x"}
    )
    assert (status, problem["code"]) == (403, "missing_permission")
    assert "storage_limit" in problem["detail"]
    _, found = await ask(shared, "foreign", "PATCH", "/projects/elsewhere", {"description": "x"})
    assert (found["name"], found["description"], found["storage_limit"]) == ("elsewhere", "x", None)
    _, found = await ask(shared, "user", "PATCH", "/projects/elsewhere", {"storage_limit": 9})
    assert found["storage_limit"] == 9
    _, found = await ask(shared, "user", "PATCH", "/projects/elsewhere", {"storage_limit": None})
    assert found["storage_limit"] is None


async def test_an_archived_project_takes_no_submission_until_it_is_restored(
    shared: AppServer,
) -> None:
    await create(shared, "attic")
    for _ in range(2):
        status, found = await ask(shared, "user", "POST", "/projects/attic:archive")
        assert (status, found["archived_at"] is None) == (200, False)
    body = {"definition": make_definition(name="late")}
    submit = ("user", "POST", "/experiments?project=attic", body)
    status, problem = await ask(shared, *submit)
    assert (status, problem["code"]) == (409, "project_archived")
    status, found = await ask(shared, "user", "POST", "/projects/attic:restore")
    assert (status, found["archived_at"]) == (200, None)
    assert (await ask(shared, *submit))[0] in {201, 422}, "422: the project has no workers"


async def test_a_role_acts_at_once_and_ends_at_once(shared: AppServer) -> None:
    await create(shared, "roles")
    await add_person(shared, "rita")
    assert (await ask(shared, "rita", "GET", "/projects/roles"))[0] == 404
    status, member = await put(shared, "user", "roles", "rita", "viewer")
    assert (status, member["user"], member["role"]) == (200, "rita", "viewer")
    assert (await ask(shared, "rita", "GET", "/projects/roles"))[1]["role"] == "viewer"
    status, problem = await put(shared, "rita", "roles", "zoe", "viewer")
    assert (status, problem["code"]) == (403, "missing_permission")
    await put(shared, "user", "roles", "rita", "maintainer")
    assert (await put(shared, "rita", "roles", "zoe", "member"))[0] == 200
    _, page = await ask(shared, "rita", "GET", "/projects/roles/members")
    assert [(one["user"], one["role"]) for one in page["items"]] == [
        ("admin", "maintainer"),
        ("rita", "maintainer"),
        ("zoe", "member"),
    ]
    assert (await ask(shared, "user", "DELETE", "/projects/roles/members/rita"))[0] == 204
    assert (await ask(shared, "rita", "GET", "/projects/roles"))[0] == 404


async def test_wrong_members_each_have_their_own_code(shared: AppServer) -> None:
    await create(shared, "wrong")
    await add_person(shared, "gone", disabled_at=None)
    made = await create(shared, "robots")
    await add_person(shared, "robot", service_project_id=made["id"])
    async with shared.database.write() as session:
        gone = (await session.scalars(select(UserRow).where(UserRow.name == "gone"))).one()
        gone.disabled_at = gone.created_at
    answers = {
        "no_such_user": await put(shared, "user", "wrong", "nobody-here", "viewer"),
        "user_disabled": await put(shared, "user", "wrong", "gone", "viewer"),
        "service_account": await put(shared, "user", "wrong", "robot", "viewer"),
        "not_a_member": await ask(shared, "user", "DELETE", "/projects/wrong/members/zoe"),
    }
    assert {name: (status, body["code"]) for name, (status, body) in answers.items()} == {
        name: (409, name) for name in answers
    }
    status, _ = await put(shared, "user", "wrong", "zoe", "king")
    assert status == 422
    _, page = await ask(shared, "user", "GET", "/projects/wrong/members")
    assert [one["user"] for one in page["items"]] == ["admin"]


async def test_the_last_maintainer_stays_unless_an_administrator_decides(
    shared: AppServer,
) -> None:
    await create(shared, "last")
    await add_person(shared, "lars")
    await put(shared, "user", "last", "lars", "maintainer")
    assert (await ask(shared, "lars", "DELETE", "/projects/last/members/admin"))[0] == 204
    for answer in (
        await ask(shared, "lars", "DELETE", "/projects/last/members/lars"),
        await put(shared, "lars", "last", "lars", "viewer"),
    ):
        assert (answer[0], answer[1]["code"]) == (409, "last_maintainer")
    assert (await ask(shared, "lars", "GET", "/projects/last"))[1]["role"] == "maintainer"
    assert (await ask(shared, "user", "DELETE", "/projects/last/members/lars"))[0] == 204
    assert (await put(shared, "user", "last", "zoe", "maintainer"))[0] == 200


async def test_every_change_is_in_the_audit_log(shared: AppServer) -> None:
    made = await create(shared, "told")
    await ask(shared, "user", "PATCH", "/projects/told", {"description": "said"})
    await ask(shared, "user", "PATCH", "/projects/told", {"description": "said"})
    await ask(shared, "user", "POST", "/projects/told:archive")
    await ask(shared, "user", "POST", "/projects/told:archive")
    await ask(shared, "user", "POST", "/projects/told:restore")
    await put(shared, "user", "told", "zoe", "viewer")
    await put(shared, "user", "told", "zoe", "viewer")
    await put(shared, "user", "told", "zoe", "member")
    await ask(shared, "user", "DELETE", "/projects/told/members/zoe")
    query = select(AuditRow).where(AuditRow.project_id == made["id"]).order_by(AuditRow.id)
    async with shared.database.read() as session:
        found = (await session.scalars(query)).all()
    assert [row.action for row in found] == [
        "project.create",
        "membership.create",
        "project.update",
        "project.archive",
        "project.restore",
        "membership.create",
        "membership.update",
        "membership.delete",
    ]
    assert {row.user_id for row in found} == {shared.world.admin.user_id}
    assert found[1].data == {"user": "admin", "role": "maintainer", "project": "told"}
    assert found[2].data == {"description": "said"}
    assert found[6].data == {"user": "zoe", "role": "member", "project": "told"}

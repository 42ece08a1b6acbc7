"""Invitations: links with which people become users, each of them once."""

import asyncio
from datetime import timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import func, select

from app.db.models import AuditRow, LoginSessionRow, MembershipRow, UserRow
from app.db.models.invitations import InvitationRow
from tests.app.api.serving import ORIGIN, AppServer

pytestmark = pytest.mark.asyncio(loop_scope="module")

PASSWORD = "four unrelated owls sing"
INVITE = "/api/v1/users:invite"


async def invite(served: AppServer, *wanted: dict[str, Any], **rest: Any) -> list[dict[str, Any]]:
    async with served.client("user") as client:
        answer = await client.post(INVITE, json={"invitations": list(wanted) or [{}], **rest})
    assert answer.status_code == 201, answer.text
    return list(answer.json()["items"])


async def redeem(served: AppServer, url: str, **chosen: Any) -> httpx.Response:
    async with served.client() as client:
        body = {"code": url.partition("#code=")[2], **chosen}
        return await client.post("/api/v1/session:redeem", json=body, headers={"Origin": ORIGIN})


async def read_problem(answer: httpx.Response) -> tuple[int, str, str]:
    problem = answer.json()
    errors = problem["errors"]
    return problem["status"], problem["code"], errors[0]["pointer"] if errors else ""


async def count_rows(served: AppServer) -> tuple[int, int, int]:
    """Returns the numbers of users, memberships and browser logins."""
    numbers = [
        select(func.count()).select_from(table).scalar_subquery()
        for table in (UserRow, MembershipRow, LoginSessionRow)
    ]
    async with served.database.read() as session:
        users, memberships, logins = (await session.execute(select(*numbers))).one()
    return users, memberships, logins


async def test_an_invited_person_becomes_a_user_with_the_roles_of_the_invitation(
    shared: AppServer,
) -> None:
    roles = [{"project": "default", "role": "member"}, {"project": "elsewhere", "role": "viewer"}]
    (made,) = await invite(
        shared,
        {"name": "grace", "display_name": "Grace H.", "email": "g@lab.org", "projects": roles},
    )
    assert made["url"].startswith(f"{ORIGIN}/login#code=pll_")
    assert (made["state"], made["created_by"]) == ("open", "admin")
    answer = await redeem(shared, made["url"], password=PASSWORD)
    assert answer.status_code == 201, answer.text
    session = answer.json()
    assert (session["user"], session["display_name"]) == ("grace", "Grace H.")
    assert {one["slug"]: one["role"] for one in session["projects"]} == {
        "default": "member",
        "elsewhere": "viewer",
    }
    assert session["is_admin"] is False
    async with shared.client() as client:
        again = await client.post("/api/v1/session", json={"user": "grace", "password": PASSWORD})
    assert again.status_code == 201
    async with shared.database.read() as database:
        user = (await database.scalars(select(UserRow).where(UserRow.name == "grace"))).one()
        query = select(AuditRow.action).where(AuditRow.user_id == user.id).order_by(AuditRow.id)
        actions = (await database.scalars(query)).all()
    assert user.email == "g@lab.org"
    assert list(actions[:2]) == ["invitation.redeem", "user.create"]
    assert list(actions[2:5]) == ["membership.create", "membership.create", "login.open"]


async def test_several_people_are_invited_at_once_and_the_links_are_shown_once(
    shared: AppServer,
) -> None:
    made = await invite(shared, {"name": "ada"}, {"name": "bob", "is_admin": True}, {})
    assert len({one["url"] for one in made}) == 3
    async with shared.client("user") as client:
        listed = (await client.get("/api/v1/invitations")).json()["items"]
        assert {one["id"] for one in made} <= {one["id"] for one in listed}
        assert all(one["url"] is None for one in listed)
        first = (await client.get("/api/v1/invitations?limit=1")).json()
        second = await client.get(f"/api/v1/invitations?limit=1&cursor={first['next_cursor']}")
        assert [*first["items"], *second.json()["items"]] == listed[:2]
    assert (await redeem(shared, made[1]["url"], password=PASSWORD)).json()["is_admin"] is True
    chosen = await redeem(shared, made[2]["url"], user="Zo\u00eb Q", password=PASSWORD)
    assert (chosen.json()["user"], chosen.json()["display_name"]) == ("zoe-q", "Zo\u00eb Q")


async def test_a_used_expired_or_revoked_invitation_says_so(shared: AppServer) -> None:
    used, over, revoked = await invite(
        shared, {"name": "used-one"}, {"name": "late-one"}, {"name": "gone-one"}
    )
    assert (await redeem(shared, used["url"], password=PASSWORD)).status_code == 201
    async with shared.database.write() as session:
        row = await session.get_one(InvitationRow, over["id"])
        row.expires_at = row.created_at - timedelta(seconds=1)
    async with shared.client("user") as client:
        for _ in range(2):
            path = f"/api/v1/invitations/{revoked['id']}"
            assert (await client.delete(path)).status_code == 204
        answer = await client.delete(f"/api/v1/invitations/{used['id']}")
        assert (answer.status_code, answer.json()["code"]) == (409, "invitation_used")
        answer = await client.delete("/api/v1/invitations/inv_none")
        assert answer.status_code == 404
        states = {
            one["id"]: (one["state"], one["redeemed_by"])
            for one in (await client.get("/api/v1/invitations")).json()["items"]
        }
    before = await count_rows(shared)
    for made, how, state in (
        (used, "used", ("redeemed", "used-one")),
        (over, "expired", ("expired", None)),
        (revoked, "revoked", ("revoked", None)),
    ):
        answer = await redeem(shared, made["url"], user="another", password=PASSWORD)
        assert await read_problem(answer) == (401, f"invitation_{how}", "")
        assert states[made["id"]] == state
    unknown = await redeem(shared, "#code=pll_unknown", user="another", password=PASSWORD)
    assert await read_problem(unknown) == (401, "link_used", "")
    assert await count_rows(shared) == before


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({"password": PASSWORD}, (422, "name_needed", "/user")),
        ({"user": "dora"}, (422, "password_needed", "/password")),
        ({"user": "dora", "password": "password1234"}, (422, "weak_password", "/password")),
        ({"user": "dora", "password": "short"}, (422, "invalid_document", "/password")),
        ({"user": "\u6f22", "password": PASSWORD}, (422, "invalid_name", "/user")),
        ({"user": "Admin", "password": PASSWORD}, (409, "name_taken", "/user")),
    ],
)
async def test_a_refused_redemption_leaves_the_invitation_open(
    shared: AppServer, chosen: dict[str, str], expected: tuple[int, str, str]
) -> None:
    (made,) = await invite(shared, {"projects": [{"project": "default", "role": "member"}]})
    before = await count_rows(shared)
    assert await read_problem(await redeem(shared, made["url"], **chosen)) == expected
    assert await count_rows(shared) == before
    async with shared.database.read() as session:
        row = await session.get_one(InvitationRow, made["id"])
        assert (row.redeemed_at, row.redeemed_by) == (None, None)


@pytest.mark.both_databases(
    "Redemptions insert a user once by a statement of each database.",
    of=("app.db.repositories.invitations",),
)
async def test_of_concurrent_redemptions_one_makes_a_user(shared: AppServer) -> None:
    (made,) = await invite(shared)
    answers = await asyncio.gather(
        *(redeem(shared, made["url"], user=f"racer-{n}", password=PASSWORD) for n in range(4))
    )
    assert sorted(answer.status_code for answer in answers) == [201, 401, 401, 401]
    assert {a.json()["code"] for a in answers if a.status_code == 401} == {"invitation_used"}
    links = await invite(shared, {"name": "twin"}, {})
    answers = await asyncio.gather(
        *(redeem(shared, one["url"], user="twin", password=PASSWORD) for one in links)
    )
    assert sorted(answer.status_code for answer in answers) == [201, 409]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ([{"name": "admin"}], (409, "name_taken", "/invitations/0/name")),
        ([{"name": "x"}, {"name": "x"}], (409, "name_taken", "/invitations/1/name")),
        (
            [{"projects": [{"project": "nowhere", "role": "member"}]}],
            (422, "no_such_project", "/invitations/0/projects/0/project"),
        ),
        ([{"name": "Two Words"}], (422, "invalid_document", "/invitations/0/name")),
        ([{"email": "nobody"}], (422, "invalid_document", "/invitations/0/email")),
        ([], (422, "invalid_document", "/invitations")),
    ],
)
async def test_an_invitation_that_cannot_be_made_is_refused_and_none_is_made(
    shared: AppServer, wanted: list[dict[str, Any]], expected: tuple[int, str, str]
) -> None:
    before = await shared.count_rows()
    async with shared.client("user") as client:
        answer = await client.post(INVITE, json={"invitations": wanted})
    assert await read_problem(answer) == expected
    assert await shared.count_rows() == before


async def preview_invitation(served: AppServer, url: str, **chosen: Any) -> httpx.Response:
    return await redeem(served, url, check_only=True, **chosen)


async def test_a_preview_shows_what_an_invitation_gives_and_leaves_it_open(
    shared: AppServer,
) -> None:
    roles = [{"project": "default", "role": "viewer"}]
    (made,) = await invite(
        shared, {"name": "hedy", "display_name": "Hedy L.", "is_admin": True, "projects": roles}
    )
    before = await shared.count_rows()
    answer = await preview_invitation(shared, made["url"])
    assert answer.status_code == 200, answer.text
    assert "set-cookie" not in answer.headers
    found = answer.json()
    (role,) = found.pop("projects")
    assert (role["slug"], role["role"]) == ("default", "viewer")
    assert found == {
        "kind": "invitation",
        "user": "hedy",
        "display_name": "Hedy L.",
        "is_admin": True,
        "invited_by": "admin",
        "problems": [],
    }
    assert await shared.count_rows() == before
    assert (await redeem(shared, made["url"], password=PASSWORD)).status_code == 201
    assert await read_problem(await preview_invitation(shared, made["url"])) == (
        401,
        "invitation_used",
        "",
    )


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({"user": "dora", "password": PASSWORD}, []),
        ({"user": "Admin"}, [("/user", "name_taken")]),
        ({"user": "\u6f22"}, [("/user", "invalid_name")]),
        (
            {"user": "admin", "password": "password1234"},
            [("/user", "name_taken"), ("/password", "weak_password")],
        ),
        (
            {"user": "mathilde-vaughan", "password": "mathilde-vaughan"},
            [("/password", "weak_password")],
        ),
    ],
)
async def test_a_preview_shows_all_faults_of_name_and_password(
    shared: AppServer, chosen: dict[str, str], expected: list[tuple[str, str]]
) -> None:
    (made,) = await invite(shared)
    problems = (await preview_invitation(shared, made["url"], **chosen)).json()["problems"]
    assert [(one["pointer"], one["code"]) for one in problems] == expected
    assert all(one["message"].endswith(".") for one in problems)


async def test_a_preview_of_a_login_link_names_its_user_and_leaves_it_usable(
    shared: AppServer,
) -> None:
    (made,) = await invite(shared, {"name": "linked"})
    await redeem(shared, made["url"], password=PASSWORD)
    async with shared.client("user") as client:
        link = (await client.post("/api/v1/users/linked:reset-password")).json()["url"]
    for _ in range(2):
        found = (
            await preview_invitation(shared, link, user="linked", password="linked-linked")
        ).json()
        assert (found["kind"], found["user"]) == ("login", "linked")
        assert [one["code"] for one in found["problems"]] == ["weak_password"]
    assert (await redeem(shared, link, password=f"{PASSWORD} again")).status_code == 201
    assert await read_problem(await preview_invitation(shared, link)) == (401, "link_used", "")
    assert await read_problem(await preview_invitation(shared, "#code=pll_none")) == (
        401,
        "link_used",
        "",
    )

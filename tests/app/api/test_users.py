"""People: list, change, disable, enable, reset, sign out and delete."""

import asyncio
import contextlib
from typing import Any

import httpx
import pytest
from sqlalchemy import func, select, update
from sqlalchemy.exc import IntegrityError

from app.db.models import JobRow, MembershipRow, RunRow, TokenRow, UserRow
from app.services.access import tokens
from palestra.contract.access import TokenRequest
from palestra.contract.names import Scope, new_id
from tests.app.api.serving import ORIGIN, AppServer
from tests.support.server_fixture import make_submission
from tests.support.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

both_databases = pytest.mark.both_databases(
    "Rows of users are locked on PostgreSQL, where transactions write concurrently.",
    of=("app.db.repositories.users",),
)

USERS = "/api/v1/users"


async def add_person(served: AppServer, name: str, role: str = "member", **columns: Any) -> str:
    """Makes a member of the project with a token; returns the ID."""
    user_id, project_id = new_id("usr"), served.world.project_id
    async with served.database.write() as session:
        session.add(UserRow(id=user_id, name=name, **columns))
        await session.flush()
        session.add(MembershipRow(project_id=project_id, user_id=user_id, role=role))
        await session.flush()
        request = TokenRequest(name=name, scopes=(Scope.READ, Scope.SUBMIT, Scope.ADMIN))
        made = await tokens.issue_token(session, None, user_id, request)
        served.tokens[name] = made.secret or ""
    return user_id


async def call(
    served: AppServer, method: str, path: str = "", who: str = "user", **options: Any
) -> httpx.Response:
    async with served.client(who) as client:
        return await client.request(method, USERS + path, **options)


async def read_problem(answer: httpx.Response) -> tuple[int, str, str]:
    problem = answer.json()
    errors = problem["errors"]
    return problem["status"], problem["code"], errors[0]["pointer"] if errors else ""


async def submit(served: AppServer, who: str, seeds: list[int]) -> list[str]:
    """Submits an experiment with a token; returns the IDs of its jobs."""
    document = make_submission(seeds=seeds).model_dump_json()
    headers = {"Content-Type": "application/json"}
    async with served.client(who) as client:
        made = await client.post("/api/v1/experiments", content=document, headers=headers)
        assert made.status_code in {200, 201}, made.text
        jobs = (await client.get("/api/v1/jobs?limit=200")).json()["items"]
    return [job["id"] for job in jobs if job["created_by"] == who]


async def log_in(served: AppServer, url: str) -> tuple[httpx.AsyncClient, str]:
    client = served.client()
    body = {"code": url.partition("#code=")[2]}
    answer = await client.post("/api/v1/session:redeem", json=body, headers={"Origin": ORIGIN})
    assert answer.status_code == 201, answer.text
    return client, answer.json()["csrf_token"]


async def read_job_states(served: AppServer, job_ids: list[str]) -> set[str]:
    async with served.database.read() as session:
        return set(await session.scalars(select(JobRow.state).where(JobRow.id.in_(job_ids))))


async def test_people_are_listed_searched_and_paged(shared: AppServer) -> None:
    await add_person(shared, "lise", display_name="Lise M.", email="lise@lab.org")
    listed = (await call(shared, "GET")).json()["items"]
    assert [one["name"] for one in listed] == sorted(one["name"] for one in listed)
    lise = next(one for one in listed if one["name"] == "lise")
    assert (lise["state"], lise["has_password"], lise["last_used_at"]) == ("active", False, None)
    assert [(one["slug"], one["role"]) for one in lise["projects"]] == [("default", "member")]
    first = (await call(shared, "GET", "?limit=1")).json()
    rest = (await call(shared, "GET", f"?cursor={first['next_cursor']}")).json()
    assert [*first["items"], *rest["items"]] == listed
    for text in ("LISE", "ise m", "lab.org"):
        found = (await call(shared, "GET", f"?text={text}")).json()["items"]
        assert [one["name"] for one in found] == ["lise"]
    assert (await call(shared, "GET", "?text=%25")).json()["items"] == []
    assert (await call(shared, "GET", "?state=disabled&text=lise")).json()["items"] == []


async def test_a_person_is_read_and_changed_by_name_or_id(shared: AppServer) -> None:
    user_id = await add_person(shared, "marie", email="old@lab.org")
    await submit(shared, "marie", [901, 902])
    seen = (await call(shared, "GET", "/marie")).json()
    assert seen == (await call(shared, "GET", f"/{user_id}")).json()
    assert {key: seen["owned"][key] for key in ("runs", "jobs", "live_jobs", "workers")} == {
        "runs": 2,
        "jobs": 2,
        "live_jobs": 2,
        "workers": 0,
    }
    changed = await call(shared, "PATCH", "/marie", json={"display_name": "Marie C."})
    assert (changed.json()["display_name"], changed.json()["email"]) == ("Marie C.", "old@lab.org")
    changed = await call(shared, "PATCH", "/marie", json={"display_name": None, "email": None})
    assert (changed.json()["display_name"], changed.json()["email"]) == ("", None)
    assert (await call(shared, "PATCH", "/marie", json={"is_admin": True})).json()["is_admin"]
    assert (await call(shared, "GET", "/admin", who="marie")).status_code == 200
    await call(shared, "PATCH", "/marie", json={"is_admin": False})
    assert (await call(shared, "GET", "/admin", who="marie")).status_code == 403
    assert await read_problem(await call(shared, "PATCH", "/marie", json={"email": "x"})) == (
        422,
        "invalid_document",
        "/email",
    )
    for path, method in (("/nobody", "GET"), ("/nobody", "PATCH"), ("/nobody:enable", "POST")):
        answer = await call(shared, method, path, json={} if method == "PATCH" else None)
        assert answer.status_code == 404


@pytest.mark.parametrize("name", ["gra\u202ece", "gra\x1bce", "gra\nce", "x\u200b", "\u0958" * 60])
async def test_a_link_gives_no_name_that_does_not_show_what_it_holds(
    shared: AppServer, name: str
) -> None:
    """Regression: such a name became the display name, or an error of the database."""
    with contextlib.suppress(IntegrityError):
        await add_person(shared, "renamed-badly")
    url = (await call(shared, "POST", "/renamed-badly:reset-password")).json()["url"]
    body = {"code": url.partition("#code=")[2], "user": name}
    async with shared.client() as client:
        answer = await client.post("/api/v1/session:redeem", json=body, headers={"Origin": ORIGIN})
    assert await read_problem(answer) == (422, "invalid_document", "/user")


async def test_a_link_renames_a_user_with_an_entry_and_keeps_the_display_name(
    shared: AppServer,
) -> None:
    """Regression: the display name was lost, and no audit entry recorded the new name."""
    user_id = await add_person(shared, "maiden", display_name="Maiden N.")
    url = (await call(shared, "POST", "/maiden:reset-password")).json()["url"]
    body = {"code": url.partition("#code=")[2], "user": "married"}
    async with shared.client() as client:
        answer = await client.post("/api/v1/session:redeem", json=body, headers={"Origin": ORIGIN})
        assert (answer.json()["user"], answer.json()["display_name"]) == ("married", "Maiden N.")
    async with shared.client("user") as client:
        log = f"/api/v1/audit?action=user.change&object_id={user_id}"
        (entry,) = (await client.get(log)).json()["items"]
    assert (entry["actor"], entry["data"]) == (f"user:{user_id}", {"name": "married"})


@both_databases
async def test_of_two_links_that_give_one_name_the_second_is_refused(shared: AppServer) -> None:
    """Regression: PostgreSQL's unique index made the second an internal error."""
    codes = []
    for name in ("twin-a", "twin-b"):
        await add_person(shared, name)
        url = (await call(shared, "POST", f"/{name}:reset-password")).json()["url"]
        codes.append(url.partition("#code=")[2])
    async with shared.client() as client:
        answers = await asyncio.gather(
            *(
                client.post(
                    "/api/v1/session:redeem",
                    json={"code": code, "user": "twin"},
                    headers={"Origin": ORIGIN},
                )
                for code in codes
            )
        )
    assert sorted(answer.status_code for answer in answers) == [201, 409]


@both_databases
@pytest.mark.parametrize("stored", [0, 1, 3])
async def test_submissions_of_a_person_who_is_deleted_meanwhile_are_stored_or_refused(
    shared: AppServer, stored: int
) -> None:
    """Regression: a foreign key to the deleted user made them internal errors."""
    name = f"going-{stored}"
    user_id = await add_person(shared, name)
    statuses: list[int] = []

    async def submit_some() -> None:
        headers = {"Content-Type": "application/json"}
        async with shared.client(name) as client:
            for seed in range(4):
                document = make_submission(seeds=[20_000 + 10 * stored + seed])
                answer = await client.post(
                    "/api/v1/experiments", content=document.model_dump_json(), headers=headers
                )
                statuses.append(answer.status_code)

    async def leave() -> None:
        await until(lambda: len(statuses) >= stored, f"{stored} submissions are answered")
        assert (await call(shared, "DELETE", f"/{name}?transfer_to=admin")).status_code == 200

    await asyncio.gather(submit_some(), submit_some(), leave())
    assert set(statuses) <= {200, 201, 401}, statuses
    async with shared.database.read() as session:
        assert await session.scalar(select(RunRow.id).where(RunRow.created_by == user_id)) is None


async def test_a_disabled_person_loses_access_and_the_jobs_go_on(shared: AppServer) -> None:
    await add_person(shared, "nora")
    jobs = await submit(shared, "nora", [911, 912])
    link = (await call(shared, "POST", "/nora:reset-password")).json()["url"]
    spare = (await call(shared, "POST", "/nora:reset-password")).json()["url"]
    browser, _ = await log_in(shared, link)
    async with contextlib.aclosing(browser):
        assert (await browser.get("/api/v1/session")).status_code == 200
        answer = await call(shared, "POST", "/nora:disable")
        assert answer.status_code == 200, answer.text
        told = answer.json()
        assert (told["user"]["state"], told["live_jobs"], told["changed_jobs"]) == (
            "disabled", 2, 0,
        )  # fmt: skip
        assert (await browser.get("/api/v1/session")).status_code == 401
        assert (await call(shared, "GET", who="nora")).status_code == 401
        assert await read_job_states(shared, jobs) == {"queued"}
        async with shared.client() as client:
            used = await client.post(
                "/api/v1/session:redeem", json={"code": spare.partition("#code=")[2]}
            )
        assert await read_problem(used) == (401, "link_used", "")
        refusal = await call(shared, "POST", "/nora:reset-password")
        assert await read_problem(refusal) == (409, "user_disabled", "")
        assert (await call(shared, "POST", "/nora:enable")).json()["state"] == "active"
        assert (await browser.get("/api/v1/session")).status_code == 401
        assert (await call(shared, "GET", who="nora")).status_code == 403


@both_databases
@pytest.mark.parametrize(("what", "state"), [("pause", "paused"), ("cancel", "cancelled")])
async def test_jobs_of_a_disabled_person_are_paused_or_cancelled(
    shared: AppServer, what: str, state: str
) -> None:
    name = f"jobs-{what}"
    await add_person(shared, name)
    jobs = await submit(shared, name, [921, 922] if what == "pause" else [923, 924])
    told = (await call(shared, "POST", f"/{name}:disable", json={"jobs": what})).json()
    assert (told["live_jobs"], told["changed_jobs"]) == (2, 2)
    assert await read_job_states(shared, jobs) == {state}


async def test_jobs_of_a_disabled_person_are_transferred(shared: AppServer) -> None:
    await add_person(shared, "olga")
    heir = await add_person(shared, "pia")
    jobs = await submit(shared, "olga", [931, 932])
    for body, expected in (
        ({"jobs": "transfer"}, "transfer_target_needed"),
        ({"jobs": "transfer", "transfer_to": "nobody"}, "no_such_user"),
        ({"jobs": "transfer", "transfer_to": "olga"}, "transfer_to_self"),
        ({"jobs": "pause", "transfer_to": "pia"}, "transfer_not_asked"),
    ):
        answer = await call(shared, "POST", "/olga:disable", json=body)
        assert await read_problem(answer) == (422, expected, "/transfer_to")
    assert (await call(shared, "GET", "/olga")).json()["state"] == "active"
    body = {"jobs": "transfer", "transfer_to": "pia"}
    assert (await call(shared, "POST", "/olga:disable", json=body)).json()["changed_jobs"] == 2
    async with shared.database.read() as session:
        owners = await session.scalars(select(JobRow.created_by).where(JobRow.id.in_(jobs)))
        assert set(owners) == {heir}
        runs = select(func.count()).where(RunRow.created_by == heir)
        assert await session.scalar(runs) == 2


async def test_a_deleted_persons_objects_are_transferred(shared: AppServer) -> None:
    user_id = await add_person(shared, "quinn")
    await add_person(shared, "rosa")
    jobs = await submit(shared, "quinn", [941])
    answer = await call(shared, "DELETE", "/quinn")
    assert await read_problem(answer) == (409, "transfer_needed", "query/transfer_to")
    assert "1 runs" in answer.json()["detail"]
    answer = await call(shared, "DELETE", "/quinn?transfer_to=nobody")
    assert await read_problem(answer) == (422, "no_such_user", "query/transfer_to")
    answer = await call(shared, "DELETE", "/quinn?transfer_to=rosa")
    assert answer.json()["transferred_to"] == "rosa"
    assert answer.json()["transferred"]["jobs"] == 1
    assert (await call(shared, "GET", "/quinn")).status_code == 404
    assert (await call(shared, "GET", who="quinn")).status_code == 401
    assert await read_job_states(shared, jobs) == {"queued"}
    async with shared.client("rosa") as client:
        assert (await client.get(f"/api/v1/jobs/{jobs[0]}")).json()["created_by"] == "rosa"
    async with shared.database.read() as session:
        for table in (TokenRow, MembershipRow):
            query = select(func.count()).where(table.user_id == user_id)
            assert await session.scalar(query) == 0
    await add_person(shared, "sara")
    assert (await call(shared, "DELETE", "/sara")).json()["transferred"] == {}


async def test_signing_a_person_out_ends_every_login_and_no_token(shared: AppServer) -> None:
    await add_person(shared, "tina")
    browsers = []
    for _ in range(2):
        link = (await call(shared, "POST", "/tina:reset-password")).json()["url"]
        browsers.append((await log_in(shared, link))[0])
    assert (await call(shared, "POST", "/tina:sign-out")).json() == {"ended_sessions": 2}
    for browser in browsers:
        assert (await browser.get("/api/v1/session")).status_code == 401
        await browser.aclose()
    assert (await call(shared, "GET", who="tina")).status_code == 403


async def test_the_last_administrator_stays_one(shared: AppServer) -> None:
    async with shared.database.write() as session:
        others = (UserRow.is_admin, UserRow.name != "admin")
        await session.execute(update(UserRow).where(*others).values(is_admin=False))
    expected = (409, "last_administrator", "")
    demote = {"json": {"is_admin": False}}
    assert await read_problem(await call(shared, "PATCH", "/admin", **demote)) == expected
    assert await read_problem(await call(shared, "POST", "/admin:disable")) == expected
    await add_person(shared, "heir")
    assert await read_problem(await call(shared, "DELETE", "/admin?transfer_to=heir")) == expected
    admin = (await call(shared, "GET", "/admin")).json()
    assert (admin["is_admin"], admin["state"]) == (True, "active")


@both_databases
@pytest.mark.parametrize("how", ["PATCH", "disable", "DELETE"])
async def test_of_two_administrators_who_remove_each_other_one_stays(
    shared: AppServer, how: str
) -> None:
    """Regression guard: at READ COMMITTED each would still see the other as an administrator."""
    for number in range(3):
        names = [f"{how.lower()}-{number}-{side}" for side in "ab"]
        for name in names:
            await add_person(shared, name, is_admin=True)
        async with shared.database.write() as session:
            others = (UserRow.is_admin, UserRow.name.not_in(names))
            await session.execute(update(UserRow).where(*others).values(is_admin=False))
        try:
            answers = await asyncio.gather(
                *(
                    _remove(shared, how, target, who=caller)
                    for caller, target in (names, reversed(names))
                )
            )
            codes = sorted(answer.status_code for answer in answers)
            assert codes in ([200, 401], [200, 403], [200, 409]), [one.text for one in answers]
            async with shared.database.read() as session:
                left = select(func.count()).where(
                    UserRow.name.in_(names), UserRow.is_admin, UserRow.disabled_at.is_(None)
                )
                assert await session.scalar(left) == 1
        finally:
            async with shared.database.write() as session:
                admin = UserRow.name == "admin"
                await session.execute(update(UserRow).where(admin).values(is_admin=True))


async def _remove(served: AppServer, how: str, name: str, *, who: str) -> httpx.Response:
    if how == "PATCH":
        return await call(served, "PATCH", f"/{name}", who=who, json={"is_admin": False})
    if how == "disable":
        return await call(served, "POST", f"/{name}:disable", who=who)
    return await call(served, "DELETE", f"/{name}", who=who)


async def test_invitations_of_a_demoted_administrator_are_revoked(shared: AppServer) -> None:
    await add_person(shared, "uma", is_admin=True)
    async with shared.client("uma") as client:
        body = {"invitations": [{"is_admin": True}]}
        made = (await client.post("/api/v1/users:invite", json=body)).json()["items"][0]
    await call(shared, "PATCH", "/uma", json={"is_admin": False})
    async with shared.client() as client:
        answer = await client.post(
            "/api/v1/session:redeem",
            json={"code": made["url"].partition("#code=")[2], "user": "x"},
        )
    assert await read_problem(answer) == (401, "invitation_revoked", "")

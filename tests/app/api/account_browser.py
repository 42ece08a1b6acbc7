"""Browsers of persons, for tests of the account: logins, passwords and what the audit log says."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest_asyncio
from sqlalchemy import select, update

from app.api import auth
from app.db.clock import db_now
from app.db.models import AuditRow, LoginSessionRow, UserRow
from app.domain.login_limits import LoginLimits
from app.services.access import logins
from app.services.access.accounts import FRESH_SECONDS
from tests.app.api.serving import ORIGIN, AppServer

ACCOUNT = "/api/v1/account"
SESSIONS = f"{ACCOUNT}/sessions"
PASSWORD = f"{ACCOUNT}/password"
FIRST, SECOND = "four unrelated owls sing", "seven quiet lamps drift"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"


class Browser:
    """A browser with a login of its own."""

    def __init__(self, client: httpx.AsyncClient, csrf: str) -> None:
        self.client = client
        self._headers = {"Origin": ORIGIN, auth.CSRF_HEADER: csrf}

    async def send(self, method: str, path: str, **options: Any) -> httpx.Response:
        return await self.client.request(method, path, headers=self._headers, **options)

    async def set_password(self, password: str, current: str | None = None) -> httpx.Response:
        body = {"password": password, "current_password": current}
        return await self.send("PUT", PASSWORD, json=body)

    async def is_logged_in(self) -> bool:
        return (await self.client.get("/api/v1/session")).status_code == 200

    @property
    def device(self) -> str:
        return self.client.cookies["palestra_device"]


@pytest_asyncio.fixture(loop_scope="module")
async def served(shared: AppServer) -> AppServer:
    """The server with all login limits reset."""
    shared.app.state.login_limits = LoginLimits()
    return shared


@contextlib.asynccontextmanager
async def browser(
    served: AppServer, user_id: str, *, password: str | None = None, agent: str = FIREFOX
) -> AsyncIterator[Browser]:
    """Yields a browser that is logged in by a password, or else by a new link."""
    client = served.client()
    client.headers["User-Agent"] = agent
    async with contextlib.aclosing(client):
        if password is not None:
            async with served.database.read() as session:
                name = await session.scalar(select(UserRow.name).where(UserRow.id == user_id))
            body = {"user": name, "password": password}
            answer = await client.post("/api/v1/session", json=body)
        else:
            async with served.database.write() as session:
                code = await logins.make_link(session, user_id, 3_600)
            answer = await client.post("/api/v1/session:redeem", json={"code": code})
        assert answer.status_code == 201, answer.text
        yield Browser(client, answer.json()["csrf_token"])


async def make_older(served: AppServer, user_id: str) -> None:
    """Makes all logins of a user too old to set a password without the current one."""
    async with served.database.write() as session:
        await session.execute(
            update(LoginSessionRow)
            .where(LoginSessionRow.user_id == user_id)
            .values(created_at=db_now(-FRESH_SECONDS - 1))
        )


def fault(answer: httpx.Response) -> tuple[int, str, str]:
    problem = answer.json()
    errors = problem["errors"]
    return problem["status"], problem["code"], errors[0]["pointer"] if errors else ""


async def entries(served: AppServer, object_id: str) -> list[tuple[str, dict[str, Any]]]:
    """Returns action and data of the audit log's entries about an object."""
    async with served.database.read() as session:
        query = select(AuditRow).where(AuditRow.object_id == object_id).order_by(AuditRow.id)
        return [(row.action, row.data) for row in await session.scalars(query)]

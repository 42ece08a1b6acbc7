"""A server in the test's process with sample data, whose pages a browser opens."""

import shutil
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Self

import pytest
from playwright.async_api import Browser, Locator, Page

from app.daemons.judge import Judge
from app.daemons.summariser import Summariser
from app.db.models import MembershipRow, UserRow
from app.db.repositories import events, summaries
from app.services.access import logins, sessions
from app.services.audit.audit_log import RequestOrigin
from palestra.contract.names import new_id
from palestra.contract.permissions import Role
from tests.app.api.serving import AppServer, serve
from tests.e2e.page_faults import PAGE_FAULTS
from tests.support.listening import listening
from tests.support.server_fixture import World, make_world
from tests.support.waiting import PATIENCE_SECONDS

PAGE_MARKS: Final = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.usefixtures("close_pages"),
]
"""Further marks of a module whose tests use the fixture `browser`."""
COOKIE: Final = "palestra_session"


@dataclass(kw_only=True)
class DashboardSite:
    """A running server, a project in it, and a browser that opens the project's pages."""

    served: AppServer
    browser: Browser
    url: str
    world: World
    """The project and its people."""

    async def add_project(self, name: str) -> Self:
        """Returns this site with a new project, and an administrator who is in no other one."""
        people = (f"{name}-admin", f"{name}-bea")
        return replace(self, world=await make_world(self.served.database, name, *people))

    async def add_person(self, name: str, role: Role | None) -> str:
        """Makes a person with a role in the project, or in no project; returns the user ID."""
        user = UserRow(id=new_id("usr"), name=name)
        async with self.served.database.write() as session:
            session.add(user)
            await session.flush()
            if role is not None:
                place = {"project_id": self.world.project_id, "user_id": user.id}
                session.add(MembershipRow(**place, role=role.value))
        return user.id

    async def summarise(self) -> None:
        """Summarises and judges all runs; a round of the daemons is limited in runs and seconds."""
        database = self.served.database
        summariser, judge = Summariser(database), Judge(database)
        summarised, newest = -1, 0
        while summarised < newest:
            await summariser.tick()
            async with database.read() as session:
                summarised = await summaries.read_progress(session)
                newest = (await events.read_bounds(session))[1]
        while await judge.tick():
            pass

    async def link(self) -> str:
        """Returns a new login link of the administrator."""
        async with self.served.database.write() as session:
            code = await logins.make_link(session, self.world.admin.user_id, 3_600)
        return f"{self.url}/login#code={code}"

    async def open_page(self) -> Page:
        """Returns a page that is not logged in."""
        return await open_page(self.browser, self.url)

    async def open_as(self, user_id: str, path: str) -> Page:
        """Returns a page that has a login of its own."""
        async with self.served.database.write() as session:
            login = await sessions.open_login(session, user_id, "link", RequestOrigin())
        page = await open_page(self.browser, self.url, {COOKIE: login.secret})
        await page.goto(path)
        return page

    async def page(self, path: str) -> Page:
        """Returns a page of the administrator."""
        return await self.open_as(self.world.admin.user_id, path)


async def open_page(browser: Browser, url: str, cookies: Mapping[str, str] | None = None) -> Page:
    """Returns a page in a context of its own, which has the cookies of a login."""
    context = await browser.new_context(
        base_url=url,
        viewport={"width": 1440, "height": 900},
        # The certificates of tests are their own authorities.
        ignore_https_errors=url.startswith("https:"),
    )
    context.set_default_timeout(1_000 * PATIENCE_SECONDS)
    PAGE_FAULTS.watch(context)
    await context.add_cookies(
        [{"name": name, "value": value, "url": url} for name, value in (cookies or {}).items()]
    )
    return await context.new_page()


_SCROLL_DOWN: Final = """
(pane) => new Promise((done) => {
  pane.scrollTo(0, pane.scrollHeight);
  requestAnimationFrame(() => requestAnimationFrame(done));
})
"""


async def scroll_until_visible(pane: Locator, target: Locator) -> int:
    """Scrolls an element down until it shows `target`; returns how often it scrolled."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    scrolls = 0
    while not await target.is_visible():
        assert time.monotonic() < deadline, f"{target} is not visible after {scrolls} scrolls"
        await pane.evaluate(_SCROLL_DOWN)
        scrolls += 1
    return scrolls


@asynccontextmanager
async def open_site(
    browser: Browser, template: Path, directory: Path
) -> AsyncIterator[DashboardSite]:
    """Serves a copy of a migrated SQLite file, filled with sample data."""
    copy = shutil.copy(template, directory / "palestra.db")
    data = directory / "data"
    data.mkdir()
    async with serve(f"sqlite:///{copy}", data) as served, listening(served.app) as url:
        yield DashboardSite(served=served, browser=browser, url=url, world=served.world)

"""A server and a headless browser for tests of the dashboard's pages."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from playwright.async_api import Browser, Page, StorageState, async_playwright

from app.services.access import logins
from tests.app.api.serving import AppServer, serve
from tests.e2e.test_browser import CHROMIUM, QUIET
from tests.support.listening import listening


@dataclass(kw_only=True)
class DashboardSite:
    """A running server with sample data, and a browser that opens its dashboard."""

    served: AppServer
    browser: Browser
    url: str
    login: StorageState | None = None
    """Cookies of the login that `page` makes once."""

    async def link(self) -> str:
        """Returns a new login link of the administrator."""
        async with self.served.database.write() as session:
            code = await logins.make_link(session, self.served.world.admin.user_id, 3_600)
        return f"{self.url}/login#code={code}"

    async def open_context(self, state: StorageState | None = None) -> Page:
        """Returns a page that is not logged in, or one with the cookies of a login."""
        context = await self.browser.new_context(
            base_url=self.url, viewport={"width": 1440, "height": 900}, storage_state=state
        )
        return await context.new_page()

    async def open_link(self) -> Page:
        """Returns a page with a login of its own, which a new link makes."""
        page = await self.open_context()
        await page.goto(await self.link())
        await page.wait_for_url(lambda address: urlsplit(address).path != "/login")
        return page

    async def page(self, path: str) -> Page:
        """Returns a page that is logged in.

        All pages share one login, since an address may log in only ten times a minute.
        """
        if self.login is None:
            self.login = await (await self.open_link()).context.storage_state()
        page = await self.open_context(self.login)
        await page.goto(path)
        return page

    async def close_pages(self) -> None:
        """Closes all pages; otherwise they would render during the next test."""
        for context in self.browser.contexts:
            await context.close()


@asynccontextmanager
async def open_site(template: Path, directory: Path) -> AsyncIterator[DashboardSite]:
    """Serves a copy of a migrated SQLite file, filled with sample data, and starts a browser."""
    copy = shutil.copy(template, directory / "palestra.db")
    data = directory / "data"
    data.mkdir()
    async with (
        serve(f"sqlite:///{copy}", data) as served,
        listening(served.app) as url,
        async_playwright() as play,
    ):
        browser = await play.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield DashboardSite(served=served, browser=browser, url=url)
        await browser.close()

"""The dashboard below a path of its host, in a real browser."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.app.api.serving import serve
from tests.e2e.dashboard_site import PAGE_MARKS, DashboardSite, open_page
from tests.support.listening import listening
from tests.support.process_stack import find_free_port

pytestmark = [pytest.mark.browser, *PAGE_MARKS]

PATH = "/lab/palestra"
SESSION_REFUSED = rf"^401 GET {PATH}/api/v1/session$"
"""What a page without a login is answered."""


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def published_site(
    browser: Browser, migrated_sqlite: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[DashboardSite]:
    """A site below a path, beside the shared one: cookies do not distinguish ports."""
    directory = tmp_path_factory.mktemp("published")
    copy = directory / "palestra.db"
    copy.write_bytes(migrated_sqlite.read_bytes())
    port = find_free_port()
    url = f"http://127.0.0.1:{port}{PATH}"
    async with (
        serve(f"sqlite:///{copy}", directory, public_url=url) as served,
        listening(served.app, port),
    ):
        yield DashboardSite(served=served, browser=browser, url=url, world=served.world)


async def _log_out(page: Page) -> None:
    await page.get_by_role("button", name="Account", exact=True).click()
    await page.get_by_role("menuitem", name="Log out", exact=True).click()


@pytest.mark.page_faults(SESSION_REFUSED)
async def test_every_page_is_below_the_path(published_site: DashboardSite) -> None:
    site = published_site
    page = await open_page(site.browser, site.url)
    await page.goto(f"{site.url}/usage?period=month")
    await expect(page).to_have_url(f"{site.url}/login?to=%2Fusage%3Fperiod%3Dmonth")
    await page.goto(await site.link())
    await expect(page).to_have_url(f"{site.url}/")
    await expect(page.get_by_test_id("live-badge")).to_have_attribute("data-state", "live")
    run = site.served.names["live_run"]
    await page.goto(f"{site.url}/runs/{run}")
    slug = site.world.admin.memberships[0].slug
    deep = f"{site.url}/p/{slug}/runs/{run}"
    await expect(page).to_have_url(deep)
    await page.reload()
    await expect(page.get_by_test_id("live-badge")).to_have_attribute("data-state", "live")
    await page.get_by_role("link", name="Experiments", exact=True).click()
    await expect(page).to_have_url(f"{site.url}/p/{slug}/experiments")
    await page.go_back()
    await expect(page).to_have_url(deep)
    hosts = await page.evaluate("performance.getEntriesByType('resource').map((one) => one.name)")
    assert hosts
    assert all(name.startswith(site.url) for name in hosts)


@pytest.mark.page_faults(SESSION_REFUSED)
async def test_logging_out_below_a_path_leaves_the_login_at_the_root(
    published_site: DashboardSite, shared_site: DashboardSite
) -> None:
    page = await open_page(shared_site.browser, shared_site.url)
    for site in (shared_site, published_site):
        await page.goto(await site.link())
        await expect(page.get_by_test_id("live-badge")).to_be_visible()
    await page.goto(f"{shared_site.url}/account")
    await expect(page).to_have_url(f"{shared_site.url}/account")
    await page.goto(f"{published_site.url}/account")
    await expect(page).to_have_url(f"{published_site.url}/account")
    await _log_out(page)
    await expect(page).to_have_url(f"{published_site.url}/login")
    await page.goto(f"{shared_site.url}/account")
    await expect(page).to_have_url(f"{shared_site.url}/account")
    await expect(page.get_by_role("heading", name="Account", exact=True)).to_be_visible()

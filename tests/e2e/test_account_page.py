"""A person's own account in a real browser: a first password, and logins without a terminal."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.e2e.dashboard_site import PAGE_MARKS, DashboardSite, open_site

pytestmark = [pytest.mark.browser, *PAGE_MARKS]

FIRST, SECOND = "four unrelated owls sing", "seven quiet lamps drift"


@pytest_asyncio.fixture(loop_scope="session")
async def site_without_passwords(
    browser: Browser, migrated_sqlite: Path, tmp_path: Path
) -> AsyncIterator[DashboardSite]:
    async with open_site(browser, migrated_sqlite, tmp_path) as opened:
        yield opened


async def _choose(page: Page, item: str) -> None:
    await page.get_by_role("button", name="Account", exact=True).click()
    await page.get_by_role("menuitem", name=item, exact=True).click()


# Whatever a page asks for as its login ends is refused.
@pytest.mark.page_faults(r"^(422|403) PUT /api/v1/account/password$", r"^401 GET /api/v1/")
async def test_a_password_is_set_once_and_logs_in_without_a_terminal(
    site_without_passwords: DashboardSite,
) -> None:
    """While no user has a password, the login page shows no password field."""
    site = site_without_passwords
    page, other = await site.open_page(), await site.page("/")
    await page.goto("/login")
    await expect(page.get_by_text("palestra login-link", exact=True)).to_be_visible()
    await expect(page.locator("input[name=password]")).to_have_count(0)
    await page.goto(await site.link())
    await page.wait_for_url("**/")
    await _choose(page, "Account")
    await expect(page.get_by_role("table", name="Browser logins").get_by_role("row")).to_have_count(
        3
    )
    await page.get_by_label("New password").fill("password12345")
    await page.get_by_role("button", name="Set password").click()
    await expect(page.get_by_text("too easy to guess")).to_be_visible()
    await page.get_by_label("New password").fill(FIRST)
    await page.get_by_role("button", name="Set password").click()
    await expect(page.get_by_text("Your password is set. 1 other login ended.")).to_be_visible()
    await other.reload()
    await expect(other.locator("input[name=password]")).to_be_visible()
    await _choose(page, "Log out")
    await expect(page.get_by_label("User name")).to_have_value("admin")
    await page.locator("input[name=password]").fill(FIRST)
    await page.get_by_role("button", name="Log in", exact=True).click()
    await page.wait_for_url("**/")
    await page.goto("/account")
    await page.get_by_label("Current password").fill("not this one")
    await page.get_by_label("New password").fill(SECOND)
    await page.get_by_role("button", name="Change password").click()
    await expect(page.get_by_text("The current password is wrong.")).to_be_visible()
    await page.get_by_label("Current password").fill(FIRST)
    await page.get_by_role("button", name="Change password").click()
    await expect(page.get_by_text("Your password is set.", exact=True)).to_be_visible()
    await page.get_by_role("button", name="Sign out everywhere").click()
    await page.get_by_role("button", name="Sign out", exact=True).click()
    await expect(page.locator("input[name=password]")).to_be_visible()


async def test_a_token_is_made_used_and_revoked(shared_site: DashboardSite) -> None:
    site = await shared_site.add_project("account")
    page = await site.page("/account")
    await page.get_by_role("button", name="New token").click()
    await page.get_by_placeholder("laptop").fill("notebook")
    await page.get_by_role("button", name="Create", exact=True).click()
    secret = await page.get_by_title("Secret", exact=True).inner_text()
    site.served.tokens["notebook"] = secret
    async with site.served.client("notebook") as client:
        session = (await client.get("/api/v1/session")).json()
        assert (session["user"], sorted(session["scopes"])) == (
            site.world.admin.user,
            ["read", "submit"],
        )
        await page.get_by_role("button", name="I have copied it").click()
        await page.get_by_role("button", name="Revoke notebook").click()
        await page.get_by_role("button", name="Revoke", exact=True).click()
        await expect(page.get_by_role("dialog")).to_have_count(0)
        await expect(page.get_by_text("notebook", exact=True)).to_have_count(0)
        assert (await client.get("/api/v1/session")).status_code == 401

"""The states of the page *Home* in a browser: empty, running, failed, waiting, unreachable."""

import re

import pytest
import pytest_asyncio
from playwright.async_api import Page, Route, expect

from palestra.contract.permissions import Role
from palestra.contract.states import Cause, Outcome
from palestra.contract.work_order import Failure
from tests.e2e.dashboard_site import PAGE_MARKS, DashboardSite
from tests.support.server_fixture import make_definition

pytestmark = [pytest.mark.browser, *PAGE_MARKS]


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def site(shared_site: DashboardSite) -> DashboardSite:
    return await shared_site.add_project("home")


async def _open_home(site: DashboardSite, user_id: str) -> Page:
    page = await site.open_as(user_id, "/")
    await expect(page.get_by_role("heading", name="Home", level=1)).to_be_visible()
    return page


async def test_an_empty_home_shows_three_steps(site: DashboardSite) -> None:
    page = await _open_home(site, await site.add_person("nora", Role.MAINTAINER))
    await expect(page.get_by_text("From here to your first curve")).to_be_visible()
    steps = page.get_by_role("heading", level=3)
    await expect(steps.filter(has_text="Make an experiment")).to_be_visible()
    await expect(steps.filter(has_text="Watch the curve")).to_be_visible()
    await expect(page.get_by_text("Your running runs")).to_have_count(0)
    await page.get_by_role("link", name="New experiment").last.click()
    await expect(page.get_by_role("heading", name="New experiment")).to_be_visible()


async def test_who_has_no_project_is_told_whom_to_ask(site: DashboardSite) -> None:
    page = await _open_home(site, await site.add_person("olga", None))
    await expect(page.get_by_text("You are a member of no project yet")).to_be_visible()


async def test_running_failed_and_waiting_runs_are_shown_and_follow(site: DashboardSite) -> None:
    world = site.world
    worker = (await world.register(slots=4, name="home")).worker_id
    document = make_definition(name="Home", loop={"env_steps": 7_001})
    made, _ = await world.submit(document, seeds=[31, 32, 33])
    running, failing, waiting = await world.list_jobs(experiment_id=made.id)
    await world.start(running.id, worker, slot=0)
    attempt = (await world.start(failing.id, worker, slot=1)).work_order.attempt_id
    page = await site.page("/")
    runs = page.get_by_role("table", name="Your running runs")
    await expect(runs.get_by_role("row").filter(has_text="seed 31")).to_be_visible()
    await expect(runs.get_by_role("row").filter(has_text="seed 32")).to_be_visible()
    await expect(
        page.get_by_text("waiting").or_(page.get_by_text("of yours wait"))
    ).not_to_have_count(0)
    failure = Failure(
        message="The environment raised: KeyError.", exception="KeyError", traceback=""
    )
    await world.release(attempt, Outcome.FAILED, Cause.USER_EXCEPTION, failure=failure)
    failed = page.get_by_role("table", name="Your failed runs")
    await expect(failed.get_by_role("row").filter(has_text="KeyError")).to_be_visible()
    await expect(runs.get_by_role("row").filter(has_text="seed 32")).to_have_count(0)
    tile = page.get_by_role("link", name=re.compile("seed 31, yours"))
    await expect(tile).to_be_visible()
    await world.cancel(waiting.id)
    await failed.get_by_role("row").filter(has_text="KeyError").click()
    await expect(page.get_by_role("button", name="Retry")).to_be_visible()


@pytest.mark.page_faults(r"^net::ERR_")
async def test_an_unreachable_server_is_told_and_the_page_comes_back(site: DashboardSite) -> None:
    page = await site.page("/account")

    # The page also asks again by itself, so the server stays away until the button is pressed.
    async def refuse_until_pressed(route: Route) -> None:
        if await page.evaluate("window.pressed === true"):
            await route.continue_()
        else:
            await route.abort("connectionrefused")

    await page.add_init_script(
        "document.addEventListener('click', () => { window.pressed = true }, true)"
    )
    await page.route("**/api/v1/account/overview", refuse_until_pressed)
    await page.goto("/")
    await expect(page.get_by_text("cannot be reached").first).to_be_visible()
    again = page.get_by_role("button", name="Try now")
    await again.first.click()
    await expect(page.get_by_role("table", name="Your projects")).to_be_visible()

"""The queue page in a browser: order by drag and by keyboard, previews, bulk actions, many jobs."""

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, CDPSession, Locator, Page, expect

from palestra.contract.resources import JobView
from tests.e2e.dashboard_site import PAGE_MARKS, DashboardSite, open_site, scroll_until_visible
from tests.support.server_fixture import make_definition

pytestmark = [pytest.mark.browser, *PAGE_MARKS]

_MANY = 10_000


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def site(
    browser: Browser, migrated_sqlite: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[DashboardSite]:
    """A server of its own, since 10,000 jobs keep a server busy."""
    async with open_site(browser, migrated_sqlite, tmp_path_factory.mktemp("queue")) as site:
        yield await site.add_project("queue")


async def _queue(site: DashboardSite, pool: str, number: int) -> Sequence[JobView]:
    """Makes a pool in which jobs of one experiment wait, in the order of their seeds."""
    await site.world.make_pool(pool)
    document = make_definition(
        name=f"Waits in {pool}", loop={"env_steps": 1_000 + sum(pool.encode())}
    )
    await site.world.submit(document, seeds=[*range(number)], pool=pool)
    return await site.world.list_jobs(pool=pool)


def _rows(page: Page) -> Locator:
    return page.get_by_role("list", name="Waiting jobs").locator("[aria-posinset]")


async def _expect_order(page: Page, jobs: Sequence[JobView], *order: int) -> None:
    for place, number in enumerate(order):
        check = _rows(page).nth(place).get_by_role("checkbox")
        await expect(check).to_have_accessible_name(f"Select job {jobs[number].id}")


async def test_a_job_is_dragged_and_the_page_says_first_what_changes(site: DashboardSite) -> None:
    jobs = await _queue(site, "dragged", 4)
    page = await site.page("/p/queue/queue?pool=dragged")
    await _expect_order(page, jobs, 0, 1, 2, 3)
    last = _rows(page).nth(3).locator("[draggable=true]")
    await last.drag_to(_rows(page).nth(1), target_position={"x": 400, "y": 6})
    dialog = page.get_by_role("dialog", name="Move a waiting job")
    preview = dialog.get_by_label("Preview")
    await expect(preview).to_contain_text("place 2 in the queue instead of 4")
    await expect(preview).to_contain_text("2 other jobs of yours start later.")
    await expect(preview.get_by_role("listitem")).to_have_count(2)
    assert [job.position for job in await site.world.list_jobs(pool="dragged")] == [
        1,
        2,
        3,
        4,
    ]
    await dialog.get_by_role("button", name="Leave it").click()
    await _expect_order(page, jobs, 0, 1, 2, 3)
    await last.drag_to(_rows(page).nth(1), target_position={"x": 400, "y": 6})
    await dialog.get_by_role("button", name="Move").click()
    await _expect_order(page, jobs, 0, 3, 1, 2)
    await page.get_by_role("button", name="Undo").click()
    await _expect_order(page, jobs, 0, 1, 2, 3)


async def test_a_job_is_moved_by_keyboard_alone(site: DashboardSite) -> None:
    jobs = await _queue(site, "typed", 3)
    page = await site.page("/p/queue/queue?pool=typed")
    await _expect_order(page, jobs, 0, 1, 2)
    await page.get_by_role("button", name=f"Actions of job {jobs[2].id}").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("menuitem", name="Move up")).to_be_visible()
    first = page.get_by_role("menuitem", name="To the front of the person's jobs")
    await expect(first).to_be_focused()
    await page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Move a waiting job")
    await expect(dialog.get_by_label("Preview")).to_contain_text("place 1 in the queue instead")
    await expect(dialog.get_by_role("button", name="Move")).to_be_focused()
    await page.keyboard.press("Enter")
    await _expect_order(page, jobs, 2, 0, 1)


@pytest.mark.page_faults(r"^422 POST /api/v1/jobs/[^/]*:preview-change$")
async def test_a_change_is_previewed_while_it_is_typed(site: DashboardSite) -> None:
    jobs = await _queue(site, "changed", 3)
    page = await site.page("/p/queue/queue?pool=changed")
    await page.get_by_role("button", name=f"Actions of job {jobs[2].id}").click()
    await page.get_by_role("menuitem", name="Change class or limits…").click()
    dialog = page.get_by_role("dialog", name="Change a waiting job")
    preview = dialog.get_by_label("Preview")
    await expect(preview).to_contain_text("Change something")
    await dialog.get_by_label("Priority among the person's own jobs").fill("7")
    await expect(preview).to_contain_text("place 1 in the queue instead of 3")
    await dialog.get_by_label("Class").click()
    await page.get_by_role("option", name=re.compile("^interactive")).click()
    await expect(preview).to_contain_text("1800")
    await dialog.get_by_role("button", name="Leave it").click()
    assert (await site.world.job(jobs[2].id)).priority == 0


async def test_a_class_is_given_to_many_jobs_and_taken_back(site: DashboardSite) -> None:
    jobs = await _queue(site, "several", 4)
    page = await site.page("/p/queue/queue?pool=several")
    for job in jobs[2:]:
        await page.get_by_role("checkbox", name=f"Select job {job.id}").click()
    bar = page.get_by_role("region", name="Selected jobs")
    await expect(bar).to_contain_text("2 selected")
    await bar.get_by_role("button", name="Class").click()
    await page.get_by_role("menuitem", name="urgent").click()
    dialog = page.get_by_role("dialog", name="Change the class")
    await expect(dialog).to_contain_text("2 jobs will get the class urgent")
    await expect(dialog.get_by_label("Preview")).to_contain_text(
        "2 other jobs of yours start later"
    )
    await dialog.get_by_role("button", name="Change 2 jobs").click()
    await expect(page.get_by_text("2 moved to the class urgent")).to_be_visible()
    await expect(page.get_by_role("heading", name="urgent")).to_be_visible()
    await _expect_order(page, jobs, 2, 3, 0, 1)
    await page.get_by_role("button", name="Undo").click()
    await expect(page.get_by_role("heading", name="urgent")).to_have_count(0)
    await _expect_order(page, jobs, 0, 1, 2, 3)
    assert {one.priority_class for one in await site.world.list_jobs(pool="several")} == {"normal"}


async def test_all_that_match_are_cancelled_unless_it_is_called_off(site: DashboardSite) -> None:
    await _queue(site, "cancelled", 3)
    page = await site.page("/p/queue/queue?pool=cancelled")
    await _rows(page).first.get_by_role("checkbox").click()
    bar = page.get_by_role("region", name="Selected jobs")
    await bar.get_by_role("button", name="Select all 3 that match").click()
    await bar.get_by_role("button", name="Cancel…").click()
    dialog = page.get_by_role("dialog", name="Cancel jobs")
    await expect(dialog.get_by_label("Preview")).to_contain_text("3 jobs would leave the queue")
    await dialog.get_by_role("button", name="Cancel 3 jobs").click()
    await page.get_by_role("button", name="Undo").click()
    await expect(_rows(page)).to_have_count(3)
    await _rows(page).first.get_by_role("checkbox").click()
    await bar.get_by_role("button", name="Select all 3 that match").click()
    await bar.get_by_role("button", name="Cancel…").click()
    await dialog.get_by_role("button", name="Cancel 3 jobs").click()
    await expect(page.get_by_text("No job is waiting")).to_be_visible()


async def test_an_assigned_job_stands_below_the_heading_of_its_class(site: DashboardSite) -> None:
    world = site.world
    jobs = await _queue(site, "assigned", 2)
    await world.submit(
        make_definition(name="Idle"), seeds=[0], pool="assigned", priority_class="idle"
    )
    (idle,) = [one for one in await world.list_jobs(pool="assigned") if one not in jobs]
    worker = (await world.register(name="of-assigned", pool="assigned")).worker_id
    await world.assign(idle.id, worker)
    page = await site.page("/p/queue/queue?pool=assigned")
    await expect(page.get_by_role("heading", level=3)).to_have_text(
        [re.compile("^normal2"), re.compile("^idle1")]
    )


async def test_active_and_ended_jobs_are_named_on_the_queue_and_on_workers(
    site: DashboardSite,
) -> None:
    world = site.world
    running, cancelled = await _queue(site, "busy", 2)
    worker = (await world.register(name="of-busy", pool="busy")).worker_id
    await world.assign(running.id, worker)
    await world.start(running.id, worker)
    await world.cancel(cancelled.id)
    page = await site.page("/p/queue/queue?pool=busy")
    active = page.get_by_role("table", name="Active jobs").get_by_role("row")
    await expect(active).to_have_count(2)
    await expect(active.nth(1)).to_contain_text("waits-in-busy")
    await expect(active.nth(1)).to_contain_text("seed 0")
    await page.get_by_role("button", name="Show ended jobs").click()
    ended = page.get_by_role("table", name="Ended jobs").get_by_role("row")
    await expect(ended).to_have_count(2)
    await expect(ended.nth(1)).to_contain_text("cancelled")
    await expect(ended.nth(1)).to_contain_text("seed 1")
    await page.goto("/workers")
    await expect(page.get_by_text("waits-in-busy").first).to_be_visible()


async def test_ten_thousand_waiting_jobs_keep_the_page_quick(site: DashboardSite) -> None:
    """What scripts do for a page of many jobs is compared with what they do for a page of few."""
    for pool, number in (("few", 100), ("many", _MANY)):
        await site.world.make_pool(pool)
        for first in range(0, number, 1_000):
            document = make_definition(loop={"env_steps": 50_000 + number + first})
            seeds = [*range(min(number, 1_000))]
            await site.world.submit(document, seeds=seeds, pool=pool)
    page = await site.page("/account")
    scripts = await _ScriptTime.open(page)
    seconds = {}
    for pool in ("few", "many"):
        await page.goto(f"/p/queue/queue?pool={pool}")
        await expect(_rows(page).first).to_be_visible()
        seconds[pool] = await scripts.read()
    assert seconds["many"] < 3 * seconds["few"]

    before = await scripts.read()
    more = page.get_by_text("9,000 more jobs")
    scrolls = await scroll_until_visible(page.locator("html"), more)
    assert await scripts.read() - before < scrolls * seconds["few"] / 2
    assert await _rows(page).count() < 100
    await page.get_by_role("button", name="List 1,000 more").scroll_into_view_if_needed()
    costs = []
    for _ in range(3):  # scripts do other things between two answers, too
        before = await scripts.read()
        await page.wait_for_event("response", lambda response: "/queue" in response.url)
        costs.append(await scripts.read() - before)
    assert min(costs) < seconds["few"], "nothing has changed"


@dataclass(frozen=True)
class _ScriptTime:
    """Processor seconds of the scripts since the page was opened."""

    session: CDPSession

    @classmethod
    async def open(cls, page: Page) -> "_ScriptTime":
        session = await page.context.new_cdp_session(page)
        await session.send("Performance.enable", {"timeDomain": "threadTicks"})
        return cls(session)

    async def read(self) -> float:
        metrics = (await self.session.send("Performance.getMetrics"))["metrics"]
        (seconds,) = [row["value"] for row in metrics if row["name"] == "ScriptDuration"]
        return float(seconds)

"""The page of runs in a browser: filter, groups, views of another person, actions, many runs."""

import asyncio
import itertools
import re
from urllib.parse import parse_qs, urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, expect

from palestra.contract.permissions import Role
from palestra.contract.states import Cause, Outcome, RunState
from tests.e2e.dashboard_site import PAGE_MARKS, DashboardSite, scroll_until_visible
from tests.support.server_fixture import World, make_definition
from tests.support.training import make_evaluations, train

pytestmark = [pytest.mark.browser, *PAGE_MARKS]

SCORES = {
    ("dqn", 0.99): (400.0, 410.0, 420.0),
    ("dqn", 0.5): (100.0, 90.0),
    ("ppo", 0.99): (300.0,),
}
_MANY = 3_000


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def site(shared_site: DashboardSite) -> DashboardSite:
    site = await shared_site.add_project("runs")
    await _train(site.world)
    await site.summarise()
    return site


async def _train(world: World) -> None:
    """Runs of two agents and two discounts; the last of each still trains."""
    worker = (await world.register(slots=8, name="of-runs")).worker_id
    slots = itertools.count()
    for (agent, gamma), scores in SCORES.items():
        document = make_definition(
            name=f"{agent} {gamma}",
            agent={"name": agent, "gamma": gamma},
            loop={"env_steps": 1_000},
        )
        experiment, _ = await world.submit(document, seeds=[*range(len(scores))])
        for job in await world.list_jobs(experiment_id=experiment.id):
            seed = (await world.run(job.run_ids[0])).seed
            end = None if seed == len(scores) - 1 else (Outcome.SUCCEEDED, Cause.BUDGET)
            content = make_evaluations(50.0, scores[seed])
            await train(world, job, (worker, next(slots)), content, end)


def _rows(page: Page) -> Locator:
    return page.get_by_role("table", name="Runs").locator("tbody tr")


async def test_five_tabs_of_a_person_are_all_answered(site: DashboardSite) -> None:
    """Of a person's expensive reads two run at the same time: the others wait and are answered."""
    paths = ("runs?show=table", "runs", "experiments", "benchmarks", "runs?show=table&sort=seed")
    pages = await asyncio.gather(*(site.page(f"/p/runs/{path}") for path in paths))
    for page in (pages[0], pages[4]):
        await expect(_rows(page).first).to_be_visible()
    await expect(pages[1].get_by_role("img").first).to_be_visible()
    for page in pages[2:4]:
        await expect(page.get_by_text("dqn").first).to_be_visible()


@pytest.mark.page_faults(r"^404 GET /api/v1/views/")
async def test_a_filtered_and_grouped_view_is_the_same_for_another_person(
    site: DashboardSite,
) -> None:
    page = await site.page("/p/runs/runs?show=table")
    await expect(_rows(page).first).to_be_visible()
    await page.locator("input[aria-label=Filter]").fill("name:~0. evaluation/mean.best>80")
    await expect(
        page.get_by_role("listitem").filter(has_text="evaluation/mean.best>80")
    ).to_be_visible()
    heading = page.get_by_role("columnheader").filter(has_text="evaluation/mean best")
    await heading.get_by_role("button").first.click()
    await page.get_by_role("button", name="Column Agent", exact=True).click()
    await page.get_by_role("menuitem", name="Group by it").click()
    await expect(_rows(page)).to_have_count(2)
    await expect(_rows(page).nth(0)).to_contain_text("ppo")
    await expect(_rows(page).nth(1)).to_contain_text("284 ± 77 se")
    await expect(_rows(page).nth(1)).to_contain_text("n = 5")
    await page.get_by_role("button", name="Views").click()
    await page.get_by_role("menuitem", name="Save as a new view…").click()
    dialog = page.get_by_role("dialog", name="Save this view")
    await dialog.get_by_label("Name").fill("Good ones by agent")
    await dialog.get_by_label("For all members of runs").check()
    await dialog.get_by_role("button", name="Save the view").click()
    await expect(page.get_by_role("button", name="Good ones by agent")).to_be_visible()
    (view,) = parse_qs(urlsplit(page.url).query)["view"]
    shown = await _rows(page).all_inner_texts()

    viewer = await site.add_person("runs-viewer", Role.VIEWER)
    other = await site.open_as(viewer, f"/runs?view={view}")
    await expect(_rows(other)).to_have_count(2)
    assert await _rows(other).all_inner_texts() == shown
    await expect(other.locator("input[aria-label=Filter]")).to_have_value(
        "name:~0. evaluation/mean.best>80"
    )
    await expect(other.get_by_role("button", name="Good ones by agent")).to_be_visible()
    await other.get_by_role("button", name="Runs of dqn").click()
    await expect(_rows(other)).to_have_count(7)
    await other.get_by_role("button", name="Remove name:~0.").click()
    await expect(other.get_by_role("button", name="Good ones by agent (changed)")).to_be_visible()
    await other.get_by_role("button", name="Good ones by agent (changed)").click()
    save = other.get_by_role("menuitem", name="Save the changes to Good ones by agent")
    await expect(save).to_have_attribute("aria-disabled", "true")

    stranger = await site.open_as(site.served.world.other.user_id, f"/runs?view={view}")
    await expect(stranger.get_by_text("The view cannot be shown")).to_be_visible()


@pytest.mark.page_faults(r"^422 GET /api/v1/runs.*filter=agnet")
async def test_a_filter_that_cannot_be_read_says_where(site: DashboardSite) -> None:
    page = await site.page("/p/runs/runs?show=table")
    await page.locator("input[aria-label=Filter]").fill("agnet:dqn")
    await expect(page.get_by_text("did you mean agent?")).to_be_visible()
    await page.locator("input[aria-label=Filter]").fill("agent:dqn name:~0.")
    await expect(_rows(page)).to_have_count(5)


async def test_rows_follow_the_server(site: DashboardSite) -> None:
    world = site.world
    page = await site.page("/p/runs/runs?show=table&filter=name:~live")
    await expect(page.get_by_text("No run matches")).to_be_visible()
    experiment, _ = await world.submit(
        make_definition(name="live one", loop={"env_steps": 4_444}), seeds=[0]
    )
    await expect(_rows(page)).to_have_count(1)
    await expect(_rows(page).first.locator("[data-state=queued]")).to_be_visible()
    (job,) = await world.list_jobs(experiment_id=experiment.id)
    await world.cancel(job.id)
    await expect(_rows(page).first.locator("[data-state=cancelled]")).to_be_visible()


async def test_all_that_match_are_paused_unless_it_is_called_off(site: DashboardSite) -> None:
    world = site.world
    document = make_definition(name="To pause", loop={"env_steps": 2_222})
    experiment, _ = await world.submit(document, seeds=[*range(3)])
    page = await site.page(f"/p/runs/runs?show=table&filter=experiment:{experiment.id}")
    await page.get_by_role("checkbox", name=re.compile("Select seed 0 of")).check()
    bar = page.get_by_role("region", name="Selected runs")
    await bar.get_by_role("button", name="Select all 3 that match").click()
    await bar.get_by_role("button", name="Pause…").click()
    dialog = page.get_by_role("dialog", name="Pause runs")
    await dialog.get_by_role("button", name="Pause 3 runs").click()
    await page.get_by_role("button", name="Undo").click()
    await page.get_by_role("checkbox", name=re.compile("Select seed 0 of")).check()
    await bar.get_by_role("button", name="Cancel…").click()
    dialog = page.get_by_role("dialog", name="Cancel runs")
    await expect(dialog.get_by_role("button", name="Cancel 1 run")).to_be_disabled()
    await dialog.get_by_role("textbox").fill("1")
    await dialog.get_by_role("button", name="Cancel 1 run").click()
    await expect(page.locator("[data-state=cancelled]")).to_have_count(1)
    await expect(page.locator("tbody [data-state=queued]")).to_have_count(2)
    states = {
        (await world.run(job.run_ids[0])).state
        for job in await world.list_jobs(experiment_id=experiment.id)
    }
    assert states == {RunState.CANCELLED, RunState.QUEUED}


async def test_many_runs_are_scrolled_to_the_end(site: DashboardSite) -> None:
    world = site.world
    for number in range(_MANY // 1_000):
        document = make_definition(name="Crowd", loop={"env_steps": 60_000 + number})
        await world.submit(document, seeds=[*range(1_000)])
    page = await site.page("/p/runs/runs?show=table&filter=name:Crowd&sort=seed")
    await expect(page.get_by_text("3,000 runs")).to_be_visible()
    pane = page.locator("table[aria-label=Runs]").locator("..")
    await scroll_until_visible(pane, _rows(page).filter(has_text="999").first)
    assert await _rows(page).count() < 120


async def test_a_panel_of_the_board_is_enlarged_and_its_tooltip_is_pinned(
    site: DashboardSite,
) -> None:
    page = await site.page("/p/runs/runs?show=board&filter=name:~0.&panels=evaluation/mean")
    panel = page.locator("figure").filter(has=page.get_by_test_id("board-evaluation/mean"))
    chart = panel.get_by_test_id("board-evaluation/mean")
    await expect(chart).to_have_attribute("data-points", re.compile("[1-9]"))
    small = await panel.bounding_box()
    await panel.hover()
    await panel.get_by_role("button", name="Enlarge evaluation/mean").click()
    await expect(chart).to_have_css("height", "460px")
    large = await panel.bounding_box()
    assert small is not None
    assert large is not None
    assert large["width"] > 2 * small["width"]

    over = chart.locator(".u-over")
    await expect(over).to_be_visible()
    # The first evaluations are at the left end of the chart.
    await over.click(position={"x": 2, "y": 100})
    tooltip = over.locator("[data-pinned]")
    await expect(tooltip).to_contain_text("seed 0")
    text = await tooltip.inner_text()
    await page.mouse.move(5, 5)
    await expect(tooltip).to_be_visible()
    assert await tooltip.inner_text() == text
    await page.keyboard.press("Escape")
    await expect(tooltip).to_have_count(0)
    await expect(chart).to_have_css("height", "460px")
    await page.keyboard.press("Escape")
    await expect(chart).to_have_css("height", "190px")


async def test_an_enlarged_panel_is_part_of_the_address(site: DashboardSite) -> None:
    path = "/p/runs/runs?show=board&filter=name:~0."
    page = await site.page("/p/runs/experiments")
    await page.goto(path)
    panel = page.locator("figure").filter(has=page.get_by_test_id("board-evaluation/mean"))
    chart = panel.get_by_test_id("board-evaluation/mean")
    await expect(chart).to_have_attribute("data-points", re.compile("[1-9]"))
    await panel.hover()
    await panel.get_by_role("button", name="Enlarge evaluation/mean").click()
    await expect(chart).to_have_css("height", "460px")
    shared = page.url
    assert parse_qs(urlsplit(shared).query)["large"] == ["evaluation/mean"]
    await page.go_back()
    await expect(chart).to_have_css("height", "190px")
    await page.go_forward()
    await expect(chart).to_have_css("height", "460px")
    # Nothing else was changed, so Escape goes back and leaves no entry behind, also when held.
    await page.keyboard.press("Escape")
    await page.keyboard.press("Escape")
    await expect(chart).to_have_css("height", "190px")
    assert urlsplit(page.url).query == urlsplit(path).query
    await page.go_back()
    await page.wait_for_url("**/experiments")

    other = await site.page(shared)
    chart = other.get_by_test_id("board-evaluation/mean")
    await expect(chart).to_have_css("height", "460px")
    await other.reload()
    await expect(chart).to_have_css("height", "460px")
    await expect(chart).to_be_in_viewport()
    # A change meanwhile is kept.
    await other.get_by_role("combobox", name="X axis").select_option("update")
    await other.wait_for_url("**x=update**")
    await other.keyboard.press("Escape")
    await expect(chart).to_have_css("height", "190px")
    assert parse_qs(urlsplit(other.url).query)["x"] == ["update"]
    assert "large" not in urlsplit(other.url).query

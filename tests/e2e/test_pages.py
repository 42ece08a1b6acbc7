"""Pages of the dashboard in a real browser, on a real server.

The runs report scripted records instead of being trained.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from palestra.contract.states import Cause, Outcome, RunState
from palestra.contract.work_order import Backlog, Failure
from tests.e2e.dashboard_site import PAGE_MARKS, DashboardSite, open_site
from tests.support import records
from tests.support.artifact_store import AttemptWithStore
from tests.support.listening import listening
from tests.support.server_fixture import World, make_definition
from tests.support.training import make_evaluations, train

pytestmark = [
    pytest.mark.browser,
    # Nothing is summarised: the rivals of an experiment are sought by a series that no run has.
    pytest.mark.page_faults(r"^422 POST /api/v1/statistics:aggregate$"),
    *PAGE_MARKS,
]

TARGET = (Outcome.SUCCEEDED, Cause.SUCCESS_SCORE)


@dataclass(kw_only=True)
class Site(DashboardSite):
    """A server, a browser and the IDs of the records that the server shows."""

    several: str
    """Experiment with three seeds, one of which reached its target before the others."""
    single: str
    """Experiment with one run of one evaluation of one episode."""
    run: str
    """Run with a curve."""


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def site(shared_site: DashboardSite) -> Site:
    site = await shared_site.add_project("pages")
    several, single, run = await _fill(site.world)
    return Site(**vars(site), several=several, single=single, run=run)


async def _fill(world: World) -> tuple[str, str, str]:
    worker = (await world.register(slots=8, name="pages")).worker_id
    document = make_definition(
        name="Several seeds", loop={"env_steps": 1_000}, evaluation={"every_env_steps": 10}
    )
    several, _ = await world.submit(document, seeds=(0, 1, 2))
    means = ((100.0, 450.0), (100.0, 190.0, 306.0), (100.0, 200.0, 294.0))
    for slot, job in enumerate(await world.list_jobs(experiment_id=several.id)):
        content = [
            *make_evaluations(*means[slot]),
            records.make_points("", "loss/td", [1, 2, 3], [4.0, 2.0, 1.25]),
        ]
        run = await train(world, job, (worker, slot), content, TARGET if slot == 0 else None)
    single, _ = await world.submit(make_definition(name="Single seed", loop={"env_steps": 1_001}))
    (job,) = await world.list_jobs(experiment_id=single.id)
    await train(world, job, (worker, 3), make_evaluations(401.9), (Outcome.SUCCEEDED, Cause.BUDGET))
    return several.id, single.id, run


async def test_single_runs_show_no_deviation_and_reached_targets_show_full_progress(
    site: Site,
) -> None:
    """Regression: the list showed a deviation for a single run and a run that reached its target at
    28 %.
    """
    page = await site.page("/experiments")
    rows = page.get_by_role("row")
    await expect(rows.filter(has_text="Single seed")).to_contain_text("401.9n = 1")
    await expect(rows.filter(has_text="Single seed")).not_to_contain_text("±")
    await expect(rows.filter(has_text="Several seeds")).to_contain_text(" sd")
    await page.goto(f"/experiments/{site.single}")
    await expect(page.get_by_title("Over the latest evaluation of each run")).not_to_contain_text(
        "±"
    )
    await page.goto(f"/experiments/{site.several}")
    await expect(page.get_by_role("progressbar", name="Progress of seed 0")).to_have_attribute(
        "aria-valuenow", "100"
    )
    await expect(page.get_by_role("row").filter(has_text="target")).to_have_count(1)


async def test_the_chart_marks_changes_of_n_and_can_carry_runs_forward(site: Site) -> None:
    """Regression: a mean curve fell from 450 to 306 when the seed that reached its target ended."""
    page = await site.page(f"/experiments/{site.several}")
    chart = page.get_by_test_id("evaluation-chart")
    await expect(page.get_by_text("mean over 2 to 3 seeds")).to_be_visible()
    tooltip = await _read_last_tooltip(page)
    assert "n = 2 of 3 seeds" in tooltip
    assert "300" in tooltip
    await page.get_by_role("switch", name="Carry forward").click()
    await page.wait_for_url("**carry=true**")
    await expect(
        page.get_by_text("mean over 3 seeds, succeeded ones carried forward")
    ).to_be_visible()
    await expect(chart).to_be_visible()
    tooltip = await _read_last_tooltip(page)
    assert "n = 3 of 3 seeds, 1 carried forward" in tooltip
    assert "350" in tooltip


async def _read_last_tooltip(page: Page) -> str:
    """Returns the tooltip of the chart's last point."""
    over = page.get_by_test_id("evaluation-chart").locator(".u-over")
    box = await over.bounding_box()
    assert box is not None
    await over.hover(position={"x": box["width"] - 2, "y": box["height"] / 2})
    await expect(over.locator("small").first).to_be_visible()
    return await over.inner_text()


async def test_pages_of_a_failed_run_begin_with_the_failure_and_offer_a_retry(site: Site) -> None:
    """Regression: the page of an experiment did not show why its runs failed and
    offered no retry.
    """
    world = site.world
    worker = (await world.register(slots=1, name="broken")).worker_id
    broken, _ = await world.submit(make_definition(name="Broken", loop={"env_steps": 1_002}))
    (job,) = await world.list_jobs(experiment_id=broken.id)
    order = (await world.start(job.id, worker)).work_order
    failure = Failure(
        message="The environment raised KeyError: 'pole'. Mend its step().",
        traceback="File env.py, line 3",
    )
    await world.release(order.attempt_id, Outcome.FAILED, Cause.USER_EXCEPTION, failure=failure)
    page = await site.page("/experiments")
    await expect(page.get_by_role("row").filter(has_text="Broken")).to_contain_text(
        "The environment raised KeyError"
    )
    await page.goto(f"/experiments/{broken.id}")
    await expect(page.get_by_role("alert")).to_contain_text("1 run failed: user exception")
    await page.get_by_role("link", name="Look at the run").click()
    await expect(page.get_by_role("alert")).to_contain_text("Mend its step().")
    await page.get_by_role("button", name="Retry…").click()
    await page.get_by_role("button", name="Retry the run").click()
    await expect(page.get_by_role("alert")).to_have_count(0)
    await expect(page.get_by_text("attempt 1 ended: user exception")).to_have_count(0)
    assert (await world.run(order.runs[0].run_id)).state is RunState.QUEUED


async def test_a_result_that_is_not_uploaded_is_shown_with_its_cause(site: Site) -> None:
    """Regression: a run was shown as succeeded although its model was lost."""
    world = site.world
    (attempt,) = (await world.run(site.run)).attempts
    page = await site.page(f"/runs/{site.run}")
    await expect(page.get_by_role("heading", name="Seed 2")).to_be_visible()
    await world.renew(
        attempt.id,
        backlog=Backlog(
            files=2, size=2**20, problem="The disk of the server is full.", delivering=True
        ),
    )
    banner = page.get_by_role("status").filter(has_text="result not uploaded yet")
    await expect(banner).to_contain_text("The disk of the server is full.")
    await banner.get_by_role("button", name="Give up").click()
    await page.get_by_role("button", name="Give it up").click()
    await expect(page.get_by_role("dialog")).to_have_count(0)
    assert (await world.renew(attempt.id)).give_up is True


async def test_the_files_of_a_run_can_be_downloaded(site: Site, tmp_path: Path) -> None:
    """Regression: the dashboard offered no download."""
    served = site.served
    (attempt,) = (await site.world.run(site.run)).attempts
    place = (site.run, attempt.job_id, attempt.worker_id, attempt.id)
    await AttemptWithStore(
        site.world, served.database, served.app.state.store, tmp_path, *place
    ).put("policy.onnx", b"the policy")
    page = await site.page(f"/runs/{site.run}?tab=files")
    async with page.expect_download() as download:
        await page.get_by_role("link", name="Download policy.onnx").click()
    stored = await (await download.value).path()
    assert stored.read_bytes() == b"the policy"
    await page.goto(f"/runs/{site.run}?tab=evaluations")
    async with page.expect_download() as download:
        await page.get_by_role("button", name="CSV").click()
    table = (await (await download.value).path()).read_text("utf-8").splitlines()
    assert [line.split(",")[8] for line in table] == ["mean", "100", "200", "294"]


@pytest.mark.page_faults(r"^401 GET /api/v1/session$")
async def test_the_login_page_explains_how_to_log_in(site: Site) -> None:
    """Regression: the page asked for a password although no user had one, and did not use a pasted
    login link.
    """
    page = await site.open_page()
    await page.goto(f"/experiments/{site.single}")
    await expect(page.get_by_text("palestra login-link")).to_be_visible()
    await expect(page.locator("input[name=password]")).to_have_count(0)
    await page.get_by_label("Login link").fill(await site.link())
    await page.get_by_role("button", name="Log in").click()
    await expect(page.get_by_role("heading", name="Single seed")).to_be_visible()


async def test_an_archived_experiment_can_be_restored(site: Site) -> None:
    """Regression: the dashboard had no action to restore an archived experiment."""
    page = await site.page(f"/experiments/{site.single}")
    await page.get_by_role("button", name="More actions").click()
    await page.get_by_role("menuitem", name="Archive").click()
    await expect(page.locator("[data-state=archived]")).to_be_visible()
    await page.get_by_role("button", name="Undo").click()
    await expect(page.locator("[data-state=archived]")).to_have_count(0)


CONTRAST = """
(element) => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const luminance = (color) => {
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map((byte) => {
      const c = byte / 255;
      return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const style = getComputedStyle(element);
  const both = [luminance(style.color), luminance(style.backgroundColor)];
  const [low, high] = both.sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}
"""


@pytest.mark.page_faults(r"^404 GET /nowhere/at/all$")
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_button_of_the_not_found_page_is_readable(site: Site, scheme: str) -> None:
    """Regression: text and background of the button had the same colour."""
    page = await site.page("/experiments")
    await page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    await page.goto("/nowhere/at/all")
    way_out = page.get_by_role("link", name="All experiments")
    await expect(way_out).to_be_visible()
    assert await way_out.evaluate(CONTRAST) > 7
    await way_out.click()
    await expect(page.get_by_role("heading", name="Experiments")).to_be_visible()


async def test_escape_in_the_search_field_opens_no_row(site: Site) -> None:
    """Regression: keys typed into the search field opened a row."""
    page = await site.page("/experiments")
    await expect(page.get_by_role("row").filter(has_text="Single seed")).to_be_visible()
    await page.keyboard.press("j")
    await page.keyboard.press("/")
    await page.keyboard.type("Several")
    await expect(page.get_by_role("row").filter(has_text="Single seed")).to_have_count(0)
    for key in ("Escape", "Escape", "Enter"):
        await page.keyboard.press(key)
    await expect(page.get_by_role("row").filter(has_text="Single seed")).to_be_visible()
    assert urlsplit(page.url).path == "/p/pages/experiments"


async def test_smoothing_does_not_change_the_value_beside_a_curves_name(site: Site) -> None:
    """Regression: the value was that of the smoothed curve."""
    page = await site.page(f"/runs/{site.run}?smooth=0.9")
    await expect(
        page.locator("figure", has=page.get_by_test_id("curve-loss/td")).locator("figcaption")
    ).to_contain_text("1.25")
    await page.goto(f"/runs/{site.run}?smooth=0.9&start=1&end=2")
    await expect(
        page.locator("figure", has=page.get_by_test_id("curve-loss/td")).locator("figcaption")
    ).to_contain_text("1.25")


LAST_PAGE_IS_LOADED = """() => performance.getEntriesByType("resource").some(
    (one) => one.name.includes("/NewExperimentPage-") && one.name.endsWith(".js"))"""
"""The modules of pages are loaded one after the other once the first page stands."""


@pytest.mark.page_faults(r"^net::ERR_")
async def test_a_page_opened_during_an_outage_loads_after_it(
    browser: Browser, migrated_sqlite: Path, tmp_path: Path
) -> None:
    """Regression: the page showed the error until the user reloaded it."""
    async with open_site(browser, migrated_sqlite, tmp_path) as site:
        await site.world.submit(make_definition(name="Opened late", loop={"env_steps": 1_004}))
        async with listening(site.served.app) as url:
            page = await replace(site, url=url).page("/experiments")
            row = page.get_by_role("row").filter(has_text="Opened late")
            await expect(row).to_be_visible()
            await page.wait_for_function(LAST_PAGE_IS_LOADED)
        await row.get_by_role("link").click()
        await expect(page.get_by_text("The request is repeated automatically")).to_be_visible()
        async with listening(site.served.app, port=urlsplit(url).port or 0):
            await expect(page.get_by_role("heading", name="Opened late")).to_be_visible()

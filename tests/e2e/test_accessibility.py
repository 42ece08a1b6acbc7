"""The pages on which runs are compared, examined by axe-core in both schemes and narrow."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from app.services.experiments.submission import submit as submit_definition
from app.services.projects import thresholds
from palestra.contract.states import Cause, Outcome
from palestra.contract.thresholds import ThresholdRequest
from tests.e2e.dashboard_site import PAGE_MARKS, DashboardSite
from tests.support import records
from tests.support.server_fixture import World, make_definition, make_submission
from tests.support.training import make_evaluations, train

pytestmark = [pytest.mark.browser, *PAGE_MARKS]

AXE = Path(__file__).parents[2] / "frontend/node_modules/axe-core/axe.min.js"
EXAMINE = """async () => {
    const found = await axe.run(document, { resultTypes: ["violations"] });
    return found.violations
        .filter((one) => one.impact === "serious" || one.impact === "critical")
        .map((one) => [one.id, one.help, one.nodes.slice(0, 5).map(
            (node) => [node.html.slice(0, 300), node.any.map((check) => check.message).join(" ")]
        )]);
}"""
CHANGE = """--- a/train.py
+++ b/train.py
@@ -1,2 +1,2 @@
 import gymnasium
+GAMMA = {gamma}
"""
STANDS = """() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(
    () => done(document.getAnimations().every((one) => one.playState !== "running")))))"""
"""Whether the page is laid out for its present size and colours, and nothing in it moves."""
STAY = """
const still = new CSSStyleSheet();
still.replaceSync("* { transition: none !important; animation: none !important; }");
document.adoptedStyleSheets = [still];
"""
"""Keeps everything in a page from moving."""
STEPS = list(range(1_000, 21_000, 1_000))
RUNS = "/p/axe/runs"


@dataclass(kw_only=True)
class Site(DashboardSite):
    """A server, a browser and the ID of a run with a finding."""

    run: str


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def site(shared_site: DashboardSite) -> Site:
    site = await shared_site.add_project("axe")
    run = await _train(site.world)
    await site.summarise()
    return Site(**vars(site), run=run)


async def _train(world: World) -> str:
    """Three seeds of two agents, whose value estimates are above what their rewards allow."""
    worker = (await world.register(slots=8, name="axe")).worker_id
    runs = []
    for agent, gamma in (("dqn", 0.99), ("ppo", 0.9)):
        document = make_definition(
            name=f"Seeds of {agent}",
            agent={"name": agent, "gamma": gamma},
            loop={"env_steps": 20_000},
        )
        git = {"head": agent[0] * 40, "diff": CHANGE.format(gamma=gamma)}
        submission = make_submission(document, seeds=(0, 1, 2))
        submission = submission.model_copy(update={"provenance": {"git": git}})
        async with world.database.write() as session:
            experiment, _ = await submit_definition(session, world.admin, submission)
        for slot, job in enumerate(await world.list_jobs(experiment_id=experiment.id)):
            content = [
                records.make_points("", "q/mean", STEPS, [800.0] * len(STEPS)),
                records.make_points("", "reward/largest", STEPS, [1.0] * len(STEPS)),
                records.make_points("", "loss/td", STEPS, [1 / step for step in STEPS]),
                records.make_episodes("", range(1, 8)),
                *make_evaluations(100.0 + slot, 200.0 + 9 * slot, 300.0 - slot, every=5_000),
            ]
            end = (Outcome.SUCCEEDED, Cause.BUDGET)
            runs.append(await train(world, job, (worker, slot), content, end))
    async with world.database.write() as session:
        request = ThresholdRequest(series="evaluation/mean", value=195.0)
        await thresholds.declare(session, world.admin, "axe", "solved", request)
    return runs[0]


async def _save_view(page: Page) -> None:
    await page.get_by_role("button", name="Views").click()
    await page.get_by_role("menuitem", name="Save as a new view…").click()
    await expect(page.get_by_role("dialog", name="Save this view")).to_be_visible()


async def _preview_action(page: Page) -> None:
    await page.get_by_role("checkbox", name="Select seed 0 of").first.check()
    bar = page.get_by_role("region", name="Selected runs")
    await bar.get_by_role("button", name="Cancel…").click()
    await expect(page.get_by_text("None of the selected runs can be cancelled")).to_be_visible()


async def _unfold_group(page: Page) -> None:
    await page.get_by_role("button", name="Runs of dqn").click()
    rows = page.get_by_role("table", name="Runs").locator("tbody tr")
    await expect(rows.filter(has_text="Seeds of dqn")).to_have_count(3)


async def _open_column_menu(page: Page) -> None:
    await page.get_by_role("button", name="Column Agent", exact=True).click()
    await expect(page.get_by_role("menuitem", name="Group by it")).to_be_visible()


async def _type_filter(page: Page) -> None:
    await page.locator("input[aria-label=Filter]").fill("agnet:dqn")
    await expect(page.get_by_text("did you mean agent?")).to_be_visible()


async def _open_evaluation(page: Page) -> None:
    await page.get_by_role("table", name="Evaluations").locator("tbody tr").first.click()
    await expect(page.get_by_role("dialog", name="Evaluation at env step")).to_be_visible()


async def _declare_threshold(page: Page) -> None:
    await page.get_by_role("button", name="Declare…").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("textbox", name="Name").fill("Nearly solved")
    await expect(dialog.get_by_text("single hyphens: nearly-solved")).to_be_visible()
    await expect(dialog.get_by_role("button", name="Declare")).to_be_disabled()


async def _choose_thresholds(page: Page) -> None:
    await page.get_by_role("button", name="Thresholds").click()
    await expect(page.get_by_role("checkbox", name="solved")).to_be_checked()


async def _see_code(page: Page) -> None:
    code = page.get_by_role("region", name="Differences of the code")
    await expect(code.get_by_text("+ +GAMMA")).to_be_visible()
    await expect(code.get_by_text("\N{MINUS SIGN} +GAMMA")).to_be_visible()


async def _stay(page: Page) -> None:
    """The page is examined as it opens."""


STATES: dict[str, tuple[str, str, Callable[[Page], Awaitable[None]]]] = {
    "table of runs": (f"{RUNS}?show=table", "table[aria-label=Runs] tbody tr", _stay),
    "groups": (f"{RUNS}?show=table&group=agent", "table[aria-label=Runs] tbody tr", _unfold_group),
    "menu of a column": (f"{RUNS}?show=table", "table tbody tr", _open_column_menu),
    "refused filter": (f"{RUNS}?show=table", "table tbody tr", _type_filter),
    "board": (f"{RUNS}?show=board", "[data-testid='board-evaluation/mean'] canvas", _stay),
    "enlarged panel": (
        f"{RUNS}?show=board&group=agent&large=loss/td",
        "[data-testid='board-loss/td'] canvas",
        _stay,
    ),
    "experiments": ("/p/axe/experiments", "text=Reached solved", _choose_thresholds),
    "table and board": (f"{RUNS}?show=both&group=agent", "[data-testid] canvas", _stay),
    "saving a view": (f"{RUNS}?show=table", "table tbody tr", _save_view),
    "preview of an action": (f"{RUNS}?show=table", "table tbody tr", _preview_action),
    "comparison": ("/compare?filter=name:~Seeds", "table[aria-label=Differences]", _stay),
    "differences of code": ("/compare?filter=name:~Seeds&by=experiment", "table", _see_code),
    "comparison of nothing": ("/compare", "text=Nothing is chosen yet", _stay),
    "benchmarks": ("/benchmarks?filter=name:~Seeds", "figure canvas, figure svg", _stay),
    "benchmarks of nothing": ("/benchmarks?filter=agent:none", "text=No run with a score", _stay),
    "findings and curves": (f"{RUNS}/RUN", "[data-testid='curve-loss/td'] canvas", _stay),
    "evaluation": (f"{RUNS}/RUN?tab=evaluations", "table tbody tr", _open_evaluation),
    "episodes": (f"{RUNS}/RUN?tab=episodes", "table[aria-label=Episodes] tbody tr", _stay),
    "thresholds": ("/p/axe/settings", "table[aria-label=Thresholds]", _stay),
    "a new threshold": ("/p/axe/settings", "text=Declare…", _declare_threshold),
}


async def _examine(page: Page) -> list[Any]:
    await page.evaluate(AXE.read_text("utf-8"))
    await page.wait_for_function(STANDS)
    return list(await page.evaluate(EXAMINE))


@pytest.mark.page_faults(
    r"^422 GET /api/v1/runs.*filter=agnet", r"^422 POST /api/v1/statistics:aggregate$"
)
@pytest.mark.parametrize("state", STATES)
async def test_axe_finds_nothing_serious(site: Site, state: str) -> None:
    path, shown, act = STATES[state]
    page = await site.page("about:blank")
    # Colours that are on their way to those of another scheme have no contrast.
    await page.add_init_script(STAY)
    await page.emulate_media(color_scheme="light", reduced_motion="reduce")
    await page.goto(path.replace("RUN", site.run))
    await expect(page.locator(shown).first).to_be_visible()
    await act(page)
    faults = {"light": await _examine(page)}
    await page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    await expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", "dark")
    faults["dark"] = await _examine(page)
    await page.set_viewport_size({"width": 390, "height": 844})
    faults["narrow"] = await _examine(page)
    assert {where: found for where, found in faults.items() if found} == {}


async def test_axe_sees_a_button_without_a_name(site: Site) -> None:
    page = await site.page(f"{RUNS}?show=table")
    await expect(page.locator("table tbody tr").first).to_be_visible()
    await page.evaluate("document.body.append(document.createElement('button'))")
    assert [fault[0] for fault in await _examine(page)] == ["button-name"]

"""Curves in a real browser: the board of the page of runs, and what a click on a point opens."""

import io
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import av
import numpy as np
import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, expect

from palestra.contract.states import Cause, Outcome
from tests.e2e.dashboard_site import PAGE_MARKS, DashboardSite
from tests.support import records
from tests.support.artifact_store import AttemptWithStore
from tests.support.server_fixture import World, make_definition
from tests.support.training import train
from tests.support.waiting import until

pytestmark = [pytest.mark.browser, *PAGE_MARKS]

RETURNS = (12.0, 30.0, 21.0)
STEPS = (100, 200, 300)
PATH = "/p/curves/runs"


@dataclass(kw_only=True)
class Site(DashboardSite):
    """A server, a browser and the IDs of what the server shows."""

    filmed: str
    """Run whose second evaluation was filmed and has a snapshot."""
    seeds: list[str]
    """Runs of one experiment."""


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def site(shared_site: DashboardSite, tmp_path_factory: pytest.TempPathFactory) -> Site:
    site = await shared_site.add_project("curves")
    filmed = await film_run(site, tmp_path_factory.mktemp("curves"))
    seeds = await train_seeds(site.world)
    # The board names the series that summaries name.
    await site.summarise()
    return Site(**vars(site), filmed=filmed, seeds=seeds)


def make_video() -> bytes:
    """Returns an MP4 of ten frames."""
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=10)
        stream.width = stream.height = 64
        stream.pix_fmt = "yuv420p"
        for shade in range(10):
            picture = np.full((64, 64, 3), 20 * shade, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode(None))
    return file.getvalue()


async def film_run(site: DashboardSite, directory: Path) -> str:
    world, served = site.world, site.served
    worker = (await world.register(slots=4, name="curves")).worker_id
    document = make_definition(name="Filmed", loop={"env_steps": 1_003})
    experiment, _ = await world.submit(document)
    (job,) = await world.list_jobs(experiment_id=experiment.id)
    order = (await world.start(job.id, worker)).work_order
    run_id = order.runs[0].run_id
    attempt = AttemptWithStore(
        world=world,
        database=served.database,
        store=served.app.state.store,
        directory=directory,
        run_id=run_id,
        job_id=job.id,
        worker_id=worker,
        attempt_id=order.attempt_id,
    )
    evaluations = [
        records.make_evaluation(run_id, step, float(np.mean(RETURNS)))
        | {"episodes": 3, "returns": [one + i for one in RETURNS], "stdev": 9.0}
        | {"min": 12.0 + i, "max": 30.0 + i}
        for i, step in enumerate(STEPS)
    ]
    await attempt.send(*evaluations, records.make_episodes(run_id, range(1, 8)))
    await attempt.write_snapshot(STEPS[1])
    video = make_video()
    declared = await attempt.declare(
        f"{STEPS[1]:012d}-episode-1.mp4", video, kind="video", env_step=STEPS[1]
    )
    await attempt.upload(declared.id, video)
    return run_id


async def train_seeds(world: World) -> list[str]:
    worker = (await world.register(slots=4, name="seeds")).worker_id
    document = make_definition(name="Seeds", loop={"env_steps": 4_000})
    experiment, _ = await world.submit(document, seeds=(0, 1, 2))
    rng = np.random.default_rng(0)
    runs = []
    for slot, job in enumerate(await world.list_jobs(experiment_id=experiment.id)):
        steps = list(range(0, 4_000, 10))
        values = (np.linspace(5, 1, len(steps)) + rng.normal(size=len(steps)) / 4).tolist()
        content = [
            records.make_points("", "loss/td", steps, values),
            records.make_points("", "q/mean", steps, values[::-1]),
        ]
        end = (Outcome.SUCCEEDED, Cause.BUDGET)
        runs.append(await train(world, job, (worker, slot), content, end))
    return runs


def read_query(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


async def find_plot(chart: Locator) -> tuple[float, float, float, float]:
    """Returns the position and size of the plotted area on the page."""
    await expect(chart.locator("canvas")).to_be_visible()
    box = await chart.locator(".u-over").bounding_box()
    assert box is not None
    return box["x"], box["y"], box["width"], box["height"]


async def test_a_click_on_a_point_opens_its_evaluation_with_its_video(site: Site) -> None:
    page = await site.page(f"{PATH}/{site.filmed}")
    chart = page.get_by_test_id("curve-evaluation/mean")
    left, top, width, height = await find_plot(chart)
    # Evaluations at 100, 200 and 300: the second is in the middle.
    await page.mouse.click(left + width / 2, top + height / 2)
    shown = page.get_by_role("dialog", name="Evaluation at env step 200")
    await expect(shown).to_be_visible()
    rows = shown.get_by_role("table", name="Episodes of the evaluation").locator("tbody tr")
    await expect(rows).to_have_count(3)
    await expect(rows.nth(1)).to_contain_text("31")
    await expect(shown.get_by_role("img", name="3 episode returns from 13 to 31")).to_be_visible()
    video = shown.locator("video")
    await expect(video).to_be_visible()
    await page.wait_for_function("() => document.querySelector('video').videoWidth === 64")
    await expect(shown.get_by_text("Snapshot", exact=False).first).to_be_visible()
    async with page.expect_download() as download:
        await shown.get_by_role("link", name="Download ZIP").click()
    assert (await download.value).suggested_filename.endswith(".zip")
    # The evaluation is part of the URL, so it can be shared.
    assert "evaluation" in read_query(page)
    again = await site.page(page.url)
    await expect(again.get_by_role("dialog", name="Evaluation at env step 200")).to_be_visible()


async def test_episodes_have_a_table_and_time_can_be_relative(site: Site) -> None:
    page = await site.page(f"{PATH}/{site.filmed}?tab=episodes")
    rows = page.get_by_role("table", name="Episodes").locator("tbody tr")
    await expect(rows).to_have_count(7)
    await expect(rows.first).to_contain_text("7")
    await page.goto(f"{PATH}/{site.seeds[0]}?x=relative")
    await find_plot(page.get_by_test_id("curve-loss/td"))
    await expect(page.get_by_test_id("curve-loss/td")).to_have_attribute("data-points", "400")


async def test_choices_of_an_axis_stay_within_a_narrow_page(site: Site) -> None:
    experiment = (await site.world.run(site.filmed)).experiment_id
    page = await site.page(f"/experiments/{experiment}")
    await page.set_viewport_size({"width": 390, "height": 844})
    axis = page.get_by_role("radiogroup", name="X axis").first
    await expect(axis).to_be_visible()
    box = await axis.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= 390 - 12
    elapsed = axis.get_by_text("elapsed time")
    await elapsed.click()
    await page.wait_for_url("**x=relative**")


async def test_the_board_zooms_all_panels_and_asks_the_server_again(site: Site) -> None:
    page = await site.page(f"{PATH}?show=board&filter=name:Seeds&panels=td|return")
    sent: list[dict[str, object]] = []
    page.on(
        "request",
        lambda one: sent.append(one.post_data_json) if "series:query" in one.url else None,
    )
    await page.reload()
    chart = page.get_by_test_id("board-loss/td")
    left, top, width, height = await find_plot(chart)
    assert len(sent) == 1, "the visible panels share a query"
    await page.mouse.move(left + width * 0.25, top + height / 2)
    await page.mouse.down()
    await page.mouse.move(left + width * 0.5, top + height / 2, steps=4)
    await page.mouse.up()
    await page.wait_for_url("**start=**")
    start, end = (float(read_query(page)[name][0]) for name in ("start", "end"))
    assert 0 < start < end < 4_000
    await until(lambda: len(sent) == 2, "the zoomed curves are queried")
    assert (sent[1]["start"], sent[1]["end"]) == (start, end)
    await page.get_by_role("button", name="Reset zoom").click()
    await expect(page.get_by_role("button", name="Reset zoom")).to_have_count(0)
    assert [query.get("start") for query in sent].count(start) == 1, "all panels zoom at once"


async def test_the_board_keeps_its_controls_in_the_url(site: Site) -> None:
    page = await site.page(f"{PATH}?show=board&group=agent&panels=td|q/")
    await find_plot(page.get_by_test_id("board-loss/td"))
    await page.get_by_label("Y scale").select_option("symlog")
    await page.get_by_label("Aggregate").select_option("iqm")
    await page.get_by_label("Band").select_option("interval")
    await page.get_by_role("button", name="Pin q/mean").click()
    await page.get_by_label("Search panels").fill("q/|loss/td")
    await page.wait_for_url(lambda address: "loss" in address)
    query = read_query(page)
    assert (query["scale"], query["aggregate"], query["band"]) == (
        ["symlog"],
        ["iqm"],
        ["interval"],
    )
    again = await site.page(page.url)
    await find_plot(again.get_by_test_id("board-loss/td"))
    await expect(again.get_by_role("button", name="Unpin q/mean")).to_be_visible()
    await expect(again.get_by_label("Band")).to_have_value("interval")
    await expect(again.get_by_test_id("board-episode/return")).to_have_count(0)

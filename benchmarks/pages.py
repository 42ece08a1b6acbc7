"""What the dashboard's pages cost in a real browser: bytes, time to the first row, scripts, memory.

A server process holds 10,000 runs, a run with a million points, and a run whose points arrive
while its page is shown. Chromium opens each page with an empty cache.

- the JavaScript that the first page loads, as it crosses the network;
- the time from the navigation to the first painted row or curve;
- the time that scripts ran until then;
- the growth of the heap after collection while points arrive, from the third minute on;
- the time that scripts run until a board of 12 panels with 50 curves of 1,000 buckets each, whose
  data is in memory, is drawn on another scale.

    python -m benchmarks.pages [--runs 10000] [--points 1000000] [--minutes 10] [--rate 20]
"""

import argparse
import asyncio
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
from playwright.sync_api import BrowserContext, CDPSession, Page, sync_playwright

from app.db.engine import Database
from app.db.migrate import upgrade
from app.services.access import logins
from app.services.telemetry import batches
from benchmarks._report import describe_machine, show
from benchmarks._streams import senders
from benchmarks._streams.content import Training
from palestra.contract.states import Cause, Outcome
from tests.e2e.chromium import QUIET, find_chromium
from tests.support.process_stack import Stack
from tests.support.records import make_delivery, make_points
from tests.support.server_fixture import World, make_definition, make_world

MAX_SCRIPT_KB = 350.0
MAX_FIRST_ROW = 1.5
MAX_GROWTH = 1.0
"""MB a minute."""
MAX_BOARD_SCRIPT = 0.150
"""Seconds of scripts until a board is drawn anew."""
OPENINGS = 5
BOARD_OPENINGS = 3
WARM_MINUTES = 3.0
"""Time in which the points of a run fill the buffers of its page."""
SAMPLE_SECONDS = 15.0
BOARD_RUNS = 50
BOARD_PANELS = 12
BOARD_BUCKETS = 1_000
_SEEDS = 1_000
_BATCH = 5_000
_MEGABYTE = 1e6
BOARD_NAME = "Board"


@dataclass(frozen=True)
class Content:
    """What the measured server holds."""

    code: str
    """Code of a login link."""
    long_run: str
    live: Training


async def fill(url: str, runs: int, points: int) -> Content:
    """Fills a database."""
    database = Database(url)
    try:
        world = await make_world(database)
        await world.make_pool("default")
        worker = await world.register(slots=2 + BOARD_RUNS)
        long, live = [await _start(world, worker.worker_id, slot) for slot in range(2)]
        for first in range(0, points, _BATCH):
            steps = range(first + 1, min(points, first + _BATCH) + 1)
            async with database.write() as session:
                record = make_points(long.run_id, "loss", steps)
                await batches.take(
                    session, make_delivery(long.attempt_id, 1 + first // _BATCH, [record])
                )
        await fill_board(database, world, worker.worker_id)
        for number in range(-(-runs // _SEEDS)):
            document = make_definition(loop={"env_steps": 50_000 + number})
            await world.submit(document, seeds=list(range(min(_SEEDS, runs - number * _SEEDS))))
        async with database.write() as session:
            code = await logins.make_link(session, world.admin.user_id, 3_600)
        return Content(code, long.run_id, live)
    finally:
        await database.dispose()


async def fill_board(database: Database, world: World, worker_id: str) -> None:
    """Trains the runs of the board, with a point in each bucket."""
    document = make_definition(name=BOARD_NAME, loop={"env_steps": 49_999})
    experiment, _ = await world.submit(document, seeds=list(range(BOARD_RUNS)))
    steps = range(BOARD_BUCKETS)
    rng = np.random.default_rng(0)
    for slot, job in enumerate(await world.list_jobs(experiment_id=experiment.id)):
        order = (await world.start(job.id, worker_id, slot=2 + slot)).work_order
        run_id = order.runs[0].run_id
        curves = rng.normal(size=(BOARD_PANELS, BOARD_BUCKETS)).cumsum(axis=1)
        content = [
            make_points(run_id, f"loss/{panel}", steps, curve.tolist())
            for panel, curve in enumerate(curves)
        ]
        async with database.write() as session:
            await batches.take(session, make_delivery(order.attempt_id, 1, content))
        # Curves of runs that go on would be loaded again while they are measured.
        end = (Outcome.SUCCEEDED, Cause.BUDGET)
        await world.release(order.attempt_id, *end, last_seq=len(content))


async def _start(world: World, worker_id: str, slot: int) -> Training:
    job = await world.submit_one_job(seeds=[slot])
    claimed = await world.start(job.id, worker_id, slot=slot)
    return Training(job.run_ids[0], claimed.work_order.attempt_id, claimed.token, 0)


@dataclass(frozen=True)
class PageCost:
    """The figures of one opening of a page."""

    first_shown: float
    """Seconds from the navigation to the first row or curve."""
    scripts: float
    """Seconds that scripts ran until then."""
    script_kb: float
    """Kilobytes of JavaScript that crossed the network."""


_SCRIPT_BYTES = """
() => performance.getEntriesByType("resource")
  .filter((one) => new URL(one.name).pathname.endsWith(".js"))
  .reduce((sum, one) => sum + one.encodedBodySize, 0)
"""


def read_metric(session: CDPSession, name: str) -> float:
    """Returns a metric of a page's process."""
    found = session.send("Performance.getMetrics")["metrics"]
    return float(next(one["value"] for one in found if one["name"] == name))


def open_page(context: BrowserContext, path: str, selector: str) -> PageCost:
    """Opens a page with an empty cache, and waits until an element is painted."""
    page = context.new_page()
    session = context.new_cdp_session(page)
    session.send("Performance.enable")
    session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    began = time.monotonic()
    page.goto(path, wait_until="commit")
    page.locator(selector).first.wait_for(state="visible", timeout=60_000)
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    shown = time.monotonic() - began
    scripts = read_metric(session, "ScriptDuration")
    cost = PageCost(shown, scripts, float(page.evaluate(_SCRIPT_BYTES)) / 1e3)
    page.close()
    return cost


def measure_heap(context: BrowserContext, path: str, minutes: float) -> list[tuple[float, float]]:
    """Returns pairs of minutes and megabytes of the heap after collection, from a shown page."""
    page = context.new_page()
    session = context.new_cdp_session(page)
    session.send("Performance.enable")
    page.goto(path)
    page.locator("canvas").first.wait_for(timeout=60_000)
    samples, began = [], time.monotonic()
    while (passed := (time.monotonic() - began) / 60) < WARM_MINUTES + minutes:
        page.wait_for_timeout(1e3 * SAMPLE_SECONDS)
        session.send("HeapProfiler.collectGarbage")
        if passed >= WARM_MINUTES:
            samples.append((passed, read_metric(session, "JSHeapUsedSize") / _MEGABYTE))
    page.close()
    return samples


def measure_board(context: BrowserContext) -> list[float]:
    """Returns the seconds of scripts of each redrawing of the board."""
    page = context.new_page()
    session = context.new_cdp_session(page)
    session.send("Performance.enable")
    # No other run has the series, so its panels are the board.
    page.goto(f"/p/default/runs?show=board&filter=name:{BOARD_NAME}&panels=%5Eloss%2F")
    drawn = f"[data-testid^='board-loss/'][data-points='{BOARD_RUNS * BOARD_BUCKETS}']"
    for _ in range(600):
        if page.locator(drawn).count() == BOARD_PANELS:
            break
        page.wait_for_timeout(200)
    found = page.locator(drawn).count()
    if found != BOARD_PANELS:
        message = f"The board shows {found} of {BOARD_PANELS} panels with all points."
        raise RuntimeError(message)
    times = []
    for _ in range(BOARD_OPENINGS):
        for scale in ("symlog", "linear"):
            page.wait_for_timeout(1_500)
            before = read_metric(session, "ScriptDuration")
            page.get_by_label("Y scale").select_option(scale)
            page.wait_for_timeout(1_500)
            times.append(read_metric(session, "ScriptDuration") - before)
    page.close()
    return times


def log_in(context: BrowserContext, url: str, code: str) -> Page:
    """Logs in, and returns the first page."""
    page = context.new_page()
    page.goto(f"{url}/login#code={code}")
    page.wait_for_url(lambda address: urlsplit(address).path != "/login")
    return page


def measure(stack: Stack, content: Content, minutes: float) -> bool:
    """Prints all figures; returns whether they are within their bounds."""
    pages = {
        "home": ("/", "main"),
        "experiments": ("/p/default/experiments", "tbody tr"),
        "runs": ("/p/default/runs", "table[aria-label=Runs] tbody a"),
        "queue": ("/p/default/queue", "[aria-posinset]"),
        "run of many points": (f"/p/default/runs/{content.long_run}", "canvas"),
    }
    is_good = True
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=QUIET)
        context = browser.new_context(
            base_url=stack.url, viewport={"width": 1440, "height": 900}, service_workers="block"
        )
        log_in(context, stack.url, content.code).close()
        for name, (path, selector) in pages.items():
            costs = [open_page(context, path, selector) for _ in range(OPENINGS)]
            shown = [cost.first_shown for cost in costs]
            is_good &= show(f"{name}: first shown", shown, "s", MAX_FIRST_ROW)
            show(f"{name}: scripts", [cost.scripts for cost in costs], "s")
            kilobytes = [cost.script_kb for cost in costs]
            is_good &= show(f"{name}: JavaScript", kilobytes, "kB", MAX_SCRIPT_KB)
        board = browser.new_context(
            base_url=stack.url,
            # Panels of 390 pixels have 1,000 of the screen, and all are visible.
            viewport={"width": 1440, "height": 1800},
            device_scale_factor=2.5,
            service_workers="block",
            storage_state=context.storage_state(),
        )
        times = measure_board(board)
        is_good &= show("board: scripts until it is drawn anew", times, "s", MAX_BOARD_SCRIPT)
        board.close()
        if minutes > 0:
            path = f"/p/default/runs/{content.live.run_id}"
            is_good &= report_heap(measure_heap(context, path, minutes))
        browser.close()
    return is_good


def report_heap(samples: Sequence[tuple[float, float]]) -> bool:
    """Prints the growth of the heap; returns whether it is within its bound."""
    times, sizes = zip(*samples, strict=True)
    show("heap after collection", sizes, "MB")
    slope = statistics.linear_regression(times, sizes).slope
    return show("growth of the heap, MB a minute", [slope], "MB", MAX_GROWTH)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--minutes", type=float, default=10, help="of the heap; 0 leaves it out")
    parser.add_argument("--rate", type=float, default=20, help="batches a second")
    values = parser.parse_args()
    print(describe_machine())
    with tempfile.TemporaryDirectory(prefix="plr-", dir="/tmp") as directory:
        url = f"sqlite:///{Path(directory) / 'pages.db'}"
        upgrade(url)
        content = asyncio.run(fill(url, values.runs, values.points))
        # The compactor must run; no attempt renews its lease.
        settings = {
            "PALESTRA_RECLAIM_SECONDS": "86400",
            "PALESTRA_API_REQUESTS_PER_SECOND": "0",
        }
        stack = Stack(Path(directory), database_url=url, settings=settings)
        spawn = multiprocessing.get_context("spawn")
        stop = spawn.Event()
        sender = spawn.Process(
            target=senders.run, args=(stack.port, [content.live], values.rate, stop)
        )
        try:
            stack.start_server()
            sender.start()
            is_good = measure(stack, content, values.minutes)
        finally:
            stop.set()
            if sender.pid is not None:
                sender.join(10)
            stack.__exit__()
    return 0 if is_good else 1


if __name__ == "__main__":
    raise SystemExit(main())

"""The dashboard in a real browser: a curve grows, also after the server was killed and restarted.

At the end the curve has exactly the points that the worker spooled.
"""

import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.e2e.run_history import get_live_attempt, make_cartpole_definition, read_spooled_episodes
from tests.support.process_stack import Stack
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.processes, pytest.mark.browser, pytest.mark.timeout(600)]

CHROMIUM = "/usr/bin/chromium"
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
]
QUIET += ["--disable-component-update", "--disable-sync"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Browser, stack: Stack) -> Iterator[Page]:
    context = browser.new_context(base_url=stack.url, viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.goto(stack.login_url)
    page.wait_for_url("**/")
    yield page
    context.close()


READ_RING = """
([run, name]) => {
  const ring = window.__palestra?.series(run, name);
  return ring ? [Array.from(ring.env_step), Array.from(ring.value)] : [[], []];
}
"""


def _read_points(page: Page, run_id: str) -> list[tuple[int, float]]:
    steps, values = page.evaluate(READ_RING, [run_id, "episode/return"])
    return [(int(step), float(value)) for step, value in zip(steps, values, strict=True)]


def test_a_curve_grows_without_reload_and_after_a_killed_server(page: Page, stack: Stack) -> None:
    (run,) = stack.submit(make_cartpole_definition(18_000, name="seen in a browser"))
    stack.wait_for_run(run["id"], lambda run: run["progress"]["env_step"] > 500, "the run trains")
    page.goto(f"/runs/{run['id']}")
    wait_for(lambda: len(_read_points(page, run["id"])) > 5, "the page shows points")
    page.evaluate("window.__notReloaded = true")
    seen = len(_read_points(page, run["id"]))
    wait_for(
        lambda: len(_read_points(page, run["id"])) > seen + 10, "points arrive without a reload"
    )
    stack.kill("server")
    time.sleep(2)
    stack.start_server()
    attempt = get_live_attempt(stack, run["id"])
    assert attempt is not None
    stack.wait_for_run(run["id"], lambda run: run["state"] == "succeeded", "the run succeeds")
    spooled = [
        (step, value)
        for _, step, value in read_spooled_episodes(stack.attempt_directory(attempt["id"]))
    ]
    wait_for(lambda: len(_read_points(page, run["id"])) >= len(spooled), "the curve is complete")
    assert _read_points(page, run["id"]) == spooled
    assert page.evaluate("window.__notReloaded") is True

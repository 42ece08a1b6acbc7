"""A first-time user trains in the browser, with `palestra up` and a real worker.

The test starts at the login link and uses only what the pages say: it follows their links and
buttons by their labels, and opens no address by itself. `pytest -s` prints how long it took.
"""

import sys
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.e2e.palestra_up import UpProcess
from tests.e2e.test_browser import CHROMIUM, QUIET
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.processes, pytest.mark.browser, pytest.mark.timeout(600)]

NAME = "My first pole"
COUNT_POINTS = """
() => window.__palestra?.series(location.pathname.split("/").pop(), "episode/return")?.value.length
"""


@pytest.fixture
def page() -> Iterator[Page]:
    with sync_playwright() as playwright:
        chromium: Browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield chromium.new_page(viewport={"width": 1440, "height": 900})
        chromium.close()


def test_a_first_time_user_gets_from_an_empty_dashboard_to_a_live_curve(
    up_process: UpProcess, page: Page
) -> None:
    page.goto(up_process.wait_until_ready()["login_url"])
    began = time.monotonic()
    main = page.get_by_role("main")
    start = main.get_by_role("link", name="New experiment").first
    expect(start).to_be_visible()
    start.click()

    expect(page.get_by_role("heading", name="New experiment")).to_be_visible()
    expect(page.get_by_role("combobox", name="Start from")).to_have_value(
        "CartPole-v1 · ppo: CartPole PPO"
    )
    expect(page.get_by_text("3 runs in 3 jobs of the pool default")).to_be_visible()
    page.get_by_role("textbox", name="Name", exact=True).fill(NAME)
    page.get_by_role("textbox", name="Gamma").fill("1.5")
    submit = page.get_by_role("button", name="Submit 3 runs")
    expect(page.get_by_role("alert")).to_contain_text("agent.gamma must be at most 1")
    submit.click()
    expect(page.get_by_role("textbox", name="Gamma")).to_be_focused()
    page.keyboard.press("Control+A")
    page.keyboard.type("0.98")
    expect(page.get_by_role("alert")).to_have_count(0)
    submit.click()

    expect(page.get_by_role("heading", name=NAME)).to_be_visible()
    runs = page.get_by_role("row")
    first = runs.filter(has_text="running").first
    expect(first).to_be_visible()
    first.get_by_role("link").first.click()
    wait_for(lambda: (page.evaluate(COUNT_POINTS) or 0) > 3, "the page shows a curve")
    seen = page.evaluate(COUNT_POINTS)
    wait_for(lambda: page.evaluate(COUNT_POINTS) > seen, "the curve grows without a reload")
    took = time.monotonic() - began
    sys.stdout.write(f"\nfrom the empty dashboard to a growing curve: {took:.1f} s\n")

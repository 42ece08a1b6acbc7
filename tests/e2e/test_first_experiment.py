"""A first-time user trains in the browser, with `palestra up` and a real worker.

The test starts at the login link and uses only what the pages say: it follows their links and
buttons by their labels, and opens no address by itself.
"""

import pytest
from playwright.async_api import Browser, expect

from tests.e2e.curve_points import wait_for_points
from tests.e2e.dashboard_site import PAGE_MARKS, open_page
from tests.e2e.palestra_up import UpProcess

pytestmark = [pytest.mark.processes, pytest.mark.browser, *PAGE_MARKS]

NAME = "My first pole"


@pytest.mark.page_faults(r"^422 POST /api/v1/experiments:preview\?project=default$")
async def test_a_first_time_user_gets_from_an_empty_dashboard_to_a_live_curve(
    up_process: UpProcess, browser: Browser
) -> None:
    started = up_process.wait_until_ready()
    page = await open_page(browser, started["url"])
    await page.goto(started["login_url"])
    main = page.get_by_role("main")
    await main.get_by_role("link", name="New experiment").first.click()

    await expect(page.get_by_role("heading", name="New experiment")).to_be_visible()
    await expect(page.get_by_role("combobox", name="Start from")).to_have_value(
        "CartPole-v1 · ppo: CartPole PPO"
    )
    await expect(page.get_by_text("3 runs in 3 jobs of the pool default")).to_be_visible()
    await page.get_by_role("textbox", name="Name", exact=True).fill(NAME)
    # The training is to go on until the curve was seen to grow, however busy the machine is.
    await page.get_by_role("textbox", name="Budget in env steps").fill("5000000")
    await page.get_by_role("textbox", name="Gamma").fill("1.5")
    submit = page.get_by_role("button", name="Submit 3 runs")
    await expect(page.get_by_role("alert")).to_contain_text("agent.gamma must be at most 1")
    await submit.click()
    await expect(page.get_by_role("textbox", name="Gamma")).to_be_focused()
    await page.keyboard.press("Control+A")
    await page.keyboard.type("0.98")
    await expect(page.get_by_role("alert")).to_have_count(0)
    await submit.click()

    await expect(page.get_by_role("heading", name=NAME)).to_be_visible()
    first = page.get_by_role("row").filter(has_text="running").first
    await first.get_by_role("link").first.click()
    await page.wait_for_url("**/runs/**")
    run = page.url.rpartition("/")[2]
    seen = await wait_for_points(page, run, 3)
    # The page is not loaded again.
    await wait_for_points(page, run, seen + 1)

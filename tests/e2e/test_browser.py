"""The dashboard in a real browser: a curve grows, also after the server was killed and restarted.

At the end the curve has exactly the points that the worker spooled.
"""

import pytest
from playwright.async_api import Browser

from tests.e2e.curve_points import read_points, read_spooled_points, wait_for_points
from tests.e2e.dashboard_site import PAGE_MARKS, open_page
from tests.e2e.run_history import (
    make_slow_definition,
    release_brake,
    wait_for_spooled_episodes,
    wait_for_steps,
    wait_for_success,
)
from tests.support.process_stack import Stack

pytestmark = [pytest.mark.processes, pytest.mark.browser, *PAGE_MARKS]


@pytest.mark.page_faults(r"^net::ERR_")
async def test_a_curve_grows_without_reload_and_after_a_killed_server(
    browser: Browser, stack: Stack
) -> None:
    (run,) = stack.submit(make_slow_definition(stack, 4_000, name="seen in a browser"))
    attempt = wait_for_steps(stack, run["id"], 1)
    page = await open_page(browser, stack.url, stack.log_in())
    await page.goto(f"/runs/{run['id']}")
    seen = await wait_for_points(page, run["id"], 3)
    await page.evaluate("window.__notReloaded = true")
    await wait_for_points(page, run["id"], seen + 2)
    stack.kill("server")
    wait_for_spooled_episodes(stack, attempt["id"])
    stack.start_server()
    release_brake(stack)
    wait_for_success(stack, run["id"])
    spooled = read_spooled_points(stack, attempt["id"])
    await wait_for_points(page, run["id"], len(spooled))
    assert await read_points(page, run["id"]) == spooled
    assert await page.evaluate("window.__notReloaded") is True

"""The tabs of a real browser share one live connection, which outlives the tab that opened it."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

import httpx
import pytest
from playwright.async_api import Browser, expect

from app.settings import Settings
from tests.e2e.curve_points import read_points, read_spooled_points, wait_for_points
from tests.e2e.dashboard_site import PAGE_MARKS, open_page
from tests.e2e.run_history import (
    make_slow_definition,
    release_brake,
    wait_for_steps,
    wait_for_success,
)
from tests.support.process_stack import Stack

pytestmark = [pytest.mark.processes, pytest.mark.browser, *PAGE_MARKS]

MAX_STREAMS = 2
"""Streams of the tabs: the connection of three tabs, and its successor for a moment."""


@contextmanager
def hold_other_streams(stack: Stack, cookies: Mapping[str, str]) -> Iterator[None]:
    """Holds all streams that the server permits the login, but `MAX_STREAMS`."""
    number = Settings().sse_streams_per_credential - MAX_STREAMS
    headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())}
    with (
        httpx.Client(base_url=stack.url, trust_env=False, timeout=None) as client,
        ExitStack() as held,
    ):
        for _ in range(number):
            answer = held.enter_context(client.stream("GET", "/api/v1/events", headers=headers))
            assert answer.status_code == httpx.codes.OK
        yield


async def test_tabs_share_a_connection_and_the_last_one_misses_nothing(
    browser: Browser, stack: Stack
) -> None:
    cookies = stack.log_in()
    (run,) = stack.submit(make_slow_definition(stack, 4_000, name="seen in tabs"))
    attempt = wait_for_steps(stack, run["id"], 1)
    with hold_other_streams(stack, cookies):
        first = await open_page(browser, stack.url, cookies)
        await first.goto(f"/runs/{run['id']}")
        await wait_for_points(first, run["id"], 3)
        second, third = await first.context.new_page(), await first.context.new_page()
        await second.goto(f"/runs/{run['id']}")
        await third.goto("/queue")
        for page in (first, second, third):
            badge = page.get_by_test_id("live-badge")
            await expect(badge).to_have_attribute("data-state", "live")
        seen = await wait_for_points(second, run["id"], 1)
        await first.close()
        await wait_for_points(second, run["id"], seen + 5)
        release_brake(stack)
        wait_for_success(stack, run["id"])
        spooled = read_spooled_points(stack, attempt["id"])
        await wait_for_points(second, run["id"], len(spooled))
        assert await read_points(second, run["id"]) == spooled
        await expect(third.get_by_test_id("live-badge")).to_have_attribute("data-state", "live")

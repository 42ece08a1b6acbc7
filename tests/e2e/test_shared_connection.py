"""The tabs of a real browser share one live connection, which outlives the tab that opened it."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, sync_playwright

from tests.e2e.run_history import get_live_attempt, make_cartpole_definition, read_spooled_episodes
from tests.e2e.test_browser import CHROMIUM, QUIET, READ_RING
from tests.support.process_stack import Stack
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.processes, pytest.mark.browser, pytest.mark.timeout(600)]

MOST_STREAMS = 2
"""Streams that the server permits: the connection of three tabs, and its successor for a moment."""


@pytest.fixture
def limited_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    settings = {
        "PALESTRA_SSE_STREAMS_PER_USER": str(MOST_STREAMS),
        "PALESTRA_SSE_STREAMS_PER_CREDENTIAL": str(MOST_STREAMS),
    }
    with Stack(tmp_path_factory.mktemp("tabs"), settings=settings) as started:
        yield started


@pytest.fixture
def context(limited_stack: Stack) -> Iterator[BrowserContext]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield chromium.new_context(base_url=limited_stack.url)
        chromium.close()


def _is_live(page: Page) -> bool:
    return page.get_by_test_id("live-badge").get_attribute("data-state") == "live"


def _read_points(page: Page, run_id: str) -> list[tuple[int, float]]:
    steps, values = page.evaluate(READ_RING, [run_id, "episode/return"])
    return [(int(step), float(value)) for step, value in zip(steps, values, strict=True)]


def test_tabs_share_a_connection_and_the_last_one_misses_nothing(
    context: BrowserContext, limited_stack: Stack
) -> None:
    stack = limited_stack
    first = context.new_page()
    first.goto(stack.login_url)
    first.wait_for_url("**/")
    (run,) = stack.submit(make_cartpole_definition(12_000, name="seen in tabs"))
    stack.wait_for_run(run["id"], lambda run: run["progress"]["env_step"] > 500, "the run trains")
    first.goto(f"/runs/{run['id']}")
    wait_for(lambda: len(_read_points(first, run["id"])) > 5, "the first tab shows points")
    second, third = context.new_page(), context.new_page()
    second.goto(f"/runs/{run['id']}")
    third.goto("/queue")
    for page in (first, second, third):
        wait_for(lambda page=page: _is_live(page), "each tab is live")  # type: ignore[misc]
    attempt = get_live_attempt(stack, run["id"])
    assert attempt is not None
    seen = len(_read_points(second, run["id"]))
    first.close()
    wait_for(lambda: len(_read_points(second, run["id"])) > seen + 5, "points still arrive")
    stack.wait_for_run(run["id"], lambda run: run["state"] == "succeeded", "the run succeeds")
    spooled = [
        (step, value)
        for _, step, value in read_spooled_episodes(stack.attempt_directory(attempt["id"]))
    ]
    wait_for(lambda: len(_read_points(second, run["id"])) >= len(spooled), "all points came")
    assert _read_points(second, run["id"]) == spooled
    assert _is_live(third)

"""Progress bars of a trainer in the log of its run, from the trainer's output to the page."""

from typing import Any

import pytest
from playwright.async_api import Browser, expect

from tests.e2e.dashboard_site import open_page
from tests.e2e.run_history import make_slow_definition, release_brake, wait_for_success
from tests.support.process_stack import Stack
from tests.support.waiting import wait_for

pytestmark = pytest.mark.processes

TEN_HERTZ = 5
"""Steps between two refreshes of a bar, at the speed of a braked training."""
EVERY_TWO_SECONDS = 100


def submit_with_bar(stack: Stack, bar_steps: int, env_steps: int) -> dict[str, Any]:
    """Submits a training that shows a progress bar; returns its run."""
    definition = make_slow_definition(stack, env_steps, name=f"bar of {bar_steps} steps")
    definition["env"]["kwargs"]["bar_steps"] = bar_steps
    (run,) = stack.submit(definition)
    return run


def list_bars(stack: Stack, run: dict[str, Any], kind: str) -> list[str]:
    """Returns the texts of bars among the complete or the open lines of a run's log."""
    lines = stack.get(f"runs/{run['id']}/log")[kind]
    return [line["text"] for line in lines if " steps |" in line["text"]]


def wait_for_bars(stack: Stack, run: dict[str, Any], count: int) -> list[str]:
    """Waits until the bar of a run has shown `count` further texts; returns them."""
    texts: list[str] = []

    def read() -> bool:
        texts.extend(text for text in list_bars(stack, run, "open_lines") if text not in texts[-1:])
        return len(texts) >= count

    wait_for(read, "the bar moves on")
    return texts


@pytest.mark.parametrize("bar_steps", [TEN_HERTZ, EVERY_TWO_SECONDS])
def test_a_bar_is_one_line_that_is_replaced_until_the_training_ends(
    stack: Stack, bar_steps: int
) -> None:
    run = submit_with_bar(stack, bar_steps, 2_000)
    texts = wait_for_bars(stack, run, 3)
    assert texts == sorted(texts), "each is newer than the one before"
    assert list_bars(stack, run, "lines") == []
    release_brake(stack)
    wait_for_success(stack, run["id"])
    assert list_bars(stack, run, "open_lines") == []
    (last,) = list_bars(stack, run, "lines")
    printed = stack.call_palestra("logs", run["id"]).output.splitlines()
    assert [line for line in printed if " steps |" in line] == [last]


def test_a_bar_goes_on_as_another_line_after_a_resume(stack: Stack) -> None:
    run = submit_with_bar(stack, TEN_HERTZ, 1_000)
    wait_for_bars(stack, run, 1)
    job_id = stack.get(f"runs/{run['id']}")["jobs"][0]["id"]
    stack.post(f"jobs/{job_id}:pause", {})
    stack.wait_for_run(run["id"], lambda run: run["state"] == "paused", "the run is paused")
    paused = list_bars(stack, run, "lines")
    assert (len(paused), list_bars(stack, run, "open_lines")) == (1, [])
    stack.post(f"jobs/{job_id}:resume", {})
    wait_for_bars(stack, run, 1)
    assert list_bars(stack, run, "lines") == paused
    release_brake(stack)
    wait_for_success(stack, run["id"])
    lines = list_bars(stack, run, "lines")
    assert (len(lines), lines[0]) == (2, paused[0])


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.usefixtures("close_pages")
async def test_the_page_of_a_run_replaces_the_text_of_a_bar(browser: Browser, stack: Stack) -> None:
    run = submit_with_bar(stack, TEN_HERTZ, 2_000)
    page = await open_page(browser, stack.url, stack.log_in())
    await page.goto(f"/runs/{run['id']}?tab=log")
    bar = page.get_by_test_id("log").locator("[data-open]")
    await expect(bar).to_have_count(1)
    first = await bar.inner_text()
    await expect(bar).not_to_have_text(first)
    await expect(bar).to_have_count(1)
    release_brake(stack)
    await expect(bar).to_have_count(0)
    await expect(page.get_by_text(" steps |")).to_have_count(1)

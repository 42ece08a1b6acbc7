"""The points of a curve as a page of the dashboard has them, and as the worker spooled them."""

from playwright.async_api import Page

from tests.e2e.run_history import read_spooled_episodes
from tests.support.process_stack import Stack

SERIES = "episode/return"
COUNT = "([run, name]) => window.__palestra?.series(run, name)?.value.length ?? 0"
READ = """
([run, name]) => {
  const { env_step, value } = window.__palestra.series(run, name);
  return [Array.from(env_step), Array.from(value)];
}
"""
HAS = f"([run, name, least]) => ({COUNT})([run, name]) >= least"


async def wait_for_points(page: Page, run_id: str, least: int) -> int:
    """Waits until the page has so many points; returns how many it has."""
    await page.wait_for_function(HAS, arg=[run_id, SERIES, least])
    return int(await page.evaluate(COUNT, [run_id, SERIES]))


async def read_points(page: Page, run_id: str) -> list[tuple[int, float]]:
    """Returns env_step and return of each episode that the page has."""
    steps, values = await page.evaluate(READ, [run_id, SERIES])
    return [(int(step), float(value)) for step, value in zip(steps, values, strict=True)]


def read_spooled_points(stack: Stack, attempt_id: str) -> list[tuple[int, float]]:
    """Returns env_step and return of each episode that an attempt spooled."""
    episodes = read_spooled_episodes(stack.attempt_directory(attempt_id))
    return [(step, value) for _, step, value in episodes]

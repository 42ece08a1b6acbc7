"""The stack, the site and the browser that the tests of an xdist worker share.

A test that needs processes uses `stack`, which gives it a project of its own. A module that tests
pages adds a project to `shared_site`.
"""

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psutil
import pytest
import pytest_asyncio
from playwright import async_api
from playwright.async_api import Browser, async_playwright

from palestra.cli.embedded.child_processes import find_marked
from tests.e2e.chromium import QUIET, find_chromium
from tests.e2e.dashboard_site import DashboardSite, open_site
from tests.e2e.page_faults import PAGE_FAULTS
from tests.e2e.palestra_up import UpProcess
from tests.support.distributions import install
from tests.support.process_stack import REPOSITORY, Stack
from tests.support.waiting import PATIENCE_SECONDS

QUICK = {"PALESTRA_RENEW_SECONDS": "0.5", "PALESTRA_HEARTBEAT_SECONDS": "2"}
"""Settings with which a request to an attempt or a worker reaches it soon."""

HEADED_VARIABLE = "PALESTRA_TEST_HEADED"
"""Set for somebody who wants to see the browser's window."""

async_api.expect.set_options(timeout=1_000 * PATIENCE_SECONDS)


def pytest_runtest_setup() -> None:
    PAGE_FAULTS.is_noting = True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    try:
        return (yield)
    finally:
        PAGE_FAULTS.is_noting = False


@contextmanager
def make_short_directory() -> Iterator[Path]:
    """Makes a directory whose path is short, because it may contain sockets."""
    directory = Path(tempfile.mkdtemp(prefix="plr-", dir="/tmp"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def shared_stack(migrated_sqlite: Path) -> Iterator[Stack]:
    """The stack of this xdist worker; a test that uses it directly sees what others left.

    Its worker has the distribution `tiny-agents` and the environment `SlowPole-v0` in `site`.
    """
    with make_short_directory() as directory:
        site = install(directory / "site")
        shutil.copy(REPOSITORY / "tests" / "support" / "slow_pole.py", site)
        worker = {"PYTHONPATH": str(site)}
        stack = Stack(directory, settings=QUICK, worker=worker, template=migrated_sqlite)
        stack.worker_options = ["--import", "slow_pole"]
        with stack:
            yield stack


_PROJECT_NUMBERS = count(1)


@contextmanager
def make_own_project(shared_stack: Stack) -> Iterator[Stack]:
    """Yields a stack with a project of its own, whose jobs end with the block.

    Processes that were killed or stopped are started again, and further workers are ended.
    """
    shared_stack.start_ended_processes()
    stack = shared_stack.add_project(f"test-{next(_PROJECT_NUMBERS)}")
    try:
        yield stack
    finally:
        (stack.directory / "brake").unlink(missing_ok=True)
        stack.start_ended_processes()
        stack.end_jobs()
        for name in stack.processes.keys() - {"broker", "server", "worker"}:
            stack.kill(name)
            del stack.processes[name]


@pytest.fixture
def stack(shared_stack: Stack) -> Iterator[Stack]:
    """The shared stack with a project of this test alone."""
    with make_own_project(shared_stack) as stack:
        yield stack


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def browser() -> AsyncIterator[Browser]:
    """The Chromium of this xdist worker; each test opens contexts of its own."""
    async with async_playwright() as playwright:
        headless = HEADED_VARIABLE not in os.environ
        browser = await playwright.chromium.launch(
            executable_path=find_chromium(headless=headless), args=QUIET, headless=headless
        )
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def close_pages(browser: Browser, request: pytest.FixtureRequest) -> AsyncIterator[None]:
    """Closes the pages of a test; otherwise they would render during the next one.

    The test fails if the browser reported faults that its mark `page_faults` does not name.
    """
    yield
    for context in browser.contexts:
        await context.close()
    marks = request.node.iter_markers("page_faults")
    unexpected = PAGE_FAULTS.take_unexpected(pattern for mark in marks for pattern in mark.args)
    assert not unexpected, "\n".join(unexpected)


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def shared_site(
    browser: Browser, migrated_sqlite: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[DashboardSite]:
    """The server of this xdist worker for modules of pages, each of which adds a project to it."""
    directory = tmp_path_factory.mktemp("site")
    async with open_site(browser, migrated_sqlite, directory) as site:
        yield site


@pytest.fixture
def directory() -> Iterator[Path]:
    with make_short_directory() as made:
        yield made
        for pid in find_marked(made / ".palestra"):
            psutil.Process(pid).kill()


@pytest.fixture
def up_process(directory: Path) -> Iterator[UpProcess]:
    started = UpProcess(directory)
    yield started
    if started.process.poll() is None:
        started.process.kill()
    started.process.communicate()

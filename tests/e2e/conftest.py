"""Fixtures that start real processes, for tests that kill them."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from playwright import async_api, sync_api

from palestra.cli.embedded.child_processes import find_marked
from tests.e2e.palestra_up import UpProcess
from tests.support.process_stack import Stack

pytestmark = pytest.mark.processes

# Five tests share two cores: how soon a page shows something is measured by benchmarks.pages.
for _api in (sync_api, async_api):
    _api.expect.set_options(timeout=60_000)


@pytest.fixture
def stack() -> Iterator[Stack]:
    """A separate stack of processes for each test, since tests kill them.

    Its path is short because it may contain sockets.
    """
    directory = Path(tempfile.mkdtemp(prefix="plr-", dir="/tmp"))
    try:
        with Stack(directory) as running:
            yield running
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="module")
def shared_stack() -> Iterator[Stack]:
    """A stack for the tests of a module that kill none of its processes."""
    directory = Path(tempfile.mkdtemp(prefix="plr-", dir="/tmp"))
    try:
        with Stack(directory) as running:
            yield running
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def directory() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="plr-", dir="/tmp"))
    yield made
    for pid in find_marked(made / ".palestra"):
        psutil.Process(pid).kill()
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture
def up_process(directory: Path) -> Iterator[UpProcess]:
    started = UpProcess(directory)
    yield started
    if started.process.poll() is None:
        started.process.kill()
    started.process.communicate()

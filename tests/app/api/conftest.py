"""A server that runs in the test's process, once per kind of database."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.app.api.serving import AppServer, serve


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def shared(
    module_database_url: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[AppServer]:
    """A server that all tests of a module share.

    Tests must not depend on each other's data.
    """
    async with serve(module_database_url, tmp_path_factory.mktemp("data")) as served:
        yield served

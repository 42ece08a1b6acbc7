"""Fixtures that run the server in the test's process, once per kind of database."""

import shutil
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from app.db.migrate import upgrade
from tests.app.api.serving import AppServer, serve
from tests.support.databases import delete_rows
from tests.support.postgres import PostgresServer


@pytest.fixture(scope="session")
def api_postgres(postgres_server: PostgresServer, worker_id: str) -> str:
    """URL of a PostgreSQL database for servers that several tests share."""
    url = postgres_server.create_database(f"api_{worker_id}")
    upgrade(url)
    return url


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def module_database_url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """URL of a database that the tests of a module share."""
    if request.param == "postgresql":
        url: str = request.getfixturevalue("api_postgres")
        delete_rows(url)
        return url
    target = tmp_path_factory.mktemp("shared") / "palestra.db"
    shutil.copy(request.getfixturevalue("migrated_sqlite"), target)
    return f"sqlite:///{target}"


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def shared(
    module_database_url: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[AppServer]:
    """A server that all tests of a module share.

    Tests must not depend on each other's data.
    """
    async with serve(module_database_url, tmp_path_factory.mktemp("data")) as served:
        yield served

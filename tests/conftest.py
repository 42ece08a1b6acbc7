"""Fixtures of the whole suite.

Every test that uses `database` runs on SQLite, and on a real PostgreSQL: in `make test` where the
test or its module is marked `both_databases`, in `make test-all` always.
"""

import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from hypothesis import settings

from app.db.clock import SKEW
from app.db.engine import Database
from app.db.migrate import upgrade
from tests.support import postgres
from tests.support.databases import delete_rows
from tests.support.server_fixture import World, make_world
from tests.support.work_trees import directory_without_git as directory_without_git
from tests.support.work_trees import tree as tree

pytest_plugins = ["tests.support.durations", "tests.support.scheduling"]

# As in a trainer, and set before torch is imported. Two threads in each of several processes on two
# processors wait in loops for each other, which takes ten times as long.
os.environ["OMP_NUM_THREADS"] = "1"

# `make test` draws the same examples in each run, `make test-all` others. None has a time limit.
settings.register_profile("short", deadline=None, max_examples=40, derandomize=True)
settings.register_profile("whole", deadline=None)
settings.load_profile("short")


def pytest_configure(config: pytest.Config) -> None:
    """Sets the directory of this run's PostgreSQL before xdist starts its workers.

    All xdist workers share it.
    """
    os.environ["PALESTRA_WORKER_COMPILE"] = "eager"
    # A shell starts background commands with SIGINT ignored, and the processes of tests inherit it.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput") and postgres.ROOT_VARIABLE not in os.environ:
        os.environ[postgres.ROOT_VARIABLE] = str(postgres.make_root())
        config.add_cleanup(_stop_postgres)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leaves PostgreSQL to `make test-all` in tests that are not marked `both_databases`."""
    for item in items:
        callspec = getattr(item, "callspec", None)
        values = () if callspec is None else callspec.params.values()
        if (
            any(type(value) is str and value == "postgresql" for value in values)
            and item.get_closest_marker("both_databases") is None
        ):
            item.add_marker("extended")


def _stop_postgres() -> None:
    postgres.stop(Path(os.environ.pop(postgres.ROOT_VARIABLE)))


@pytest.fixture(autouse=True)
def _denormal_numbers() -> Iterator[None]:
    """Enables denormal numbers again after a test in which trainer code disabled them.

    Hypothesis requires denormal numbers.
    """
    yield
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_flush_denormal(False)


@pytest.fixture(scope="session")
def postgres_server() -> postgres.PostgresServer:
    """The PostgreSQL server of this test run, started when a test first uses it."""
    return postgres.ensure_server(Path(os.environ[postgres.ROOT_VARIABLE]))


@pytest.fixture(scope="session")
def migrated_postgres(postgres_server: postgres.PostgresServer, worker_id: str) -> str:
    """URL of this xdist worker's PostgreSQL database, with the schema."""
    return postgres_server.create_migrated_database(f"test_{worker_id}")


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Path of a SQLite file with the schema and no rows, which tests copy."""
    path = tmp_path_factory.mktemp("sqlite") / "template.db"
    upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture
def sqlite_file(migrated_sqlite: Path, tmp_path: Path) -> Path:
    """Path of a SQLite file with the schema and no rows in the test's own directory."""
    return shutil.copy(migrated_sqlite, tmp_path / "palestra.db")


def _copy(template: Path, name: str) -> str:
    """Copies a SQLite file beside itself, in place of a former copy; returns the copy's URL."""
    target = template.with_name(name)
    for old in (name, f"{name}-wal", f"{name}-shm"):
        target.with_name(old).unlink(missing_ok=True)
    shutil.copy(template, target)
    return f"sqlite:///{target}"


@pytest.fixture(scope="session")
def open_databases() -> dict[str, Database]:
    """The open databases of this process, by URL.

    They are shared because a new engine compiles every statement again, which takes half of a
    test's time.
    """
    return {}


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """URL of an empty database with the schema, once for each kind of database."""
    if request.param == "postgresql":
        url: str = request.getfixturevalue("migrated_postgres")
        delete_rows(url)
        return url
    return _copy(request.getfixturevalue("migrated_sqlite"), "palestra.db")


@asynccontextmanager
async def _open(url: str, open_databases: dict[str, Database]) -> AsyncIterator[Database]:
    if url not in open_databases:
        open_databases[url] = Database(url, pool_size=60)
    opened = open_databases[url]
    yield opened
    opened.listeners.clear()
    await opened.dispose()


@pytest.fixture
async def database(
    database_url: str, open_databases: dict[str, Database]
) -> AsyncIterator[Database]:
    """An empty database with the schema; the test runs once for each kind of database."""
    async with _open(database_url, open_databases) as opened:
        yield opened


@pytest.fixture
async def world(database: Database) -> World:
    """A project with people and a worker's credential in an empty database."""
    return await make_world(database)


@pytest.fixture(scope="session")
def module_postgres(postgres_server: postgres.PostgresServer, worker_id: str) -> str:
    """URL of this xdist worker's PostgreSQL database for tests that share one."""
    return postgres_server.create_migrated_database(f"module_{worker_id}")


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def module_database_url(request: pytest.FixtureRequest) -> str:
    """URL of a database that the tests of a module share, once for each kind of database.

    It is empty at first. Tests must not depend on each other's data.
    """
    if request.param == "postgresql":
        url: str = request.getfixturevalue("module_postgres")
        delete_rows(url)
        return url
    return _copy(request.getfixturevalue("migrated_sqlite"), "module.db")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def module_database(
    module_database_url: str, open_databases: dict[str, Database]
) -> AsyncIterator[Database]:
    """The database of `module_database_url`, for tests that run in the module's event loop."""
    async with _open(module_database_url, open_databases) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def module_world(module_database: Database) -> World:
    """A project with people and a worker's credential in a database that a module shares."""
    return await make_world(module_database)


@pytest.fixture(autouse=True)
def _reset_clock_skew() -> Iterator[None]:
    yield
    SKEW.seconds = 0.0

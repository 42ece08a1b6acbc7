"""Fixtures of the whole suite.

Every test that uses `database` runs on SQLite, and on a real PostgreSQL: in `make test` where its
module is marked `both_databases`, in `make test-all` always.
"""

import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from app.db.clock import SKEW
from app.db.engine import Database
from app.db.migrate import upgrade
from tests.support import postgres
from tests.support.databases import delete_rows
from tests.support.server_fixture import World, make_world
from tests.support.work_trees import directory_without_git as directory_without_git
from tests.support.work_trees import tree as tree

pytest_plugins = ["tests.support.durations"]


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
    """Leaves PostgreSQL to `make test-all` in modules that are not marked `both_databases`."""
    for item in items:
        callspec = getattr(item, "callspec", None)
        if (
            callspec is not None
            and "postgresql" in callspec.params.values()
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
    url = postgres_server.create_database(f"test_{worker_id}")
    upgrade(url)
    return url


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Path of a SQLite file with the schema and no rows, which tests copy."""
    path = tmp_path_factory.mktemp("sqlite") / "template.db"
    upgrade(f"sqlite:///{path}")
    return path


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
    template: Path = request.getfixturevalue("migrated_sqlite")
    target = template.with_name("palestra.db")
    for name in (target.name, f"{target.name}-wal", f"{target.name}-shm"):
        target.with_name(name).unlink(missing_ok=True)
    shutil.copy(template, target)
    return f"sqlite:///{target}"


@pytest.fixture
async def database(
    database_url: str, open_databases: dict[str, Database]
) -> AsyncIterator[Database]:
    """An empty database with the schema; the test runs once for each kind of database."""
    if database_url not in open_databases:
        open_databases[database_url] = Database(database_url, pool_size=60)
    opened = open_databases[database_url]
    yield opened
    opened.listeners.clear()
    await opened.dispose()


@pytest.fixture
async def world(database: Database) -> World:
    """A project with people and a worker's credential in an empty database."""
    return await make_world(database)


@pytest.fixture(autouse=True)
def _reset_clock_skew() -> Iterator[None]:
    yield
    SKEW.seconds = 0.0

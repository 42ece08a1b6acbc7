"""What the drivers use of aiosqlite and psycopg beyond their documentation.

A version without it must not be installed: the bounds in `pyproject.toml` move with this test.
"""

import inspect
import sqlite3
import tomllib
from importlib import metadata

import aiosqlite
import psycopg
import pytest
from packaging.requirements import Requirement

from app.db.drivers.sqlite import SingleCallConnection
from tests.support.documents import REPOSITORY


@pytest.mark.parametrize("name", ["aiosqlite", "psycopg"])
def test_versions_of_the_libraries_have_an_upper_bound(name: str) -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    requirements = map(Requirement, project["optional-dependencies"]["server"])
    specifier = next(one.specifier for one in requirements if one.name == name)
    assert any(bound.operator == "<" for bound in specifier), f"{name} has no upper bound"
    assert specifier.contains(metadata.version(name)), f"{name} is beyond its bound"


@pytest.mark.parametrize(
    ("owner", "name", "parameters"),
    [
        (aiosqlite.Connection, "__init__", ["self", "connector", "iter_chunk_size", "loop"]),
        (aiosqlite.Connection, "_execute", ["self", "fn", "args", "kwargs"]),
        (aiosqlite.Connection, "stop", ["self"]),
        (psycopg.AsyncConnection, "__init__", ["self", "pgconn", "row_factory"]),
        (psycopg.AsyncConnection, "commit", ["self"]),
        (psycopg.AsyncConnection, "rollback", ["self"]),
        (psycopg.AsyncConnection, "pipeline", ["self"]),
    ],
)
def test_the_libraries_have_what_the_drivers_override_and_call(
    owner: type, name: str, parameters: list[str]
) -> None:
    found = list(inspect.signature(getattr(owner, name)).parameters)
    assert found == parameters, (
        f"{owner.__module__}.{owner.__name__}.{name} has changed: read app/db/drivers, adapt it, "
        "and move the upper bound in pyproject.toml"
    )


async def test_a_connection_of_aiosqlite_has_a_thread_and_the_connection_of_sqlite3() -> None:
    connection = SingleCallConnection(lambda: sqlite3.connect(":memory:"), iter_chunk_size=64)
    async with connection:
        for attribute in ("_thread", "_conn"):
            assert hasattr(connection, attribute), (
                f"aiosqlite.Connection.{attribute} is gone: read app/db/drivers/sqlite.py, adapt "
                "it, and move the upper bound in pyproject.toml"
            )
        assert not connection.has_ended

"""What differs between SQLite and PostgreSQL is tested on both in `make test`.

Tests that are marked `both_databases` run there on PostgreSQL, too; the other tests that use a
database do so in `make test-all`. A mark says why, and names in `of` the modules of `app` whose
statements, transactions or locks differ between the databases and whose claims the tests keep.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.documents import REPOSITORY

ONE_DATABASE = {
    "app.db.repositories.free_pages": "its statements are those of SQLite alone",
    "app.db.drivers.sqlite": "it is the driver of SQLite",
    "app.db.sqlite_statistics": "its statements are those of SQLite alone",
    "app.db.vacuum": "its statements are those of SQLite alone",
    "app.settings": "it sends no statement",
}
"""Modules that name a database and need no test on both, and why."""
_IMPORTS = {
    "aiosqlite",
    "app.db.drivers.postgresql",
    "app.db.upsert",
    "psycopg",
    "sqlalchemy.dialects",
    "sqlite3",
}
_NAMES = re.compile(r"dialect|dialect_name|with_for_update|on_conflict_do_\w+")
_KEYWORDS = re.compile(r"(sqlite|postgresql)_\w+")
_TEXTS = re.compile(r"\b(BEGIN|LISTEN|NOTIFY|pg_\w+|postgresql|sqlite\w*)\b")
_REASON = re.compile(r"[A-Z][^.]+( [^.]+)+\.")


@dataclass(frozen=True)
class Mark:
    """A mark `both_databases` of a module of tests, or of a test."""

    place: str
    reason: str
    modules: tuple[str, ...]


def differs_by_database(source: str) -> bool:
    """Tells whether a module distinguishes the databases, or locks rows."""
    tree = ast.parse(source)
    documentation = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    return any(id(node) not in documentation and _is_sign(node) for node in ast.walk(tree))


def _is_sign(node: ast.AST) -> bool:
    match node:
        case ast.Import(names):
            return any(name.name in _IMPORTS for name in names)
        case ast.ImportFrom(str(module)):
            return bool({module, module.rpartition(".")[0]} & _IMPORTS)
        case ast.Attribute(attr=name) | ast.arg(arg=name):
            return bool(_NAMES.fullmatch(name))
        case ast.keyword(str(name)):
            return bool(_KEYWORDS.fullmatch(name))
        case ast.Constant(str(text)):
            return bool(_TEXTS.search(text))
        case _:
            return False


def list_marks(place: str, source: str) -> list[Mark]:
    """Returns the marks in the source of a module of tests."""
    return [
        Mark(f"{place}:{node.lineno}", *_read_arguments(node))
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and _is_mark(node.func, "both_databases")
    ]


def _read_arguments(mark: ast.Call) -> tuple[str, tuple[str, ...]]:
    given = {keyword.arg: ast.literal_eval(keyword.value) for keyword in mark.keywords}
    reason = ast.literal_eval(mark.args[0]) if mark.args else ""
    return reason, given.get("of", ())


def _is_mark(node: ast.AST, *names: str) -> bool:
    return ast.unparse(node) in {f"pytest.mark.{name}" for name in names}


def list_unmarked(source: str) -> list[str]:
    """Returns what asks for PostgreSQL by itself in a module of tests and is not marked."""
    tree = ast.parse(source)
    module_marks = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
    ]
    if any(_has_mark(node) for node in module_marks):
        return []
    return [
        ast.unparse(call)
        for node in tree.body
        if not any(_has_mark(part) for part in getattr(node, "decorator_list", ()))
        for call in ast.walk(node)
        if isinstance(call, ast.Call) and _asks_for_postgresql(call)
    ]


def _has_mark(node: ast.AST) -> bool:
    return any(_is_mark(part, "both_databases", "extended") for part in ast.walk(node))


def _asks_for_postgresql(call: ast.Call) -> bool:
    return ast.unparse(call.func) in {"pytest.fixture", "pytest.mark.parametrize"} and any(
        isinstance(part, ast.Constant) and part.value == "postgresql" for part in ast.walk(call)
    )


def _name_module(path: Path) -> str:
    return ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)


def _read_tests(word: str) -> Iterator[tuple[str, str]]:
    """Yields place and source of the modules of tests that contain a word."""
    for path in sorted((REPOSITORY / "tests").rglob("test_*.py")):
        if word in (source := path.read_text("utf-8")):
            yield str(path.relative_to(REPOSITORY)), source


@pytest.fixture(scope="module")
def differing() -> set[str]:
    """Names of the modules of `app` that differ by database."""
    paths = (REPOSITORY / "app").rglob("*.py")
    return {_name_module(path) for path in paths if differs_by_database(path.read_text("utf-8"))}


@pytest.fixture(scope="module")
def marks() -> list[Mark]:
    return [
        mark
        for place, source in _read_tests("both_databases")
        for mark in list_marks(place, source)
    ]


def test_modules_that_differ_by_database_are_tested_on_both(
    differing: set[str], marks: list[Mark]
) -> None:
    named = {module for mark in marks for module in mark.modules}
    untested = sorted(differing - named - ONE_DATABASE.keys())
    assert not untested, "mark a test of each `both_databases`, and name the module in `of`"


def test_marks_name_modules_that_differ_by_database(differing: set[str], marks: list[Mark]) -> None:
    stale = [
        f"{mark.place} names {module}"
        for mark in marks
        for module in mark.modules
        if module not in differing - ONE_DATABASE.keys()
    ]
    assert not stale, "remove the names of modules that do not differ"
    assert ONE_DATABASE.keys() <= differing


def test_each_mark_has_a_reason_and_a_module(marks: list[Mark]) -> None:
    faulty = [mark for mark in marks if not (_REASON.fullmatch(mark.reason) and mark.modules)]
    assert not faulty, 'write both_databases("One sentence.", of=("app.module",))'


def test_tests_that_ask_for_postgresql_themselves_are_marked() -> None:
    unmarked = {
        place: calls
        for place, source in _read_tests("postgresql")
        if (calls := list_unmarked(source))
    }
    assert not unmarked, "mark the module, or the test, `both_databases` or `extended`"


@pytest.mark.parametrize(
    "source",
    [
        "import sqlite3",
        "from app.db.upsert import insert_new",
        "from sqlalchemy.dialects.postgresql import JSONB",
        "name = session.get_bind().dialect.name",
        "def build(dialect: str) -> None: ...",
        "query.with_for_update(read=True)",
        "statement.on_conflict_do_nothing()",
        "Index(None, 'a', sqlite_where=text('b'))",
        "query = 'SELECT pg_advisory_lock(1)'",
        "connection.exec_driver_sql('BEGIN IMMEDIATE')",
    ],
)
def test_a_module_that_differs_is_found(source: str) -> None:
    assert differs_by_database(source)


def test_a_module_that_only_speaks_of_a_database_does_not_differ() -> None:
    assert not differs_by_database('"""On sqlite, BEGIN."""\nquery = select(Row)\n')


def test_marks_of_modules_and_tests_are_found() -> None:
    source = (
        'pytestmark = [pytest.mark.both_databases("Locks differ.", of=("app.a", "app.b"))]\n'
        "@pytest.mark.both_databases()\ndef test_a(): ...\n"
    )
    assert {mark.place: mark for mark in list_marks("t.py", source)} == {
        "t.py:1": Mark("t.py:1", "Locks differ.", ("app.a", "app.b")),
        "t.py:2": Mark("t.py:2", "", ()),
    }


@pytest.mark.parametrize(
    ("mark", "is_marked"),
    [("both_databases('R.', of=())", True), ("extended", True), ("slow", False)],
)
def test_unmarked_tests_on_postgresql_are_found(mark: str, *, is_marked: bool) -> None:
    fixture = "@pytest.fixture(params=['sqlite', 'postgresql'])\ndef url(): ...\n"
    test = "@pytest.mark.parametrize('url', ['postgresql'])\ndef test_a(url): ...\n"
    assert len(list_unmarked(f"pytestmark = pytest.mark.{mark}\n{fixture}{test}")) == (
        0 if is_marked else 2
    )
    assert len(list_unmarked(f"@pytest.mark.{mark}\n{test}{fixture}")) == 2 - is_marked

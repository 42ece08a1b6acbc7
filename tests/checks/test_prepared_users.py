"""Which modules may use the prepared way to the database, and the figure that needs it."""

import ast
from pathlib import Path

from tests.support.documents import REPOSITORY

PREPARED = "app.db.prepared"
USERS = {
    "app.db.repositories.callers": "GET /session (0022)",
    "app.db.repositories.compaction": "ingest_sustained",
    "app.db.repositories.curve_queries": "curve_reads",
    "app.db.repositories.epochs": "ingest_sustained",
    "app.db.repositories.events": "ingest_sustained, stream_clients",
    "app.db.repositories.listed_runs": "list_queries",
    "app.db.repositories.queried_runs": "curve_reads",
    "app.db.repositories.snapshots": "curve_reads",
    "app.db.repositories.summaries": "ingest_sustained",
    "app.db.repositories.telemetry": "ingest_sustained",
    "app.db.repositories.writers": "ingest_sustained",
    "app.services.runs.runs": "list_queries",
    "app.services.views.runs": "list_queries",
}
"""Modules that use it, and the benchmarks, or the decision, with the figure that needs it."""
_OF_DATABASES = {"open_direct", "open_without_transaction"}
"""Methods of `Database` that are for the prepared way alone."""


def list_modules() -> dict[str, ast.Module]:
    return {
        ".".join(path.relative_to(REPOSITORY).with_suffix("").parts): ast.parse(path.read_text())
        for path in (REPOSITORY / "app").rglob("*.py")
    }


def uses_prepared(tree: ast.Module) -> bool:
    return any(_is_use(node) for node in ast.walk(tree))


def _is_use(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        names = {f"{node.module}.{alias.name}" for alias in node.names}
        return node.module == PREPARED or PREPARED in names
    return isinstance(node, ast.Attribute) and node.attr in _OF_DATABASES


def test_only_listed_modules_use_the_prepared_way() -> None:
    users = {name for name, tree in list_modules().items() if uses_prepared(tree)} - {PREPARED}
    assert users == USERS.keys(), "use a session and select(), or list the figure that needs more"


def test_each_figure_is_one_of_a_benchmark_or_a_decision() -> None:
    for reason in USERS.values():
        for name in reason.partition(" (")[0].split(", ") if "(" not in reason else ():
            assert Path(REPOSITORY / "benchmarks" / f"{name}.py").exists(), name


def test_uses_are_found() -> None:
    assert uses_prepared(ast.parse("from app.db import prepared"))
    assert uses_prepared(ast.parse("from app.db.prepared import Read"))
    assert uses_prepared(ast.parse("direct = database.open_direct()"))
    assert not uses_prepared(ast.parse("from app.db import engine"))

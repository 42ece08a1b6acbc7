"""Only repositories write rows: services call their functions."""

import ast
from collections.abc import Iterator
from pathlib import Path

from app.db.models import Base

APP = Path(__file__).parents[2] / "app"
CALLERS = ("services", "daemons", "api")
WRITES = {"add", "add_all", "delete", "execute", "flush", "merge", "refresh", "scalar", "scalars"}
COLUMNS = {attribute.key for mapper in Base.registry.mappers for attribute in mapper.column_attrs}
OBJECTS = {
    "api/answer_route.py:handle_versioned": "an answer",
    "api/answer_route.py:get_route_handler": "an answer",
    "api/security_middleware.py:_serve": "an answer",
    "services/audit/refusals.py:note": "refusals that are counted before they are rows",
    "services/curves/summaries.py:_add_new": "a summary that is computed",
    "services/curves/summaries.py:_restore": "a summary that is computed",
    "services/telemetry/record_rows.py:_add_curves": "a series that batches add points to",
    "services/telemetry/record_rows.py:update_progress": "a `CarriedRun`",
}
"""Functions that set attributes with the name of a column on objects that are no rows."""


def list_functions() -> Iterator[tuple[str, ast.AST]]:
    """Yields the functions of services, daemons and routes by path and name."""
    for folder in CALLERS:
        for path in sorted((APP / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield f"{path.relative_to(APP)}:{node.name}", node


def test_services_execute_no_statements() -> None:
    calls = [
        f"{name}: session.{node.func.attr}"
        for name, function in list_functions()
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "session"
        and node.func.attr in WRITES
    ]
    assert calls == []


def test_services_set_no_columns() -> None:
    """By the names of attributes that are assigned to anything but `self`."""
    assigned = [
        f"{name}: {ast.unparse(node)}"
        for name, function in list_functions()
        if name not in OBJECTS
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and node.attr in COLUMNS
        and not (isinstance(node.value, ast.Name) and node.value.id == "self")
    ]
    assert assigned == []


def test_exceptions_are_needed() -> None:
    assert OBJECTS.keys() <= {name for name, _ in list_functions()}

"""Private names of libraries stand in few places, so that their next versions break few of them."""

import ast
from collections.abc import Iterator

import pytest

from tests.support.documents import REPOSITORY

PERMITTED = {
    "aiosqlite": ("app.db.drivers",),
    "psycopg": ("app.db.drivers",),
    "uvicorn.protocols": ("app.connections",),
}
"""Libraries, and parts of them, that only some modules build upon: all others may not import them.

`app.db.prepared` imports psycopg for its errors and the type of its cursor.
"""
_PUBLIC_USES = {("app.db.prepared", "psycopg")}
_OWN = {"self", "cls"}
_OF_NAMED_TUPLES = {"_asdict", "_fields", "_make", "_replace"}


def list_modules() -> dict[str, ast.Module]:
    return {
        ".".join(path.relative_to(REPOSITORY).with_suffix("").parts): ast.parse(path.read_text())
        for path in sorted((REPOSITORY / "app").rglob("*.py"))
    }


def find_private_names(tree: ast.Module) -> Iterator[str]:
    """Yields imports of private names, and private attributes of objects of other modules."""
    own = {*_OF_NAMED_TUPLES, *_list_own(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.module.startswith("app"):
            names = [*node.module.split("."), *(alias.name for alias in node.names)]
            yield from (f"{node.module}: {name}" for name in names if _is_private(name))
        elif isinstance(node, ast.Attribute) and _is_private(node.attr):
            owner = node.value
            is_own = isinstance(owner, ast.Name) and owner.id in _OWN
            if not is_own and node.attr not in own:
                yield ast.unparse(node)


def _list_own(tree: ast.Module) -> Iterator[str]:
    """Yields the private attributes that the classes of a module have themselves."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def find_imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def test_private_names_of_libraries_stand_in_the_drivers_alone() -> None:
    found = {
        name: private
        for name, tree in list_modules().items()
        if (private := list(find_private_names(tree)))
    }
    assert {name for name in found if not name.startswith("app.db.drivers")} == set()


def test_what_we_build_upon_is_imported_where_it_is_permitted() -> None:
    wrong = [
        (name, library)
        for name, tree in list_modules().items()
        for library, modules in PERMITTED.items()
        for imported in find_imports(tree)
        if imported.startswith(library) and not name.startswith(modules)
    ]
    assert set(wrong) == _PUBLIC_USES


@pytest.mark.parametrize(
    "source",
    [
        "from fastapi._compat import ModelField",
        "from starlette.routing import _DefaultLifespan",
        "found = request._form",
        "Row.__table__._columns",
    ],
)
def test_private_names_are_found(source: str) -> None:
    assert list(find_private_names(ast.parse(source)))


def test_own_names_are_no_finding() -> None:
    source = (
        "from app.db.engine import _begin\nself._value = other._value + cls._sum\nrow._asdict()"
    )
    assert list(find_private_names(ast.parse(source))) == []

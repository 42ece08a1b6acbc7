"""Names in app, palestra and workers use the words of docs/glossary.md, not those it replaces."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.support.documents import REPOSITORY

PACKAGES = ("app", "palestra", "workers")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

EXEMPT = {
    "_LONE_SURROGATE": "Unicode calls half of a surrogate pair a lone surrogate",
    "_TRIAL_BYTES": "a trial write to a store, not a run",
    "trial": "a trial write to a database, not a run",
}
"""Names that may use a replaced word, each with the reason."""

NOT_YET: frozenset[str] = frozenset()
"""Names that are still to be renamed; no name may be added."""


def read_replaced_words(page: str) -> set[str]:
    """Returns the words in the last column of the glossary's tables."""
    cells = (line.split("|")[3] for line in page.splitlines() if line.startswith("| "))
    words = {word.strip() for cell in cells for word in cell.split(",")}
    return words - {"", "replaces"}


def find_names(source: str) -> Iterator[str]:
    """Returns the names that a module defines: classes, functions, parameters, variables,
    attributes.
    """
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.arg():
                yield node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.attr


def split_name(name: str) -> set[str]:
    """Returns the words of a name in snake_case or CamelCase, in lower case."""
    return {word.lower() for word in _WORD.findall(name)}


def find_names_of_packages() -> dict[str, str]:
    """Returns all names of the packages, modules and folders included, each with one
    defining path.
    """
    places = {}
    for package in PACKAGES:
        for file in sorted((REPOSITORY / package).rglob("*.py")):
            path = file.relative_to(REPOSITORY)
            for name in (*path.with_suffix("").parts, *find_names(file.read_text())):
                places.setdefault(name, path.as_posix())
    return places


def test_names_use_no_replaced_word() -> None:
    replaced = read_replaced_words((REPOSITORY / "docs/glossary.md").read_text())
    wrong = {
        name: path for name, path in find_names_of_packages().items() if split_name(name) & replaced
    }
    assert not wrong.keys() - EXEMPT.keys() - NOT_YET, "use the words of docs/glossary.md"


def test_the_glossary_lists_replaced_words() -> None:
    page = (
        "| word | meaning | replaces |\n|---|---|---|\n| job | Work | chore, task |\n| run | A | "
        "|\n"
    )
    assert read_replaced_words(page) == {"chore", "task"}


@pytest.mark.parametrize(
    ("source", "word"),
    [
        ("class HeardVector: ...", "heard"),
        ("def _bury(dead): ...", "bury"),
        ("def f(*, told): ...", "told"),
        ("self.row_ledger = 1", "ledger"),
        ("GPULedger = 1", "ledger"),
    ],
)
def test_a_replaced_word_is_found(source: str, word: str) -> None:
    assert any(word in split_name(name) for name in find_names(source))

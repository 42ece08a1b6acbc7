"""No public class name is defined twice in app, palestra and workers."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache

from tests.support.documents import REPOSITORY

PACKAGES = ("app", "palestra", "workers")
BOTH_SIDES = frozenset(
    {
        "ConflictError",
        "ForbiddenError",
        "NotFoundError",
        "TooManyRequestsError",
        "UnauthenticatedError",
    },
)
"""Client and server class of one problem code: `palestra.errors` and `app.domain.errors`."""
SIDES = ["app/domain/errors.py", "palestra/errors.py"]


def read_sources() -> dict[str, str]:
    """Returns the source of each module by its path in the repository."""
    paths = (path for package in PACKAGES for path in sorted((REPOSITORY / package).rglob("*.py")))
    return {path.relative_to(REPOSITORY).as_posix(): path.read_text() for path in paths}


def find_public_classes(source: str) -> Iterable[str]:
    """Returns the names of a module's classes without a leading underscore, nested
    ones included.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name


def find_duplicate_definitions(modules: Mapping[str, str]) -> dict[str, list[str]]:
    """Returns the defining modules of each class name with more than one definition."""
    places = defaultdict(list)
    for path, source in modules.items():
        for name in find_public_classes(source):
            places[name].append(path)
    return {name: paths for name, paths in places.items() if len(paths) > 1}


@cache
def find_duplicate_definitions_of_packages() -> dict[str, list[str]]:
    return find_duplicate_definitions(read_sources())


def test_a_public_class_name_has_one_definition() -> None:
    twice = find_duplicate_definitions_of_packages()
    wrong = {name: paths for name, paths in twice.items() if name not in BOTH_SIDES}
    assert not wrong, "rename the classes, so that each name has one definition"


def test_the_error_pairs_are_the_client_and_the_server_side() -> None:
    twice = find_duplicate_definitions_of_packages()
    assert {name: sorted(twice[name]) for name in BOTH_SIDES} == dict.fromkeys(BOTH_SIDES, SIDES)


def test_a_second_definition_is_found() -> None:
    modules = {
        "a.py": "class Batch: ...\nclass _Own: ...\n",
        "b.py": "class Outer:\n    class Batch: ...\nclass _Own: ...\n",
    }
    assert find_duplicate_definitions(modules) == {"Batch": ["a.py", "b.py"]}

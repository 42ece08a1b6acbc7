"""Modules that share a stack or a site are in a group, so that few xdist workers start one."""

import re
from pathlib import Path

import pytest

from tests.support.scheduling import GROUPS, LONG

REPOSITORY = Path(__file__).parents[2]
E2E = REPOSITORY / "tests" / "e2e"
USES = {
    "stack": re.compile(
        r"\bshared_stack\b|^(?:async )?def test_\w+\([^)]*\bstack: Stack\b", re.MULTILINE
    ),
    "site": re.compile(r"\bshared_site\b"),
}
"""How a module names what it shares, by the first word of its group."""


@pytest.mark.parametrize("shared", USES)
def test_modules_that_share_a_stack_or_a_site_are_in_a_group(shared: str) -> None:
    grouped = [
        module
        for group, modules in GROUPS.items()
        if group.startswith(shared)
        for module in modules
    ]
    users = [path.stem for path in E2E.glob("test_*.py") if USES[shared].search(path.read_text())]
    assert sorted(grouped) == sorted(users)


@pytest.mark.parametrize("module", LONG)
def test_long_modules_exist(module: str) -> None:
    assert (REPOSITORY / module).is_file()

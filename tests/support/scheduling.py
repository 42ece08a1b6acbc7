"""A pytest plugin: modules that share a stack or a site run in one xdist worker (loadscope).

Otherwise each xdist worker would start a stack and a site, which also take processor time while no
test uses them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

GROUPS: Final[Mapping[str, Sequence[str]]] = {
    "stack: faults": (
        "test_partitions",
        "test_worker_faults",
        "test_several_slots",
        "test_server_faults",
        "test_browser",
        "test_shared_connection",
    ),
    "stack: runs": (
        "test_full_path",
        "test_schedules",
        "test_third_party",
        "test_results",
        "test_first_day",
        "test_secret_rotation",
    ),
    "site: parts of pages": ("test_accessibility", "test_curve_pages", "test_statistics_pages"),
    "site: pages": (
        "test_runs_page",
        "test_pages",
        "test_submission_pages",
        "test_management_pages",
        "test_account_page",
        "test_home_page",
    ),
}
"""Modules of `tests/e2e` by group."""
_GROUP_OF: Final = {
    f"tests/e2e/{module}.py": group for group, modules in GROUPS.items() for module in modules
}


def _get_module(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the groups first, since what begins last should not take longest."""
    items.sort(key=lambda item: _get_module(item.nodeid) not in _GROUP_OF)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> "_GroupScheduling | None":
    return _GroupScheduling(config, log) if config.getoption("dist") == "loadscope" else None


class _GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]
    def _split_scope(self, nodeid: str) -> str:
        """Returns the group of a test, else its module."""
        module = _get_module(nodeid)
        return _GROUP_OF.get(module, module)

"""A pytest plugin: modules that share a stack or a site run in one xdist worker (loadscope).

Otherwise each xdist worker would start a stack and a site, which also take processor time while no
test uses them. Every other module is a unit of its own. What begins last should not take longest:
groups come first, then the modules of `LONG`, then the others, those with most tests first.
"""

from collections import Counter
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
        "test_progress_bars",
    ),
    "site: parts of pages": ("test_accessibility", "test_curve_pages", "test_statistics_pages"),
    "site: pages": (
        "test_runs_page",
        "test_pages",
        "test_submission_pages",
        "test_management_pages",
        "test_account_page",
        "test_home_page",
        "test_public_path",
    ),
}
"""Modules of `tests/e2e` by group."""
LONG: Final = (
    "tests/app/services/test_explanations_hold.py",
    "tests/app/services/test_free_pages.py",
    "tests/app/services/test_list_filters.py",
    "tests/app/services/test_migrations.py",
    "tests/app/services/test_project_removal.py",
    "tests/app/services/test_queue_histories.py",
    "tests/app/services/test_several_keys.py",
    "tests/app/services/test_summaries.py",
    "tests/app/services/test_thresholds.py",
    "tests/app/services/test_usage_ledger.py",
    "tests/app/test_schemathesis.py",
    "tests/e2e/test_chaos.py",
    "tests/e2e/test_demo.py",
    "tests/e2e/test_first_experiment.py",
    "tests/e2e/test_full_blob_disk.py",
    "tests/e2e/test_own_pages.py",
    "tests/e2e/test_queue_page.py",
    "tests/e2e/test_queue_shares.py",
    "tests/e2e/test_several_servers.py",
    "tests/e2e/test_up.py",
    "tests/security/test_crawler.py",
    "tests/unit/workers/assembly/test_resume.py",
    "tests/unit/workers/entrypoints/trainer/test_garage_style.py",
    "tests/unit/workers/rl/collect/test_actor_learners.py",
)
"""Modules that take much longer than their number of tests says."""
_GROUP_OF: Final = {
    f"tests/e2e/{module}.py": group for group, modules in GROUPS.items() for module in modules
}


def _get_module(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sorts the modules in xdist workers; tests of a module keep their order."""
    if not hasattr(config, "workerinput"):
        return
    tests = Counter(_get_module(item.nodeid) for item in items)

    def get_rank(item: pytest.Item) -> tuple[bool, bool, int]:
        module = _get_module(item.nodeid)
        return module not in _GROUP_OF, module not in LONG, -tests[module]

    items.sort(key=get_rank)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> "_GroupScheduling | None":
    return _GroupScheduling(config, log) if config.getoption("dist") == "loadscope" else None


class _GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]
    def _split_scope(self, nodeid: str) -> str:
        """Returns the group of a test, else its module."""
        module = _get_module(nodeid)
        return _GROUP_OF.get(module, module)

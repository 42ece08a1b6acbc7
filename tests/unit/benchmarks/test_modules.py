"""Every benchmark can be imported.

Benchmarks are run by hand, so a broken import would otherwise be noticed late.
"""

import importlib
import pkgutil

import pytest

import benchmarks

NEEDS_ANOTHER_ENVIRONMENT = {"benchmarks._peers.tianshou_loop"}
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(benchmarks.__path__, "benchmarks.")
    if module.name not in NEEDS_ANOTHER_ENVIRONMENT
)


@pytest.mark.parametrize("name", MODULES)
def test_a_benchmark_can_be_imported(name: str) -> None:
    assert importlib.import_module(name).__doc__

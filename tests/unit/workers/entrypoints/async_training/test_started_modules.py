"""A process of `train_agent_async` does not load torch unless its agent imports it.

Importing torch takes seconds and hundreds of MB.
"""

import functools
from pathlib import Path
from typing import Any

import pytest

from tests.support.async_fakes import make_agent, make_modules_env, read_records
from workers.entrypoints.functional import train_agent_async

pytestmark = pytest.mark.processes


def train_and_list_modules(folder: Path, **options: Any) -> list[list[str]]:
    """Trains, evaluates, saves and ends in two processes.

    Returns the modules that each environment found loaded when it was closed.
    """
    make_env = functools.partial(
        make_modules_env, folder=str(folder), looked_for=("torch", "stable_baselines3"), **options
    )
    train_agent_async(
        str(folder / "out"),
        2,
        make_env,
        steps=60,
        eval_interval=20,
        eval_n_episodes=1,
        make_agent=make_agent,
        use_tensorboard=True,
    )
    found = read_records(folder, "modules")
    assert all(one["ours"] > 10 for one in found)
    return [one["found"] for one in found]


def test_processes_load_no_torch_unless_the_agent_imports_it(tmp_path: Path) -> None:
    assert train_and_list_modules(tmp_path) == [[]] * 4, (
        "two processes with an environment each to train and to evaluate"
    )


@pytest.mark.slow
def test_modules_that_an_environment_imports_are_found(tmp_path: Path) -> None:
    """Shows that the test above can fail."""
    assert train_and_list_modules(tmp_path, brings="torch") == [["torch"]] * 4

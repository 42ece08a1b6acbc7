"""Arguments that `train_agent_async` refuses before it starts a process."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.async_fakes import make_agent, make_env
from workers.entrypoints.functional import train_agent_async


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "2", True])
@pytest.mark.parametrize("name", ["processes", "max_episode_len"])
def test_counts_must_be_positive_integers(name: str, wrong: Any, tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"processes": 2, "steps": 10, "make_agent": make_agent}
    with pytest.raises(
        ValueError, match=f"{name} must be a whole number of at least 1, not {wrong!r}"
    ):
        train_agent_async(tmp_path / "out", make_env=make_env, **{**arguments, name: wrong})
    assert not (tmp_path / "out").exists()


def test_step_hooks_must_be_callable(tmp_path: Path) -> None:
    with pytest.raises(
        TypeError,
        match=r"global_step_hooks: a int cannot be called as hook\(env, agent, step\)",
    ):
        train_agent_async(
            tmp_path / "out", 2, make_env, 10, make_agent=make_agent, global_step_hooks=[3]
        )
    assert not (tmp_path / "out").exists()

"""The evaluation process: equal results, the evaluated state, and failures."""

import functools
import os
import signal
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from tests.support.waiting import wait_for
from workers.core.errors import DefinitionError
from workers.core.types import EvaluationResult, PartFiles, StateTree
from workers.engine.clock import StillClock
from workers.rl.evaluate.background_evaluator import (
    EvaluationRaisedError,
    EvaluatorLostError,
    SubprocessEvaluator,
)
from workers.rl.evaluate.vector_evaluator import summarise

pytestmark = pytest.mark.processes


class LinearScoreAgent:
    """An agent whose evaluation is its weight times the env_steps."""

    def __init__(self, weight: float = 0.0) -> None:
        self.weight = torch.tensor([weight])

    def state_dict(self) -> StateTree:
        return {"weight": self.weight, "names": ["a"], "pair": (1, 2.0)}

    def load_state_dict(self, state: StateTree) -> None:
        assert state["names"] == ["a"]
        self.weight = state["weight"]


class UnpicklableError(Exception):
    def __init__(self, joint: str, angle: float) -> None:
        super().__init__(f"{joint} at {angle}")
        self.lock = threading.Lock()


class BuiltEvaluator:
    def __init__(self, agent: LinearScoreAgent, fault: str, gate: Path | None) -> None:
        self.agent = agent
        self.fault = fault
        self.gate = gate

    def evaluate(self, clock: Any) -> EvaluationResult:
        if self.fault == "raises" and clock.env_steps == 1:
            raise ValueError("the robot fell over")
        if self.fault == "raises" and clock.env_steps == 2:
            raise UnpicklableError("knee", 0.5)
        if self.fault == "dies":
            os._exit(7)
        if self.gate is not None:
            wait_for(self.gate.exists, "the test lets the evaluation go on")
        return summarise([float(self.agent.weight) * clock.env_steps], [1], os.getpid())

    def close(self) -> None:
        pass


def build(fault: str = "", gate: Path | None = None) -> Any:
    agent = LinearScoreAgent()
    return agent, BuiltEvaluator(agent, fault, gate)


def make_clock(env_steps: int) -> StillClock:
    return StillClock(env_steps, 0, 0, 0, 0, 0.0)


def test_the_requested_state_is_evaluated_while_training_goes_on(tmp_path: Path) -> None:
    agent, gate = LinearScoreAgent(2.0), tmp_path / "gate"
    evaluator = SubprocessEvaluator(functools.partial(build, gate=gate), agent)
    evaluator.begin(make_clock(10))
    agent.weight += 100
    assert evaluator.take_result(wait=False) is None
    gate.touch()
    result = evaluator.take_result(wait=True)
    assert result is not None
    assert (result.mean, result.seed != os.getpid()) == (20.0, True)
    assert evaluator.take_result(wait=True) is None
    assert evaluator.evaluate(make_clock(3)).mean == 306.0
    evaluator.close()
    assert not psutil.pid_exists(result.seed)


def test_an_exception_of_the_process_is_raised_here_and_the_process_goes_on() -> None:
    """An exception that cannot be pickled arrives as text."""
    evaluator = SubprocessEvaluator(functools.partial(build, "raises"), LinearScoreAgent(1.0))
    before = evaluator.evaluate(make_clock(3))
    with pytest.raises(ValueError, match="fell over") as caught:
        evaluator.evaluate(make_clock(1))
    assert "In the evaluating process" in caught.value.__notes__[0]
    with pytest.raises(EvaluationRaisedError, match="UnpicklableError: knee at") as described:
        evaluator.evaluate(make_clock(2))
    assert "in evaluate" in str(described.value)
    after = evaluator.evaluate(make_clock(4))
    assert (after.mean, after.seed) == (4.0, before.seed)
    evaluator.close()


@pytest.mark.slow
def test_a_killed_process_is_restarted_and_the_request_repeated(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    evaluator = SubprocessEvaluator(functools.partial(build, gate=gate), LinearScoreAgent(2.0))
    first = evaluator.evaluate(make_clock(1)).seed
    gate.unlink()
    evaluator.begin(make_clock(5))
    os.kill(first, signal.SIGKILL)
    gate.touch()
    result = evaluator.take_result(wait=True)
    assert result is not None
    assert (result.mean, result.seed != first) == (10.0, True)
    evaluator.close()


@pytest.mark.slow
def test_a_process_that_is_killed_repeatedly_is_an_error() -> None:
    evaluator = SubprocessEvaluator(functools.partial(build, "dies"), LinearScoreAgent())
    with pytest.raises(EvaluatorLostError, match="status 7"):
        evaluator.evaluate(make_clock(1))
    evaluator.close()


def test_an_agent_with_files_of_its_own_is_refused() -> None:
    agent: Any = LinearScoreAgent()
    agent.state_dict = lambda: {"files": PartFiles(lambda _: None)}
    with pytest.raises(DefinitionError, match="continuous_eval"):
        SubprocessEvaluator(build, agent).begin(make_clock(1))

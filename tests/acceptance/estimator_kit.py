"""Recording fakes of models, clocks and servers for the tests of experiments."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.acceptance.estimator_models import QUIET, CountingInputs, ScriptedEnv, policy, regression
from workers.entrypoints.experiment_parts.context import ExperimentContext
from workers.entrypoints.experiment_parts.rl_experiment import RLExperiment
from workers.entrypoints.experiment_parts.schedules import Schedules
from workers.entrypoints.experiment_parts.supervised_experiment import Experiment
from workers.estimators.agents import Agent
from workers.estimators.checkpoints import load_checkpoint
from workers.estimators.estimator import Estimator
from workers.estimators.memories import Memory
from workers.estimators.run_config import RunConfig
from workers.supervised.run_session import RunContext, RunSession, RunValues, SessionRunHook

CLUSTER = {
    "cluster": {"master": ["m:1"], "worker": ["a:1", "b:1", "c:1"], "ps": ["p:1"]},
    "master": "p:1",
    "task_type": "worker",
}
FAST = {"first_update": 4, "update_frequency": 2, "eval_steps": 2}


class TracingHook(SessionRunHook):
    """A hook that records the calls that it receives."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.events: list[str] = []
        self.steps: list[int] = []
        self.values: list[RunValues] = []

    def begin(self) -> None:
        self.events.append("begin")

    def after_create_session(self, session: RunSession, coord: object = None) -> None:
        self.events.append("session")

    def before_run(self, run_context: RunContext) -> None:
        self.events.append("before")

    def after_run(self, run_context: RunContext, run_values: RunValues) -> None:
        self.events.append("after")
        self.steps.append(run_context.session.global_step)
        self.values.append(run_values)

    def end(self, session: RunSession) -> None:
        self.events.append("end")

    @property
    def learned(self) -> int:
        return sum(values.has_learned for values in self.values)


class SimulatedKill(BaseException):
    """Exception that ends a training as a kill does: no state is saved."""


class KillHook(SessionRunHook):
    """A hook that raises `SimulatedKill` at the first run after an update, when its boundary
    is complete.
    """

    def __init__(self, step: int) -> None:
        self._step = step

    def before_run(self, run_context: RunContext) -> None:
        if run_context.session.global_step >= self._step:
            raise SimulatedKill


class FakeTime:
    """A clock that advances only by sleeping."""

    def __init__(self) -> None:
        self.at = 0.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.at += seconds


class CallLog:
    """Calls on an estimator or agent, with their keyword arguments and the time."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.times: list[float] = []
        self.time = FakeTime()
        self.took = 0.0
        """Duration of a call in seconds."""

    def add(self, name: str, /, **arguments: Any) -> None:
        self.calls.append((name, arguments))
        self.times.append(self.time.at)
        self.time.at += self.took

    def get_calls(self, name: str) -> list[dict[str, Any]]:
        return [arguments for called, arguments in self.calls if called == name]


class CountingEstimator(Estimator):
    """An estimator that records its calls and counts its steps."""

    def __init__(self, model_dir: Path, recorded: CallLog, **config: Any) -> None:
        super().__init__(regression, model_dir, RunConfig(**{**QUIET, **config}))
        self.recorded = recorded

    def train(
        self, input_fn: Any, hooks: Any = None, steps: Any = None, max_steps: Any = None
    ) -> Any:
        self.recorded.add("train", steps=steps, max_steps=max_steps, hooks=hooks)
        return super().train(input_fn, hooks, steps, max_steps)

    def evaluate(
        self,
        input_fn: Any,
        steps: Any = None,
        hooks: Any = None,
        checkpoint_path: Any = None,
        name: Any = None,
    ) -> Any:
        self.recorded.add(
            "evaluate", steps=steps, hooks=hooks, name=name, checkpoint_path=checkpoint_path
        )
        return super().evaluate(input_fn, steps, hooks, checkpoint_path, name)


class CountingAgent(Agent):
    """An agent that records its calls and counts its steps."""

    def __init__(
        self, model_dir: Path, recorded: CallLog, memory: Memory | None = None, **config: Any
    ) -> None:
        super().__init__(
            policy,
            Memory(100, 4) if memory is None else memory,
            model_dir,
            RunConfig(**{**QUIET, **config}),
        )
        self.recorded = recorded

    def train(self, env: Any, *args: Any, **options: Any) -> Any:
        self.recorded.add("train", **options)
        return super().train(env, *args, **options)

    def evaluate(self, env: Any, *args: Any, **options: Any) -> Any:
        self.recorded.add("evaluate", **options)
        return super().evaluate(env, *args, **options)


def set_fake_clock(experiment: Any, recorded: CallLog, **parts: Any) -> Any:
    """Replaces the experiment's clock by the fake one and returns the experiment."""
    assert isinstance(experiment, Schedules)
    experiment.context = ExperimentContext(
        now=recorded.time.now, sleep=recorded.time.sleep, **parts
    )
    return experiment


def make_agent(
    model_dir: Path, model: Any = policy, memory: Memory | None = None, **config: Any
) -> Agent:
    return Agent(
        model,
        Memory(100, 4) if memory is None else memory,
        model_dir,
        RunConfig(**{**QUIET, **config}),
    )


def read_state(model: Any) -> dict[str, Any]:
    """Returns the state of the newest checkpoint without values of the wall clock."""
    loaded = load_checkpoint(model.model_dir)
    assert loaded is not None
    state = loaded.state
    state["clock"].pop("wall_seconds")
    state["agent"].get("episode", {}).pop("seconds", None)
    return state


def are_equal(left: Any, right: Any) -> bool:
    """Returns whether two states are equal bit for bit."""
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and left.keys() == right.keys()
            and all(are_equal(left[key], right[key]) for key in left)
        )
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(
            are_equal(one, other) for one, other in zip(left, right, strict=True)
        )
    if isinstance(left, torch.Tensor):
        return (
            isinstance(right, torch.Tensor)
            and left.dtype == right.dtype
            and torch.equal(left, right)
        )
    if isinstance(left, np.ndarray):
        return (
            isinstance(right, np.ndarray)
            and left.dtype == right.dtype
            and np.array_equal(left, right, equal_nan=left.dtype.kind == "f")
        )
    return type(left) is type(right) and left == right


class TrainBeforeEvaluations:
    """A predicate that trains some steps before each evaluation.

    It ends the schedule after `evaluations` evaluations.
    """

    def __init__(self, directory: Path, evaluations: int, train: bool = True) -> None:
        self.directory, self.evaluations, self.train = directory, evaluations, train
        self.results: list[Any] = []

    def __call__(self, result: Any) -> bool:
        self.results.append(result)
        if self.train:
            make_agent(self.directory).train(ScriptedEnv(), 4, 2, steps=3)
        return len(self.results) <= self.evaluations


class FakeCounter:
    """A shared step counter that increases by 500 each time it is read."""

    def __init__(self) -> None:
        self.at = 0
        self.added = 0

    def read(self) -> int:
        self.at += 500
        return self.at

    def add(self, updates: int) -> int:
        self.added += updates
        return self.at


class FakeServer:
    """A server that records the calls that it receives."""

    def __init__(self, trace: list[str]) -> None:
        self.trace = trace

    def start(self) -> None:
        self.trace.append("start")

    def join(self) -> None:
        self.trace.append("join")

    def stop(self) -> None:
        self.trace.append("stop")

    def add(self, updates: int) -> int:
        return updates

    def read(self) -> int:
        return 0


def make_experiment(
    directory: Path, recorded: CallLog | None = None, config: Any = None, **options: Any
) -> Experiment:
    recorded = recorded or CallLog()
    inputs = {"train_input_fn": CountingInputs(), "eval_input_fn": CountingInputs(20)}
    estimator = CountingEstimator(directory, recorded, **(config or {}))
    made: Experiment = set_fake_clock(Experiment(estimator, **{**inputs, **options}), recorded)
    return made


def make_rl_experiment(
    directory: Path,
    recorded: CallLog | None = None,
    env: Any = None,
    config: Any = None,
    **options: Any,
) -> RLExperiment:
    recorded = recorded or CallLog()
    agent = CountingAgent(directory, recorded, **(config or {}))
    made: RLExperiment = set_fake_clock(
        RLExperiment(agent, env or ScriptedEnv(), **{**FAST, **options}), recorded
    )
    return made

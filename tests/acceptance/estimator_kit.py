"""Small models, environments and clocks for the tests of experiments, estimators and agents."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import nn

from workers.entrypoints.experiment_parts.context import Surroundings
from workers.entrypoints.experiment_parts.rl_experiment import RLExperiment
from workers.entrypoints.experiment_parts.schedules import Schedules
from workers.entrypoints.experiment_parts.supervised_experiment import Experiment
from workers.estimators.agents import Agent
from workers.estimators.checkpoints import load_checkpoint
from workers.estimators.estimator import Estimator
from workers.estimators.memories import Memory
from workers.estimators.run_config import RunConfig
from workers.supervised.modes import Modes
from workers.supervised.run_session import RunContext, RunSession, RunValues, SessionRunHook
from workers.supervised.spec import EstimatorSpec
from workers.supervised.variables import explore, get_module, minimize

CLUSTER = {
    "cluster": {"master": ["m:1"], "worker": ["a:1", "b:1", "c:1"], "ps": ["p:1"]},
    "master": "p:1",
    "task_type": "worker",
}
FAST = {"first_update": 4, "update_frequency": 2, "eval_steps": 2}
QUIET = {"save_summary_steps": 0, "log_step_count_steps": 0}


def sgd(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9)


def slow_sgd(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.001, momentum=0.9)


def regression(features: Any, labels: Any, mode: Modes) -> EstimatorSpec:
    """y = a x + b."""
    network = get_module("line", lambda: nn.Linear(1, 1))
    predicted = network(features["x"])
    if not mode.has_labels:
        return EstimatorSpec(mode, {"results": predicted})
    loss = (predicted - labels).square().mean()
    train_op = minimize(loss, sgd) if mode is Modes.TRAIN else None
    return EstimatorSpec(
        mode,
        loss=loss,
        train_op=train_op,
        metrics={"error": (predicted - labels).detach().abs().mean()},
    )


def policy(features: Any, labels: Any, mode: Modes) -> EstimatorSpec:
    """Values of two actions, learnt from rewards alone; explores half of the time."""
    network = get_module("values", lambda: nn.Linear(features["state"].flatten(1).shape[1], 2))
    values = network(features["state"].float().flatten(1))
    if not mode.has_labels:
        return EstimatorSpec(mode, {"results": explore("half", _half, values.argmax(1), actions=2)})
    taken = values.gather(1, labels["action"].long().view(-1, 1)).squeeze(1)
    loss = (taken - labels["reward"].float()).square().mean()
    return EstimatorSpec(
        mode, loss=loss, train_op=minimize(loss, slow_sgd) if mode is Modes.TRAIN else None
    )


def _half() -> Any:
    from workers.supervised.explorations import constant

    return constant(0.5)


class Lines:
    """Input functions that count how often they are called and how many batches are drawn."""

    def __init__(self, batches: int | None = None, rows: int = 4) -> None:
        self.calls = 0
        self.drawn = 0
        self._batches, self._rows = batches, rows

    def __call__(self) -> Iterator[tuple[Any, Any]]:
        self.calls += 1
        return self._draw()

    def _draw(self) -> Iterator[tuple[Any, Any]]:
        generator = np.random.default_rng(7)
        index = 0
        while self._batches is None or index < self._batches:
            x = generator.standard_normal((self._rows, 1)).astype(np.float32)
            self.drawn += 1
            index += 1
            yield {"x": x}, 2 * x + 1


class Scripted(gym.Env[Any, Any]):
    """Episodes of the same rewards; the observation is the step and the last action.

    Counts what is done to it.
    """

    def __init__(
        self, rewards: Sequence[float] = (1.0,) * 10, trace: list[Any] | None = None
    ) -> None:
        self.observation_space = gym.spaces.Box(-100.0, 100.0, (2,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.rewards = tuple(rewards)
        self.trace: list[Any] = [] if trace is None else trace
        self.resets = self.steps = self.closes = 0
        self.at = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.resets += 1
        self.trace.append("reset")
        self.at = 0
        return np.array([0, -1], np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        self.trace.append("step")
        reward = self.rewards[self.at]
        self.at += 1
        return (
            np.array([self.at, action], np.float32),
            reward,
            self.at == len(self.rewards),
            False,
            {},
        )

    def close(self) -> None:
        self.closes += 1


class TracingMemory(Memory):
    """Says when a row comes."""

    def __init__(self, trace: list[Any], size: int = 100, batch_size: int = 4) -> None:
        super().__init__(size, batch_size)
        self.trace = trace

    def step(self, **row: Any) -> None:
        self.trace.append("store")
        super().step(**row)


class TracingHook(SessionRunHook):
    """Writes down what it is told."""

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
        return sum(values.learned for values in self.values)


class Killed(BaseException):
    """Ends a training as a kill would: nothing is saved."""


class KillAt(SessionRunHook):
    """Kills at the first run behind an update, so that the boundary of that update is over."""

    def __init__(self, step: int) -> None:
        self._step = step

    def before_run(self, run_context: RunContext) -> None:
        if run_context.session.global_step >= self._step:
            raise Killed


class FakeTime:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.at = 0.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.at += seconds


class Recorded:
    """What was called on an estimator or agent, with its keyword arguments and the time."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.times: list[float] = []
        self.time = FakeTime()
        self.took = 0.0
        """Seconds that a call takes."""

    def add(self, name: str, /, **arguments: Any) -> None:
        self.calls.append((name, arguments))
        self.times.append(self.time.at)
        self.time.at += self.took

    def of(self, name: str) -> list[dict[str, Any]]:
        return [arguments for called, arguments in self.calls if called == name]


class CountingEstimator(Estimator):
    """Does what an estimator does and writes it down."""

    def __init__(self, model_dir: Path, recorded: Recorded, **config: Any) -> None:
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
    """Does what an agent does and writes it down."""

    def __init__(
        self, model_dir: Path, recorded: Recorded, memory: Memory | None = None, **config: Any
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


def with_time(experiment: Any, recorded: Recorded, **parts: Any) -> Any:
    """Returns the experiment with a fake clock."""
    assert isinstance(experiment, Schedules)
    experiment.surroundings = Surroundings(
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


def state_of(model: Any) -> dict[str, Any]:
    """Returns the state of the newest checkpoint without what a clock on the wall leaves there."""
    loaded = load_checkpoint(model.model_dir)
    assert loaded is not None
    state = loaded.state
    state["clock"].pop("wall_seconds")
    state["agent"].get("episode", {}).pop("seconds", None)
    return state


def same(left: Any, right: Any) -> bool:
    """Whether two states are the same to the last bit."""
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and left.keys() == right.keys()
            and all(same(left[key], right[key]) for key in left)
        )
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(
            same(one, other) for one, other in zip(left, right, strict=True)
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


class Trainer:
    """A predicate that lets the training go on a little before each look, and ends after so many
    looks.
    """

    def __init__(self, directory: Path, looks: int, train: bool = True) -> None:
        self.directory, self.looks, self.train = directory, looks, train
        self.given: list[Any] = []

    def __call__(self, result: Any) -> bool:
        self.given.append(result)
        if self.train:
            make_agent(self.directory).train(Scripted(), 4, 2, steps=3)
        return len(self.given) <= self.looks


class FakeCounter:
    """A shared step that grows by 500 each time it is read."""

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
    """Says what is done to it."""

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


def experiment(
    directory: Path, recorded: Recorded | None = None, config: Any = None, **options: Any
) -> Experiment:
    recorded = recorded or Recorded()
    inputs = {"train_input_fn": Lines(), "eval_input_fn": Lines(20)}
    estimator = CountingEstimator(directory, recorded, **(config or {}))
    made: Experiment = with_time(Experiment(estimator, **{**inputs, **options}), recorded)
    return made


def rl_experiment(
    directory: Path,
    recorded: Recorded | None = None,
    env: Any = None,
    config: Any = None,
    **options: Any,
) -> RLExperiment:
    recorded = recorded or Recorded()
    agent = CountingAgent(directory, recorded, **(config or {}))
    made: RLExperiment = with_time(
        RLExperiment(agent, env or Scripted(), **{**FAST, **options}), recorded
    )
    return made

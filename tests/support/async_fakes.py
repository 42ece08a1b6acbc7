"""Environments, agents and hooks for tests with several processes.

They are defined in a module without torch, so that spawned processes can import them fast. Each
process appends its records to a file of its own in a directory, one JSON document per line.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from tests.support.waiting import wait_for


def append_record(folder: str | Path, kind: str, **facts: Any) -> None:
    """Appends a record to this process's file in a single write."""
    line = json.dumps({"pid": os.getpid(), **facts}) + "\n"
    descriptor = os.open(Path(folder) / f"{kind}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, line.encode())
    os.close(descriptor)


def read_records(folder: str | Path, kind: str) -> list[dict[str, Any]]:
    """Returns the records of a kind."""
    path = Path(folder) / f"{kind}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


class ScriptedEnv(gym.Env[Any, Any]):
    """Episodes of a fixed length.

    The observation counts steps, and its second number is the episode's seed.
    """

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = gym.spaces.Discrete(2)

    def __init__(
        self, length: int = 5, reward: float = 1.0, returns: tuple[float, ...] = ()
    ) -> None:
        self.length = length
        self.reward = reward
        self.returns = returns
        """Returns of the episodes in turn, instead of a reward per step."""
        self.episode = -1
        self.at = 0
        self.mark = 0.0
        self.closed = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.episode += 1
        self.at = 0
        self.mark = float(self.np_random.integers(1_000_000))
        return self._observation(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.at += 1
        over = self.at >= self.length
        reward = self.reward
        if self.returns:
            reward = self.returns[self.episode % len(self.returns)] if over else 0.0
        return self._observation(), reward, over, False, {}

    def close(self) -> None:
        self.closed = True

    def _observation(self) -> Any:
        return np.array([self.at, self.mark])


class MeetingEnv(ScriptedEnv):
    """An environment whose first step ends once all processes are in a step."""

    def __init__(self, folder: str, processes: int, **options: Any) -> None:
        super().__init__(**options)
        self.folder = folder
        self.processes = processes

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        append_record(self.folder, "arrival")
        wait_for(
            lambda: (
                len({one["pid"] for one in read_records(self.folder, "arrival")}) == self.processes
            ),
            "all processes are in a step",
        )
        return super().step(action)


class NoisyEnv(ScriptedEnv):
    """An environment whose rewards depend on action, step and the episode's seed."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, _, over, cut, info = super().step(action)
        return observation, float(self.np_random.normal()) + 0.1 * float(action), over, cut, info


class FailingEnv(ScriptedEnv):
    """An environment whose `step` raises."""

    def __init__(self, at_step: int, **options: Any) -> None:
        super().__init__(**options)
        self.left = at_step

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.left -= 1
        if self.left < 0:
            raise LookupError("the maze has no exit")
        return super().step(action)


class ModulesEnv(ScriptedEnv):
    """An environment that records on `close` which of the given modules are loaded.

    It may import one itself.
    """

    def __init__(self, folder: str, looked_for: tuple[str, ...], brings: str | None = None) -> None:
        super().__init__()
        self.folder = folder
        self.looked_for = looked_for
        if brings is not None:
            __import__(brings)

    def close(self) -> None:
        ours = sum(name.startswith("workers.") for name in sys.modules)
        append_record(
            self.folder,
            "modules",
            found=[name for name in self.looked_for if name in sys.modules],
            ours=ours,
        )
        super().close()


class TallyAgent:
    """An agent that does not learn.

    Its state consists of sums over everything that it observed.
    """

    def __init__(self, folder: str | None = None, index: int = 0, rule: str = "alternate") -> None:
        self.folder = folder
        self.index = index
        self.rule = rule
        self.t = 0
        self.total = 0.0
        self.draws = 0.0
        self.training = True
        self.observed: list[tuple[bool, bool, bool]] = []

    def act(self, observation: Any) -> int:
        if self.training:
            # The test is about the state of the global generator.
            self.draws += float(np.random.rand())  # noqa: NPY002
        return (self.t + int(observation[0])) % 2

    def observe(self, observation: Any, reward: float, done: bool, reset: bool) -> None:
        if self.folder is not None:
            append_record(
                self.folder,
                "observe",
                index=self.index,
                training=self.training,
                at=float(observation[0]),
                done=done,
                reset=reset,
            )
        if self.training:
            self.t += 1
            self.total = 0.9 * self.total + reward + 1e-6 * float(observation[1])

    def save(self, dirname: str) -> None:
        Path(dirname).mkdir(parents=True, exist_ok=True)
        (Path(dirname) / "tally.json").write_text(json.dumps({"t": self.t, "index": self.index}))

    def load(self, dirname: str) -> None:
        saved = json.loads((Path(dirname) / "tally.json").read_text())
        self.t, self.index = saved["t"], saved["index"]

    def state_dict(self) -> dict[str, Any]:
        return {"t": self.t, "total": self.total, "draws": self.draws, "index": self.index}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.t, self.total, self.draws, self.index = (
            state["t"],
            state["total"],
            state["draws"],
            state["index"],
        )

    def get_statistics(self) -> list[tuple[str, Any]]:
        return [("total", self.total), ("draws", self.draws)]

    @contextmanager
    def eval_mode(self) -> Iterator[None]:
        before, self.training = self.training, False
        try:
            yield
        finally:
            self.training = before


def make_env(
    process_idx: int,
    test: bool,
    *,
    folder: str | None = None,
    kind: Callable[..., ScriptedEnv] = ScriptedEnv,
    **options: Any,
) -> ScriptedEnv:
    """Records its call and makes an environment."""
    if folder is not None:
        append_record(folder, "make_env", index=process_idx, test=test)
    return kind(**options)


def make_modules_env(process_idx: int, test: bool, **options: Any) -> ModulesEnv:
    """Makes an environment that records which modules are loaded."""
    return ModulesEnv(**options)


def make_train_or_eval_env(
    process_idx: int, test: bool, *, train: dict[str, Any], evaluate: dict[str, Any]
) -> ScriptedEnv:
    """Makes different environments for training and for evaluation."""
    return ScriptedEnv(**(evaluate if test else train))


def make_failing(process_idx: int, test: bool, *, failing: int, at_step: int) -> ScriptedEnv:
    """Makes an environment that raises in one process."""
    return FailingEnv(at_step) if process_idx == failing and not test else ScriptedEnv()


def make_env_or_raise(process_idx: int, test: bool, *, failing: int) -> ScriptedEnv:
    """Raises in the processes of `failing` instead of making an environment."""
    if process_idx == failing:
        raise FileNotFoundError("no map of the maze")
    return ScriptedEnv()


def make_env_with_subprocess(process_idx: int, test: bool, *, folder: str) -> ScriptedEnv:
    """Makes an environment that starts a subprocess."""
    child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    append_record(folder, "family", index=process_idx, child=child.pid)
    return ScriptedEnv()


def make_agent(process_idx: int, *, folder: str | None = None, noting: bool = False) -> TallyAgent:
    """Records its call and makes an agent."""
    if folder is not None:
        append_record(folder, "make_agent", index=process_idx)
    return TallyAgent(folder if noting else None, process_idx)


def make_cartpole(process_idx: int, test: bool, *, folder: str | None = None) -> Any:
    """Records its call and makes CartPole."""
    if folder is not None:
        append_record(folder, "make_env", index=process_idx, test=test)
    return gym.make("CartPole-v1")


class StepRecorder:
    """A step hook that records each step.

    It may wait a little, so that all processes make steps.
    """

    def __init__(self, folder: str, pause: float = 0.0) -> None:
        self.folder = folder
        self.pause = pause

    def __call__(self, env: Any, agent: Any, step: int) -> None:
        mark = getattr(env, "mark", 0.0)
        append_record(
            self.folder,
            "step",
            step=step,
            index=agent.index,
            env=type(env).__name__,
            agent=type(agent).__name__,
            mark=mark,
        )
        if self.pause:
            time.sleep(self.pause)


class EventSetter:
    """A step hook that sets an event at a given step."""

    def __init__(self, event: Any, step: int) -> None:
        self.event = event
        self.step = step

    def __call__(self, env: Any, agent: Any, step: int) -> None:
        if step == self.step:
            self.event.set()


class KillHook:
    """A step hook that kills the process with a given index at a step of its agent."""

    def __init__(self, index: int, steps: int) -> None:
        self.index = index
        self.steps = steps

    def __call__(self, env: Any, agent: Any, step: int) -> None:
        if agent.index == self.index and agent.t >= self.steps:
            os.kill(os.getpid(), signal.SIGKILL)


class ExitHook(KillHook):
    """A step hook that exits its process without reporting an error."""

    def __call__(self, env: Any, agent: Any, step: int) -> None:
        if agent.index == self.index and agent.t >= self.steps:
            os._exit(0)


class PrunedError(Exception):
    """An exception whose constructor takes an additional argument."""

    def __init__(self, step: int) -> None:
        super().__init__(step)
        self.step = step

    def __str__(self) -> str:
        return f"pruned at {self.step}"


class PruneHook:
    """An evaluation hook that ends a run early with `PrunedError`."""

    support_train_agent_async = True

    def __init__(self, step: int) -> None:
        self.step = step

    def __call__(self, *, step: int, **facts: Any) -> None:
        if step == self.step:
            raise PrunedError(step)


class EvaluationHookRecorder:
    """An evaluation hook that records its arguments."""

    support_train_agent_async = True

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(
        self,
        *,
        env: Any,
        agent: Any,
        evaluator: Any,
        step: int,
        eval_stats: Any,
        agent_stats: Any,
        env_stats: Any,
    ) -> None:
        best = None if evaluator.max_score == -np.inf else float(evaluator.max_score)
        facts = {
            "step": step,
            "mean": eval_stats["mean"],
            "best": best,
            "agent_stats": [list(one) for one in agent_stats],
            "env": type(env).__name__,
        }
        append_record(self.folder, "evaluation", **facts)


class UnsupportedHook:
    """An evaluation hook that does not declare support for `train_agent_async`."""

    def __call__(self, **facts: Any) -> None:
        raise AssertionError

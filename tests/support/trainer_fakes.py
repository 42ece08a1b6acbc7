"""Fakes of every trainer protocol that the engine uses.

All fakes append their calls to one shared list.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workers.core.protocols import ClockView, EngineView
from workers.core.types import (
    CollectPlan,
    EpisodeEnd,
    EvaluationResult,
    Experience,
    LearnReport,
    LearnSchedule,
    RestoreReport,
    SnapshotReason,
    StateTree,
    StopReason,
)
from workers.engine.budget import Budget
from workers.engine.engine import Engine
from workers.engine.parts import Cadence, Parts
from workers.rl.evaluate.vector_evaluator import summarise

NOTHING = np.zeros((1, 1, 1), np.float32)
ONE_STEP = CollectPlan(vector_steps=1)
ALWAYS = LearnSchedule(every_env_steps=1, updates=1)
FLAGS = np.zeros((1, 1), np.bool_)
REWARDS = np.zeros((1, 1), np.float64)


class FakeMemory:
    """A memory that holds a single number."""

    capacity = 1

    def __init__(self) -> None:
        self.content = 0

    def __len__(self) -> int:
        return self.content

    def state_dict(self) -> StateTree:
        return {"content": self.content}

    def load_state_dict(self, state: StateTree) -> None:
        self.content = state["content"]


class FakeAgent:
    """An agent that does not learn and records all calls."""

    report_names = ("loss/fake",)

    def __init__(self, trace: list[Any], plan: CollectPlan, schedule: LearnSchedule) -> None:
        self.trace = trace
        self.collect_plan = plan
        self.learn_schedule = schedule
        self.memory = FakeMemory()
        self.learning_rate = 1.0
        self.asked: list[int] = []

    def act(self, observation: Any, *, explore: bool) -> Any:
        return observation

    def observe(self, experience: Experience) -> None:
        self.memory.content += experience.env_steps
        self.trace.append("observe")

    def learn(self, updates: int) -> LearnReport:
        self.trace.append("learn")
        self.asked.append(updates)
        return LearnReport(updates, (float(self.memory.content),))

    def metrics(self) -> Mapping[str, float]:
        return {"memory/size": float(self.memory.content)}

    def eval_mode(self) -> AbstractContextManager[None]:
        return nullcontext()

    def acting_module(self) -> Any:
        raise AssertionError

    def state_dict(self) -> StateTree:
        return {"asked": list(self.asked)}

    def load_state_dict(self, state: StateTree) -> None:
        self.asked = list(state["asked"])


class FakeCollector:
    """A collector whose episodes have `episode_steps` steps in every environment."""

    def __init__(self, trace: list[Any], num_envs: int = 1, episode_steps: int = 0) -> None:
        self.trace = trace
        self.num_envs = num_envs
        self.episode_steps = episode_steps
        self.at = 0
        self.plans: list[CollectPlan] = []

    def collect(self, plan: CollectPlan) -> Experience:
        self.trace.append("collect")
        self.plans.append(plan)
        steps = plan.vector_steps or plan.env_steps or 0
        ends = []
        for step in range(steps):
            self.at += 1
            if self.episode_steps and self.at % self.episode_steps == 0:
                ends += [
                    EpisodeEnd(env, step, float(self.at), self.episode_steps, terminated=True)
                    for env in range(self.num_envs)
                ]
        return Experience(
            NOTHING, NOTHING, REWARDS, FLAGS, FLAGS, NOTHING, ends, env_steps=steps * self.num_envs
        )

    def state_dict(self) -> StateTree:
        return {"at": self.at}

    def load_state_dict(self, state: StateTree) -> None:
        self.restore(state)

    def restore(self, state: StateTree) -> RestoreReport:
        self.at = state["at"]
        return RestoreReport()


class FakeRecorder:
    """A recorder that keeps the recorded values."""

    def __init__(self, trace: list[Any]) -> None:
        self.trace = trace
        self.rows: list[Any] = []

    def record_iteration(
        self,
        clock: ClockView,
        episodes: Sequence[tuple[int, EpisodeEnd]],
        reports: Sequence[LearnReport],
    ) -> None:
        self.trace.append("record")
        self.rows += [("episode", at, end.env_index) for at, end in episodes]
        self.rows += [
            ("learn", clock.env_steps, clock.updates, report.values) for report in reports
        ]

    def record_evaluation(
        self, clock: ClockView, result: EvaluationResult, *, is_final: bool
    ) -> None:
        self.trace.append("record evaluation")
        self.rows.append(("evaluation", clock.env_steps, clock.updates, result.mean, is_final))

    def record_epoch(self, clock: ClockView) -> None:
        self.trace.append("record epoch")
        self.rows.append(("epoch", clock.epochs, clock.env_steps))

    def record_note(self, code: str, message: str) -> None:
        self.trace.append("record note")
        self.rows.append(("note", code, message))

    def flush(self) -> None:
        self.trace.append("flush")

    def state_dict(self) -> StateTree:
        return {}

    def load_state_dict(self, state: StateTree) -> None:
        assert state == {}


class FakeEvaluator:
    """An evaluator that returns the given scores in turn, then repeats the last one."""

    def __init__(self, trace: list[Any], scores: Sequence[float] = (0.0,)) -> None:
        self.trace = trace
        self.scores = list(scores)
        self.at: list[int] = []

    def evaluate(self, clock: ClockView) -> EvaluationResult:
        self.trace.append("evaluate")
        score = self.scores[min(len(self.at), len(self.scores) - 1)]
        self.at.append(clock.env_steps)
        return summarise([score], [1], 0)


class FakeSnapshotter:
    """A snapshotter that keeps the states in memory."""

    def __init__(self, trace: list[Any]) -> None:
        self.trace = trace
        self.saved: list[tuple[SnapshotReason, int, float | None]] = []
        self.states: list[StateTree] = []

    def save(
        self, state: StateTree, clock: ClockView, reason: SnapshotReason, score: float | None
    ) -> str:
        self.trace.append(f"snapshot {reason.value}")
        self.saved.append((reason, clock.env_steps, score))
        self.states.append(state)
        return f"snp_{len(self.saved)}"


class FakeControl:
    """A control that requests a stop from the read with number `after` onwards."""

    def __init__(self, trace: list[Any], reason: StopReason | None = None, after: int = 1) -> None:
        self.trace = trace
        self._reason = reason
        self._after = after
        self._looks = 0

    @property
    def order(self) -> StopReason | None:
        self._looks += 1
        return self._reason if self._looks >= self._after else None

    def acknowledge(self, reason: StopReason) -> None:
        self.trace.append(f"acknowledge {reason.value}")


class TracingHook:
    """A hook that records every call."""

    def __init__(self, trace: list[Any]) -> None:
        self.trace = trace

    def on_start(self, view: EngineView) -> None:
        self.trace.append("on_start")

    def on_tick(self, view: EngineView, reports: Sequence[LearnReport]) -> None:
        self.trace.append("on_tick")

    def on_episode(self, view: EngineView, end: EpisodeEnd) -> None:
        self.trace.append("on_episode")

    def on_evaluation(self, view: EngineView, result: EvaluationResult) -> None:
        self.trace.append("on_evaluation")

    def on_snapshot(self, view: EngineView, snapshot_id: str) -> None:
        self.trace.append("on_snapshot")

    def on_finish(self, view: EngineView, reason: StopReason) -> None:
        self.trace.append(f"on_finish {reason.value}")


@dataclass
class Rig:
    """An engine on fakes.

    Parts can be replaced until `engine` is first read.
    """

    cadence: Cadence
    plan: CollectPlan = ONE_STEP
    schedule: LearnSchedule = ALWAYS
    num_envs: int = 1
    episode_steps: int = 0
    scores: Sequence[float] = (0.0,)
    hooks: tuple[Any, ...] = ()
    order: StopReason | None = None
    order_after: int = 1
    trace: list[Any] = field(default_factory=list)
    evaluator: Any = None

    def __post_init__(self) -> None:
        self.agent = FakeAgent(self.trace, self.plan, self.schedule)
        self.collector = FakeCollector(self.trace, self.num_envs, self.episode_steps)
        self.recorder = FakeRecorder(self.trace)
        self.evaluator = self.evaluator or FakeEvaluator(self.trace, self.scores)
        self.snapshotter = FakeSnapshotter(self.trace)
        self.now = 0.0
        self.engine = Engine(
            Parts(
                agent=self.agent,
                collector=self.collector,
                recorder=self.recorder,
                snapshotter=self.snapshotter,
                control=FakeControl(self.trace, self.order, self.order_after),
                evaluator=self.evaluator,
                hooks=self.hooks,
            ),
            self.cadence,
            lambda: self.now,
        )


def make_cadence(budget: Mapping[Any, float | None], **options: Any) -> Cadence:
    """Returns a cadence with a budget."""
    return Cadence(budget=Budget(budget), **options)

"""The collector of agents with their own loop, and the engine that this loop advances."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from palestra.contract.envs import EnvDefinition
from tests.support.trainer_fakes import Rig
from workers.core.errors import DefinitionError
from workers.core.types import CollectPlan, SnapshotReason, StopReason, Unit
from workers.engine.budget import Budget
from workers.engine.parts import Cadence
from workers.rl.collect.agent_driven_collector import AgentDrivenCollector
from workers.rl.envs.factory import make_vector
from workers.trainer_process.schedules import agent_driven

PLAN = CollectPlan(vector_steps=1)
ENV = EnvDefinition(id="CartPole-v1", num_envs=2, max_episode_steps=3)


def make_collector() -> AgentDrivenCollector:
    return AgentDrivenCollector(make_vector(ENV), seed=5)


def test_each_step_is_handed_out_once_and_episodes_begin_at_once() -> None:
    made = make_collector()
    assert made.collect(PLAN).env_steps == 0
    first = made.begin().copy()
    actions = np.array([0, 1])
    for _ in range(3):
        step = made.step(actions)
    assert step.truncated.tolist() == [[True, True]]
    assert [end.episode_length for end in made.collect(PLAN).episodes] == [3, 3]
    assert made.collect(PLAN).env_steps == 0
    fresh = made.begin()
    assert np.abs(fresh).max() <= 0.05, "observations of a new episode"
    assert not np.array_equal(fresh, first), "with a seed of its own"
    assert not made.state_dict()["over"].any()


def test_running_episodes_are_restored_and_the_resume_is_statistical() -> None:
    one, other = make_collector(), make_collector()
    one.begin()
    one.step(np.array([0, 1]))
    report = other.restore(one.state_dict())
    assert not report.is_exact
    assert [code for code, _ in report.notes] == ["resume_statistical"]
    np.testing.assert_array_equal(other.begin(), one.begin())
    np.testing.assert_array_equal(
        other.step(np.array([1, 1])).observation, one.step(np.array([1, 1])).observation
    )


class StepLoop:
    """A loop of a given number of steps; its collector counts one env_step for each."""

    def __init__(self, rig: Rig, steps: int) -> None:
        self.rig, self.steps, self.made = rig, steps, 0
        self.inner, self.pending = rig.collector.collect, False
        rig.collector.collect = self.collect  # type: ignore[method-assign]

    def collect(self, plan: CollectPlan) -> Any:
        experience = self.inner(plan)
        experience.env_steps = int(self.pending)
        self.pending = False
        return experience

    def __call__(self, advance: Callable[[], bool]) -> None:
        while self.made < self.steps:
            if self.made and not advance():
                return
            self.made, self.pending = self.made + 1, True


def make_rig(bound: int, **more: Any) -> Rig:
    return Rig(Cadence(budget=Budget({Unit.ENV_STEPS: bound})), **more)


def test_the_last_step_is_learnt_from_before_the_run_ends() -> None:
    made = make_rig(4)
    loop = StepLoop(made, 4)
    result = agent_driven.run(made.engine, loop)
    assert (result.reason, made.engine.clock.env_steps, loop.made) == (StopReason.BUDGET, 4, 4)
    assert [reason for reason, _, _ in made.snapshotter.saved][-1] is SnapshotReason.FINISH


def test_no_step_is_made_once_the_engine_stops() -> None:
    made = make_rig(10, order=StopReason.PAUSE, order_after=4)
    loop = StepLoop(made, 10)
    assert agent_driven.run(made.engine, loop).reason is StopReason.PAUSE
    assert loop.made == made.engine.clock.env_steps == made.snapshotter.saved[-1][1]


def test_a_run_that_was_over_makes_no_step() -> None:
    made = make_rig(4)
    made.engine.clock.env_steps = 4
    loop = StepLoop(made, 4)
    assert agent_driven.run(made.engine, loop).reason is StopReason.BUDGET
    assert loop.made == 0


def test_a_loop_that_ends_before_the_job_is_an_error_of_the_definition() -> None:
    made = make_rig(10)
    with pytest.raises(DefinitionError, match=r"after 3 env_steps"):
        agent_driven.run(made.engine, StepLoop(made, 3))
    assert made.snapshotter.saved[-1][:2] == (SnapshotReason.EXCEPTION, 3)


@pytest.mark.parametrize("error", [ZeroDivisionError("in the loop"), KeyboardInterrupt()])
def test_an_exception_of_the_loop_is_raised_again_and_the_step_before_it_counted(
    error: BaseException,
) -> None:
    made = make_rig(10)

    class FailingLoop(StepLoop):
        def __call__(self, advance: Callable[[], bool]) -> None:
            super().__call__(advance)
            raise error

    with pytest.raises(type(error)) as raised:
        agent_driven.run(made.engine, FailingLoop(made, 3))
    assert raised.value is error
    assert made.snapshotter.saved[-1][:2] == (SnapshotReason.EXCEPTION, 3)

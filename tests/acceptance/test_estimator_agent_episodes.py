"""Agent: episodes, counters, memories and explorations (rows A16 to A22)."""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tests.acceptance.estimator_kit import TracingHook, make_agent, read_state
from tests.acceptance.estimator_models import QUIET, ScriptedEnv, TracingMemory, policy, sgd
from workers.estimators.agents import Agent
from workers.estimators.checkpoints import key_of
from workers.estimators.memories import BatchMemory, Memory
from workers.estimators.run_config import RunConfig
from workers.supervised.explorations import constant, decay, ornsteinuhlenbeck_process, random_decay
from workers.supervised.modes import Modes
from workers.supervised.rate_decays import Decay
from workers.supervised.run_session import SessionRunHook
from workers.supervised.spec import EstimatorSpec
from workers.supervised.variables import current, explore, get_module, minimize


def get_counts(agent: Agent) -> tuple[int, int, int]:
    newest = agent.latest_checkpoint()
    assert newest is not None
    return tuple(key_of(newest))


class UpdateRecorder(SessionRunHook):
    """Records the timesteps of the updates."""

    def __init__(self) -> None:
        self.timesteps: list[int] = []

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if run_values.has_learned:
            self.timesteps.append(run_context.session.global_timestep)


def test_A16_run_episode(tmp_path: Path) -> None:
    trace: list[Any] = []

    def model(features: Any, labels: Any, mode: Modes) -> EstimatorSpec:
        trace.append("act" if labels is None else "update")
        return policy(features, labels, mode)

    agent = make_agent(tmp_path, model, TracingMemory(trace, batch_size=2))
    env = ScriptedEnv((1.0, 2.0, 3.0), trace)
    with agent.session(env) as session:
        plain = session.default_options

        def run() -> Any:
            trace.append("episode")
            return agent.run_episode(
                env,
                session,
                plain.features,
                plain.labels,
                plain.no_run_hooks,
                plain.global_step,
                lambda: (trace.append("end"), plain.update_episode_op()),
                lambda: (trace.append("count"), plain.update_timestep_op()),
                3,
                2,
                plain.estimator_spec,
            )

        first, second = run(), run()
    step = ["act", "count", "step", "store"]
    # The third timestep ends the episode, but is not beyond `first_update`.
    # An update follows timestep 4, and one more the end of the episode at timestep 6.
    assert trace == [
        *(
            "episode",
            "reset",
            *step,
            *step,
            *step,
            "end",
        ),
        *(
            "episode",
            "reset",
            *step,
            "update",
            *step,
            *step,
            "end",
            "update",
        ),
    ]
    assert (first.episode, first.length, first.updates, first.loss) == (1, 3, 0, None)
    assert (second.episode, second.length, second.updates) == (2, 3, 2)
    assert math.isfinite(second.loss)
    assert get_counts(agent) == (2, 6, 2)


def test_A17_run_episode_parameters(tmp_path: Path) -> None:
    seen: dict[str, int] = {}

    def count_calls(name: str, function: Any) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            seen[name] = seen.get(name, 0) + 1
            return function(*args, **options)

        return call

    def run(directory: str, *, no_run_hooks: bool) -> TracingHook:
        seen.clear()
        agent, env, hook = make_agent(tmp_path / directory), ScriptedEnv(), TracingHook()
        with agent.session(env, [hook]) as session:
            plain = session.default_options
            agent.run_episode(
                env=env,
                sess=session,
                features=count_calls("features", plain.features),
                labels=count_calls("labels", plain.labels),
                no_run_hooks=no_run_hooks,
                global_step=count_calls("global_step", plain.global_step),
                update_episode_op=count_calls("update_episode_op", plain.update_episode_op),
                update_timestep_op=count_calls("update_timestep_op", plain.update_timestep_op),
                first_update=4,
                update_frequency=3,
                estimator_spec=count_calls("estimator_spec", plain.estimator_spec),
            )
        return hook

    hook = run("quiet", no_run_hooks=True)
    assert hook.learned == 3, "timesteps 6, 9 and 10, the end"
    assert hook.events.count("before") == 3, "steps without learning are kept from the hooks"
    assert seen["update_timestep_op"] == 10
    assert seen["update_episode_op"] == 1
    assert (seen["features"], seen["labels"], seen["estimator_spec"]) == (13, 3, 13)
    assert seen["global_step"] > 0
    hook = run("loud", no_run_hooks=False)
    assert (hook.learned, hook.events.count("before")) == (3, 10), (
        "each step of the environment is a run for the hooks"
    )
    agent = make_agent(tmp_path / "other")
    env = ScriptedEnv()
    with agent.session(env) as session, pytest.raises(ValueError, match="env"):
        agent.run_episode(ScriptedEnv(), session, *[None] * 3, *[None] * 3, 4, 3, None)  # type: ignore[arg-type]


def test_A18_counters(tmp_path: Path) -> None:
    hook = TracingHook()
    agent = make_agent(tmp_path).train(ScriptedEnv(), 4, 5, max_episodes=3, hooks=[hook])
    assert get_counts(agent) == (hook.learned, 30, 3)
    assert hook.learned == 6, "5, 10, 15, 20, 25 and 30: ends fall on multiples"
    state = read_state(make_agent(tmp_path))["agent"]["variables"]
    assert (state["global_step"], state["global_timestep"], state["global_episode"]) == (6, 30, 3)
    again = make_agent(tmp_path).train(ScriptedEnv(), 4, 5, max_episodes=4)
    assert get_counts(again) == (8, 40, 4)


def test_A19_learning_rate_and_exploration(tmp_path: Path) -> None:
    rates: list[tuple[int, float]] = []
    epsilons: list[tuple[int, float]] = []

    def get_rate(step: int) -> float:
        rates.append((step, 0.1 / (1 + step)))
        return rates[-1][1]

    def get_epsilon(timestep: int) -> float:
        epsilons.append((timestep, 1 / (1 + timestep)))
        return epsilons[-1][1]

    def model(features: Any, labels: Any, mode: Modes) -> EstimatorSpec:
        network = get_module("values", lambda: nn.Linear(2, 2))
        values = network(features["state"])
        if labels is None:
            from workers.supervised.explorations import Exploration

            return EstimatorSpec(
                mode,
                {
                    "results": explore(
                        "epsilon", lambda: Exploration(get_epsilon), values.argmax(1), actions=2
                    )
                },
            )
        loss = values.square().mean()
        return EstimatorSpec(mode, loss=loss, train_op=minimize(loss, sgd, learning_rate=get_rate))

    hook = TracingHook()
    agent = Agent(model, Memory(100, 4), tmp_path, RunConfig(**QUIET))
    agent.train(ScriptedEnv(), 4, 5, max_episodes=2, hooks=[hook])
    assert [step for step, _ in rates] == list(range(hook.learned))
    acting = [timestep for timestep, _ in epsilons]
    assert [timestep for timestep, _ in itertools.groupby(acting)] == list(range(21)), (
        "0 to 19 at the actions, 20 in the last record"
    )
    agent.train(ScriptedEnv(), 4, 5, max_episodes=3)
    assert rates[hook.learned][0] == hook.learned
    assert epsilons[-1][0] == 30


def test_A20_stats(tmp_path: Path) -> None:
    hook = TracingHook()
    make_agent(tmp_path).train(
        ScriptedEnv((1.0, -3.0, 5.0, 0.5)), 4, 2, max_episodes=2, hooks=[hook]
    )
    records = [values.episode for values in hook.values if values.episode is not None]
    assert [record.episode for record in records] == [1, 2]
    for record in records:
        statistics = (
            record.total_reward,
            record.mean_reward,
            record.max_reward,
            record.min_reward,
            record.length,
        )
        assert statistics == (3.5, 0.875, 5.0, -3.0, 4)
        assert record.epsilon == 0.5
        assert record.seconds >= 0


def test_A20_stats_are_passed_to_the_model(tmp_path: Path) -> None:
    told: list[dict[str, Any]] = []

    def model(features: Any, labels: Any, mode: Modes) -> EstimatorSpec:
        if labels is not None:
            told.append(labels)
        return policy(features, labels, mode)

    make_agent(tmp_path, model).train(ScriptedEnv((1.0, -3.0, 5.0, 0.5)), 4, 2, max_steps=1)
    rewards = {
        name: told[0][name] for name in ("max_reward", "min_reward", "avg_reward", "total_reward")
    }
    assert rewards == {
        "max_reward": 1.0,
        "min_reward": -3.0,
        "avg_reward": -1.0,
        "total_reward": -2.0,
    }
    assert set(told[0]) == {"action", "reward", "done", "truncated", "next_state", *rewards}
    ended = told[0]["done"]
    assert torch.equal(told[0]["next_state"][ended][:, 0], torch.full((int(ended.sum()),), 4.0)), (
        "the true next state"
    )


def test_A21_memory() -> None:
    memory = Memory(size=5, batch_size=3)
    assert (memory.get_by_index(0), memory.can_sample(), memory.can_sample(3)) == (
        None,
        False,
        True,
    )
    with pytest.raises(ValueError, match="batch"):
        memory.sample()
    for number in range(8):
        memory.step(a=number, b=[number, -number])
    assert len(memory) == 5
    assert [int(memory.get_by_index(index)["a"]) for index in range(5)] == [3, 4, 5, 6, 7], (
        "the oldest goes first"
    )
    seen: set[int] = set()
    for _ in range(50):
        batch = memory.sample()
        assert batch["a"].shape == (3,)
        assert batch["b"].shape == (3, 2)
        assert len(set(batch["a"].tolist())) == 3, "without replacement"
        assert np.array_equal(batch["b"][:, 1], -batch["a"])
        seen |= set(batch["a"].tolist())
    assert seen == {3, 4, 5, 6, 7}
    for row in ({"a": 1}, {"a": 1, "b": [1, 1], "c": 1}):
        with pytest.raises(KeyError):
            memory.step(**row)
    state = memory.state_dict()
    other = Memory(size=5, batch_size=3)
    other.load_state_dict(state)
    assert np.array_equal(other.sample()["a"], memory.sample()["a"])
    memory.clear()
    assert len(memory) == 0
    with pytest.raises(ValueError, match="batch_size"):
        Memory(size=2, batch_size=3)
    whole = BatchMemory(batch_size=4)
    for number in range(6):
        assert whole.can_sample() == (number >= 4)
        whole.step(a=number)
    assert whole.size == 4
    assert whole.sample()["a"].tolist() == [0, 1, 2, 3, 4, 5], (
        "in order, and an episode that went on stays whole"
    )
    assert len(whole) == 0
    with pytest.raises(ValueError, match="batch"):
        whole.sample()


def test_A22_explorations() -> None:
    n, r = 100, 0.8
    formulas: dict[str, tuple[dict[str, Any], Any]] = {
        "exponential_decay": ({"decay_rate": 0.5}, lambda x: r * 0.5**x),
        "natural_exp_decay": ({"decay_rate": 0.5}, lambda x: r * math.exp(-0.5 * x)),
        "inverse_time_decay": ({"decay_rate": 0.5}, lambda x: r / (1 + 0.5 * x)),
        "polynomial_decay": ({}, lambda x: (r - 0.0001) * (1 - min(x, 1)) + 0.0001),
        "piecewise_constant": (
            {"boundaries": [0, 50], "values": [r, 0.3, 0.1]},
            lambda x: r if x <= 0 else 0.3 if x <= 0.5 else 0.1,
        ),
    }
    for kind, (options, formula) in formulas.items():
        exploration = decay(r, kind, decay_steps=n, **options)
        for timestep in (0, n // 2, n, 3 * n):
            assert exploration.rate(timestep) == pytest.approx(formula(timestep / n), abs=1e-12), (
                kind,
                timestep,
            )
    staircase = decay(r, "exponential_decay", decay_rate=0.5, decay_steps=n, staircase=True)
    assert [staircase.rate(t) for t in (0, 99, 100, 250)] == [r, r, r / 2, r / 4]
    late = decay(r, start_decay_at=10, stop_decay_at=60, decay_steps=n, min_exploration_rate=0.3)
    assert late.rate(9) == r
    assert late.rate(60) == late.rate(10_000) == pytest.approx((r - 0.0001) * 0.5 + 0.0001)
    assert decay(r, decay_steps=n, min_exploration_rate=0.3).rate(n) == 0.3
    assert Decay(decay_steps=n, cycle=True).schedule(r)(150) == pytest.approx(
        (r - 0.0001) * 0.25 + 0.0001
    )
    for kind in ("exponential_decay", "natural_exp_decay", "inverse_time_decay"):
        with pytest.raises(ValueError, match="decay_rate"):
            decay(r, kind)
    half = constant(0.5)
    actions = half.discrete(np.zeros(10_000, np.int64), 2, 0)
    assert 0.22 < actions.mean() < 0.28, "half of the actions are random, half of those are 1"
    noise = ornsteinuhlenbeck_process(sigma=0.0, mu=1.0, theta=0.25)
    away = [float(noise.noise((1,), t)[0]) for t in range(3)]
    noise.load_state_dict({**noise.state_dict(), "at": np.array([5.0])})
    away = [float(noise.noise((1,), t)[0]) for t in range(3)]
    assert away == pytest.approx([4.0, 3.25, 2.6875]), (
        "back to mu by a quarter of the way each step"
    )
    wander = ornsteinuhlenbeck_process()
    path = np.array([wander.noise((1,), t)[0] for t in range(20_000)])
    assert abs(path.mean()) < 0.15
    assert path.std() == pytest.approx(0.3 / math.sqrt(1 - 0.85**2), rel=0.1)
    fresh = random_decay(0.8, decay_steps=n)
    drawn = [float(fresh.noise((1,), 0)[0]) for _ in range(20)]
    assert len(set(drawn)) == 20, "the noise is drawn anew at each step"
    with pytest.raises(RuntimeError, match="model function"):
        current()

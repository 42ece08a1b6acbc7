"""Agent: constructor and train (rows A1 to A15)."""

import tempfile
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from tests.acceptance.estimator_kit import (
    KillHook,
    SimulatedKill,
    TracingHook,
    are_equal,
    make_agent,
    read_state,
)
from tests.acceptance.estimator_models import QUIET, ScriptedEnv, policy
from workers.estimators.agents import Agent, PGAgent
from workers.estimators.checkpoints import all_checkpoints, key_of
from workers.estimators.memories import BatchMemory, Memory
from workers.estimators.run_config import RunConfig
from workers.estimators.summaries import SUMMARIES_FILE
from workers.supervised.modes import Modes
from workers.supervised.run_session import SessionRunHook
from workers.supervised.spec import EstimatorSpec


def get_counts(agent: Agent) -> tuple[int, int, int]:
    newest = agent.latest_checkpoint()
    assert newest is not None
    return tuple(key_of(newest))


def test_A1_constructor(tmp_path: Path) -> None:
    agent = Agent(policy, Memory(10, 2), tmp_path / "new")
    assert not (tmp_path / "new").exists()
    one, other = Agent(policy, Memory(10, 2)), Agent(policy, Memory(10, 2))
    assert one.model_dir != other.model_dir
    assert Path(one.model_dir).parent == Path(tempfile.gettempdir())
    assert not Path(one.model_dir).exists()
    assert Agent(policy, Memory(10, 2), config=RunConfig(model_dir="there")).model_dir == "there"
    with pytest.raises(ValueError, match="model_dir"):
        Agent(policy, Memory(10, 2), tmp_path / "here", RunConfig(model_dir="there"))
    assert agent.model_dir == str(tmp_path / "new")


def test_A2_model_fn(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []

    def model(features: Any, labels: Any, **given: Any) -> EstimatorSpec:
        seen.append(given)
        mode = given.get("mode", Modes.PREDICT if labels is None else Modes.TRAIN)
        return policy(features, labels, mode)

    def call_with_two(features: Any, labels: Any) -> Any:
        return model(features, labels)

    def call_with_three(features: Any, labels: Any, mode: Modes) -> Any:
        return model(features, labels, mode=mode)

    def call_with_four(features: Any, labels: Any, mode: Modes, params: Any) -> Any:
        return model(features, labels, mode=mode, params=params)

    def call_with_five(features: Any, labels: Any, mode: Modes, params: Any, config: Any) -> Any:
        return model(features, labels, mode=mode, params=params, config=config)

    def call_with_six(
        features: Any, labels: Any, mode: Modes, params: Any, config: Any, model_dir: str
    ) -> Any:
        return model(features, labels, mode=mode, params=params, config=config, model_dir=model_dir)

    for number, function in enumerate(
        (call_with_two, call_with_three, call_with_four, call_with_five, call_with_six)
    ):
        seen.clear()
        directory = str(tmp_path / str(number))
        params = {"a": 1} if number >= 2 else None
        agent = Agent(function, Memory(100, 4), directory, RunConfig(**QUIET), params)
        agent.train(ScriptedEnv(), first_update=4, update_frequency=2, max_steps=2)
        assert len(seen[-1]) == number
        assert {given["mode"] for given in seen if given} <= {Modes.PREDICT, Modes.TRAIN}
        assert all(given["params"] == params for given in seen if "params" in given)
        assert all(given["model_dir"] == directory for given in seen if "model_dir" in given)
        assert all(given["config"].model_dir == directory for given in seen if "config" in given)
    with pytest.raises(ValueError, match="surprise"):
        Agent(lambda features, labels, surprise: None, Memory(10, 2))  # type: ignore[arg-type,misc]
    with pytest.raises(ValueError, match="labels"):
        Agent(lambda features: None, Memory(10, 2))  # type: ignore[arg-type,misc]
    wrong = Agent(lambda features, labels: 3, Memory(10, 2), tmp_path / "wrong")  # type: ignore[arg-type,return-value]
    with pytest.raises(ValueError, match="EstimatorSpec"):
        wrong.train(ScriptedEnv(), first_update=4, max_steps=1)


def test_A3_memory(tmp_path: Path) -> None:
    class CountingMemory(Memory):
        pass

    assert Agent(policy, CountingMemory(10, 2), tmp_path).memory.size == 10
    with pytest.raises(TypeError, match="memory"):
        Agent(policy, [1, 2], tmp_path)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="BatchMemory"):
        PGAgent(policy, Memory(10, 2), tmp_path)
    assert PGAgent(policy, BatchMemory(10), tmp_path).memory.batch_size == 10


def test_A4_model_dir(tmp_path: Path) -> None:
    straight = make_agent(tmp_path / "straight").train(ScriptedEnv(), 4, 3, max_steps=12)
    make_agent(tmp_path / "twice").train(ScriptedEnv(), 4, 3, max_steps=5)
    again = make_agent(tmp_path / "twice").train(ScriptedEnv(), 4, 3, max_steps=12)
    assert are_equal(read_state(straight), read_state(again))
    assert get_counts(again) == get_counts(straight)


@pytest.mark.parametrize("environment", ["CartPole-v1", "scripted"])
def test_A4_model_dir_after_a_kill_at_any_update(tmp_path: Path, environment: str) -> None:
    def make_env() -> gym.Env[Any, Any]:
        return ScriptedEnv() if environment == "scripted" else gym.make(environment)

    def make_counted_agent(directory: str, every: int = 1000) -> Agent:
        return make_agent(tmp_path / directory, save_checkpoints_steps=every, seed=3)

    straight = make_counted_agent("straight").train(make_env(), 10, 7, max_steps=30)
    inside = 0
    for kill in (1, 2, 5, 11, 13, 29):
        with pytest.raises(SimulatedKill):
            make_counted_agent(f"kill{kill}", kill).train(
                make_env(), 10, 7, max_steps=30, hooks=[KillHook(kill)]
            )
        killed = read_state(make_counted_agent(f"kill{kill}"))
        assert killed["clock"]["updates"] == kill
        inside += not killed["collector"]["episodes"][0]["over"]
        resumed = make_counted_agent(f"kill{kill}").train(make_env(), 10, 7, max_steps=30)
        assert are_equal(read_state(resumed), read_state(straight)), f"killed at update {kill}"
    assert inside >= 3, "some of the kills fall into the middle of an episode"


def test_A5_config(tmp_path: Path) -> None:
    every = {"keep_checkpoint_max": None, "log_step_count_steps": 0}

    def list_saved_counts(name: str, **config: Any) -> list[tuple[int, ...]]:
        agent = Agent(
            policy,
            Memory(100, 4),
            tmp_path / name,
            RunConfig(**{**every, "save_summary_steps": 0, **config}),
        )
        agent.train(ScriptedEnv(), 4, 2, max_steps=12)
        return [tuple(key_of(path)) for path in all_checkpoints(tmp_path / name).values()]

    assert [steps for steps, _, _ in list_saved_counts("steps", save_checkpoints_steps=5)] == [
        5,
        10,
        12,
    ]
    assert [episodes for _, _, episodes in list_saved_counts("episodes")] == [1, 2, 2], (
        "at each episode, and at the end"
    )
    assert [
        episodes for _, _, episodes in list_saved_counts("two", save_checkpoints_episodes=2)
    ] == [2, 2]
    assert len(list_saved_counts("secs", save_checkpoints_secs=3600.0)) == 1
    assert list_saved_counts("none", save_checkpoints_steps=0) == []
    assert [
        steps
        for steps, _, _ in list_saved_counts(
            "kept", save_checkpoints_steps=1, keep_checkpoint_max=3
        )
    ] == [10, 11, 12]
    list_saved_counts("summaries", save_summary_steps=4)
    rows = (tmp_path / "summaries" / SUMMARIES_FILE).read_text().splitlines()
    assert next(row for row in rows if '"learning_rate"' in row).count('"global_step": 4,') == 1
    assert sum('"learning_rate"' in row for row in rows) == 3
    assert not (tmp_path / "steps" / SUMMARIES_FILE).exists()
    with pytest.raises(ValueError, match="save_checkpoints_steps"):
        RunConfig(save_checkpoints_steps=1, save_checkpoints_secs=1.0)


def test_A6_params(tmp_path: Path) -> None:
    given = {"sizes": [1, 2]}
    seen: list[Any] = []

    def model(features: Any, labels: Any, mode: Modes, params: Any) -> EstimatorSpec:
        seen.append([*params["sizes"]])
        params["sizes"].append(3)
        return policy(features, labels, mode)

    agent = Agent(model, Memory(100, 4), tmp_path, RunConfig(**QUIET), given)
    given["sizes"].append(9)
    agent.train(ScriptedEnv(), 4, 2, max_steps=3)
    assert all(sizes == [1, 2] for sizes in seen)
    assert agent.params == {"sizes": [1, 2]}
    agent.params["sizes"].append(4)
    assert agent.params == {"sizes": [1, 2]}
    with pytest.raises(ValueError, match="params"):
        Agent(policy, Memory(10, 2), tmp_path, params={"a": 1})
    with pytest.warns(UserWarning, match="params"):
        Agent(model, Memory(10, 2), tmp_path)


def test_A7_env(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="env"):
        make_agent(tmp_path).train("CartPole-v1")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="env"):
        make_agent(tmp_path).train(None)  # type: ignore[arg-type]


def test_A8_first_update(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"first_update.*4"):
        make_agent(tmp_path).train(ScriptedEnv(), first_update=3)
    with pytest.raises(ValueError, match="first_update"):
        make_agent(tmp_path).train(ScriptedEnv(), first_update=-1)
    assert make_agent(tmp_path).train(ScriptedEnv(), first_update=4, max_steps=1).global_step == 1


class UpdateRecorder(SessionRunHook):
    """Records the timesteps of the updates."""

    def __init__(self) -> None:
        self.timesteps: list[int] = []

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if run_values.has_learned:
            self.timesteps.append(run_context.session.global_timestep)


def test_A9_update_frequency(tmp_path: Path) -> None:
    hook = UpdateRecorder()
    make_agent(tmp_path).train(
        ScriptedEnv(), first_update=15, update_frequency=4, max_episodes=4, hooks=[hook]
    )
    assert hook.timesteps == [16, 20, 24, 28, 30, 32, 36, 40], (
        "multiples of 4 beyond 15, ends at 20, 30 and 40, never twice"
    )
    for frequency in (0, -1):
        with pytest.raises(ValueError, match="update_frequency"):
            make_agent(tmp_path).train(ScriptedEnv(), 4, frequency)


def test_A10_steps(tmp_path: Path) -> None:
    for total in (10, 20):
        agent = make_agent(tmp_path).train(ScriptedEnv(), 4, 2, steps=10)
        assert agent.global_step == total
    assert not agent.has_training_ended(), "so many more steps pause a training"


def test_A11_max_steps(tmp_path: Path) -> None:
    env = ScriptedEnv()
    agent = make_agent(tmp_path).train(env, 4, 2, max_steps=10)
    assert (agent.global_step, agent.has_training_ended()) == (10, True)
    steps = env.steps
    assert make_agent(tmp_path).train(env, 4, 2, max_steps=10).global_step == 10
    assert env.steps == steps, "the second call does nothing"
    with pytest.raises(ValueError, match="max_steps"):
        agent.train(env, 4, 2, steps=1, max_steps=20)
    with pytest.raises(ValueError, match="steps"):
        agent.train(env, 4, 2, steps=0)


def test_A12_episodes(tmp_path: Path) -> None:
    for total in (3, 6):
        assert get_counts(make_agent(tmp_path).train(ScriptedEnv(), 4, 2, episodes=3))[1:] == (
            10 * total,
            total,
        )


def test_A13_max_episodes(tmp_path: Path) -> None:
    for _ in range(2):
        agent = make_agent(tmp_path).train(ScriptedEnv(), 4, 2, max_episodes=3)
        assert get_counts(agent)[1:] == (30, 3)
    with pytest.raises(ValueError, match="max_episodes"):
        agent.train(ScriptedEnv(), 4, 2, episodes=1, max_episodes=9)


def test_A14_hooks(tmp_path: Path) -> None:
    trace: list[str] = []

    class NamedHook(TracingHook):
        def before_run(self, run_context: Any) -> None:
            super().before_run(run_context)
            trace.append(f"before {self.name}")

        def after_run(self, run_context: Any, run_values: Any) -> None:
            super().after_run(run_context, run_values)
            trace.append(f"after {self.name}")

    first, second = NamedHook("a"), NamedHook("b")
    make_agent(tmp_path).train(ScriptedEnv(), 4, 5, max_steps=3, hooks=[first, second])
    assert first.events == ["begin", "session", *["before", "after"] * 3, "end"]
    assert first.steps == [1, 2, 3]
    assert trace[:4] == ["before a", "before b", "after a", "after b"]
    for wrong in ("hook", object()):
        with pytest.raises(TypeError, match="SessionRunHook"):
            make_agent(tmp_path).train(ScriptedEnv(), 4, 5, steps=1, hooks=[wrong])  # type: ignore[list-item]


def test_A15_return(tmp_path: Path) -> None:
    agent = make_agent(tmp_path)
    assert agent.train(ScriptedEnv(), 4, 2, max_steps=2) is agent
    assert agent.train(ScriptedEnv(), 4, 2, max_steps=2) is agent

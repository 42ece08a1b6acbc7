"""RLExperiment: constructor and options (rows R1 to R14 without R12)."""

import inspect
import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from tests.acceptance.estimator_kit import (
    CallLog,
    KillHook,
    SimulatedKill,
    TracingHook,
    TrainBeforeEvaluations,
    are_equal,
    make_agent,
    make_rl_experiment,
    read_state,
)
from tests.acceptance.estimator_models import ScriptedEnv, policy
from workers.entrypoints.experiment_parts.rl_experiment import RLExperiment
from workers.estimators.agents import Agent, PGAgent
from workers.estimators.checkpoints import key_of
from workers.estimators.evaluation_results import read_results
from workers.estimators.export_strategies import ExportStrategy, make_export_strategy
from workers.estimators.memories import BatchMemory


def test_R1_constructor(tmp_path: Path) -> None:
    class Untouchable:
        model_dir = "x"
        memory = None

        def _never(self, *args: Any, **options: Any) -> Any:
            raise AssertionError

        train = run_episode = evaluate = latest_checkpoint = has_training_ended = _never

    class BeginHook(TracingHook):
        def begin(self) -> None:
            raise AssertionError

    untouched = RLExperiment(
        Untouchable(), lambda: 1 / 0, train_hooks=[BeginHook()], eval_hooks=[BeginHook()]
    )  # type: ignore[arg-type,return-value]
    assert isinstance(untouched, RLExperiment)
    names = list(inspect.signature(RLExperiment).parameters)
    assert names == [
        *(
            "agent",
            "env",
            "train_steps",
            "train_episodes",
            "first_update",
            "update_frequency",
            "eval_steps",
            "train_hooks",
        ),
        *(
            "eval_hooks",
            "eval_delay_secs",
            "continuous_eval_throttle_secs",
            "eval_every_n_steps",
            "delay_workers_by_global_step",
        ),
        *("export_strategies", "train_steps_per_iteration"),
    ]
    defaults = [one.default for one in inspect.signature(RLExperiment).parameters.values()][2:]
    assert defaults == [None, None, 5000, 15, 10, None, None, 0, 60, 1, False, None, 100]
    for agent in (make_agent(tmp_path), PGAgent(policy, BatchMemory(10), tmp_path)):
        assert RLExperiment(agent, ScriptedEnv()).agent is agent
    with pytest.raises(ValueError, match="agent"):
        RLExperiment("agent", ScriptedEnv())  # type: ignore[arg-type]


def test_R2_agent_and_env(tmp_path: Path) -> None:
    env = ScriptedEnv()
    made = make_rl_experiment(tmp_path / "given", env=env, train_steps=3)
    assert made.env is env
    for name in ("agent", "env", "train_steps", "eval_steps"):
        with pytest.raises(AttributeError):
            setattr(made, name, None)
    made.train()
    made.evaluate()
    assert env.closes == 0, "an environment that is given belongs to its giver"
    opened: list[ScriptedEnv] = []

    def make() -> ScriptedEnv:
        opened.append(ScriptedEnv())
        return opened[-1]

    own = make_rl_experiment(tmp_path / "made", env=make, train_steps=3)
    own.train()
    assert [env.closes for env in opened] == [1]
    own.evaluate()
    assert [env.closes for env in opened] == [1, 1]
    failing = make_rl_experiment(
        tmp_path / "failing", env=make, train_steps=3, train_hooks=[KillHook(1)]
    )
    with pytest.raises(SimulatedKill):
        failing.train()
    assert [env.closes for env in opened] == [1, 1, 1]


def test_R3_train_steps(tmp_path: Path) -> None:
    assert make_rl_experiment(tmp_path, train_steps=7).train().global_step == 7
    assert make_rl_experiment(tmp_path, train_steps=9).train().global_step == 9

    class StopHook(TracingHook):
        def after_run(self, run_context: Any, run_values: Any) -> None:
            super().after_run(run_context, run_values)
            if run_context.session.global_step >= 40:
                run_context.request_stop()

    assert (
        make_rl_experiment(tmp_path, train_steps=None, train_hooks=[StopHook()]).train().global_step
        == 40
    ), "without a bound until it is stopped"


@pytest.mark.parametrize("environment", ["CartPole-v1", "scripted"])
def test_R3_train_steps_after_a_kill_within_an_episode(tmp_path: Path, environment: str) -> None:
    def run(directory: str, every: int = 1000, **options: Any) -> Agent:
        env = ScriptedEnv() if environment == "scripted" else gym.make(environment)
        made = make_rl_experiment(
            tmp_path / directory,
            env=env,
            config={"save_checkpoints_steps": every},
            train_steps=25,
            **options,
        )
        agent: Agent = made.train()
        return agent

    straight = run("straight")
    inside = 0
    for kill in (1, 2, 4, 9, 16, 24):
        with pytest.raises(SimulatedKill):
            run(f"kill{kill}", kill, train_hooks=[KillHook(kill)])
        inside += not read_state(make_agent(tmp_path / f"kill{kill}"))["collector"]["episodes"][0][
            "over"
        ]
        assert are_equal(read_state(run(f"kill{kill}")), read_state(straight)), (
            f"killed at update {kill}"
        )
    assert inside >= 3


def test_R4_train_episodes(tmp_path: Path) -> None:
    for _ in range(2):
        env = ScriptedEnv()
        agent = make_rl_experiment(tmp_path, env=env, train_episodes=3).train()
        assert tuple(key_of(agent.latest_checkpoint()))[1:] == (30, 3)
    assert env.steps == 0, "the episodes count in the life of the directory"
    agent = make_rl_experiment(tmp_path, train_episodes=5).train()
    assert key_of(agent.latest_checkpoint()).global_episode == 5


class UpdateRecorder(TracingHook):
    """Records the timesteps of the updates."""

    def __init__(self) -> None:
        super().__init__()
        self.at: list[int] = []

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if run_values.has_learned:
            self.at.append(run_context.session.global_timestep)


def test_R5_first_update(tmp_path: Path) -> None:
    hook = UpdateRecorder()
    make_rl_experiment(
        tmp_path, train_episodes=4, first_update=20, update_frequency=7, train_hooks=[hook]
    ).train()
    assert hook.at == [21, 28, 30, 35, 40], "not at the end of the episode at 20 either"


def test_R6_update_frequency(tmp_path: Path) -> None:
    hook = UpdateRecorder()
    make_rl_experiment(
        tmp_path / "a", train_episodes=3, first_update=4, update_frequency=5, train_hooks=[hook]
    ).train()
    assert hook.at == [5, 10, 15, 20, 25, 30]
    hook = UpdateRecorder()
    make_rl_experiment(
        tmp_path / "b", train_episodes=3, first_update=4, update_frequency=4, train_hooks=[hook]
    ).train()
    assert hook.at == [8, 10, 12, 16, 20, 24, 28, 30]
    for frequency in (0, -3):
        with pytest.raises(ValueError, match="update_frequency"):
            make_rl_experiment(tmp_path / "c", update_frequency=frequency)
    hook = UpdateRecorder()
    make_rl_experiment(
        tmp_path / "b", train_episodes=4, first_update=4, update_frequency=3, train_hooks=[hook]
    ).train()
    assert hook.at == [33, 36, 39, 40], "another frequency holds from where the training goes on"


def test_R7_eval_steps(tmp_path: Path) -> None:
    made = make_rl_experiment(tmp_path, train_steps=3, eval_steps=4)
    made.train()
    hook = TracingHook()
    made.extend_eval_hooks([hook])
    assert made.evaluate()["episodes"] == 4
    assert hook.events.count("after") == 4
    for steps in (None, 0, -1):
        with pytest.raises(ValueError, match="eval_steps"):
            make_rl_experiment(tmp_path, eval_steps=steps).evaluate()


def test_R8_hooks(tmp_path: Path) -> None:
    train, evaluate, late = TracingHook(), TracingHook(), TracingHook()
    train_hooks, eval_hooks = [train], [evaluate]
    made = make_rl_experiment(
        tmp_path, train_steps=2, train_hooks=train_hooks, eval_hooks=eval_hooks
    )
    train_hooks.append(late)
    eval_hooks.append(late)
    made.train()
    assert train.events[0] == "begin"
    assert evaluate.events == []
    count = len(train.events)
    made.evaluate()
    assert evaluate.events == ["begin", "session", *["before", "after"] * 2, "end"]
    assert len(train.events) == count
    assert late.events == []
    for phase in ("train", "eval"):
        wrong = make_rl_experiment(tmp_path, train_steps=9, **{f"{phase}_hooks": [object()]})
        with pytest.raises(TypeError, match="SessionRunHook"):
            wrong.train() if phase == "train" else wrong.evaluate()


def test_R9_eval_delay_secs(tmp_path: Path) -> None:
    recorded = CallLog()
    made = make_rl_experiment(tmp_path, recorded, train_steps=2, eval_delay_secs=7)
    made.train()
    before = recorded.time.at
    made.evaluate()
    assert recorded.times[-1] - before == 7
    before = recorded.time.at
    made.continuous_eval()
    assert recorded.times[-1] - before == 7


def test_R10_continuous_eval_throttle_secs(tmp_path: Path) -> None:
    recorded = CallLog()
    recorded.took = 25.0
    made = make_rl_experiment(tmp_path, recorded, continuous_eval_throttle_secs=60)
    made.continuous_eval(continuous_eval_predicate_fn=TrainBeforeEvaluations(tmp_path, 4))
    assert recorded.times == [0, 60, 120, 180]
    recorded.times.clear()
    recorded.took = 100.0
    begun = recorded.time.at
    made.continuous_eval(continuous_eval_predicate_fn=TrainBeforeEvaluations(tmp_path, 3))
    assert [at - begun for at in recorded.times] == [0, 100, 200], (
        "one that takes longer is not waited for again"
    )


def test_R11_eval_every_n_steps(tmp_path: Path) -> None:
    def list_evaluated_steps(name: str, every: int | None, checkpoints: int) -> list[int]:
        directory = tmp_path / name
        made = make_rl_experiment(
            directory,
            config={"save_checkpoints_steps": checkpoints},
            train_steps=44,
            eval_every_n_steps=every,
        )
        made.train_and_evaluate()
        return [row["global_step"] for row in read_results(directory, None)]

    assert list_evaluated_steps("ten", 10, 5) == [10, 20, 30, 40, 44]
    assert list_evaluated_steps("sparse", 10, 15) == [15, 30, 44], (
        "no checkpoint is forced, and none is evaluated twice"
    )
    assert list_evaluated_steps("each", 1, 11) == [11, 22, 33, 44]
    assert list_evaluated_steps("zero", 0, 5) == [44]
    assert list_evaluated_steps("none", None, 5) == [44]


def test_R13_export_strategies(tmp_path: Path) -> None:
    one, other = (
        ExportStrategy(name, lambda model, path, checkpoint, result: path.name)
        for name in ("one", "other")
    )
    assert make_rl_experiment(tmp_path, export_strategies=one).export_strategies == (one,)
    assert make_rl_experiment(tmp_path, export_strategies=[one, other]).export_strategies == (
        one,
        other,
    )
    assert make_rl_experiment(tmp_path, export_strategies=None).export_strategies == ()
    assert make_rl_experiment(tmp_path, export_strategies=()).export_strategies == ()
    for wrong in ("policy", 3, [one, "policy"], [one, one]):
        with pytest.raises(ValueError, match="export_strategies"):
            make_rl_experiment(tmp_path, export_strategies=wrong)
    made = make_rl_experiment(tmp_path, train_steps=2, export_strategies=[one, other])
    assert made.train_and_evaluate()[1] == ["one", "other"]
    assert (tmp_path / "export" / "other").is_dir()


def test_R13_export_strategies_keep_the_newest_five(tmp_path: Path) -> None:
    made = make_rl_experiment(
        tmp_path, export_strategies=make_export_strategy("weights", ["weights"])
    )
    for step in range(1, 8):
        made.agent.train(ScriptedEnv(), 4, 2, max_steps=2 * step)
        made.continuous_eval(continuous_eval_predicate_fn=lambda result: not result)
    assert sorted(int(path.name) for path in (tmp_path / "export" / "weights").iterdir()) == [
        6,
        8,
        10,
        12,
        14,
    ]
    document = json.loads((tmp_path / "export" / "weights" / "14" / "policy.json").read_text())
    assert document["global_step"] == 14
    assert set(document["tensors"]) == {"model_values.weight", "model_values.bias"}


def test_R14_train_steps_per_iteration(tmp_path: Path) -> None:
    for wrong in (1.5, "100", True, 0, -1):
        with pytest.raises(ValueError, match="train_steps_per_iteration"):
            make_rl_experiment(tmp_path, train_steps_per_iteration=wrong)

    def get_steps_of_first_round(name: str, train_steps: int | None) -> int:
        recorded = CallLog()
        made = make_rl_experiment(
            tmp_path / name, recorded, train_steps=train_steps, train_steps_per_iteration=None
        )
        made.continuous_train_and_evaluate(lambda result: result is None)
        steps: int = recorded.get_calls("train")[0]["steps"]
        return steps

    assert get_steps_of_first_round("tenth", 55) == 5
    assert get_steps_of_first_round("one", 7) == 1
    recorded = CallLog()
    made = make_rl_experiment(
        tmp_path / "default", recorded, train_steps_per_iteration=None, train_hooks=[KillHook(1)]
    )
    with pytest.raises(SimulatedKill):
        made.continuous_train_and_evaluate()
    assert recorded.get_calls("train")[0]["steps"] == 1000

"""RLExperiment: its schedules (rows R15 to R28)."""

import inspect
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.estimator_kit import (
    CLUSTER,
    CallLog,
    SimulatedKill,
    TracingHook,
    TrainBeforeEvaluations,
    are_equal,
    make_agent,
    make_rl_experiment,
    read_state,
    set_fake_clock,
)
from tests.acceptance.estimator_models import ScriptedEnv
from tests.support.process_stack import find_free_port
from workers.entrypoints.experiment_parts.rl_experiment import RLExperiment
from workers.estimators.checkpoints import key_of
from workers.estimators.evaluation_results import read_results
from workers.estimators.export_strategies import ExportStrategy
from workers.estimators.model_owner import EstimatorNotTrainedError
from workers.estimators.run_config import RunConfig


def test_R15_reset_export_strategies(tmp_path: Path) -> None:
    one, other = (ExportStrategy(name, lambda *_: None) for name in ("one", "other"))
    made = make_rl_experiment(tmp_path, export_strategies=one)
    assert made.reset_export_strategies([other]) == (one,)
    with pytest.raises(ValueError, match="export_strategies"):
        made.reset_export_strategies("x")
    assert made.reset_export_strategies() == (other,)
    assert made.export_strategies == ()


def test_R16_extend_hooks(tmp_path: Path) -> None:
    given = [TracingHook()]
    more_train, more_eval = TracingHook(), TracingHook()
    made = make_rl_experiment(tmp_path, train_steps=2, train_hooks=given, eval_hooks=given)
    made.extend_train_hooks([more_train])
    made.extend_eval_hooks([more_eval])
    assert len(given) == 1
    made.train()
    assert (more_train.learned, more_eval.events) == (2, [])
    made.evaluate()
    assert (more_train.learned, more_eval.events.count("after")) == (2, 2)


def test_R17_train(tmp_path: Path) -> None:
    recorded = CallLog()
    made = make_rl_experiment(tmp_path, recorded, train_steps=3)
    assert made.train(delay_secs=11) is made.agent
    assert recorded.times == [11]
    env = made.env
    assert isinstance(env, ScriptedEnv)
    steps = env.steps
    assert made.train() is made.agent
    assert env.steps == steps, "the bound is reached"


def test_R18_evaluate(tmp_path: Path) -> None:
    with pytest.raises(EstimatorNotTrainedError, match=str(tmp_path)):
        make_rl_experiment(tmp_path).evaluate()
    made = make_rl_experiment(tmp_path, train_steps=3, eval_steps=3)
    made.train()
    before = read_state(made.agent)
    result = made.evaluate(delay_secs=0)
    timestep = key_of(made.agent.latest_checkpoint()).global_timestep
    returns = {
        "mean_return": 10.0,
        "std_return": 0.0,
        "min_return": 10.0,
        "max_return": 10.0,
        "mean_length": 10.0,
        "episodes": 3,
    }
    assert result == returns | {"global_step": 3, "global_timestep": timestep, "global_episode": 1}
    assert made.evaluate() == result
    assert read_results(tmp_path, "one_pass") == [result, result]
    assert are_equal(read_state(made.agent), before), (
        "an evaluation changes nothing of the training"
    )


def test_R18_evaluate_is_greedy(tmp_path: Path) -> None:
    actions: list[list[int]] = []

    class WatchingEnv(ScriptedEnv):
        def reset(self, **options: Any) -> Any:
            actions.append([])
            return super().reset(**options)

        def step(self, action: Any) -> Any:
            actions[-1].append(int(action))
            return super().step(action)

    make_rl_experiment(tmp_path, train_steps=3).train()
    make_rl_experiment(tmp_path, env=WatchingEnv, eval_steps=4).evaluate()
    assert len(actions) == 4
    assert all(episode == actions[0] for episode in actions), (
        "the same states give the same actions: nothing is explored"
    )


def test_R19_continuous_eval(tmp_path: Path) -> None:
    made = make_rl_experiment(tmp_path, train_steps=12)
    made.continuous_eval(continuous_eval_predicate_fn=TrainBeforeEvaluations(tmp_path, 50))
    steps = [row["global_step"] for row in read_results(tmp_path, "continuous")]
    assert steps == [3, 6, 9, 12], "each new checkpoint once, then train_steps is reached"
    ended = tmp_path / "ended"
    make_agent(ended).train(ScriptedEnv(), 4, 2, max_steps=5)
    unbounded = make_rl_experiment(ended, train_steps=1000)
    unbounded.continuous_eval()
    assert [row["global_step"] for row in read_results(ended, "continuous")] == [5], (
        "the training job has ended below train_steps"
    )
    paused = tmp_path / "paused"
    make_agent(paused).train(ScriptedEnv(), 4, 2, steps=5)
    schedule_end = TrainBeforeEvaluations(paused, 7, train=False)
    make_rl_experiment(paused, train_steps=1000).continuous_eval(
        continuous_eval_predicate_fn=schedule_end
    )
    assert len(schedule_end.results) == 8, "a training that is only paused is waited for"


def test_R20_delay_secs_and_throttle_delay_secs(tmp_path: Path) -> None:
    recorded = CallLog()
    made = make_rl_experiment(
        tmp_path, recorded, eval_delay_secs=5, continuous_eval_throttle_secs=60
    )
    made.continuous_eval(
        delay_secs=2,
        throttle_delay_secs=10,
        continuous_eval_predicate_fn=TrainBeforeEvaluations(tmp_path, 3),
    )
    assert recorded.times == [2, 12, 22]


def test_R21_evaluate_checkpoint_only_once(tmp_path: Path) -> None:
    make_agent(tmp_path).train(ScriptedEnv(), 4, 2, steps=3)
    for once, evaluations in ((True, 1), (False, 5)):
        recorded = CallLog()
        schedule_end = TrainBeforeEvaluations(tmp_path, 5, train=False)
        make_rl_experiment(tmp_path, recorded).continuous_eval(
            evaluate_checkpoint_only_once=once, continuous_eval_predicate_fn=schedule_end
        )
        assert len(recorded.get_calls("evaluate")) == evaluations


def test_R22_continuous_eval_predicate_fn(tmp_path: Path) -> None:
    make_agent(tmp_path).train(ScriptedEnv(), 4, 2, steps=3)
    schedule_end = TrainBeforeEvaluations(tmp_path, 2, train=False)
    recorded = CallLog()
    make_rl_experiment(tmp_path, recorded).continuous_eval(
        continuous_eval_predicate_fn=schedule_end
    )
    assert schedule_end.results[0] is None
    assert schedule_end.results[1]["global_step"] == 3
    assert schedule_end.results[2] == {}
    recorded = CallLog()
    make_rl_experiment(tmp_path, recorded).continuous_eval(
        continuous_eval_predicate_fn=lambda _: False
    )
    assert recorded.calls == []
    made = make_rl_experiment(tmp_path)
    for schedule in (
        made.continuous_eval,
        made.continuous_eval_on_train_data,
        made.continuous_train_and_evaluate,
    ):
        with pytest.raises(ValueError, match="continuous_eval_predicate_fn"):
            schedule(continuous_eval_predicate_fn=3)


class SeedRecorder(ScriptedEnv):
    """An environment that records the seeds of its episodes."""

    seeds: list[int | None]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self.seeds.append(seed)
        return super().reset(seed=seed, options=options)


def test_R23_continuous_eval_on_train_data(tmp_path: Path) -> None:
    seeds: dict[str, list[int | None]] = {}

    def make_env_factory(name: str) -> Any:
        def make() -> SeedRecorder:
            made = SeedRecorder()
            made.seeds = seeds.setdefault(name, [])
            return made

        return make

    make_rl_experiment(tmp_path, env=make_env_factory("training"), train_episodes=4).train()
    recorded = CallLog()
    make_rl_experiment(
        tmp_path, recorded, env=make_env_factory("same"), eval_steps=3
    ).continuous_eval_on_train_data(delay_secs=1, throttle_delay_secs=2)
    make_rl_experiment(tmp_path, env=make_env_factory("others"), eval_steps=3).continuous_eval()
    assert seeds["same"] == seeds["training"][:3]
    assert not set(seeds["others"]) & set(seeds["training"])
    assert recorded.times == [1]
    assert (
        len(read_results(tmp_path, "continuous_on_train_data"))
        == len(read_results(tmp_path, "continuous"))
        == 1
    )
    parameters = inspect.signature(RLExperiment.continuous_eval_on_train_data).parameters
    assert list(parameters) == [
        "self",
        "delay_secs",
        "throttle_delay_secs",
        "continuous_eval_predicate_fn",
    ]


def test_R24_train_and_evaluate(tmp_path: Path) -> None:
    strategy = ExportStrategy(
        "one", lambda model, path, checkpoint, result: (checkpoint.name, result["global_step"])
    )
    made = make_rl_experiment(tmp_path, train_steps=9, export_strategies=strategy)
    result, exports = made.train_and_evaluate()
    assert result is not None
    assert result["global_step"] == 9
    assert exports == [("ckpt-9", 9)]
    assert read_results(tmp_path, None)[-1] == result


def test_R25_continuous_train_and_evaluate(tmp_path: Path) -> None:
    recorded = CallLog()
    strategy = ExportStrategy("one", lambda model, path, checkpoint, result: checkpoint.name)
    options = {
        "train_steps": 50,
        "train_steps_per_iteration": 20,
        "export_strategies": strategy,
        "eval_steps": 1,
    }
    result, exports = make_rl_experiment(
        tmp_path, recorded, **options
    ).continuous_train_and_evaluate()
    assert [call["steps"] for call in recorded.get_calls("train")] == [20, 20, 10]
    assert [row["global_step"] for row in read_results(tmp_path, "one_pass")] == [20, 40, 50]
    assert result is not None
    assert (result["global_step"], exports) == (50, ["ckpt-50"])
    recorded = CallLog()
    again, _ = make_rl_experiment(tmp_path, recorded, **options).continuous_train_and_eval()
    assert recorded.calls == [], "nothing is left to do"
    assert again == result


def test_R25_continuous_train_and_evaluate_begun_again(tmp_path: Path) -> None:
    class KillOnce(TracingHook):
        def __init__(self, at: int) -> None:
            super().__init__()
            self.at = at

        def before_run(self, run_context: Any) -> None:
            if run_context.session.global_step == self.at:
                raise SimulatedKill

    options = {"train_steps": 25, "train_steps_per_iteration": 10, "eval_steps": 1}
    config = {"save_checkpoints_steps": 3}
    with pytest.raises(SimulatedKill):
        make_rl_experiment(
            tmp_path, config=config, train_hooks=[KillOnce(16)], **options
        ).continuous_train_and_evaluate()
    recorded = CallLog()
    make_rl_experiment(tmp_path, recorded, config=config, **options).continuous_train_and_evaluate()
    assert [call["steps"] for call in recorded.get_calls("train")] == [5, 5], (
        "from the checkpoint at 15 to the end of its round, and the last one"
    )
    assert [row["global_step"] for row in read_results(tmp_path, "one_pass")] == [10, 20, 25]
    other = tmp_path / "other"
    make_agent(other).train(ScriptedEnv(), 4, 2, steps=10)
    recorded = CallLog()
    make_rl_experiment(other, recorded, **options).continuous_train_and_evaluate()
    assert [name for name, _ in recorded.calls] == [
        "evaluate",
        "train",
        "evaluate",
        "train",
        "evaluate",
    ]
    straight = make_rl_experiment(tmp_path / "straight", **options)
    straight.continuous_train_and_evaluate()
    assert are_equal(read_state(straight.agent), read_state(make_agent(other)))


def test_R26_continuous_eval_predicate_fn(tmp_path: Path) -> None:
    recorded = CallLog()
    strategy = ExportStrategy("one", lambda *_: "exported")
    made = make_rl_experiment(tmp_path, recorded, train_steps=9, export_strategies=strategy)
    assert made.continuous_train_and_evaluate(lambda _: False) == (None, []), (
        "there is no checkpoint to export"
    )
    assert recorded.calls == []
    made.train()
    recorded.calls.clear()
    assert made.continuous_train_and_evaluate(lambda _: False) == (None, ["exported"])
    assert recorded.calls == []


def test_R27_run_std_server(tmp_path: Path) -> None:
    for missing in ("cluster", "master", "task_type", "task_id"):
        config = {**CLUSTER, "task_id": 0, "task_type": "ps"}
        del config[missing]
        with pytest.raises(ValueError, match=missing):
            make_rl_experiment(tmp_path, config=config).run_std_server()
    address = f"127.0.0.1:{find_free_port()}"
    config = {
        "cluster": {"ps": [address], "worker": ["a:1"]},
        "master": address,
        "task_type": "ps",
        "task_id": 0,
    }
    made = RLExperiment(make_agent(tmp_path, **config), ScriptedEnv())
    servers: list[Any] = []
    original = made.context.make_server

    def make_and_record_server(config: RunConfig) -> Any:
        servers.append(original(config))
        return servers[-1]

    set_fake_clock(made, CallLog(), make_server=make_and_record_server)
    events: list[str] = []

    def serve() -> None:
        made.run_std_server()
        events.append("returned")

    thread = threading.Thread(target=serve)
    thread.start()
    counter = made.context.make_counter(RunConfig(**config))
    assert counter.add(3) == 3
    assert made.context.make_counter(RunConfig(**config)).read() == 3
    events.append("stopped")
    servers[0].stop()
    thread.join()
    assert events == ["stopped", "returned"], "it blocks"


def test_R28_test(tmp_path: Path) -> None:
    exported: list[Any] = []
    strategy = ExportStrategy(
        "one", lambda model, path, checkpoint, result: exported.append((checkpoint.name, path))
    )
    recorded = CallLog()
    hook = TracingHook()
    made = make_rl_experiment(
        tmp_path,
        recorded,
        train_steps=50,
        export_strategies=strategy,
        eval_hooks=[hook],
        first_update=5000,
    )
    result = made.test()
    assert [call["steps"] for call in recorded.get_calls("train")] == [1]
    assert [call["steps"] for call in recorded.get_calls("evaluate")] == [1]
    assert [name for name, _ in exported] == ["ckpt-1"]
    assert (result["global_step"], result["episodes"]) == (1, 1)
    assert hook.events == []
    assert list(tmp_path.iterdir()) == [], "the directory of the model is left alone"
    assert len(made.agent.memory) == 0
    assert not exported[0][1].exists()

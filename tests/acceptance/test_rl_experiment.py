"""RLExperiment: what it is made of (rows R1 to R14)."""

import inspect
import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from tests.acceptance.estimator_kit import (
    CLUSTER,
    FakeCounter,
    KillAt,
    Killed,
    Recorded,
    Scripted,
    TracingHook,
    Trainer,
    make_agent,
    policy,
    rl_experiment,
    same,
    state_of,
    with_time,
)
from tests.support.process_stack import free_port
from workers.entrypoints.experiment_parts.rl_experiment import RLExperiment
from workers.estimators.agents import Agent, PGAgent
from workers.estimators.basic_hooks import GlobalStepWaiterHook
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

        train = run_episode = evaluate = latest_checkpoint = training_ended = _never

    class Hook(TracingHook):
        def begin(self) -> None:
            raise AssertionError

    untouched = RLExperiment(
        Untouchable(), lambda: 1 / 0, train_hooks=[Hook()], eval_hooks=[Hook()]
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
        assert RLExperiment(agent, Scripted()).agent is agent
    with pytest.raises(ValueError, match="agent"):
        RLExperiment("agent", Scripted())  # type: ignore[arg-type]


def test_R2_agent_and_env(tmp_path: Path) -> None:
    env = Scripted()
    made = rl_experiment(tmp_path / "given", env=env, train_steps=3)
    assert made.env is env
    for name in ("agent", "env", "train_steps", "eval_steps"):
        with pytest.raises(AttributeError):
            setattr(made, name, None)
    made.train()
    made.evaluate()
    assert env.closes == 0, "an environment that is given belongs to its giver"
    opened: list[Scripted] = []

    def make() -> Scripted:
        opened.append(Scripted())
        return opened[-1]

    own = rl_experiment(tmp_path / "made", env=make, train_steps=3)
    own.train()
    assert [env.closes for env in opened] == [1]
    own.evaluate()
    assert [env.closes for env in opened] == [1, 1]
    failing = rl_experiment(tmp_path / "failing", env=make, train_steps=3, train_hooks=[KillAt(1)])
    with pytest.raises(Killed):
        failing.train()
    assert [env.closes for env in opened] == [1, 1, 1]


def test_R3_train_steps(tmp_path: Path) -> None:
    assert rl_experiment(tmp_path, train_steps=7).train().global_step == 7
    assert rl_experiment(tmp_path, train_steps=9).train().global_step == 9

    class Stop(TracingHook):
        def after_run(self, run_context: Any, run_values: Any) -> None:
            super().after_run(run_context, run_values)
            if run_context.session.global_step >= 40:
                run_context.request_stop()

    assert (
        rl_experiment(tmp_path, train_steps=None, train_hooks=[Stop()]).train().global_step == 40
    ), "without a bound until it is stopped"


@pytest.mark.parametrize("environment", ["CartPole-v1", "scripted"])
def test_R3_train_steps_after_a_kill_within_an_episode(tmp_path: Path, environment: str) -> None:
    def run(directory: str, every: int = 1000, **options: Any) -> Agent:
        env = Scripted() if environment == "scripted" else gym.make(environment)
        made = rl_experiment(
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
    for kill in (1, 2, 3, 4, 6, 9, 12, 16, 20, 24):
        with pytest.raises(Killed):
            run(f"kill{kill}", kill, train_hooks=[KillAt(kill)])
        inside += not state_of(make_agent(tmp_path / f"kill{kill}"))["collector"]["episodes"][0][
            "over"
        ]
        assert same(state_of(run(f"kill{kill}")), state_of(straight)), f"killed at update {kill}"
    assert inside >= 3


def test_R4_train_episodes(tmp_path: Path) -> None:
    for _ in range(2):
        env = Scripted()
        agent = rl_experiment(tmp_path, env=env, train_episodes=3).train()
        assert tuple(key_of(agent.latest_checkpoint()))[1:] == (30, 3)
    assert env.steps == 0, "the episodes count in the life of the directory"
    agent = rl_experiment(tmp_path, train_episodes=5).train()
    assert key_of(agent.latest_checkpoint()).global_episode == 5


class Timesteps(TracingHook):
    """Where something was learnt."""

    def __init__(self) -> None:
        super().__init__()
        self.at: list[int] = []

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if run_values.learned:
            self.at.append(run_context.session.global_timestep)


def test_R5_first_update(tmp_path: Path) -> None:
    hook = Timesteps()
    rl_experiment(
        tmp_path, train_episodes=4, first_update=20, update_frequency=7, train_hooks=[hook]
    ).train()
    assert hook.at == [21, 28, 30, 35, 40], "not at the end of the episode at 20 either"


def test_R6_update_frequency(tmp_path: Path) -> None:
    hook = Timesteps()
    rl_experiment(
        tmp_path / "a", train_episodes=3, first_update=4, update_frequency=5, train_hooks=[hook]
    ).train()
    assert hook.at == [5, 10, 15, 20, 25, 30]
    hook = Timesteps()
    rl_experiment(
        tmp_path / "b", train_episodes=3, first_update=4, update_frequency=4, train_hooks=[hook]
    ).train()
    assert hook.at == [8, 10, 12, 16, 20, 24, 28, 30]
    for frequency in (0, -3):
        with pytest.raises(ValueError, match="update_frequency"):
            rl_experiment(tmp_path / "c", update_frequency=frequency)
    hook = Timesteps()
    rl_experiment(
        tmp_path / "b", train_episodes=4, first_update=4, update_frequency=3, train_hooks=[hook]
    ).train()
    assert hook.at == [33, 36, 39, 40], "another frequency holds from where the training goes on"


def test_R7_eval_steps(tmp_path: Path) -> None:
    made = rl_experiment(tmp_path, train_steps=3, eval_steps=4)
    made.train()
    hook = TracingHook()
    made.extend_eval_hooks([hook])
    assert made.evaluate()["episodes"] == 4
    assert hook.events.count("after") == 4
    for steps in (None, 0, -1):
        with pytest.raises(ValueError, match="eval_steps"):
            rl_experiment(tmp_path, eval_steps=steps).evaluate()


def test_R8_hooks(tmp_path: Path) -> None:
    train, evaluate, late = TracingHook(), TracingHook(), TracingHook()
    train_hooks, eval_hooks = [train], [evaluate]
    made = rl_experiment(tmp_path, train_steps=2, train_hooks=train_hooks, eval_hooks=eval_hooks)
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
        wrong = rl_experiment(tmp_path, train_steps=9, **{f"{phase}_hooks": [object()]})
        with pytest.raises(TypeError, match="SessionRunHook"):
            wrong.train() if phase == "train" else wrong.evaluate()


def test_R9_eval_delay_secs(tmp_path: Path) -> None:
    recorded = Recorded()
    made = rl_experiment(tmp_path, recorded, train_steps=2, eval_delay_secs=7)
    made.train()
    before = recorded.time.at
    made.evaluate()
    assert recorded.times[-1] - before == 7
    before = recorded.time.at
    made.continuous_eval()
    assert recorded.times[-1] - before == 7


def test_R10_continuous_eval_throttle_secs(tmp_path: Path) -> None:
    recorded = Recorded()
    recorded.took = 25.0
    made = rl_experiment(tmp_path, recorded, continuous_eval_throttle_secs=60)
    made.continuous_eval(continuous_eval_predicate_fn=Trainer(tmp_path, 4))
    assert recorded.times == [0, 60, 120, 180]
    recorded.times.clear()
    recorded.took = 100.0
    begun = recorded.time.at
    made.continuous_eval(continuous_eval_predicate_fn=Trainer(tmp_path, 3))
    assert [at - begun for at in recorded.times] == [0, 100, 200], (
        "one that takes longer is not waited for again"
    )


def test_R11_eval_every_n_steps(tmp_path: Path) -> None:
    def evaluated(name: str, every: int | None, checkpoints: int) -> list[int]:
        directory = tmp_path / name
        made = rl_experiment(
            directory,
            config={"save_checkpoints_steps": checkpoints},
            train_steps=44,
            eval_every_n_steps=every,
        )
        made.train_and_evaluate()
        return [row["global_step"] for row in read_results(directory, None)]

    assert evaluated("ten", 10, 5) == [10, 20, 30, 40, 44]
    assert evaluated("sparse", 10, 15) == [15, 30, 44], (
        "no checkpoint is forced, and none is evaluated twice"
    )
    assert evaluated("each", 1, 11) == [11, 22, 33, 44]
    assert evaluated("zero", 0, 5) == [44]
    assert evaluated("none", None, 5) == [44]


def test_R12_delay_workers_by_global_step(tmp_path: Path) -> None:
    for task, step in ((0, 0), (1, 5545), (2, 8788)):
        recorded, counter = Recorded(), FakeCounter()
        made = rl_experiment(
            tmp_path / str(task),
            recorded,
            config={**CLUSTER, "task_id": task},
            train_steps=2,
            delay_workers_by_global_step=True,
        )
        with_time(made, recorded, make_counter=lambda _, counter=counter: counter)
        made.train()
        waiter = next(
            hook
            for hook in recorded.of("train")[0]["hooks"]
            if isinstance(hook, GlobalStepWaiterHook)
        )
        assert waiter.wait_until_step == step == int(8000 * math.log(task + 1))
        assert counter.at - 500 <= step <= counter.at
        assert len(recorded.time.slept) == max(0, -(-step // 500) - 1)
        assert counter.added == 2, "its own updates count for the others"
        assert made.agent.latest_checkpoint() is None, "the master writes the checkpoints"
    for task, seconds in ((1, 5.0), (2, 10.0)):
        recorded = Recorded()
        made = rl_experiment(
            tmp_path / f"time{task}", recorded, config={**CLUSTER, "task_id": task}, train_steps=2
        )
        with_time(made, recorded, make_counter=lambda _: FakeCounter()).train()
        assert recorded.times == [seconds]
    recorded = Recorded()
    big = {**CLUSTER, "cluster": {"worker": ["a:1"] * 100, "master": ["m:1"]}, "task_id": 50}
    with_time(
        rl_experiment(tmp_path / "many", recorded, config=big, train_steps=2),
        recorded,
        make_counter=lambda _: FakeCounter(),
    ).train()
    assert recorded.times == [60.0]
    recorded = Recorded()
    made = rl_experiment(
        tmp_path / "explicit",
        recorded,
        config={**CLUSTER, "task_id": 2},
        train_steps=2,
        delay_workers_by_global_step=True,
    )
    with_time(made, recorded, make_counter=lambda _: FakeCounter()).train(delay_secs=3)
    assert recorded.times == [3.0], "an explicit delay wins"
    assert not any(
        isinstance(hook, GlobalStepWaiterHook) for hook in recorded.of("train")[0]["hooks"]
    )
    alone = rl_experiment(
        tmp_path / "alone", config={"task_id": 1}, train_steps=2, delay_workers_by_global_step=True
    )
    with pytest.raises(ValueError, match="delay_workers_by_global_step"):
        alone.train()


_WORKER = """
import sys, time
from tests.acceptance.estimator_kit import *
from workers.entrypoints.experiment_parts import schedules
from workers.entrypoints.experiment_parts.rl_experiment import RLExperiment
from workers.entrypoints.experiment_parts.run_experiment import run_experiment
schedules.DELAY_STEPS = 40
port, kind, task, directory = sys.argv[1:]
cluster = {"ps": [f"127.0.0.1:{port}"], "worker": ["127.0.0.1:1", "127.0.0.1:2"]}
config = dict(cluster=cluster, master=f"127.0.0.1:{port}", task_type=kind, task_id=int(task))
class Say(TracingHook):
    def after_run(self, run_context, run_values):
        time.sleep(0.02)
        if run_values.learned and not self.steps:
            print("first", time.time(), flush=True)
        super().after_run(run_context, run_values)
def make(output):
    agent = make_agent(output, **config)
    options = dict(train_steps=60, first_update=4, update_frequency=2, train_hooks=[Say()], delay_workers_by_global_step=True)
    return RLExperiment(agent, Scripted(), **options)
print("begin", time.time(), flush=True)
run_experiment(make, directory)
print("end", time.time(), flush=True)
"""


@pytest.mark.processes
@pytest.mark.slow
def test_R12_delay_by_the_global_step_of_real_processes(tmp_path: Path) -> None:
    port = free_port()
    started: list[subprocess.Popen[str]] = []

    def start(kind: str, task: int) -> "subprocess.Popen[str]":
        command = [
            sys.executable,
            "-c",
            _WORKER,
            str(port),
            kind,
            str(task),
            str(tmp_path / f"{kind}{task}"),
        ]
        started.append(
            subprocess.Popen(
                command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": "."}
            )
        )
        return started[-1]

    try:
        server, second, first = start("ps", 0), start("worker", 1), start("worker", 0)
        said = {name: _lines(process) for name, process in (("first", first), ("second", second))}
        assert (first.returncode, second.returncode) == (0, 0)
        # worker 1 waits for int(40 ln 2) = 27 updates, which worker 0 makes at 20 ms each
        assert said["second"]["first"] - said["first"]["first"] >= 27 * 0.02 * 0.9
        assert server.poll() is None, "the server blocks until it is stopped"
        server.send_signal(signal.SIGTERM)
        assert server.wait(30) == 0
        assert "end" in _lines(server)
    finally:
        for process in started:
            process.kill()
            process.wait()


def _lines(process: "subprocess.Popen[str]") -> dict[str, float]:
    output, _ = process.communicate(timeout=100)
    words = [line.split() for line in output.splitlines()]
    return {
        line[0]: float(line[1]) for line in words if line and line[0] in {"begin", "first", "end"}
    }


def test_R13_export_strategies(tmp_path: Path) -> None:
    one, other = (
        ExportStrategy(name, lambda model, path, checkpoint, result: path.name)
        for name in ("one", "other")
    )
    assert rl_experiment(tmp_path, export_strategies=one).export_strategies == (one,)
    assert rl_experiment(tmp_path, export_strategies=[one, other]).export_strategies == (one, other)
    assert rl_experiment(tmp_path, export_strategies=None).export_strategies == ()
    assert rl_experiment(tmp_path, export_strategies=()).export_strategies == ()
    for wrong in ("policy", 3, [one, "policy"], [one, one]):
        with pytest.raises(ValueError, match="export_strategies"):
            rl_experiment(tmp_path, export_strategies=wrong)
    made = rl_experiment(tmp_path, train_steps=2, export_strategies=[one, other])
    assert made.train_and_evaluate()[1] == ["one", "other"]
    assert (tmp_path / "export" / "other").is_dir()


def test_R13_export_strategies_keep_the_newest_five(tmp_path: Path) -> None:
    made = rl_experiment(tmp_path, export_strategies=make_export_strategy("weights", ["weights"]))
    for step in range(1, 8):
        made.agent.train(Scripted(), 4, 2, max_steps=2 * step)
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
            rl_experiment(tmp_path, train_steps_per_iteration=wrong)

    def first_round(name: str, train_steps: int | None) -> int:
        recorded = Recorded()
        made = rl_experiment(
            tmp_path / name, recorded, train_steps=train_steps, train_steps_per_iteration=None
        )
        made.continuous_train_and_evaluate(lambda result: result is None)
        steps: int = recorded.of("train")[0]["steps"]
        return steps

    assert first_round("tenth", 55) == 5
    assert first_round("one", 7) == 1
    recorded = Recorded()
    made = rl_experiment(
        tmp_path / "default", recorded, train_steps_per_iteration=None, train_hooks=[KillAt(1)]
    )
    with pytest.raises(Killed):
        made.continuous_train_and_evaluate()
    assert recorded.of("train")[0]["steps"] == 1000

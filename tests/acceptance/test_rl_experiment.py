"""Rows R1 to R29: RLExperiment."""

import inspect
import json
import math
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from tests.acceptance.estimator_kit import (
    CountingAgent,
    KillAt,
    Killed,
    Recorded,
    Scripted,
    TracingHook,
    make_agent,
    policy,
    same,
    state_of,
    with_time,
)
from tests.support.stack import free_port
from workers.core.errors import PartNotFoundError
from workers.entrypoints.experiment_config import RLExperimentConfig, create_rl_experiment
from workers.entrypoints.rl_experiment import RLExperiment
from workers.estimators.agents import Agent, PGAgent
from workers.estimators.basic_hooks import GlobalStepWaiterHook
from workers.estimators.checkpoints import all_checkpoints, key_of
from workers.estimators.errors import EstimatorNotTrainedError
from workers.estimators.exports import ExportStrategy, make_export_strategy
from workers.estimators.memories import BatchMemory
from workers.estimators.results import read_results
from workers.estimators.run_config import RunConfig

FAST = {"first_update": 4, "update_frequency": 2, "eval_steps": 2}


def experiment(directory: Path, recorded: Recorded | None = None, env: Any = None, config: Any = None, **options: Any) -> RLExperiment:
    recorded = recorded or Recorded()
    agent = CountingAgent(directory, recorded, **(config or {}))
    made: RLExperiment = with_time(RLExperiment(agent, env or Scripted(), **{**FAST, **options}), recorded)
    return made


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

    untouched = RLExperiment(Untouchable(), lambda: 1 / 0, train_hooks=[Hook()], eval_hooks=[Hook()])  # type: ignore[arg-type,return-value]
    assert isinstance(untouched, RLExperiment)
    names = list(inspect.signature(RLExperiment).parameters)
    assert names == [
        *("agent", "env", "train_steps", "train_episodes", "first_update", "update_frequency", "eval_steps", "train_hooks"),
        *("eval_hooks", "eval_delay_secs", "continuous_eval_throttle_secs", "eval_every_n_steps", "delay_workers_by_global_step"),
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
    made = experiment(tmp_path / "given", env=env, train_steps=3)
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

    own = experiment(tmp_path / "made", env=make, train_steps=3)
    own.train()
    assert [env.closes for env in opened] == [1]
    own.evaluate()
    assert [env.closes for env in opened] == [1, 1]
    failing = experiment(tmp_path / "failing", env=make, train_steps=3, train_hooks=[KillAt(1)])
    with pytest.raises(Killed):
        failing.train()
    assert [env.closes for env in opened] == [1, 1, 1]


def test_R3_train_steps(tmp_path: Path) -> None:
    assert experiment(tmp_path, train_steps=7).train().global_step == 7
    assert experiment(tmp_path, train_steps=9).train().global_step == 9

    class Stop(TracingHook):
        def after_run(self, run_context: Any, run_values: Any) -> None:
            super().after_run(run_context, run_values)
            if run_context.session.global_step >= 40:
                run_context.request_stop()

    assert experiment(tmp_path, train_steps=None, train_hooks=[Stop()]).train().global_step == 40, "without a bound until it is stopped"


@pytest.mark.parametrize("environment", ["CartPole-v1", "scripted"])
def test_R3_train_steps_after_a_kill_within_an_episode(tmp_path: Path, environment: str) -> None:
    def run(directory: str, every: int = 1000, **options: Any) -> Agent:
        env = Scripted() if environment == "scripted" else gym.make(environment)
        made = experiment(tmp_path / directory, env=env, config={"save_checkpoints_steps": every}, train_steps=25, **options)
        agent: Agent = made.train()
        return agent

    straight = run("straight")
    inside = 0
    for kill in (1, 2, 3, 4, 6, 9, 12, 16, 20, 24):
        with pytest.raises(Killed):
            run(f"kill{kill}", kill, train_hooks=[KillAt(kill)])
        inside += not state_of(make_agent(tmp_path / f"kill{kill}"))["collector"]["episodes"][0]["over"]
        assert same(state_of(run(f"kill{kill}")), state_of(straight)), f"killed at update {kill}"
    assert inside >= 3


def test_R4_train_episodes(tmp_path: Path) -> None:
    for _ in range(2):
        env = Scripted()
        agent = experiment(tmp_path, env=env, train_episodes=3).train()
        assert tuple(key_of(agent.latest_checkpoint()))[1:] == (30, 3)
    assert env.steps == 0, "the episodes count in the life of the directory"
    agent = experiment(tmp_path, train_episodes=5).train()
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
    experiment(tmp_path, train_episodes=4, first_update=20, update_frequency=7, train_hooks=[hook]).train()
    assert hook.at == [21, 28, 30, 35, 40], "not at the end of the episode at 20 either"


def test_R6_update_frequency(tmp_path: Path) -> None:
    hook = Timesteps()
    experiment(tmp_path / "a", train_episodes=3, first_update=4, update_frequency=5, train_hooks=[hook]).train()
    assert hook.at == [5, 10, 15, 20, 25, 30]
    hook = Timesteps()
    experiment(tmp_path / "b", train_episodes=3, first_update=4, update_frequency=4, train_hooks=[hook]).train()
    assert hook.at == [8, 10, 12, 16, 20, 24, 28, 30]
    for frequency in (0, -3):
        with pytest.raises(ValueError, match="update_frequency"):
            experiment(tmp_path / "c", update_frequency=frequency)
    hook = Timesteps()
    experiment(tmp_path / "b", train_episodes=4, first_update=4, update_frequency=3, train_hooks=[hook]).train()
    assert hook.at == [33, 36, 39, 40], "another frequency holds from where the training goes on"


def test_R7_eval_steps(tmp_path: Path) -> None:
    made = experiment(tmp_path, train_steps=3, eval_steps=4)
    made.train()
    hook = TracingHook()
    made.extend_eval_hooks([hook])
    assert made.evaluate()["episodes"] == 4
    assert hook.events.count("after") == 4
    for steps in (None, 0, -1):
        with pytest.raises(ValueError, match="eval_steps"):
            experiment(tmp_path, eval_steps=steps).evaluate()


def test_R8_hooks(tmp_path: Path) -> None:
    train, evaluate, late = TracingHook(), TracingHook(), TracingHook()
    train_hooks, eval_hooks = [train], [evaluate]
    made = experiment(tmp_path, train_steps=2, train_hooks=train_hooks, eval_hooks=eval_hooks)
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
        wrong = experiment(tmp_path, train_steps=9, **{f"{phase}_hooks": [object()]})
        with pytest.raises(TypeError, match="SessionRunHook"):
            wrong.train() if phase == "train" else wrong.evaluate()


def test_R9_eval_delay_secs(tmp_path: Path) -> None:
    recorded = Recorded()
    made = experiment(tmp_path, recorded, train_steps=2, eval_delay_secs=7)
    made.train()
    before = recorded.time.at
    made.evaluate()
    assert recorded.times[-1] - before == 7
    before = recorded.time.at
    made.continuous_eval()
    assert recorded.times[-1] - before == 7


class Trainer:
    """A predicate that lets the training go on a little before each look, and ends after so many looks."""

    def __init__(self, directory: Path, looks: int, train: bool = True) -> None:
        self.directory, self.looks, self.train = directory, looks, train
        self.given: list[Any] = []

    def __call__(self, result: Any) -> bool:
        self.given.append(result)
        if self.train:
            make_agent(self.directory).train(Scripted(), 4, 2, steps=3)
        return len(self.given) <= self.looks


def test_R10_continuous_eval_throttle_secs(tmp_path: Path) -> None:
    recorded = Recorded()
    recorded.took = 25.0
    made = experiment(tmp_path, recorded, continuous_eval_throttle_secs=60)
    made.continuous_eval(continuous_eval_predicate_fn=Trainer(tmp_path, 4))
    assert recorded.times == [0, 60, 120, 180]
    recorded.times.clear()
    recorded.took = 100.0
    begun = recorded.time.at
    made.continuous_eval(continuous_eval_predicate_fn=Trainer(tmp_path, 3))
    assert [at - begun for at in recorded.times] == [0, 100, 200], "one that takes longer is not waited for again"


def test_R11_eval_every_n_steps(tmp_path: Path) -> None:
    def evaluated(name: str, every: int | None, checkpoints: int) -> list[int]:
        directory = tmp_path / name
        made = experiment(directory, config={"save_checkpoints_steps": checkpoints}, train_steps=44, eval_every_n_steps=every)
        made.train_and_evaluate()
        return [row["global_step"] for row in read_results(directory, None)]

    assert evaluated("ten", 10, 5) == [10, 20, 30, 40, 44]
    assert evaluated("sparse", 10, 15) == [15, 30, 44], "no checkpoint is forced, and none is evaluated twice"
    assert evaluated("each", 1, 11) == [11, 22, 33, 44]
    assert evaluated("zero", 0, 5) == [44]
    assert evaluated("none", None, 5) == [44]


CLUSTER = {"cluster": {"master": ["m:1"], "worker": ["a:1", "b:1", "c:1"], "ps": ["p:1"]}, "master": "p:1", "task_type": "worker"}


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


def test_R12_delay_workers_by_global_step(tmp_path: Path) -> None:
    for task, step in ((0, 0), (1, 5545), (2, 8788)):
        recorded, counter = Recorded(), FakeCounter()
        made = experiment(
            tmp_path / str(task), recorded, config={**CLUSTER, "task_id": task}, train_steps=2, delay_workers_by_global_step=True
        )
        with_time(made, recorded, make_counter=lambda _, counter=counter: counter)
        made.train()
        waiter = next(hook for hook in recorded.of("train")[0]["hooks"] if isinstance(hook, GlobalStepWaiterHook))
        assert waiter.wait_until_step == step == int(8000 * math.log(task + 1))
        assert counter.at - 500 <= step <= counter.at
        assert len(recorded.time.slept) == max(0, -(-step // 500) - 1)
        assert counter.added == 2, "its own updates count for the others"
        assert made.agent.latest_checkpoint() is None, "the master writes the checkpoints"
    for task, seconds in ((1, 5.0), (2, 10.0)):
        recorded = Recorded()
        made = experiment(tmp_path / f"time{task}", recorded, config={**CLUSTER, "task_id": task}, train_steps=2)
        with_time(made, recorded, make_counter=lambda _: FakeCounter()).train()
        assert recorded.times == [seconds]
    recorded = Recorded()
    big = {**CLUSTER, "cluster": {"worker": ["a:1"] * 100, "master": ["m:1"]}, "task_id": 50}
    with_time(experiment(tmp_path / "many", recorded, config=big, train_steps=2), recorded, make_counter=lambda _: FakeCounter()).train()
    assert recorded.times == [60.0]
    recorded = Recorded()
    made = experiment(tmp_path / "explicit", recorded, config={**CLUSTER, "task_id": 2}, train_steps=2, delay_workers_by_global_step=True)
    with_time(made, recorded, make_counter=lambda _: FakeCounter()).train(delay_secs=3)
    assert recorded.times == [3.0], "an explicit delay wins"
    assert not any(isinstance(hook, GlobalStepWaiterHook) for hook in recorded.of("train")[0]["hooks"])
    alone = experiment(tmp_path / "alone", config={"task_id": 1}, train_steps=2, delay_workers_by_global_step=True)
    with pytest.raises(ValueError, match="delay_workers_by_global_step"):
        alone.train()


_WORKER = """
import sys, time
from tests.acceptance.estimator_kit import *
from workers.entrypoints import schedules
from workers.entrypoints.rl_experiment import RLExperiment
from workers.entrypoints.run_experiment import run_experiment
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
def test_R12_delay_by_the_global_step_of_real_processes(tmp_path: Path) -> None:
    port = free_port()
    started: list[subprocess.Popen[str]] = []

    def start(kind: str, task: int) -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", _WORKER, str(port), kind, str(task), str(tmp_path / f"{kind}{task}")]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": "."}))
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
    return {line[0]: float(line[1]) for line in words if line and line[0] in {"begin", "first", "end"}}


def test_R13_export_strategies(tmp_path: Path) -> None:
    one, other = (ExportStrategy(name, lambda model, path, checkpoint, result: path.name) for name in ("one", "other"))
    assert experiment(tmp_path, export_strategies=one).export_strategies == (one,)
    assert experiment(tmp_path, export_strategies=[one, other]).export_strategies == (one, other)
    assert experiment(tmp_path, export_strategies=None).export_strategies == ()
    assert experiment(tmp_path, export_strategies=()).export_strategies == ()
    for wrong in ("policy", 3, [one, "policy"], [one, one]):
        with pytest.raises(ValueError, match="export_strategies"):
            experiment(tmp_path, export_strategies=wrong)
    made = experiment(tmp_path, train_steps=2, export_strategies=[one, other])
    assert made.train_and_evaluate()[1] == ["one", "other"]
    assert (tmp_path / "export" / "other").is_dir()


def test_R13_export_strategies_keep_the_newest_five(tmp_path: Path) -> None:
    made = experiment(tmp_path, export_strategies=make_export_strategy("weights", ["weights"]))
    for step in range(1, 8):
        made.agent.train(Scripted(), 4, 2, max_steps=2 * step)
        made.continuous_eval(continuous_eval_predicate_fn=lambda result: not result)
    assert sorted(int(path.name) for path in (tmp_path / "export" / "weights").iterdir()) == [6, 8, 10, 12, 14]
    document = json.loads((tmp_path / "export" / "weights" / "14" / "policy.json").read_text())
    assert document["global_step"] == 14
    assert set(document["tensors"]) == {"model_values.weight", "model_values.bias"}


def test_R14_train_steps_per_iteration(tmp_path: Path) -> None:
    for wrong in (1.5, "100", True, 0, -1):
        with pytest.raises(ValueError, match="train_steps_per_iteration"):
            experiment(tmp_path, train_steps_per_iteration=wrong)

    def first_round(name: str, train_steps: int | None) -> int:
        recorded = Recorded()
        made = experiment(tmp_path / name, recorded, train_steps=train_steps, train_steps_per_iteration=None)
        made.continuous_train_and_evaluate(lambda result: result is None)
        steps: int = recorded.of("train")[0]["steps"]
        return steps

    assert first_round("tenth", 55) == 5
    assert first_round("one", 7) == 1
    recorded = Recorded()
    made = experiment(tmp_path / "default", recorded, train_steps_per_iteration=None, train_hooks=[KillAt(1)])
    with pytest.raises(Killed):
        made.continuous_train_and_evaluate()
    assert recorded.of("train")[0]["steps"] == 1000


def test_R15_reset_export_strategies(tmp_path: Path) -> None:
    one, other = (ExportStrategy(name, lambda *_: None) for name in ("one", "other"))
    made = experiment(tmp_path, export_strategies=one)
    assert made.reset_export_strategies([other]) == (one,)
    with pytest.raises(ValueError, match="export_strategies"):
        made.reset_export_strategies("x")
    assert made.reset_export_strategies() == (other,)
    assert made.export_strategies == ()


def test_R16_extend_hooks(tmp_path: Path) -> None:
    given = [TracingHook()]
    more_train, more_eval = TracingHook(), TracingHook()
    made = experiment(tmp_path, train_steps=2, train_hooks=given, eval_hooks=given)
    made.extend_train_hooks([more_train])
    made.extend_eval_hooks([more_eval])
    assert len(given) == 1
    made.train()
    assert (more_train.learned, more_eval.events) == (2, [])
    made.evaluate()
    assert (more_train.learned, more_eval.events.count("after")) == (2, 2)


def test_R17_train(tmp_path: Path) -> None:
    recorded = Recorded()
    made = experiment(tmp_path, recorded, train_steps=3)
    assert made.train(delay_secs=11) is made.agent
    assert recorded.times == [11]
    env = made.env
    assert isinstance(env, Scripted)
    steps = env.steps
    assert made.train() is made.agent
    assert env.steps == steps, "the bound is reached"


def test_R18_evaluate(tmp_path: Path) -> None:
    with pytest.raises(EstimatorNotTrainedError, match=str(tmp_path)):
        experiment(tmp_path).evaluate()
    made = experiment(tmp_path, train_steps=3, eval_steps=3)
    made.train()
    before = state_of(made.agent)
    result = made.evaluate(delay_secs=0)
    timestep = key_of(made.agent.latest_checkpoint()).global_timestep
    returns = {"mean_return": 10.0, "std_return": 0.0, "min_return": 10.0, "max_return": 10.0, "mean_length": 10.0, "episodes": 3}
    assert result == returns | {"global_step": 3, "global_timestep": timestep, "global_episode": 1}
    assert made.evaluate() == result
    assert read_results(tmp_path, "one_pass") == [result, result]
    assert same(state_of(made.agent), before), "an evaluation changes nothing of the training"


def test_R18_evaluate_is_greedy(tmp_path: Path) -> None:
    actions: list[list[int]] = []

    class Watching(Scripted):
        def reset(self, **options: Any) -> Any:
            actions.append([])
            return super().reset(**options)

        def step(self, action: Any) -> Any:
            actions[-1].append(int(action))
            return super().step(action)

    experiment(tmp_path, train_steps=3).train()
    experiment(tmp_path, env=Watching, eval_steps=4).evaluate()
    assert len(actions) == 4
    assert all(episode == actions[0] for episode in actions), "the same states give the same actions: nothing is explored"


def test_R19_continuous_eval(tmp_path: Path) -> None:
    made = experiment(tmp_path, train_steps=12)
    made.continuous_eval(continuous_eval_predicate_fn=Trainer(tmp_path, 50))
    steps = [row["global_step"] for row in read_results(tmp_path, "continuous")]
    assert steps == [3, 6, 9, 12], "each new checkpoint once, then train_steps is reached"
    ended = tmp_path / "ended"
    make_agent(ended).train(Scripted(), 4, 2, max_steps=5)
    unbounded = experiment(ended, train_steps=1000)
    unbounded.continuous_eval()
    assert [row["global_step"] for row in read_results(ended, "continuous")] == [5], "the training job has ended below train_steps"
    paused = tmp_path / "paused"
    make_agent(paused).train(Scripted(), 4, 2, steps=5)
    looks = Trainer(paused, 7, train=False)
    experiment(paused, train_steps=1000).continuous_eval(continuous_eval_predicate_fn=looks)
    assert len(looks.given) == 8, "a training that is only paused is waited for"


def test_R20_delay_secs_and_throttle_delay_secs(tmp_path: Path) -> None:
    recorded = Recorded()
    made = experiment(tmp_path, recorded, eval_delay_secs=5, continuous_eval_throttle_secs=60)
    made.continuous_eval(delay_secs=2, throttle_delay_secs=10, continuous_eval_predicate_fn=Trainer(tmp_path, 3))
    assert recorded.times == [2, 12, 22]


def test_R21_evaluate_checkpoint_only_once(tmp_path: Path) -> None:
    make_agent(tmp_path).train(Scripted(), 4, 2, steps=3)
    for once, evaluations in ((True, 1), (False, 5)):
        recorded = Recorded()
        looks = Trainer(tmp_path, 5, train=False)
        experiment(tmp_path, recorded).continuous_eval(evaluate_checkpoint_only_once=once, continuous_eval_predicate_fn=looks)
        assert len(recorded.of("evaluate")) == evaluations


def test_R22_continuous_eval_predicate_fn(tmp_path: Path) -> None:
    make_agent(tmp_path).train(Scripted(), 4, 2, steps=3)
    looks = Trainer(tmp_path, 2, train=False)
    recorded = Recorded()
    experiment(tmp_path, recorded).continuous_eval(continuous_eval_predicate_fn=looks)
    assert looks.given[0] is None
    assert looks.given[1]["global_step"] == 3
    assert looks.given[2] == {}
    recorded = Recorded()
    experiment(tmp_path, recorded).continuous_eval(continuous_eval_predicate_fn=lambda _: False)
    assert recorded.calls == []
    made = experiment(tmp_path)
    for schedule in (made.continuous_eval, made.continuous_eval_on_train_data, made.continuous_train_and_evaluate):
        with pytest.raises(ValueError, match="continuous_eval_predicate_fn"):
            schedule(continuous_eval_predicate_fn=3)


class SeedSpy(Scripted):
    """Writes down the seeds of its episodes."""

    seeds: list[int | None]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self.seeds.append(seed)
        return super().reset(seed=seed, options=options)


def test_R23_continuous_eval_on_train_data(tmp_path: Path) -> None:
    seeds: dict[str, list[int | None]] = {}

    def env(name: str) -> Any:
        def make() -> SeedSpy:
            made = SeedSpy()
            made.seeds = seeds.setdefault(name, [])
            return made

        return make

    experiment(tmp_path, env=env("training"), train_episodes=4).train()
    recorded = Recorded()
    experiment(tmp_path, recorded, env=env("same"), eval_steps=3).continuous_eval_on_train_data(delay_secs=1, throttle_delay_secs=2)
    experiment(tmp_path, env=env("others"), eval_steps=3).continuous_eval()
    assert seeds["same"] == seeds["training"][:3]
    assert not set(seeds["others"]) & set(seeds["training"])
    assert recorded.times == [1]
    assert len(read_results(tmp_path, "continuous_on_train_data")) == len(read_results(tmp_path, "continuous")) == 1
    parameters = inspect.signature(RLExperiment.continuous_eval_on_train_data).parameters
    assert list(parameters) == ["self", "delay_secs", "throttle_delay_secs", "continuous_eval_predicate_fn"]


def test_R24_train_and_evaluate(tmp_path: Path) -> None:
    strategy = ExportStrategy("one", lambda model, path, checkpoint, result: (checkpoint.name, result["global_step"]))
    made = experiment(tmp_path, train_steps=9, export_strategies=strategy)
    result, exports = made.train_and_evaluate()
    assert result is not None
    assert result["global_step"] == 9
    assert exports == [("ckpt-9", 9)]
    assert read_results(tmp_path, None)[-1] == result


def test_R25_continuous_train_and_evaluate(tmp_path: Path) -> None:
    recorded = Recorded()
    strategy = ExportStrategy("one", lambda model, path, checkpoint, result: checkpoint.name)
    options = {"train_steps": 250, "train_steps_per_iteration": 100, "export_strategies": strategy, "eval_steps": 1}
    result, exports = experiment(tmp_path, recorded, **options).continuous_train_and_evaluate()
    assert [call["steps"] for call in recorded.of("train")] == [100, 100, 50]
    assert [row["global_step"] for row in read_results(tmp_path, "one_pass")] == [100, 200, 250]
    assert result is not None
    assert (result["global_step"], exports) == (250, ["ckpt-250"])
    recorded = Recorded()
    again, _ = experiment(tmp_path, recorded, **options).continuous_train_and_eval()
    assert recorded.calls == [], "nothing is left to do"
    assert again == result


def test_R25_continuous_train_and_evaluate_begun_again(tmp_path: Path) -> None:
    class KillOnce(TracingHook):
        def __init__(self, at: int) -> None:
            super().__init__()
            self.at = at

        def before_run(self, run_context: Any) -> None:
            if run_context.session.global_step == self.at:
                raise Killed

    options = {"train_steps": 25, "train_steps_per_iteration": 10, "eval_steps": 1}
    config = {"save_checkpoints_steps": 3}
    with pytest.raises(Killed):
        experiment(tmp_path, config=config, train_hooks=[KillOnce(16)], **options).continuous_train_and_evaluate()
    recorded = Recorded()
    experiment(tmp_path, recorded, config=config, **options).continuous_train_and_evaluate()
    assert [call["steps"] for call in recorded.of("train")] == [5, 5], "from the checkpoint at 15 to the end of its round, and the last one"
    assert [row["global_step"] for row in read_results(tmp_path, "one_pass")] == [10, 20, 25]
    other = tmp_path / "other"
    make_agent(other).train(Scripted(), 4, 2, steps=10)
    recorded = Recorded()
    experiment(other, recorded, **options).continuous_train_and_evaluate()
    assert [name for name, _ in recorded.calls] == ["evaluate", "train", "evaluate", "train", "evaluate"]
    straight = experiment(tmp_path / "straight", **options)
    straight.continuous_train_and_evaluate()
    assert same(state_of(straight.agent), state_of(make_agent(other)))


def test_R26_continuous_eval_predicate_fn(tmp_path: Path) -> None:
    recorded = Recorded()
    strategy = ExportStrategy("one", lambda *_: "exported")
    made = experiment(tmp_path, recorded, train_steps=9, export_strategies=strategy)
    assert made.continuous_train_and_evaluate(lambda _: False) == (None, []), "there is no checkpoint to export"
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
            experiment(tmp_path, config=config).run_std_server()
    address = f"127.0.0.1:{free_port()}"
    config = {"cluster": {"ps": [address], "worker": ["a:1"]}, "master": address, "task_type": "ps", "task_id": 0}
    made = RLExperiment(make_agent(tmp_path, **config), Scripted())
    servers: list[Any] = []
    original = made.surroundings.make_server

    def remembering(config: RunConfig) -> Any:
        servers.append(original(config))
        return servers[-1]

    with_time(made, Recorded(), make_server=remembering)
    thread = threading.Thread(target=made.run_std_server)
    thread.start()
    counter = made.surroundings.make_counter(RunConfig(**config))
    assert counter.add(3) == 3
    assert made.surroundings.make_counter(RunConfig(**config)).read() == 3
    thread.join(0.3)
    assert thread.is_alive(), "it blocks"
    servers[0].stop()
    thread.join(10)
    assert not thread.is_alive()


def test_R28_test(tmp_path: Path) -> None:
    exported: list[Any] = []
    strategy = ExportStrategy("one", lambda model, path, checkpoint, result: exported.append((checkpoint.name, path)))
    recorded = Recorded()
    hook = TracingHook()
    made = experiment(tmp_path, recorded, train_steps=50, export_strategies=strategy, eval_hooks=[hook], first_update=5000)
    result = made.test()
    assert [call["steps"] for call in recorded.of("train")] == [1]
    assert [call["steps"] for call in recorded.of("evaluate")] == [1]
    assert [name for name, _ in exported] == ["ckpt-1"]
    assert (result["global_step"], result["episodes"]) == (1, 1)
    assert hook.events == []
    assert list(tmp_path.iterdir()) == [], "the directory of the model is left alone"
    assert len(made.agent.memory) == 0
    assert not exported[0][1].exists()


CONFIG: dict[str, Any] = {
    "model": {"name": "dqn", "params": {"actions": 2, "hidden_sizes": [8], "learning_rate": 0.01}},
    "memory": {"name": "memory", "params": {"size": 200, "batch_size": 8}},
    "env": {"id": "CartPole-v1", "params": {"sutton_barto_reward": False}},
    "run": {"seed": 5, "save_checkpoints_steps": 50, "save_summary_steps": 0},
    "train_steps": 4,
    "first_update": 10,
    "update_frequency": 3,
    "eval_steps": 1,
    "train_hooks": [{"name": "StopAtStepHook", "params": {"last_step": 3}}],
    "eval_hooks": [{"name": "StopAfterNEvalsHook", "params": {"num_evals": 1}}],
    "export_strategies": [{"name": "policy", "formats": ["weights"]}],
}


def test_R29_create_rl_experiment(tmp_path: Path) -> None:
    document = {**CONFIG, "model_dir": str(tmp_path)}
    for form in (document, json.dumps(document), RLExperimentConfig.model_validate_json(json.dumps(document))):
        made = create_rl_experiment(experiment_config=form)
        assert isinstance(made.agent, Agent)
        assert (made.train_steps, made.eval_steps, made.first_update, made.update_frequency) == (4, 1, 10, 3)
        assert (made.agent.memory.size, made.agent.memory.batch_size) == (200, 8)
        assert (made.agent.config.seed, made.agent.model_dir) == (5, str(tmp_path))
    result, exports = made.train_and_evaluate()
    assert result is not None
    assert result["global_step"] == 3, "the hook of the document stops it"
    assert (Path(exports[0]) / "weights.safetensors").exists()
    gradient = {**CONFIG, "kind": "pg_agent", "memory": {"name": "batch_memory"}, "model": {"name": "vpg", "params": {"actions": 2}}}
    assert isinstance(create_rl_experiment(gradient).agent, PGAgent)
    wrong: dict[str, Any] = {
        "sarsa": {"kind": "sarsa"},
        "Nowhere-v0": {"env": {"id": "Nowhere-v0"}},
        "attic": {"memory": {"name": "attic"}},
        "NoHook": {"train_hooks": [{"name": "NoHook"}]},
        "NoEvalHook": {"eval_hooks": [{"name": "NoEvalHook"}]},
        "oracle": {"model": {"name": "oracle"}},
    }
    for name, change in wrong.items():
        with pytest.raises(PartNotFoundError, match=name):
            create_rl_experiment({**document, **change})
    with pytest.raises(ValueError, match="train_stepz"):
        create_rl_experiment({**document, "train_stepz": 1})
    with pytest.raises(ValueError, match="train_hooks"):
        create_rl_experiment({**document, "train_hooks": [7]})


def test_R29_every_hook_has_a_name() -> None:
    from workers.estimators.hook_registry import HOOKS

    assert {"EpisodeCheckpointSaverHook", "EpisodeCounterHook"} <= set(HOOKS)
    assert len(HOOKS) == 14


def test_R29_checkpoints_are_found_by_number(tmp_path: Path) -> None:
    agent = make_agent(tmp_path, save_checkpoints_steps=1, keep_checkpoint_max=4).train(Scripted(), 4, 2, max_steps=11)
    assert list(all_checkpoints(tmp_path)) == [8, 9, 10, 11]
    assert agent.latest_checkpoint().name == "ckpt-11"

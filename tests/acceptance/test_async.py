"""Rows P1 to P25: `train_agent_async`.

Tests that only read a result share one training.
"""

import functools
import json
import logging
import multiprocessing
import pstats
import threading
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tests.support.async_fakes import (
    EvaluationHookRecorder,
    EventSetter,
    NoisyEnv,
    StepRecorder,
    TallyAgent,
    UnsupportedHook,
    make_agent,
    make_cartpole,
    make_env,
    make_failing,
    make_train_or_eval_env,
    read_records,
)
from tests.support.async_torch import CountingAgent, make_counting
from tests.support.waiting import wait_for
from workers.entrypoints.functional import read_history, train_agent_async
from workers.snapshot.manifest import read_manifest

pytestmark = pytest.mark.processes

STEPS = 200
NOISY = functools.partial(make_env, kind=NoisyEnv)


class TrainingOutput(NamedTuple):
    folder: Path
    outdir: Path
    agent: Any
    lines: list[str]

    @property
    def steps(self) -> list[int]:
        return sorted(one["step"] for one in read_records(self.folder, "step"))

    @property
    def rows(self) -> list[dict[str, str]]:
        return read_scores(self.outdir)

    @property
    def outcome(self) -> dict[str, Any]:
        return read_outcome(self.outdir)


class RecordingHandler(logging.Handler):
    """A logging handler that collects messages."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def read_scores(outdir: Path) -> list[dict[str, str]]:
    header, *rows = (line.split("\t") for line in (outdir / "scores.txt").read_text().splitlines())
    return [dict(zip(header, row, strict=True)) for row in rows]


def read_outcome(outdir: Path) -> dict[str, Any]:
    return dict(json.loads((outdir / "outcome.json").read_text()))


def train(folder: Path, processes: int = 1, **options: Any) -> TrainingOutput:
    """Trains with the fakes, of which `options` may replace some."""
    handler, logger = RecordingHandler(), logging.getLogger("of the caller")
    logger.setLevel(logging.INFO)
    logger.handlers = [handler]
    given = {
        "make_env": functools.partial(make_env, folder=str(folder)),
        "make_agent": functools.partial(make_agent, folder=str(folder)),
        "steps": STEPS,
        "eval_interval": None,
        "logger": logger,
        "global_step_hooks": [StepRecorder(str(folder))],
        **options,
    }
    folder.mkdir(exist_ok=True)
    outdir = folder / "deep" / "out"
    return TrainingOutput(
        folder,
        outdir,
        train_agent_async(str(outdir), processes, given.pop("make_env"), **given),
        handler.lines,
    )


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory: pytest.TempPathFactory) -> TrainingOutput:
    """Training in two processes on CartPole, with all optional features enabled."""
    folder = tmp_path_factory.mktemp("both")
    return train(
        folder,
        2,
        make_env=functools.partial(make_cartpole, folder=str(folder)),
        eval_interval=50,
        eval_n_episodes=2,
        evaluation_hooks=[EvaluationHookRecorder(str(folder))],
        global_step_hooks=[StepRecorder(str(folder), pause=0.001)],
        profile=True,
        use_tensorboard=True,
    )


@pytest.fixture(scope="module")
def single_process(tmp_path_factory: pytest.TempPathFactory) -> TrainingOutput:
    """Training in one process, in an environment whose rewards depend on the seed."""
    return train(
        tmp_path_factory.mktemp("alone"),
        make_env=NOISY,
        steps=40,
        eval_interval=20,
        eval_n_episodes=3,
    )


def test_P1_train_agent_async(two_processes: TrainingOutput) -> None:
    assert isinstance(two_processes.agent, TallyAgent)
    assert two_processes.steps == list(range(1, len(two_processes.steps) + 1))
    assert len(two_processes.steps) >= STEPS


@pytest.mark.slow
def test_P2_outdir(
    two_processes: TrainingOutput, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = {
        "scores.txt",
        "episodes.csv",
        "history.jsonl",
        "outcome.json",
        "best",
        "profile_0.prof",
        "profile_1.prof",
    }
    there = {
        path.name
        for path in two_processes.outdir.iterdir()
        if not path.name.startswith("events.out")
    }
    assert there == {*expected, two_processes.outcome["snapshot"]}
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "here"))
    train(
        tmp_path,
        1,
        steps=5,
        profile=True,
        make_env=make_env,
        make_agent=make_agent,
        global_step_hooks=[],
    )
    assert list((tmp_path / "here").iterdir()) == []
    assert [path.name for path in tmp_path.iterdir() if path.name != "here"] == ["deep"]


def test_P3_processes(two_processes: TrainingOutput, tmp_path: Path) -> None:
    assert len({one["pid"] for one in read_records(two_processes.folder, "step")}) == 2
    for wrong in (0, -1, 1.5):
        with pytest.raises(ValueError, match="processes"):
            train(tmp_path, wrong)  # type: ignore[arg-type]
    assert not (tmp_path / "deep").exists()


@pytest.mark.slow
def test_P4_make_env(two_processes: TrainingOutput, tmp_path: Path) -> None:
    calls = read_records(two_processes.folder, "make_env")
    assert Counter((one["index"], one["test"]) for one in calls) == {
        (0, False): 1,
        (0, True): 1,
        (1, False): 1,
        (1, True): 1,
    }
    assert {one["index"]: one["pid"] for one in calls} == {
        one["index"]: one["pid"] for one in read_records(two_processes.folder, "step")
    }
    assert [one["test"] for one in read_records(train(tmp_path, steps=1).folder, "make_env")] == [
        False
    ]
    with pytest.raises(
        TypeError,
        match=r"make_env cannot be sent to a new process .* function or class of a module",
    ):
        train(tmp_path, make_env=lambda _, test: make_env(0, test))


@pytest.mark.slow
def test_P5_profile(two_processes: TrainingOutput, tmp_path: Path) -> None:
    for index in range(2):
        functions = {
            name
            for _, _, name in pstats.Stats(
                str(two_processes.outdir / f"profile_{index}.prof")
            ).stats
        }  # type: ignore[attr-defined]
        assert {"collect", "observe"} <= functions
    assert not list(train(tmp_path, steps=1).outdir.glob("*.prof"))


def test_P6_steps(two_processes: TrainingOutput) -> None:
    assert STEPS <= len(two_processes.steps) <= STEPS + 1
    assert two_processes.outcome["overshoot"] == len(two_processes.steps) - STEPS
    assert two_processes.outcome["env_steps"] == len(two_processes.steps)
    assert (
        f"training ended: budget at step {len(two_processes.steps)}, "
        f"{len(two_processes.steps) - STEPS} beyond steps" in two_processes.lines
    )
    assert read_manifest(two_processes.outdir / f"{STEPS}_finish").env_step == len(
        two_processes.steps
    )


@pytest.mark.slow
def test_P7_eval_interval(tmp_path: Path, two_processes: TrainingOutput) -> None:
    ran = train(tmp_path, 2, steps=500, eval_interval=100)
    steps = sorted(int(row["steps"]) for row in ran.rows)
    assert steps[:4] == [100, 200, 300, 400]
    assert steps[4:] == [len(ran.steps)]
    assert sorted(int(row["steps"]) for row in two_processes.rows)[:3] == [50, 100, 150]
    none = train(tmp_path / "none", steps=5)
    assert not (none.outdir / "scores.txt").exists()
    assert read_history(none.outdir) == []


@pytest.mark.slow
def test_P8_eval_n_steps(tmp_path: Path) -> None:
    whole = functools.partial(make_train_or_eval_env, train={}, evaluate={"length": 5})
    ran = train(
        tmp_path / "whole",
        make_env=whole,
        steps=1,
        eval_interval=10,
        eval_n_steps=12,
        eval_n_episodes=None,
    )
    assert [(one["episodes"], one["mean"]) for one in read_history(ran.outdir)] == [(2, 5.0)]
    partial = functools.partial(make_train_or_eval_env, train={}, evaluate={"length": 50})
    ran = train(
        tmp_path / "partial",
        make_env=partial,
        steps=1,
        eval_interval=10,
        eval_n_steps=12,
        eval_n_episodes=None,
    )
    assert [
        (one["episodes"], one["mean"], one["length_mean"]) for one in read_history(ran.outdir)
    ] == [(1, 12.0, 12.0)]


@pytest.mark.slow
def test_P9_eval_n_episodes(single_process: TrainingOutput, tmp_path: Path) -> None:
    assert [one["episodes"] for one in read_history(single_process.outdir)] == [3, 3]
    for two_processes in (
        {"eval_n_steps": 5, "eval_n_episodes": 5},
        {"eval_n_steps": None, "eval_n_episodes": None},
    ):
        with pytest.raises(ValueError, match="exactly one of eval_n_steps and eval_n_episodes"):
            train(tmp_path, eval_interval=10, **two_processes)
    assert not (tmp_path / "deep").exists()


@pytest.mark.slow
def test_P10_eval_success_threshold(tmp_path: Path) -> None:
    env = functools.partial(
        make_train_or_eval_env, train={}, evaluate={"returns": (1.0, 2.0, 3.0, 2.5)}
    )
    ran = train(
        tmp_path,
        make_env=env,
        steps=1,
        eval_interval=10,
        eval_n_episodes=4,
        eval_success_threshold=2.5,
    )
    assert [float(row["success_rate"]) for row in ran.rows] == [0.5]


@pytest.mark.slow
def test_P11_max_episode_len(tmp_path: Path) -> None:
    agent = functools.partial(make_agent, folder=str(tmp_path), noting=True)
    train(
        tmp_path, make_agent=agent, steps=8, eval_interval=10, eval_n_episodes=1, max_episode_len=4
    )
    seen = [
        (one["training"], int(one["at"]), one["done"], one["reset"])
        for one in read_records(tmp_path, "observe")
    ]
    episode = [(1, False, False), (2, False, False), (3, False, False), (4, False, True)]
    assert seen == [(True, *one) for one in episode * 2] + [(False, *one) for one in episode]


@pytest.mark.slow
def test_P12_step_offset(tmp_path: Path) -> None:
    ran = train(tmp_path, 2, step_offset=100, eval_interval=30, eval_n_episodes=1)
    assert ran.steps == list(range(101, 101 + len(ran.steps)))
    assert STEPS <= ran.steps[-1] <= STEPS + 1
    assert sorted(int(row["steps"]) for row in ran.rows) == [120, 150, 180, ran.steps[-1]]


@pytest.mark.slow
def test_P13_successful_score(tmp_path: Path) -> None:
    slow = [StepRecorder(str(tmp_path), pause=0.02)]
    ran = train(
        tmp_path,
        2,
        successful_score=5.0,
        eval_interval=50,
        eval_n_episodes=2,
        global_step_hooks=slow,
    )
    assert [int(row["steps"]) for row in ran.rows] == [50]
    assert ran.outcome["reason"] == "success_score"
    assert ran.outcome["snapshot"] == "successful"
    assert read_manifest(ran.outdir / "successful").stop == "success_score"
    assert not list(ran.outdir.glob("*_finish"))
    assert ran.steps == list(range(1, ran.outcome["env_steps"] + 1))
    assert len(ran.steps) < STEPS


@pytest.mark.slow
def test_P14_agent(tmp_path: Path) -> None:
    agent = CountingAgent()
    weight = agent.model.weight
    ran = train(tmp_path, 2, agent=agent, make_agent=None, steps=60)
    assert ran.agent is agent
    assert agent.model.weight is weight
    assert 30 <= weight[0, 0].item() <= len(ran.steps), (
        "two processes add to one number, so some additions may be lost"
    )


def test_P15_make_agent(two_processes: TrainingOutput, tmp_path: Path) -> None:
    in_processes = {one["pid"] for one in read_records(two_processes.folder, "step")}
    calls = [
        one["index"]
        for one in read_records(two_processes.folder, "make_agent")
        if one["pid"] in in_processes
    ]
    assert sorted(calls) == [0, 1]
    assert [
        one["index"]
        for one in read_records(two_processes.folder, "make_agent")
        if one["pid"] not in in_processes
    ] == [0], "the one that is returned"
    with pytest.raises(ValueError, match="give agent or make_agent"):
        train(tmp_path, make_agent=None)
    assert not (tmp_path / "deep").exists()


def test_P16_global_step_hooks(two_processes: TrainingOutput) -> None:
    seen = read_records(two_processes.folder, "step")
    assert max(Counter(one["step"] for one in seen).values()) == 1
    assert {one["agent"] for one in seen} == {"TallyAgent"}
    assert len({one["env"] for one in seen}) == 1
    owners = {one["index"]: one["pid"] for one in seen}
    assert sorted(owners) == [0, 1]


def test_P17_evaluation_hooks(two_processes: TrainingOutput, tmp_path: Path) -> None:
    told = read_records(two_processes.folder, "evaluation")
    assert sorted(one["step"] for one in told) == sorted(
        int(row["steps"]) for row in two_processes.rows
    )
    assert {one["mean"] for one in told} == {float(row["mean"]) for row in two_processes.rows}
    assert [name for name, _ in told[0]["agent_stats"]] == ["total", "draws"]
    with pytest.raises(ValueError, match="UnsupportedHook does not support train_agent_async"):
        train(tmp_path, eval_interval=10, evaluation_hooks=[UnsupportedHook()])
    assert not (tmp_path / "deep").exists()


@pytest.mark.slow
def test_P18_save_best_so_far_agent(tmp_path: Path) -> None:
    means = (1.0, 3.0, 3.0, 2.0)
    env = functools.partial(make_train_or_eval_env, train={}, evaluate={"returns": means})
    ran = train(tmp_path / "on", make_env=env, steps=40, eval_interval=10, eval_n_episodes=1)
    assert [float(row["mean"]) for row in ran.rows] == list(means)
    best = read_manifest(ran.outdir / "best")
    assert (best.env_step, best.score) == (20, 3.0)
    off = train(
        tmp_path / "off",
        make_env=env,
        steps=40,
        eval_interval=10,
        eval_n_episodes=1,
        save_best_so_far_agent=False,
    )
    assert not (off.outdir / "best").exists()


@pytest.mark.slow
def test_P19_use_tensorboard(two_processes: TrainingOutput) -> None:
    events = list(two_processes.outdir.glob("events.out.tfevents*"))
    assert len(events) == 1
    read = EventAccumulator(str(events[0])).Reload()
    means = {event.step: event.value for event in read.Scalars("eval/mean")}
    assert means == {
        int(row["steps"]): pytest.approx(float(row["mean"])) for row in two_processes.rows
    }
    assert {"agent/total", "eval/stdev", "extras/meanplusstdev"} <= set(read.Tags()["scalars"])


@pytest.mark.slow
def test_P20_logger(two_processes: TrainingOutput, single_process: TrainingOutput) -> None:
    lines = [line for line in two_processes.lines if line.startswith("evaluation at step")]
    assert len(lines) == len(two_processes.rows)
    first = two_processes.rows[0]
    assert any(
        line.startswith(f"evaluation at step {first['steps']} mean:{first['mean']}")
        for line in lines
    )
    assert (
        sum(
            line.startswith(f"outdir:{single_process.outdir} step:")
            for line in single_process.lines
        )
        == 8
    ), "a line per episode of process 0"


@pytest.mark.slow
def test_P21_random_seeds(single_process: TrainingOutput, tmp_path: Path) -> None:
    def drop_elapsed(ran: TrainingOutput) -> list[dict[str, str]]:
        return [{key: value for key, value in row.items() if key != "elapsed"} for row in ran.rows]

    options = {"make_env": NOISY, "steps": 40, "eval_interval": 20, "eval_n_episodes": 3}
    assert drop_elapsed(train(tmp_path / "again", random_seeds=[0], **options)) == drop_elapsed(
        single_process
    ), "and 0 is the default"
    assert drop_elapsed(train(tmp_path / "other", random_seeds=[1], **options)) != drop_elapsed(
        single_process
    )
    for wrong in ([], [1, 2], [-1]):
        with pytest.raises(ValueError, match="random_seeds"):
            train(tmp_path / "wrong", random_seeds=wrong)


@pytest.mark.slow
def test_P22_stop_event(tmp_path: Path) -> None:
    event = multiprocessing.get_context("spawn").Event()
    ran = train(
        tmp_path,
        2,
        steps=10**6,
        stop_event=event,
        global_step_hooks=[StepRecorder(str(tmp_path)), EventSetter(event, 50)],
    )
    assert ran.steps == list(range(1, len(ran.steps) + 1))
    after = Counter(one["index"] for one in read_records(tmp_path, "step") if one["step"] > 50)
    assert max(after.values(), default=0) <= 1
    assert ran.outcome["reason"] == "requested"
    assert read_manifest(ran.outdir / f"{len(ran.steps)}_finish").stop == "requested"


@pytest.mark.slow
def test_P23_exception_event(tmp_path: Path) -> None:
    event = threading.Event()

    def set_later() -> None:
        wait_for(lambda: len(read_records(tmp_path, "step")) >= 20, "20 steps")
        event.set()

    thread = threading.Thread(target=set_later)
    thread.start()
    ran = train(tmp_path, 2, steps=10**6, exception_event=event)
    thread.join()
    assert ran.agent.t > 0
    assert ran.outcome["reason"] == "exception"
    assert ran.outcome["snapshot"].endswith("_except")
    assert (ran.outdir / ran.outcome["snapshot"]).is_dir()
    assert any("exception_event was set" in line for line in ran.lines)


@pytest.mark.slow
def test_P24_use_shared_memory(tmp_path: Path) -> None:
    for share in (True, False):
        folder = tmp_path / str(share)
        pause = [StepRecorder(str(folder), pause=0.002)]
        ran = train(
            folder,
            2,
            make_agent=make_counting,
            steps=60,
            use_shared_memory=share,
            global_step_hooks=pause,
        )
        made = Counter(one["index"] for one in read_records(folder, "step"))
        assert min(made[0], made[1]) > 0
        assert ran.agent.model.weight[0].tolist() == [made[0], made[1] if share else 0, 0, 0]
        assert ran.agent.optimizer.state[ran.agent.model.weight]["momentum_buffer"][
            0, 1
        ].item() == (made[1] if share else 0)
        assert ran.agent.private.weight[0].tolist() == [made[0], 0, 0, 0]


def test_P25_child_exception(tmp_path: Path) -> None:
    with pytest.raises(LookupError, match="the maze has no exit") as caught:
        train(
            tmp_path,
            2,
            make_env=functools.partial(make_failing, failing=1, at_step=20),
            steps=10**6,
        )
    assert "Raised in process 1." in caught.value.__notes__
    assert "async_fakes.py" in str(caught.value.__cause__)
    assert "raise LookupError" in str(caught.value.__cause__)
    saved = read_outcome(tmp_path / "deep" / "out")["snapshot"]
    assert saved.endswith("_except")
    assert read_manifest(tmp_path / "deep" / "out" / saved).reason == "exception"

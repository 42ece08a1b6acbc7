"""Faults during `train_agent_async`, in every process, and trainings resumed after them."""

import contextlib
import functools
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.async_fakes import (
    EvaluationHookRecorder,
    ExitHook,
    KillHook,
    MeetingEnv,
    NoisyEnv,
    PrunedError,
    PruneHook,
    ScriptedEnv,
    StepRecorder,
    TallyAgent,
    make_agent,
    make_env,
    make_env_or_raise,
    make_env_with_subprocess,
    read_records,
)
from tests.support.waiting import PATIENCE_SECONDS, wait_for
from workers.core.errors import SnapshotUnreadableError
from workers.entrypoints.async_training.process_group import ProcessFailedError
from workers.entrypoints.functional import read_history, train_agent_async
from workers.snapshot.manifest import read_manifest

pytestmark = pytest.mark.processes

SCRIPT = """
import functools, sys
from tests.support.async_fakes import StepRecorder, make_agent, make_env
from workers.entrypoints.async_training.train_agent_async import train_agent_async

if __name__ == "__main__":
    folder = sys.argv[1]
    hooks = [StepRecorder(folder)]
    train_agent_async(
        folder + "/out", 2, make_env, steps=10**7, eval_interval=None, make_agent=make_agent,
        global_step_hooks=hooks,
    )
"""


@pytest.fixture(autouse=True)
def check_processes_end() -> Iterator[None]:
    """Checks that a test leaves no process behind."""
    before = list_descendants()
    yield
    wait_for(lambda: list_descendants() <= before, lambda: describe_processes(before))


def describe_processes(before: set[int]) -> str:
    lines = []
    for pid in sorted(list_descendants() - before):
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            lines.append(f"{pid} ({process.status()}, {' '.join(process.cmdline())})")
    return f"all processes end; there are {', '.join(lines)}"


def list_descendants() -> set[int]:
    """Returns the descendants of this process, except Python's own resource tracker."""
    return {one.pid for one in psutil.Process().children(recursive=True) if not is_tracker(one)}


def is_tracker(process: psutil.Process) -> bool:
    try:
        return (
            process.status() == psutil.STATUS_ZOMBIE
            or "multiprocessing.resource_tracker" in " ".join(process.cmdline())
        )
    except psutil.NoSuchProcess:
        return True


def train(folder: Path, processes: int = 2, **options: Any) -> Any:
    folder.mkdir(exist_ok=True)
    given = {
        "make_env": make_env,
        "make_agent": make_agent,
        "steps": 10**7,
        "eval_interval": None,
        "global_step_hooks": [StepRecorder(str(folder))],
        **options,
    }
    return train_agent_async(str(folder / "out"), processes, given.pop("make_env"), **given)


def list_steps(folder: Path) -> list[int]:
    return sorted(one["step"] for one in read_records(folder, "step"))


def read_outcome(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "out" / "outcome.json").read_text()))


def set_and_make_env(event: Any, process_idx: int, test: bool) -> Any:
    event.set()
    return make_env(process_idx, test)


@pytest.mark.parametrize("index", [0, 1, 2])
@pytest.mark.slow
def test_a_killed_process_ends_the_run_and_another_one_saves_a_snapshot(
    index: int, tmp_path: Path
) -> None:
    hooks = [StepRecorder(str(tmp_path)), KillHook(index, 10)]
    with pytest.raises(
        ProcessFailedError, match=rf"process {index} \(pid [0-9]+\) was killed by SIGKILL"
    ) as caught:
        train(tmp_path, 3, global_step_hooks=hooks)
    saved = read_outcome(tmp_path)["snapshot"]
    assert saved.endswith("_except")
    assert f"the agent was saved to {tmp_path / 'out' / saved}" in caught.value.__notes__
    assert json.loads((tmp_path / "out" / saved / "tally.json").read_text())["index"] == (
        1 if index == 0 else 0
    )


@pytest.mark.slow
def test_the_run_ends_if_its_only_process_is_killed(tmp_path: Path) -> None:
    with pytest.raises(ProcessFailedError, match="SIGKILL") as caught:
        train(tmp_path, 1, global_step_hooks=[KillHook(0, 3)])
    assert "nothing could be saved" in caught.value.__notes__


@pytest.mark.slow
def test_a_process_that_exits_without_a_report_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(
        ProcessFailedError, match=r"process 1 .* ended with status 0 and said nothing"
    ):
        train(tmp_path, global_step_hooks=[ExitHook(1, 5)])


@pytest.mark.slow
def test_subprocesses_of_a_killed_process_end(tmp_path: Path) -> None:
    with pytest.raises(ProcessFailedError, match="SIGKILL"):
        train(
            tmp_path,
            make_env=functools.partial(make_env_with_subprocess, folder=str(tmp_path)),
            global_step_hooks=[KillHook(1, 5)],
        )
    family = {one["child"] for one in read_records(tmp_path, "family")}
    assert len(family) == 2
    wait_for(
        lambda: (
            not any(
                psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
                for pid in family
            )
        ),
        "the whole family ends",
    )


@pytest.mark.slow
def test_an_environment_that_cannot_be_made_ends_the_run_before_a_step(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no map of the maze") as caught:
        train(tmp_path, make_env=functools.partial(make_env_or_raise, failing=1))
    assert "Raised in process 1." in caught.value.__notes__
    assert list_steps(tmp_path) == []
    assert not list((tmp_path / "out").glob("*_except"))


@pytest.mark.slow
def test_an_exception_of_an_evaluation_hook_keeps_its_type(tmp_path: Path) -> None:
    with pytest.raises(PrunedError, match="at 20") as caught:
        train(
            tmp_path,
            eval_interval=20,
            eval_n_episodes=1,
            evaluation_hooks=[EvaluationHookRecorder(str(tmp_path)), PruneHook(20)],
        )
    assert caught.value.step == 20
    assert 20 in {row["step"] for row in read_history(tmp_path / "out")}


@pytest.mark.parametrize(
    ("processes", "options"),
    [
        (1, {}),
        (3, {"eval_interval": 5, "eval_n_episodes": 1}),
        (2, {"step_offset": 30, "use_shared_memory": False}),
        (2, {"start_method": "fork", "steps": 0}),
    ],
)
@pytest.mark.parametrize("kind", [threading.Event, multiprocessing.Event])
def test_an_exception_event_before_the_processes_have_begun_saves_the_agent_without_a_step(
    tmp_path: Path, kind: Callable[[], Any], processes: int, options: dict[str, Any]
) -> None:
    event = kind()
    event.set()
    agent = train(tmp_path, processes, exception_event=event, **options)
    assert isinstance(agent, TallyAgent)
    assert list_steps(tmp_path) == []
    outcome = read_outcome(tmp_path)
    start = options.get("step_offset", 0)
    assert (outcome["reason"], outcome["snapshot"]) == ("exception", f"{start}_except")
    assert read_manifest(tmp_path / "out" / f"{start}_except").env_step == start


def test_an_exception_event_while_a_process_starts_saves_the_agent_without_a_step(
    tmp_path: Path,
) -> None:
    event = multiprocessing.get_context("spawn").Event()
    train(tmp_path, 2, make_env=functools.partial(set_and_make_env, event), exception_event=event)
    assert list_steps(tmp_path) == []
    assert read_outcome(tmp_path)["snapshot"] == "0_except"


def test_a_run_that_an_exception_event_ended_at_once_is_resumed(tmp_path: Path) -> None:
    train(tmp_path, 1, steps=20)
    event = threading.Event()
    event.set()
    for _ in range(2):
        train(tmp_path, 1, steps=40, resume="latest", exception_event=event)
        assert read_outcome(tmp_path)["snapshot"] == "20_except"
    assert len(list_steps(tmp_path)) == 20
    train(tmp_path, 1, steps=40, resume="latest")
    assert list_steps(tmp_path) == list(range(1, 41))


def test_an_error_of_a_process_that_cannot_begin_is_raised_also_after_an_exception_event(
    tmp_path: Path,
) -> None:
    event = threading.Event()
    event.set()
    with pytest.raises(FileNotFoundError, match="no map of the maze"):
        train(
            tmp_path,
            make_env=functools.partial(make_env_or_raise, failing=1),
            exception_event=event,
        )


def test_a_stop_event_before_the_processes_have_begun_saves_the_agent_as_usual(
    tmp_path: Path,
) -> None:
    event = threading.Event()
    event.set()
    train(tmp_path, 2, stop_event=event)
    outcome = read_outcome(tmp_path)
    assert outcome["reason"] == "requested"
    assert outcome["snapshot"].endswith("_finish")


def test_the_final_snapshot_is_named_by_the_requested_steps(tmp_path: Path) -> None:
    """Four processes that step concurrently exceed 3 steps by up to three.

    PFRL's scripts load `3_finish`.
    """
    meeting = functools.partial(MeetingEnv, folder=str(tmp_path), processes=4)
    train(tmp_path, 4, steps=3, make_env=functools.partial(make_env, kind=meeting))
    assert len(list_steps(tmp_path)) > 3
    assert read_outcome(tmp_path)["snapshot"] == "3_finish"
    assert read_manifest(tmp_path / "out" / "3_finish").env_step == len(list_steps(tmp_path))


@pytest.mark.slow
def test_four_processes_count_each_step_once(tmp_path: Path) -> None:
    train(tmp_path, 4, steps=400, eval_interval=100, eval_n_episodes=1)
    steps = list_steps(tmp_path)
    assert steps == list(range(1, len(steps) + 1))
    assert 400 <= len(steps) <= 403
    assert sorted(one["step"] for one in read_history(tmp_path / "out")) == [
        100,
        200,
        300,
        len(steps),
    ]


@pytest.mark.parametrize("kind", ["fork context", "thread"])
@pytest.mark.slow
def test_any_kind_of_event_stops_training(kind: str, tmp_path: Path) -> None:
    event: Any = (
        threading.Event() if kind == "thread" else multiprocessing.get_context("fork").Event()
    )
    thread = threading.Thread(
        target=lambda: (
            wait_for(lambda: len(read_records(tmp_path, "step")) > 20, "20 steps"),
            event.set(),
        )
    )
    thread.start()
    train(tmp_path, stop_event=event)
    thread.join()
    assert read_outcome(tmp_path)["reason"] == "requested"
    assert read_outcome(tmp_path)["snapshot"] == f"{len(list_steps(tmp_path))}_finish"


@pytest.mark.slow
def test_an_event_that_is_already_set_saves_without_training(tmp_path: Path) -> None:
    event = threading.Event()
    event.set()
    train(tmp_path, stop_event=event)
    assert (list_steps(tmp_path), read_outcome(tmp_path)["snapshot"]) == ([], "0_finish")


@pytest.mark.slow
def test_the_event_is_always_set_at_the_end(tmp_path: Path) -> None:
    event = threading.Event()
    train(tmp_path, 1, steps=3, stop_event=event)
    assert event.is_set()


@pytest.mark.slow
def test_a_finished_step_budget_trains_nothing(tmp_path: Path) -> None:
    train(tmp_path, steps=10, step_offset=10, eval_interval=5, eval_n_episodes=1)
    assert list_steps(tmp_path) == []
    assert [one["step"] for one in read_history(tmp_path / "out")] == [10]
    assert read_outcome(tmp_path)["snapshot"] == "10_finish"


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.slow
def test_forked_processes_accept_closures(tmp_path: Path) -> None:
    agent = TallyAgent()
    agent.note = lambda: None  # type: ignore[attr-defined]
    result = train(
        tmp_path,
        steps=40,
        make_env=lambda index, test: ScriptedEnv(),
        make_agent=None,
        agent=agent,
        start_method="fork",
    )
    assert result is agent
    assert agent.t > 0
    steps = list_steps(tmp_path)
    assert steps == list(range(1, len(steps) + 1))


def test_arguments_that_cannot_be_pickled_are_named_before_training(tmp_path: Path) -> None:
    agent = TallyAgent()
    agent.note = lambda: None  # type: ignore[attr-defined]
    for options, name in (
        ({"make_env": lambda index, test: ScriptedEnv()}, "make_env"),
        ({"make_agent": lambda index: TallyAgent()}, "make_agent"),
        ({"agent": agent, "make_agent": None}, "agent"),
        ({"global_step_hooks": [lambda env, agent, step: None]}, "global_step_hooks"),
        ({"evaluation_hooks": [UnpicklableHook()], "eval_interval": 10}, "evaluation_hooks"),
    ):
        with pytest.raises(
            TypeError, match=f"^{name} cannot be sent to a new process .*start_method=.fork"
        ):
            train(tmp_path, **options)
    assert not (tmp_path / "out").exists()


class UnpicklableHook:
    """A hook that declares support for `train_agent_async` but cannot be pickled."""

    support_train_agent_async = True

    def __init__(self) -> None:
        self.held = threading.Lock()

    def __call__(self, **facts: Any) -> None: ...


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_a_signal_to_the_caller_saves_and_ends_all_processes(
    number: signal.Signals, tmp_path: Path
) -> None:
    with RunningScript(tmp_path) as caller:
        caller.send_signal(number)
        _, errors = caller.communicate(timeout=PATIENCE_SECONDS)
    assert caller.returncode != 0
    assert ("TerminatedError" if number == signal.SIGTERM else "KeyboardInterrupt") in errors
    saved = read_outcome(tmp_path)["snapshot"]
    assert saved.endswith("_except")
    assert read_manifest(tmp_path / "out" / saved).reason == "exception"


@pytest.mark.slow
def test_processes_end_with_their_killed_caller(tmp_path: Path) -> None:
    with RunningScript(tmp_path) as caller:
        pids = {one["pid"] for one in read_records(tmp_path, "step")}
        caller.kill()
        caller.communicate()
    wait_for(lambda: not any(psutil.pid_exists(pid) for pid in pids), "the processes end")


class RunningScript:
    """Runs a training script in a subprocess; entered once both of its processes made steps."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        script = folder / "script.py"
        script.write_text(SCRIPT)
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[5])}
        self.process = subprocess.Popen(
            [sys.executable, str(script), str(folder)], stderr=subprocess.PIPE, text=True, env=env
        )

    def __enter__(self) -> Any:
        wait_for(
            lambda: len({one["pid"] for one in read_records(self.folder, "step")}) == 2,
            "both processes step",
        )
        return self.process

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()


@pytest.mark.slow
def test_one_process_resumes_bit_exactly(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "make_env": functools.partial(make_env, kind=NoisyEnv, length=7),
        "eval_interval": 20,
        "eval_n_episodes": 2,
    }
    straight = train(tmp_path / "straight", 1, steps=60, **options)
    expected = read_scores(tmp_path / "straight")
    for broken in (3, 20, 47):
        folder = tmp_path / str(broken)
        train(folder, 1, steps=broken, **options)
        agent = train(folder, 1, steps=60, resume="latest", **options)
        assert agent.state_dict() == straight.state_dict(), broken
        assert {
            step: row for step, row in read_scores(folder).items() if step in expected
        } == expected, broken
        assert list_steps(folder) == list(range(1, 61))
        assert sorted(read_scores(folder)) == sorted({*expected, broken})


@pytest.mark.slow
def test_several_processes_resume_with_exact_step_counts(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "make_env": functools.partial(make_env, kind=NoisyEnv),
        "eval_interval": 40,
        "eval_n_episodes": 1,
    }
    train(tmp_path, steps=50, **options)
    before = list_steps(tmp_path)
    train(tmp_path, 3, steps=120, resume="latest", **options)
    steps = list_steps(tmp_path)
    assert steps == list(range(1, len(steps) + 1))
    assert 120 <= len(steps) <= 122
    evaluated = [one["step"] for one in read_history(tmp_path / "out")]
    assert sorted(evaluated) == sorted({40, len(before), 80, len(steps)})
    begun = [one["mark"] for one in read_records(tmp_path, "step")]
    episodes = len(set(begun))
    assert episodes >= read_outcome(tmp_path)["episodes"] - 2, (
        "processes do not repeat the episodes of before"
    )


@pytest.mark.slow
def test_a_run_ended_by_an_exception_can_be_resumed(tmp_path: Path) -> None:
    options: dict[str, Any] = {"eval_interval": 20, "eval_n_episodes": 1}
    with pytest.raises(PrunedError):
        train(tmp_path, 1, steps=60, evaluation_hooks=[PruneHook(40)], **options)
    assert read_outcome(tmp_path)["snapshot"] == "40_except"
    train(tmp_path, 1, steps=60, resume="latest", **options)
    assert list_steps(tmp_path) == list(range(1, 61))
    assert sorted(read_scores(tmp_path)) == [20, 40, 60]


@pytest.mark.slow
def test_a_damaged_snapshot_is_refused(tmp_path: Path) -> None:
    train(tmp_path, 1, steps=5)
    path = tmp_path / "out" / "5_finish" / "tally.json"
    path.write_text(path.read_text() + " ")
    with pytest.raises(SnapshotUnreadableError):
        train(tmp_path, 1, steps=10, resume="latest")


def read_scores(folder: Path) -> dict[int, list[str]]:
    header, *rows = (
        line.split("\t") for line in (folder / "out" / "scores.txt").read_text().splitlines()
    )
    skipped = header.index("elapsed")
    return {int(row[0]): row[:skipped] + row[skipped + 1 :] for row in rows}

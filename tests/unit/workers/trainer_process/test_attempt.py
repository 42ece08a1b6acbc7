"""The trainer process: how it executes a work order, and how it reports outcomes."""

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.reference
import pytest
import torch
from safetensors.torch import load_file

import tests.support.misbehaving_envs  # noqa: F401 - registers
from palestra.contract.names import new_id
from palestra.contract.states import Cause, Outcome, ResumeQuality
from palestra.contract.work_order import AttemptReport, WorkOrder
from palestra.telemetry.spool import SpoolReader
from tests.support.trainings import RUN, make_definition, make_work_order
from tests.support.waiting import PATIENCE_SECONDS, wait_for
from workers.assembly.catalogue import make_catalogue
from workers.ipc.attempt_directory import AttemptDirectory
from workers.trainer_process.attempt import main
from workers.trainer_process.control import ABANDONED_EXIT

LONG = {
    "loop": {"env_steps": 10_000_000},
    "evaluation": {"every_env_steps": None},
    "snapshot": {"every_env_steps": 200},
}


TRAINED = make_definition(export={"formats": ["weights", "program"]})


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> AttemptDirectory:
    """The directory of an attempt that trained `TRAINED` with seed 5."""
    return execute(tmp_path_factory.mktemp("trained"), make_work_order(TRAINED, seed=5))[0]


def make_attempt(root: Path, order: WorkOrder) -> AttemptDirectory:
    directory = AttemptDirectory(root / order.attempt_id)
    directory.create(order.model_dump_json().encode())
    return directory


def execute(root: Path, order: WorkOrder) -> tuple[AttemptDirectory, AttemptReport]:
    """Executes a work order in this process."""
    directory = make_attempt(root, order)
    return directory, run_here(directory)


def run_here(directory: AttemptDirectory) -> AttemptReport:
    handler = signal.getsignal(signal.SIGTERM)
    try:
        status = main(["--attempt-dir", str(directory.root)])
    finally:
        signal.signal(signal.SIGTERM, handler)
    report = report_of(directory)
    assert status == (1 if report.outcome is Outcome.FAILED else 0)
    return report


def report_of(directory: AttemptDirectory) -> AttemptReport:
    return AttemptReport.model_validate_json(directory.report.read_bytes())


def read_records(directory: AttemptDirectory, kind: str) -> list[dict[str, Any]]:
    documents = [json.loads(payload) for payload in SpoolReader(directory.spool).read().payloads]
    return [document for document in documents if document["type"] == kind]


def add_newest_snapshot(source: AttemptDirectory, order: dict[str, Any]) -> dict[str, Any]:
    """Returns the order with the newest snapshot of an attempt, as the server sends it."""
    written = read_records(source, "snapshot")[-1]
    files = [{**file, "artifact_id": new_id("art")} for file in written["files"]]
    names = ("snapshot_id", "env_step", "update", "episode", "resume_exact")
    return {**order, "snapshot": {**{name: written[name] for name in names}, "files": files}}


def add_input(root: Path, source: AttemptDirectory, order: WorkOrder) -> AttemptDirectory:
    """Returns the directory of a new attempt that has its snapshot as input."""
    reference = order.runs[0].snapshot
    assert reference is not None
    directory = make_attempt(root, order)
    shutil.copytree(
        source.snapshots / reference.snapshot_id, directory.inputs / reference.snapshot_id
    )
    return directory


def execute_with_input(
    root: Path, source: AttemptDirectory, order: WorkOrder
) -> tuple[AttemptDirectory, AttemptReport]:
    """Executes a work order whose snapshot is in its input directory."""
    directory = add_input(root, source, order)
    return directory, run_here(directory)


@contextmanager
def fork_trainer(directory: AttemptDirectory) -> Iterator[tuple[Any, int]]:
    """Runs a trainer in a child of this process, which has imported torch already.

    Yields the process and the write end of the pipe for orders.
    """
    read_end, write_end = os.pipe()

    def run() -> None:
        os.close(write_end)
        os._exit(main(["--attempt-dir", str(directory.root), "--control-fd", str(read_end)]))

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    os.close(read_end)
    try:
        yield process, write_end
    finally:
        process.kill()
        process.join()
        with suppress(OSError):
            os.close(write_end)


def wait_for_snapshot(directory: AttemptDirectory, is_alive: Callable[[], bool]) -> None:
    wait_for(lambda: read_records(directory, "snapshot") or not is_alive(), "a snapshot")
    assert is_alive()


def test_training_then_evaluation_and_export_of_its_snapshot(
    tmp_path: Path, trained: AttemptDirectory
) -> None:
    report = report_of(trained)
    assert (report.outcome, report.cause, report.env_step) == (Outcome.SUCCEEDED, Cause.BUDGET, 600)
    assert report.resume_quality is ResumeQuality.FRESH
    assert report.provenance["versions"]["torch"] == torch.__version__
    assert [one["env_step"] for one in read_records(trained, "evaluation")] == [250, 500, 600]
    assert [one["final"] for one in read_records(trained, "evaluation")] == [False, False, True]
    assert read_records(trained, "experiment_stats")[-1]["total_env_steps"] == 600
    assert {path.name for path in (trained.exports / RUN).iterdir()} == {
        "weights.safetensors",
        "policy.json",
        "policy.pt2",
    }
    assert json.loads(trained.progress.read_text())["env_step"] == 600

    order = make_work_order(
        TRAINED,
        schedule="evaluate",
        **add_newest_snapshot(trained, {"episodes": 4, "evaluation_seed": 99}),
    )
    evaluated, report = execute_with_input(tmp_path, trained, order)
    assert report.outcome is Outcome.SUCCEEDED
    (evaluation,) = read_records(evaluated, "evaluation")
    assert (evaluation["episodes"], evaluation["seed"], evaluation["env_step"]) == (4, 99, 600)
    assert evaluation["snapshot_id"] == read_records(trained, "snapshot")[-1]["snapshot_id"]

    order = make_work_order(
        TRAINED,
        schedule="export",
        **add_newest_snapshot(trained, {"formats": ["weights", "program"]}),
    )
    exported, report = execute_with_input(tmp_path, trained, order)
    assert report.outcome is Outcome.SUCCEEDED
    weights = load_file(exported.exports / RUN / "weights.safetensors")
    assert all(
        torch.equal(weights[name], tensor)
        for name, tensor in load_file(trained.exports / RUN / "weights.safetensors").items()
    )
    program = torch.export.load(exported.exports / RUN / "policy.pt2").module()
    assert program(torch.zeros(5, 4)).shape == (5,)


def read_log_lines(directory: AttemptDirectory, run_id: str = RUN) -> list[str]:
    return [
        line
        for record in read_records(directory, "log")
        if record["run"] == run_id
        for line in record["lines"]
    ]


def test_the_log_has_the_task_the_progress_and_the_result(
    tmp_path: Path, trained: AttemptDirectory
) -> None:
    """Regression: the log of a training was empty."""
    first, *rest = read_log_lines(trained)
    assert (
        first == "train: dqn on CartPole-v1, seed 5, attempt 1 on cpu with 1 thread, from the start"
    )
    evaluations = [one for one in read_records(trained, "evaluation") if one["env_step"] == 500]
    assert any(
        line.startswith(f"evaluation at env_step 500: mean {evaluations[0]['mean']:,.1f}, stdev ")
        for line in rest
    )
    assert (
        len([line for line in rest if line.startswith("evaluation at")])
        == len(read_records(trained, "evaluation"))
        == 3
    )
    snapshots = read_records(trained, "snapshot")
    told = [
        line.partition(" MiB")[0].rpartition(",")[0]
        for line in rest
        if line.startswith("snapshot ")
    ]
    assert told == [
        f"snapshot {one['snapshot_id']} at env_step {one['env_step']:,} ({one['reason']}"
        for one in snapshots
    ]
    assert {record["stream"] for record in read_records(trained, "log")} == {"palestra"}

    resumed, _ = execute_with_input(
        tmp_path,
        trained,
        make_work_order(
            TRAINED, schedule="evaluate", **add_newest_snapshot(trained, {"episodes": 1})
        ),
    )
    newest = snapshots[-1]["snapshot_id"]
    start, result = read_log_lines(resumed)
    assert start.startswith("evaluate: dqn on CartPole-v1, seed ")
    assert start.endswith(f", from snapshot {newest} at env_step 600")
    assert result.startswith(f"evaluation of snapshot {newest} at env_step 600: mean ")
    assert result.endswith("over 1 episode")
    assert "stdev" not in result, "one episode has no spread"


def test_an_evaluate_job_without_a_seed_uses_other_episodes_than_the_training(
    tmp_path: Path, trained: AttemptDirectory
) -> None:
    evaluated, _ = execute_with_input(
        tmp_path,
        trained,
        make_work_order(TRAINED, schedule="evaluate", **add_newest_snapshot(trained, {})),
    )
    assert read_records(evaluated, "evaluation")[0]["seed"] not in {
        one["seed"] for one in read_records(trained, "evaluation")
    }


def test_a_resume_goes_on_from_its_snapshot(tmp_path: Path) -> None:
    document = make_definition(
        loop={"env_steps": 140}, evaluation={"every_env_steps": None, "episodes": 1}
    )
    first, _ = execute(tmp_path, make_work_order(document))
    second, report = execute_with_input(
        tmp_path, first, make_work_order(document, **add_newest_snapshot(first, {}))
    )
    assert (report.outcome, report.resume_quality, report.env_step) == (
        Outcome.SUCCEEDED,
        ResumeQuality.EXACT,
        140,
    )
    assert json.loads(
        (
            second.snapshots / read_records(second, "snapshot")[-1]["snapshot_id"] / "MANIFEST.json"
        ).read_text()
    )["parent"]


def test_an_unrepeatable_environment_makes_the_resume_statistical(tmp_path: Path) -> None:
    document = make_definition(
        env={"id": "OddUnseeded-v0"},
        loop={"env_steps": 140},
        evaluation={"every_env_steps": None, "steps": 5, "episodes": None},
    )
    first, _ = execute(tmp_path, make_work_order(document))
    second, report = execute_with_input(
        tmp_path, first, make_work_order(document, **add_newest_snapshot(first, {}))
    )
    assert report.resume_quality is ResumeQuality.STATISTICAL
    assert [note["code"] for note in read_records(second, "note")] == ["env_not_deterministic"]


def test_without_memory_the_resume_is_statistical_and_says_so(tmp_path: Path) -> None:
    document = make_definition(
        loop={"env_steps": 140}, snapshot={"every_env_steps": 100, "memory": "none"}
    )
    first, _ = execute(tmp_path, make_work_order(document))
    assert not read_records(first, "snapshot")[0]["resume_exact"]
    second, report = execute_with_input(
        tmp_path, first, make_work_order(document, **add_newest_snapshot(first, {}))
    )
    assert report.resume_quality is ResumeQuality.STATISTICAL
    assert [note["code"] for note in read_records(second, "note")] == ["resume_statistical"]


@pytest.mark.parametrize(
    ("document", "cause", "text"),
    [
        (
            make_definition(env={"id": "Gone-v3"}),
            Cause.IMPORT_ERROR,
            "not an environment of this worker",
        ),
        (make_definition(env={"id": "Pendulum-v1"}), Cause.USER_EXCEPTION, "Discrete"),
        (make_definition(env={"id": "OddRaising-v0"}), Cause.USER_EXCEPTION, "the robot fell over"),
        (make_definition(env={"id": "OddFullDisk-v0"}), Cause.DISK_FULL, "disk is full"),
        (make_definition(env={"id": "OddExiting-v0"}), Cause.USER_EXCEPTION, "sys.exit(0)"),
    ],
)
def test_failures_are_reported_with_their_cause(
    tmp_path: Path, document: dict[str, Any], cause: Cause, text: str
) -> None:
    _, report = execute(tmp_path, make_work_order(document))
    assert (report.outcome, report.cause) == (Outcome.FAILED, cause)
    assert report.failure is not None
    assert text in report.failure.message
    assert "Traceback" in (report.failure.traceback or "")


def test_an_out_of_memory_error_is_reported_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for error, cause in (
        (torch.OutOfMemoryError("CUDA out of memory"), Cause.CUDA_OUT_OF_MEMORY),
        (MemoryError(), Cause.HOST_OUT_OF_MEMORY),
    ):

        def fail(*_: Any, error: BaseException = error) -> Any:
            raise error

        monkeypatch.setattr("workers.trainer_process.train_attempt.assemble_training", fail)
        _, report = execute(tmp_path, make_work_order(make_definition()))
        assert report.cause is cause


def test_a_loss_that_is_not_finite_ends_as_diverged(tmp_path: Path) -> None:
    document = make_definition(
        hooks=[{"name": "nan_guard", "updates": 5}],
        env={"id": "OddWalk-v0", "kwargs": {"nan_reward": True}},
    )
    directory, report = execute(tmp_path, make_work_order(document))
    assert (report.outcome, report.cause) == (Outcome.FAILED, Cause.DIVERGED)
    assert read_records(directory, "snapshot")[-1]["reason"] == "exception"


def test_a_damaged_snapshot_is_refused(tmp_path: Path, trained: AttemptDirectory) -> None:
    order = make_work_order(TRAINED, **add_newest_snapshot(trained, {}))
    directory = add_input(tmp_path, trained, order)
    (snapshot,) = directory.inputs.iterdir()
    (snapshot / "state.json").write_text("{}")
    report = run_here(directory)
    assert report.failure is not None
    assert "SHA-256" in report.failure.message


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize(
    ("word", "outcome", "cause"),
    [
        ("pause", Outcome.PAUSED, Cause.USER),
        ("cancel", Outcome.CANCELLED, Cause.USER),
        ("drain", Outcome.DRAINED, Cause.DRAIN),
        ("SIGTERM", Outcome.DRAINED, Cause.DRAIN),
    ],
)
def test_an_order_saves_a_snapshot_and_ends_the_trainer(
    tmp_path: Path, word: str, outcome: Outcome, cause: Cause
) -> None:
    directory = make_attempt(tmp_path, make_work_order(make_definition(**LONG)))
    with fork_trainer(directory) as (process, control):
        wait_for_snapshot(directory, process.is_alive)
        if word == "SIGTERM":
            process.terminate()
        else:
            os.write(control, f"{word}\n".encode())
        process.join(PATIENCE_SECONDS)
        assert process.exitcode == 0
    report = report_of(directory)
    assert (report.outcome, report.cause) == (outcome, cause)
    last = read_records(directory, "snapshot")[-1]
    assert last["env_step"] == report.env_step
    assert (directory.snapshots / last["snapshot_id"] / "MANIFEST.json").exists()


def test_the_end_of_the_pipe_ends_the_program(tmp_path: Path) -> None:
    directory = make_attempt(tmp_path, make_work_order(make_definition(**LONG)))
    read_end, write_end = os.pipe()
    command = [sys.executable, "-m", "workers.trainer_process"]
    options = ["--attempt-dir", str(directory.root), "--control-fd", str(read_end)]
    with subprocess.Popen([*command, *options], pass_fds=(read_end,)) as process:
        os.close(read_end)
        wait_for_snapshot(directory, lambda: process.poll() is None)
        os.close(write_end)
        assert process.wait(PATIENCE_SECONDS) == ABANDONED_EXIT
    assert not directory.report.exists()


@pytest.mark.slow
def test_a_killed_trainer_resumes_exactly_in_a_new_process(tmp_path: Path) -> None:
    sections = {
        "loop": {"env_steps": 2_000},
        "evaluation": {"every_env_steps": None, "episodes": 1},
        "snapshot": {"every_env_steps": 500},
    }
    document = make_definition("dqn", 2, **sections)
    straight, _ = execute(tmp_path, make_work_order(document))
    killed = make_attempt(tmp_path, make_work_order(document))
    with fork_trainer(killed) as (process, _):
        wait_for_snapshot(killed, process.is_alive)
        process.kill()
    resumed, report = execute_with_input(
        tmp_path, killed, make_work_order(document, **add_newest_snapshot(killed, {}))
    )
    assert report.resume_quality is ResumeQuality.EXACT

    def read_weights_hash(directory: AttemptDirectory) -> str:
        files = read_records(directory, "snapshot")[-1]["files"]
        return next(file["sha256"] for file in files if file["name"] == "agent.safetensors")

    assert read_weights_hash(resumed) == read_weights_hash(straight)


@pytest.mark.parametrize("agent", ["dqn", "ppo"])
def test_an_onnx_export_acts_like_the_policy(
    tmp_path: Path, trained: AttemptDirectory, agent: str
) -> None:
    """The file is written by an export job with the format onnx."""
    document = TRAINED if agent == "dqn" else make_definition("ppo", loop={"env_steps": 64})
    if agent == "ppo":
        trained, _ = execute(tmp_path, make_work_order(document))
    order = make_work_order(
        document,
        schedule="export",
        **add_newest_snapshot(trained, {"formats": ["program", "onnx"]}),
    )
    exported, report = execute_with_input(tmp_path, trained, order)
    assert report.outcome is Outcome.SUCCEEDED, report.failure
    files = exported.exports / RUN
    assert {path.name for path in files.iterdir()} == {"policy.pt2", "policy.onnx"}
    observations = np.random.default_rng(1).normal(size=(64, 4)).astype(np.float32)
    session = onnx.reference.ReferenceEvaluator(onnx.load(files / "policy.onnx"))
    (acted,) = session.run(None, {"input_0": observations})
    assert np.array_equal(
        acted,
        torch.export.load(files / "policy.pt2").module()(torch.from_numpy(observations)).numpy(),
    )


def test_a_worker_without_onnx_fails_before_it_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A training that could not be exported at its end fails at its start, with the cause."""
    monkeypatch.setattr("workers.export.onnx_packages.PACKAGES", ("onnx", "surely_not_installed"))
    directory, report = execute(
        tmp_path, make_work_order(make_definition(export={"formats": ["weights", "onnx"]}))
    )
    assert (report.outcome, report.cause, report.env_step) == (
        Outcome.FAILED,
        Cause.IMPORT_ERROR,
        0,
    )
    assert report.failure is not None
    assert (
        report.failure.message
        == "the export format onnx needs surely_not_installed: pip install surely_not_installed"
    )
    assert "onnx" not in make_catalogue().export_formats
    assert not read_records(directory, "snapshot")

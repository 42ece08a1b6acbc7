"""Packs of several runs in one trainer process, compared with the same runs trained singly."""

import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from palestra.contract.names import new_id
from palestra.contract.states import Cause, Outcome, ResumeQuality
from palestra.contract.work_order import AttemptReport, WorkOrder
from tests.support.misbehaving_envs import Walk
from tests.support.trainings import make_definition, make_work_order
from tests.unit.workers.trainer_process.test_attempt import (
    execute,
    make_attempt,
    read_log_lines,
    read_records,
    run_here,
)
from workers.ipc.attempt_directory import AttemptDirectory
from workers.snapshot.snapshot_directory import read_snapshot

SEEDS = (7, 8, 9)


def make_pack_order(document: dict[str, Any], **changes: Any) -> WorkOrder:
    """Returns a work order with one run per seed."""
    order = json.loads(make_work_order(document).model_dump_json())
    order["runs"] = [{"run_id": new_id("run"), "seed": seed, "fence": 1} for seed in SEEDS]
    return WorkOrder.model_validate_json(json.dumps({**order, **changes}))


def read_records_of_run(
    directory: AttemptDirectory, kind: str, run_id: str
) -> list[dict[str, Any]]:
    """Returns the records of one run without values that differ between attempts."""
    dropped = {"run", "wall", "seq", "seconds"}
    return [
        {key: value for key, value in one.items() if key not in dropped}
        for one in read_records(directory, kind)
        if one["run"] == run_id
    ]


@pytest.mark.parametrize("agent", ["ppo", pytest.param("dqn", marks=pytest.mark.slow)])
def test_each_run_of_a_pack_records_the_same_as_a_single_run(tmp_path: Path, agent: str) -> None:
    loop = {"env_steps": 300, "epoch_env_steps": 100}
    document = make_definition(agent, num_envs=2, loop=loop)
    if agent == "ppo":
        document["evaluation"]["policy"] = "both"
    order = make_pack_order(document)
    directory, report = execute(tmp_path, order)
    assert (report.outcome, report.cause) == (Outcome.SUCCEEDED, Cause.BUDGET)
    assert [(end.run_id, end.outcome) for end in report.runs] == [
        (run.run_id, Outcome.SUCCEEDED) for run in order.runs
    ]
    assert report.env_step == report.runs[0].env_step
    for run in order.runs:
        alone, _ = execute(tmp_path, make_work_order(document, seed=run.seed, run_id=new_id("run")))
        own = read_records(alone, "evaluation")[0]["run"]
        sources = {one["source"] for one in read_records(alone, "evaluation")}
        assert sources == {"evaluation", *(["stochastic"] if agent == "ppo" else [])}
        assert read_records_of_run(directory, "evaluation", run.run_id) == read_records_of_run(
            alone, "evaluation", own
        )
        assert read_episode_returns(directory, run.run_id) == read_episode_returns(alone, own)
        steps = [one["env_step"] for one in read_records_of_run(directory, "snapshot", run.run_id)]
        assert steps == [one["env_step"] for one in read_records_of_run(alone, "snapshot", own)]


class ScoredPack(NamedTuple):
    """A pack of which some runs reach their score before others, executed."""

    document: dict[str, Any]
    order: WorkOrder
    directory: AttemptDirectory
    report: AttemptReport


@pytest.fixture(scope="module")
def scored_pack(tmp_path_factory: pytest.TempPathFactory) -> ScoredPack:
    document = make_definition(
        loop={"env_steps": 300},
        evaluation={"every_env_steps": 100, "episodes": 3, "max_episode_steps": 50},
        stop={"success_score": 12.0},
    )
    order = make_pack_order(document)
    return ScoredPack(document, order, *execute(tmp_path_factory.mktemp("pack"), order))


def test_a_run_that_reaches_its_score_ends_and_the_others_continue(
    tmp_path: Path, scored_pack: ScoredPack
) -> None:
    report = scored_pack.report
    assert report.outcome is Outcome.SUCCEEDED
    alone = [
        execute(tmp_path, make_work_order(scored_pack.document, seed=run.seed))[1]
        for run in scored_pack.order.runs
    ]
    assert [(end.cause, end.env_step, end.update) for end in report.runs] == [
        (one.cause, one.env_step, one.update) for one in alone
    ]
    assert len({end.env_step for end in report.runs}) > 1, "some run is to leave before another"
    for end in report.runs:
        last = read_records_of_run(scored_pack.directory, "snapshot", end.run_id)[-1]
        assert last["env_step"] == end.env_step


def test_each_run_of_a_pack_has_a_log_of_its_own(scored_pack: ScoredPack) -> None:
    """Regression: all lines went into the log of the pack's first run."""
    for end, seed in zip(scored_pack.report.runs, SEEDS, strict=True):
        lines = read_log_lines(scored_pack.directory, end.run_id)
        assert f", seed {seed}, " in lines[0]
        assert len([line for line in lines if line.startswith("evaluation at")]) == len(
            read_records_of_run(scored_pack.directory, "evaluation", end.run_id)
        )
        assert lines[-1].startswith(
            f"succeeded ({end.cause.value}) at env_step {end.env_step:,}, update {end.update:,}, "
            "episode "
        )


def test_runs_that_ended_stay_ended_where_another_one_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = make_pack_order(
        make_definition(env={"id": "OddWalk-v0", "num_envs": 1}, stop={"success_score": -1.0})
    )
    begin, begun = Walk.reset, list[Walk]()

    def reset(self: Walk, **options: Any) -> Any:
        begun.append(self)
        if len(begun) > 6:
            # Six resets are a training episode of each run, and the evaluation that ends the first
            # run.
            raise ValueError("the robot fell over")
        return begin(self, **options)

    monkeypatch.setattr(Walk, "reset", reset)
    directory, report = execute(tmp_path, order)
    assert report.outcome is Outcome.FAILED
    assert report.failure is not None
    assert report.failure.message.endswith("the robot fell over")
    assert [(end.run_id, end.outcome, end.cause) for end in report.runs] == [
        (order.runs[0].run_id, Outcome.SUCCEEDED, Cause.SUCCESS_SCORE)
    ]
    reasons = [
        {one["reason"] for one in read_records_of_run(directory, "snapshot", run.run_id)}
        for run in order.runs
    ]
    assert ["exception" in of_run for of_run in reasons] == [False, True, True]


def read_episode_returns(directory: AttemptDirectory, run_id: str) -> list[float]:
    """Returns the returns of the training episodes.

    How many of them one record has depends on timing.
    """
    return [
        value
        for one in read_records(directory, "episodes")
        if one["run"] == run_id
        for value in one["episode_return"]
    ]


def execute_from_snapshots(
    root: Path, source: AttemptDirectory, order: WorkOrder, env_step: int
) -> tuple[AttemptDirectory, AttemptReport]:
    """Executes the order with each run's snapshot at `env_step` as input.

    This is the state after an attempt that was killed after that snapshot.
    """
    document = {**json.loads(order.model_dump_json()), "attempt_id": new_id("att")}
    written = {
        one["run"]: one for one in read_records(source, "snapshot") if one["env_step"] == env_step
    }
    for run in document["runs"]:
        one = written[run["run_id"]]
        files = [{**file, "artifact_id": new_id("art")} for file in one["files"]]
        run["snapshot"] = {
            **{
                name: one[name]
                for name in ("snapshot_id", "env_step", "update", "episode", "resume_exact")
            },
            "files": files,
        }
    directory = make_attempt(root, WorkOrder.model_validate_json(json.dumps(document)))
    for one in written.values():
        shutil.copytree(
            source.snapshots / one["snapshot_id"], directory.inputs / one["snapshot_id"]
        )
    return directory, run_here(directory)


def read_last_parameters(directory: AttemptDirectory, run_id: str) -> dict[str, Any]:
    last = [one for one in read_records(directory, "snapshot") if one["run"] == run_id][-1]
    parameters: dict[str, Any] = read_snapshot(directory.snapshots / last["snapshot_id"]).state[
        "agent"
    ]["learning"]["parameters"]
    return parameters


def test_a_pack_is_resumed_as_a_pack(tmp_path: Path) -> None:
    order = make_pack_order(
        make_definition(
            loop={"env_steps": 200, "epoch_env_steps": 100},
            snapshot={"every_env_steps": 65, "keep_last": 9},
        )
    )
    whole, _ = execute(tmp_path, order)
    rest, report = execute_from_snapshots(tmp_path, whole, order, 130)
    assert report.resume_quality is ResumeQuality.EXACT
    assert {end.env_step for end in report.runs} == {200}
    for run in order.runs:
        before, after = (
            read_last_parameters(whole, run.run_id),
            read_last_parameters(rest, run.run_id),
        )
        assert all((before[name] == after[name]).all() for name in before)


def test_a_schedule_that_reads_snapshots_is_on_one_run(tmp_path: Path) -> None:
    _, report = execute(tmp_path, make_pack_order(make_definition(), schedule="evaluate"))
    assert report.failure is not None
    assert "on one run" in report.failure.message

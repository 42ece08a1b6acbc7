"""How a trainer executes the schedules other than `train`, `evaluate` and `export`."""

import json
import os
import shutil
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from palestra.contract.states import Cause, Outcome
from palestra.contract.work_order import AttemptReport, WorkOrder
from palestra.telemetry.spool import SpoolReader
from tests.support.trainings import RUN, make_definition, make_work_order
from tests.support.waiting import PATIENCE_SECONDS, wait_for
from tests.unit.workers.trainer_process.test_attempt import fork_trainer
from workers.core.rng import ENV_SEED_BITS, derive_seed
from workers.ipc import snapshot_requests
from workers.ipc.attempt_directory import AttemptDirectory, read_json
from workers.ipc.snapshot_requests import NoSnapshotReason, SnapshotAnswer
from workers.trainer_process.attempt import main

SMALL = {
    "loop": {"env_steps": 250},
    "evaluation": {"every_env_steps": 100, "episodes": 2, "max_episode_steps": 30},
}
FOLLOW = {"follow": {}, "evaluation_seed": 5, "episodes": 2}


def make_attempt(root: Path, order: WorkOrder) -> AttemptDirectory:
    directory = AttemptDirectory(root / order.attempt_id)
    directory.create(order.model_dump_json().encode())
    return directory


def execute(directory: AttemptDirectory) -> AttemptReport:
    handler = signal.getsignal(signal.SIGTERM)
    try:
        main(["--attempt-dir", str(directory.root)])
    finally:
        signal.signal(signal.SIGTERM, handler)
    return AttemptReport.model_validate_json(directory.report.read_bytes())


def read_records(directory: AttemptDirectory, kind: str = "") -> list[dict[str, Any]]:
    """Returns the records of one type; by default all but the log lines."""
    documents = [json.loads(payload) for payload in SpoolReader(directory.spool).read().payloads]
    return [
        document
        for document in documents
        if document["type"] == kind or (not kind and document["type"] != "log")
    ]


@pytest.fixture(scope="module")
def trained_attempt(tmp_path_factory: pytest.TempPathFactory) -> AttemptDirectory:
    """A training that wrote a snapshot every 100 env_steps, of which the last three are kept."""
    document = make_definition(
        **SMALL, snapshot={"every_env_steps": 100, "keep_last": 3, "keep_best": False}
    )
    directory = make_attempt(tmp_path_factory.mktemp("trained"), make_work_order(document))
    assert execute(directory).outcome is Outcome.SUCCEEDED
    return directory


@contextmanager
def answer_requests(
    directory: AttemptDirectory, source: AttemptDirectory, answers: Sequence[str | NoSnapshotReason]
) -> Iterator[list[snapshot_requests.SnapshotRequest]]:
    """Answers the trainer's requests as its supervisor does; yields the list of requests."""
    heard: list[snapshot_requests.SnapshotRequest] = []
    stop = threading.Event()

    def serve() -> None:
        for number, said in enumerate(answers, start=1):
            wait_for(
                lambda n=number: (
                    snapshot_requests.read_request(directory).number >= n or stop.is_set()
                ),
                f"request {number}",
            )
            if stop.is_set():
                return
            heard.append(snapshot_requests.read_request(directory))
            if isinstance(said, NoSnapshotReason):
                snapshot_requests.write_answer(
                    directory, SnapshotAnswer(number=number, end=said, stored=number - 1)
                )
                return
            shutil.copytree(source.snapshots / said, directory.inputs / said, dirs_exist_ok=True)
            snapshot_requests.write_answer(
                directory, SnapshotAnswer(number=number, snapshot_id=said, stored=number - 1)
            )

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield heard
    finally:
        stop.set()
        thread.join()


def list_snapshots(source: AttemptDirectory) -> list[dict[str, Any]]:
    """Returns the records of the snapshots that are kept."""
    return [
        record
        for record in read_records(source, "snapshot")
        if (source.snapshots / record["snapshot_id"]).exists()
    ]


def list_snapshot_ids(source: AttemptDirectory) -> list[str]:
    return [record["snapshot_id"] for record in list_snapshots(source)]


def make_order_of_same_definition(source: AttemptDirectory, schedule: str, **run: Any) -> WorkOrder:
    order = WorkOrder.model_validate_json(source.work_order.read_bytes())
    return make_work_order(
        order.definition.model_dump(mode="json"), schedule=schedule, **{**FOLLOW, **run}
    )


@pytest.mark.parametrize(("agent", "num_envs"), [("dqn", 1), ("dqn", 2), ("ppo", 2), ("a3c", 2)])
def test_a_test_makes_one_update_one_evaluation_and_one_export(
    tmp_path: Path, agent: str, num_envs: int
) -> None:
    document = make_definition(agent, num_envs)
    if agent == "dqn":
        document["agent"]["learning_starts"] = 100_000
    if agent == "a3c":
        document["env"]["num_envs"], document["agent"]["processes"] = 1, num_envs
    directory = make_attempt(tmp_path, make_work_order(document, schedule="test"))
    report = execute(directory)
    assert report.outcome is Outcome.SUCCEEDED, report.failure
    assert report.update == 1
    assert report.env_step < 200, "the warm-up is not waited for"
    assert agent != "ppo" or report.env_step == 64, "it learns from a whole rollout"
    (only,) = read_records(directory)
    assert (only["type"], only["source"], only["episodes"], only["final"]) == (
        "evaluation",
        "test",
        1,
        False,
    )
    assert (only["update"], only["snapshot_id"]) == (report.update, None)
    assert {path.name for path in (directory.exports / RUN).iterdir()} == {
        "weights.safetensors",
        "policy.json",
    }
    assert not list(directory.snapshots.iterdir())
    assert not (directory.root / "scratch").exists()


def test_a_test_of_a_broken_environment_fails_and_leaves_nothing(tmp_path: Path) -> None:
    import tests.support.misbehaving_envs  # noqa: F401 - registers

    directory = make_attempt(
        tmp_path, make_work_order(make_definition(env={"id": "OddRaising-v0"}), schedule="test")
    )
    report = execute(directory)
    assert (report.outcome, report.cause) == (Outcome.FAILED, Cause.USER_EXCEPTION)
    assert not read_records(directory, "snapshot")
    assert not list(directory.snapshots.iterdir())


def test_rounds_end_exactly_with_an_evaluation_and_a_snapshot(tmp_path: Path) -> None:
    document = make_definition(
        **SMALL,
        snapshot={"every_env_steps": None, "keep_best": False},
        export={"formats": ["weights"]},
    )
    directory = make_attempt(
        tmp_path, make_work_order(document, schedule="continuous_train_and_evaluate")
    )
    assert execute(directory).outcome is Outcome.SUCCEEDED
    assert [(one["env_step"], one["final"]) for one in read_records(directory, "evaluation")] == [
        (100, False),
        (200, False),
        (250, True),
    ]
    assert [(one["env_step"], one["reason"]) for one in read_records(directory, "snapshot")] == [
        (100, "periodic"),
        (200, "periodic"),
        (250, "periodic"),
        (250, "finish"),
    ]
    assert len(list_snapshot_ids(directory)) == 2, "that before the final evaluation is not kept"
    assert (directory.exports / RUN / "weights.safetensors").exists()


def test_rounds_resume_from_the_end_of_any_round(tmp_path: Path) -> None:
    document = make_definition(
        **SMALL, snapshot={"every_env_steps": None, "keep_best": False, "keep_last": 3}
    )
    first = make_attempt(
        tmp_path, make_work_order(document, schedule="continuous_train_and_evaluate")
    )
    execute(first)
    whole = read_records(first, "evaluation")
    for place, snapshot in enumerate(list_snapshots(first)):
        files = [{**file, "artifact_id": "art_" + "0" * 26} for file in snapshot["files"]]
        names = ("snapshot_id", "env_step", "update", "episode", "resume_exact")
        reference = {**{name: snapshot[name] for name in names}, "files": files}
        again = make_attempt(
            tmp_path,
            make_work_order(document, schedule="continuous_train_and_evaluate", snapshot=reference),
        )
        shutil.copytree(
            first.snapshots / snapshot["snapshot_id"], again.inputs / snapshot["snapshot_id"]
        )
        assert execute(again).env_step == 250
        rest = read_records(again, "evaluation")
        assert [one["returns"] for one in rest] == [one["returns"] for one in whole[place + 1 :]]


def test_without_an_evaluation_interval_a_round_is_a_tenth_of_the_budget(tmp_path: Path) -> None:
    sections = {
        "loop": {"env_steps": 100},
        "evaluation": {"every_env_steps": None, "episodes": 1, "max_episode_steps": 10},
    }
    directory = make_attempt(
        tmp_path,
        make_work_order(make_definition(**sections), schedule="continuous_train_and_evaluate"),
    )
    execute(directory)
    assert [one["env_step"] for one in read_records(directory, "evaluation")] == list(
        range(10, 101, 10)
    )


@pytest.mark.parametrize(
    ("formats", "files"),
    [([], {"weights.safetensors", "policy.json"}), (["program"], {"policy.pt2"})],
)
def test_train_and_evaluate_always_exports(
    tmp_path: Path, formats: list[str], files: set[str]
) -> None:
    document = make_definition(**SMALL, export={"formats": formats})
    directory = make_attempt(tmp_path, make_work_order(document, schedule="train_and_evaluate"))
    assert execute(directory).outcome is Outcome.SUCCEEDED
    assert read_records(directory, "evaluation")[-1]["final"]
    assert files <= {path.name for path in (directory.exports / RUN).iterdir()}


def test_each_given_snapshot_is_evaluated(
    tmp_path: Path, trained_attempt: AttemptDirectory
) -> None:
    directory = make_attempt(
        tmp_path, make_order_of_same_definition(trained_attempt, "continuous_eval")
    )
    newest, *older = reversed(list_snapshot_ids(trained_attempt))
    with answer_requests(
        directory, trained_attempt, [newest, *older, NoSnapshotReason.OVER]
    ) as heard:
        report = execute(directory)
    assert (report.outcome, report.cause, report.env_step) == (Outcome.SUCCEEDED, Cause.BUDGET, 100)
    made = read_records(directory)
    assert [(one["snapshot_id"], one["source"], one["episodes"]) for one in made] == [
        (one, "evaluation", 2) for one in reversed(list_snapshot_ids(trained_attempt))
    ]
    assert len({one["seed"] for one in made}) == 3, "fresh episodes for each snapshot"
    assert [one.evaluated for one in heard] == [
        tuple([newest, *older][:count]) for count in range(4)
    ]
    last = {name: made[-1][name] for name in ("env_step", "update", "episode")}
    progress = read_json(directory.progress)
    assert progress == {
        **last,
        "evaluation": sum(one["length_max"] for one in made),
        "evaluations": 3,
        "looks": progress["looks"],
        "waiting": False,
    }


def test_a_named_seed_gives_every_snapshot_the_same_episodes(
    tmp_path: Path, trained_attempt: AttemptDirectory
) -> None:
    directory = make_attempt(
        tmp_path,
        make_order_of_same_definition(
            trained_attempt, "continuous_eval", follow={"same_episodes": True}, evaluation_seed=9
        ),
    )
    with answer_requests(
        directory, trained_attempt, [*list_snapshot_ids(trained_attempt)[:2], NoSnapshotReason.OVER]
    ):
        execute(directory)
    assert [one["seed"] for one in read_records(directory, "evaluation")] == [9, 9]


def test_a_repeated_snapshot_is_evaluated_on_other_episodes(
    tmp_path: Path, trained_attempt: AttemptDirectory
) -> None:
    directory = make_attempt(
        tmp_path,
        make_order_of_same_definition(
            trained_attempt, "continuous_eval", follow={"only_once": False, "throttle_seconds": 1}
        ),
    )
    with answer_requests(
        directory,
        trained_attempt,
        [list_snapshot_ids(trained_attempt)[-1]] * 3 + [NoSnapshotReason.OVER],
    ):
        execute(directory)
    assert len({one["seed"] for one in read_records(directory, "evaluation")}) == 3


def test_a_continuous_evaluation_ends_when_its_slot_is_needed(
    tmp_path: Path, trained_attempt: AttemptDirectory
) -> None:
    directory = make_attempt(
        tmp_path, make_order_of_same_definition(trained_attempt, "continuous_eval")
    )
    with answer_requests(directory, trained_attempt, [NoSnapshotReason.YIELD]):
        report = execute(directory)
    assert (report.outcome, report.cause) == (Outcome.DRAINED, Cause.DRAIN)


def test_a_run_without_snapshots_cannot_be_evaluated_continuously(
    tmp_path: Path, trained_attempt: AttemptDirectory
) -> None:
    directory = make_attempt(
        tmp_path, make_order_of_same_definition(trained_attempt, "continuous_eval")
    )
    with answer_requests(directory, trained_attempt, [NoSnapshotReason.OVER]):
        report = execute(directory)
    assert (report.outcome, report.cause) == (Outcome.FAILED, Cause.NO_RESULT)


def test_a_continuous_evaluation_ends_at_the_success_score(tmp_path: Path) -> None:
    document = make_definition(**SMALL, stop={"success_score": 1.0, "success_evaluations": 2})
    source = make_attempt(tmp_path / "source", make_work_order(document))
    assert execute(source).cause is Cause.SUCCESS_SCORE
    snapshot = list_snapshot_ids(source)[-1]
    directory = make_attempt(
        tmp_path,
        make_order_of_same_definition(
            source, "continuous_eval", follow={"only_once": False, "throttle_seconds": 1}
        ),
    )
    with answer_requests(directory, source, [snapshot] * 5):
        report = execute(directory)
    assert (report.outcome, report.cause) == (Outcome.SUCCEEDED, Cause.SUCCESS_SCORE)
    assert len(read_records(directory, "evaluation")) == 2


def test_evaluations_on_train_data_use_the_seeds_of_the_training(
    tmp_path: Path, trained_attempt: AttemptDirectory
) -> None:
    from workers.rl.envs.vector import SerialVector

    begun: list[int] = []
    real = SerialVector.begin

    def begin(self: SerialVector, mask: Any, seeds: Any) -> Any:
        begun.extend(seeds[slot] for slot in range(len(mask)) if mask[slot])
        return real(self, mask, seeds)

    directory = make_attempt(
        tmp_path,
        make_order_of_same_definition(
            trained_attempt, "continuous_eval_on_train_data", episodes=3, evaluation_seed=None
        ),
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(SerialVector, "begin", begin)
        with answer_requests(
            directory,
            trained_attempt,
            [
                list_snapshot_ids(trained_attempt)[-1],
                list_snapshot_ids(trained_attempt)[-2],
                NoSnapshotReason.OVER,
            ],
        ):
            assert execute(directory).outcome is Outcome.SUCCEEDED
    first = [derive_seed(7, "env", 0, episode, bits=ENV_SEED_BITS) for episode in range(3)]
    assert begun == [*first, *first]
    assert [(one["source"], one["seed"]) for one in read_records(directory, "evaluation")] == [
        ("train_data", 7)
    ] * 2


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_waiting_continuous_evaluation_ends_at_an_order(
    tmp_path: Path, trained_attempt: AttemptDirectory
) -> None:
    directory = make_attempt(
        tmp_path, make_order_of_same_definition(trained_attempt, "continuous_eval")
    )
    with fork_trainer(directory) as (process, control):
        wait_for(lambda: read_json(directory.progress).get("waiting"), "a waiting evaluation")
        os.write(control, b"pause\n")
        process.join(PATIENCE_SECONDS)
        assert process.exitcode == 0
    report = AttemptReport.model_validate_json(directory.report.read_bytes())
    assert (report.outcome, report.cause) == (Outcome.PAUSED, Cause.USER)

"""The snapshots that a supervisor gives to the trainer of a continuous evaluation.

Covers their order and timing, and which files are removed.
"""

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import make_work_order
from scripted_server import ScriptedServer, make_problem

from palestra.contract.job_options import Limits, Resources
from palestra.contract.names import Schedule, new_id
from palestra.contract.states import Cause
from palestra.telemetry.spool import SpoolReader, SpoolWriter
from tests.support.waiting import PATIENCE_SECONDS, wait_for
from workers.ipc import snapshot_requests
from workers.ipc.attempt_directory import AttemptDirectory
from workers.ipc.json_log import get_logger
from workers.ipc.server_api import AttemptApi
from workers.ipc.snapshot_requests import NoSnapshotReason, SnapshotRequest
from workers.supervisor.attempt_telemetry import SYSTEM_EVERY_SECONDS, Observer
from workers.supervisor.limits import LimitWatch
from workers.supervisor.resource_usage import ResourceSampler
from workers.supervisor.snapshot_feed import FeedParts, SnapshotFeed


class FeedBench:
    """A feed with a fake clock and scripted answers of the server."""

    def __init__(self, root: Path, server: ScriptedServer, **follow: Any) -> None:
        run = {"run_id": new_id("run"), "seed": 1, "fence": 1, "follow": follow}
        self.order = make_work_order(schedule="continuous_eval", runs=[run])
        self.directory = AttemptDirectory(root / self.order.attempt_id)
        self.directory.create(self.order.model_dump_json().encode())
        self.now = 100.0
        self.requests: list[dict[str, Any]] = []
        self.answer: dict[str, Any] = {"training": "live"}
        server.follow = self._answer
        self.server = server
        self.client = httpx.Client(base_url=server.url, trust_env=False, timeout=PATIENCE_SECONDS)
        api = AttemptApi(self.client, self.order.attempt_id)
        parts = FeedParts(
            api=api,
            directory=self.directory,
            run=self.order.runs[0],
            log=get_logger(),
            monotonic=lambda: self.now,
        )
        self.feed = SnapshotFeed(parts)
        self.stop = threading.Event()
        self.number = 0

    def _answer(self, request: dict[str, Any]) -> tuple[int, Any]:
        self.requests.append(request)
        return 200, self.answer

    def ask(self, *evaluated: str) -> bool:
        """Sends a request as the trainer does; returns whether the feed answered it."""
        self.number += 1
        snapshot_requests.write_request(
            self.directory, SnapshotRequest(number=self.number, evaluated=evaluated)
        )
        return self.serve()

    def serve(self) -> bool:
        return self.feed.answer_request(snapshot_requests.read_request(self.directory), self.stop)

    def read_answer(self) -> snapshot_requests.SnapshotAnswer | None:
        return snapshot_requests.read_answer(self.directory, self.number)

    def list_inputs(self) -> list[str]:
        return sorted(path.name for path in self.directory.inputs.iterdir())

    def offer(self, content: bytes = b"weights", training: str = "live") -> str:
        """Makes the server name a snapshot; returns its ID."""
        artifact, snapshot = new_id("art"), new_id("snp")
        self.server.blobs[artifact] = content
        file = {
            "name": "w.bin",
            "size": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
            "artifact_id": artifact,
        }
        place = {
            "snapshot_id": snapshot,
            "env_step": 1,
            "update": 1,
            "episode": 1,
            "resume_exact": True,
        }
        self.answer = {"training": training, "snapshot": {**place, "files": [file]}, "evaluated": 4}
        return snapshot


@pytest.fixture
def make_feed(tmp_path: Path, server: ScriptedServer) -> Iterator[Callable[..., FeedBench]]:
    made: list[FeedBench] = []

    def make(**follow: Any) -> FeedBench:
        made.append(FeedBench(tmp_path, server, **follow))
        return made[-1]

    yield make
    for one in made:
        one.client.close()


def test_a_request_is_answered_with_a_verified_snapshot(
    make_feed: Callable[..., FeedBench],
) -> None:
    one = make_feed()
    assert not one.ask()
    assert one.read_answer() is None
    snapshot = one.offer()
    assert one.serve()
    assert one.read_answer() == snapshot_requests.SnapshotAnswer(
        number=1, snapshot_id=snapshot, stored=4
    )
    assert (one.directory.inputs / snapshot / "w.bin").read_bytes() == b"weights"
    assert one.requests[-1] == {"run_id": one.order.runs[0].run_id, "evaluated": [], "again": False}


def test_an_evaluated_snapshot_is_removed_before_the_next_is_awaited(
    make_feed: Callable[..., FeedBench],
) -> None:
    one = make_feed()
    first = one.offer()
    one.ask()
    assert one.list_inputs() == [first]
    one.answer = {"training": "live"}
    assert not one.ask(first)
    assert one.list_inputs() == []
    assert one.requests[-1]["evaluated"] == [first]
    second = one.offer()
    assert one.serve()
    assert one.list_inputs() == [second]


@pytest.mark.parametrize(
    ("training", "end"), [("over", NoSnapshotReason.OVER), ("waiting", NoSnapshotReason.YIELD)]
)
def test_the_end_of_the_training_is_passed_to_the_trainer(
    make_feed: Callable[..., FeedBench], training: str, end: NoSnapshotReason
) -> None:
    one = make_feed()
    one.answer = {"training": training, "evaluated": 2}
    assert one.ask()
    assert one.read_answer() == snapshot_requests.SnapshotAnswer(number=1, end=end, stored=2)


def test_evaluations_start_at_the_requested_interval(make_feed: Callable[..., FeedBench]) -> None:
    one = make_feed(throttle_seconds=10, delay_seconds=3)
    snapshot = one.offer()
    assert not one.ask(), "the delay comes first"
    one.now += 3
    assert one.serve()
    one.offer()
    one.now += 9.9
    assert not one.ask(snapshot)
    newer = one.offer()
    one.now += 0.1
    assert one.serve()
    assert one.read_answer() == snapshot_requests.SnapshotAnswer(
        number=2, snapshot_id=newer, stored=4
    )
    one.answer = {"training": "waiting"}
    assert one.ask(newer), "a slot is given back at once"


def test_the_interval_is_skipped_if_a_training_waits_for_the_slot(
    make_feed: Callable[..., FeedBench],
) -> None:
    one = make_feed(throttle_seconds=3_600)
    one.offer()
    assert one.ask()
    one.offer(training="over")
    assert not one.ask()
    snapshot = one.offer(training="waiting")
    assert one.serve()
    assert one.read_answer() == snapshot_requests.SnapshotAnswer(
        number=2, snapshot_id=snapshot, stored=4
    )


def test_the_same_snapshot_again_is_not_downloaded_again(
    make_feed: Callable[..., FeedBench],
) -> None:
    one = make_feed(only_once=False, throttle_seconds=5)
    snapshot = one.offer()
    one.ask()
    one.server.blobs.clear()
    one.now += 5
    assert one.ask(snapshot)
    assert one.requests[-1]["again"]
    assert one.read_answer() == snapshot_requests.SnapshotAnswer(
        number=2, snapshot_id=snapshot, stored=4
    )


def test_after_a_deleted_snapshot_the_next_one_is_requested(
    make_feed: Callable[..., FeedBench],
) -> None:
    one = make_feed()
    one.server.fault = lambda method, path: (
        make_problem(404, "not_found") if method == "GET" else None
    )
    one.offer()
    one.number = 1
    snapshot_requests.write_request(one.directory, SnapshotRequest(number=1))
    for _ in range(2):
        assert not one.serve()
        assert one.feed.breach is None
        assert one.list_inputs() == []
    one.server.fault = lambda *_: None
    assert one.serve()


def test_a_snapshot_that_cannot_be_downloaded_ends_the_attempt(
    make_feed: Callable[..., FeedBench],
) -> None:
    one = make_feed()
    one.server.fault = lambda method, path: (
        make_problem(404, "not_found") if method == "GET" else None
    )
    one.offer()
    snapshot_requests.write_request(one.directory, SnapshotRequest(number=1))
    one.feed.run(one.stop)
    assert one.feed.breach is not None
    assert one.feed.breach.cause is Cause.NO_RESULT


def test_a_refused_request_ends_the_attempt(
    make_feed: Callable[..., FeedBench],
) -> None:
    one = make_feed()
    one.server.fault = lambda method, path: make_problem(422, "invalid")
    snapshot_requests.write_request(one.directory, SnapshotRequest(number=1))
    one.feed.run(one.stop)
    assert one.feed.breach is not None
    other = make_feed()
    other.server.fault = lambda method, path: make_problem(409, "stale_attempt")
    snapshot_requests.write_request(other.directory, SnapshotRequest(number=1))
    other.feed.run(other.stop)
    assert other.feed.breach is None


def test_an_absent_server_is_waited_for(make_feed: Callable[..., FeedBench]) -> None:
    one = make_feed()
    one.server.fault = lambda method, path: make_problem(503, "busy")
    thread = threading.Thread(target=one.feed.run, args=(one.stop,))
    thread.start()
    try:
        snapshot_requests.write_request(one.directory, SnapshotRequest(number=1))
        one.number = 1
        wait_for(lambda: one.server.calls["POST /leases/att:follow"] >= 2, "it asks again")
        snapshot = one.offer()
        one.server.fault = lambda *_: None
        wait_for(one.read_answer, "the snapshot comes")
        assert one.list_inputs() == [snapshot]
    finally:
        one.stop.set()
        thread.join()


def watch(schedule: Schedule, **limits: Any) -> LimitWatch:
    return LimitWatch(schedule, Limits.model_validate_json(json.dumps(limits)), Resources(), 0.0)


def test_waiting_counts_neither_as_wall_time_nor_as_a_stall() -> None:
    limits = watch(Schedule.CONTINUOUS_EVAL, wall_seconds=20, stall_seconds=10)
    for second in range(1_000):
        assert limits.check(float(second), {"looks": second, "waiting": True}) is None
    working = {"looks": 0, "waiting": False, "evaluations": 1, "evaluation": 7}
    assert limits.check(1_000.0, working) is None
    assert limits.check(1_009.0, working) is None
    stalled = limits.check(1_010.0, working)
    assert stalled is not None
    assert (stalled.cause, stalled.message.split(" for ")[0]) == (
        Cause.STALLED,
        "No step of an evaluation",
    )
    for second in range(1_010, 1_019):
        assert limits.check(float(second), {**working, "evaluation": second}) is None
    over = limits.check(1_021.0, {**working, "evaluations": 0})
    assert over is not None
    assert over.cause is Cause.TIME_LIMIT


def test_a_trainer_that_stops_requesting_snapshots_is_stalled() -> None:
    limits = watch(Schedule.CONTINUOUS_EVAL_ON_TRAIN_DATA, stall_seconds=10)
    assert limits.check(1.0, {"looks": 1, "waiting": True}) is None
    stalled = limits.check(11.0, {"looks": 1, "waiting": True})
    assert stalled is not None


def test_a_test_job_is_checked_for_stalls() -> None:
    assert watch(Schedule.TEST, stall_seconds=10).check(10.0, {}) is not None
    assert watch(Schedule.EVALUATE, stall_seconds=10).check(10.0, {}) is None


def test_resource_use_of_a_continuous_evaluation_is_not_in_the_trainings_curves(
    tmp_path: Path,
) -> None:
    directory = AttemptDirectory(tmp_path / new_id("att"))
    directory.create(b"{}")
    with SpoolWriter(directory.spool) as spool:
        observer = Observer(
            directory,
            [new_id("run")],
            spool,
            ResourceSampler(),
            get_logger(),
            prefix="continuous_eval/",
        )
        observer.poll(time.monotonic() + 2 * SYSTEM_EVERY_SECONDS, list)
    (sample,) = [json.loads(payload) for payload in SpoolReader(directory.spool).read().payloads]
    assert sample["type"] == "system"
    assert all(name.startswith("continuous_eval/") for name in sample["values"])


@pytest.mark.parametrize(
    ("answer", "outcome", "cause"),
    [
        (make_problem(422, "invalid"), "failed", "no_result"),
        (make_problem(409, "stale_attempt"), "cancelled", "user"),
    ],
)
def test_a_real_supervisor_ends_a_trainer_that_can_get_no_snapshot(
    start_supervisor: Callable[..., Any],
    server: ScriptedServer,
    answer: tuple[int, Any],
    outcome: str,
    cause: str,
) -> None:
    """A stale attempt is ended only through its lease, here by the order in the answer to a
    renewal.
    """
    server.follow = lambda _request: answer
    run = {"run_id": new_id("run"), "seed": 1, "fence": 1, "follow": {}}
    one = start_supervisor(
        "hang", schedule="continuous_eval", runs=[run], limits={"grace_seconds": 1}
    )
    one.wait_for_step(1)
    snapshot_requests.write_request(one.directory, SnapshotRequest(number=1))
    wait_for(lambda: server.calls["POST /leases/att:follow"], "it asks")
    server.order = "cancel" if cause == "user" else "continue"
    report = one.wait_for_end()
    assert (report["outcome"], report["cause"]) == (outcome, cause)

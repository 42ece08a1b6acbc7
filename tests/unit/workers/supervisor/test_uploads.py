"""Uploads of snapshots and exports: their order, retries, and the outcome of a run
without results.
"""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scripted_server import ScriptedServer, make_problem

from palestra.contract.names import new_id
from palestra.contract.states import Cause, Outcome, SnapshotReason
from palestra.contract.telemetry import SnapshotFile, SnapshotWritten
from palestra.contract.work_order import AttemptReport, RunEnd
from palestra.telemetry.spool import SpoolWriter
from palestra.telemetry.transport import open_client
from workers.core.row_stream import RowStream
from workers.engine.clock import StillClock
from workers.ipc.attempt_directory import AttemptDirectory
from workers.ipc.server_api import AttemptApi, ServerUnreachableError
from workers.snapshot.attempt_store import SnapshotStore
from workers.snapshot.snapshot_directory import SnapshotOwner
from workers.supervisor.missing_results import MissingResults
from workers.supervisor.snapshot_backlog import SnapshotBacklog, uploads_until_stored
from workers.supervisor.uploads import Uploader

RUN = "run_" + "1" * 26
DELAY = 0.15


def make_snapshot_record(step: int, score: float | None = None, run: str = RUN) -> SnapshotWritten:
    file = SnapshotFile(name="w", size=1, sha256="0" * 64)
    place = {"env_step": step, "update": step, "episode": 0, "wall": 0.0}
    return SnapshotWritten(
        run=run,
        snapshot_id=new_id("snp"),
        reason=SnapshotReason.PERIODIC,
        format_version=1,
        resume_exact=True,
        score=score,
        files=(file,),
        **place,
    )


def make_backlog(*snapshots: SnapshotWritten) -> SnapshotBacklog:
    made = SnapshotBacklog()
    for snapshot in snapshots:
        made.add(snapshot)
    return made


def upload_all(waiting: SnapshotBacklog) -> list[int]:
    steps = []
    while (chosen := waiting.next()) is not None:
        steps.append(chosen.env_step)
        waiting.settle(chosen, is_stored=True)
    return steps


def test_uploads_are_ordered_newest_then_best_then_older_snapshots() -> None:
    """Regression: snapshots were uploaded oldest first."""
    assert upload_all(
        make_backlog(
            make_snapshot_record(1),
            make_snapshot_record(2, 9.0),
            make_snapshot_record(3, 5.0),
            make_snapshot_record(4),
        )
    ) == [
        4,
        2,
        3,
        1,
    ]
    assert upload_all(
        make_backlog(
            make_snapshot_record(1, 1.0),
            make_snapshot_record(2, float("nan")),
            make_snapshot_record(3, 7.0),
        )
    ) == [
        3,
        2,
        1,
    ]


def test_after_a_failed_upload_another_snapshot_is_uploaded() -> None:
    """The next snapshot is uploaded before the failed one is retried."""
    waiting = make_backlog(
        make_snapshot_record(1), make_snapshot_record(2, 9.0), make_snapshot_record(3)
    )
    newest = waiting.next()
    assert newest is not None
    waiting.settle(newest, is_stored=False)
    assert upload_all(waiting) == [2, 1]


@pytest.mark.parametrize("runs", [1, 2, 5])
@pytest.mark.parametrize("seed", range(3))
def test_no_snapshot_waits_longer_than_the_bound(runs: int, seed: int) -> None:
    """After `uploads_until_stored` uploads, a snapshot or a newer one of its run is stored.

    This holds however fast snapshots are written.
    """
    chooser = random.Random(seed)
    names = ["run_" + str(index) * 26 for index in range(runs)]
    waiting, step, uploads = SnapshotBacklog(), 0, 0
    since: dict[str, int] = {}
    """Upload during which the oldest snapshot of a run was written that is newer than its newest
    stored one.
    """
    stored = dict.fromkeys(names, -1)
    under_way: SnapshotWritten | None = None
    for _ in range(300):
        for name in names:
            for _ in range(chooser.randint(0, 3)):
                step += 1
                waiting.add(
                    make_snapshot_record(
                        step, chooser.choice([None, chooser.random() * step]), name
                    )
                )
                since.setdefault(name, uploads)
        if under_way is not None:
            waiting.settle(under_way, is_stored=True)
            uploads += 1
            if under_way.env_step > stored[under_way.run]:
                stored[under_way.run] = under_way.env_step
                since.pop(under_way.run, None)
                if any(
                    one.env_step > stored[under_way.run]
                    for one in waiting
                    if one.run == under_way.run
                ):
                    since[under_way.run] = uploads - 1
        under_way = waiting.next()
        assert all(uploads - first <= uploads_until_stored(runs) for first in since.values())


class Attempt:
    """An attempt's directory, its snapshot store, and an uploader with a scripted server."""

    def __init__(self, root: Path, server: ScriptedServer) -> None:
        self.directory = AttemptDirectory(root / "attempts" / new_id("att"))
        self.directory.create(b"{}")
        self.spool = SpoolWriter(self.directory.spool)
        self.announced: list[SnapshotWritten] = []
        self.said: list[str] = []
        owner = SnapshotOwner(
            run_id=RUN,
            attempt_id=self.directory.attempt_id,
            experiment_id="e",
            definition_hash="h",
            seed=1,
            parent=None,
            versions={},
            device="cpu",
            resume_exact=True,
        )
        self.store = SnapshotStore(self.directory.snapshots, owner, announce=self._announce)
        self.client = open_client(server.url, "token")
        api = AttemptApi(self.client, self.directory.attempt_id)
        self.uploader = Uploader(api, self.directory, self.spool, self.said.append)

    def _announce(self, snapshot: SnapshotWritten) -> None:
        self.spool.append([snapshot])
        self.announced.append(snapshot)

    def save(self, step: int, score: float | None = None) -> str:
        """Writes a snapshot with a state of its own; it shares rows with the previous snapshot."""
        rows = {"observation": np.arange(4_000, dtype=np.float32).reshape(1_000, 4)}
        state = {
            "agent": {"weights": np.full(2_000, float(step))},
            "memory": RowStream(rows, end=1_000),
        }
        clock = StillClock(
            env_steps=step, updates=step, episodes=0, epochs=0, iterations=0, wall_seconds=0.0
        )
        return self.store.save(state, clock, SnapshotReason.PERIODIC, score)

    def step(self) -> bool:
        return self.uploader.step(self.spool.last_seq())


@pytest.fixture
def attempt(tmp_path: Path, server: ScriptedServer) -> Iterator[Attempt]:
    made = Attempt(tmp_path, server)
    yield made
    made.spool.close()
    made.client.close()


def is_stored_whole(server: ScriptedServer, snapshot: SnapshotWritten) -> bool:
    mine = [
        one["name"]
        for one in server.artifacts.values()
        if one["snapshot_id"] == snapshot.snapshot_id and one["stored"]
    ]
    return set(mine) == {file.name for file in snapshot.files}


def test_snapshots_faster_than_the_network_are_stored_within_the_bound(
    attempt: Attempt, server: ScriptedServer
) -> None:
    """Regression: with a delay of 0.15 s, 40 of 43 snapshots, the last one among them, were deleted
    before they were uploaded.

    Each request advances the time by that delay, and the trainer writes a snapshot every 0.2 s.
    """
    seconds, lags, uploads = 0.0, [0], 0

    def save_until_now() -> None:
        while len(attempt.announced) < min(43, 1 + int(seconds / 0.2)):
            index = len(attempt.announced)
            lags.append(index - count_until_stored())
            attempt.save((index + 1) * 2_048, score=float(index % 7))

    def count_until_stored() -> int:
        stored = (one.env_step for one in attempt.announced if is_stored_whole(server, one))
        return max(stored, default=0) // 2_048

    def delay(_method: str, _path: str) -> None:
        nonlocal seconds
        seconds += DELAY
        save_until_now()

    server.fault = delay
    while len(attempt.announced) < 43:
        seconds += 0.01
        save_until_now()
        uploads += attempt.step()
    files = len(attempt.announced[-1].files)
    bound = uploads_until_stored(1) * files * 2 * DELAY
    assert max(lags) <= bound / 0.2 + 3, "as far as the uploads of the bound take"
    assert count_until_stored() >= 10
    assert uploads < 43, "the network is slower than the trainer"
    begun = {one["snapshot_id"] for one in server.artifacts.values()}
    torn = [
        one
        for one in attempt.announced
        if one.snapshot_id in begun and not is_stored_whole(server, one)
    ]
    assert torn == [], (
        "an upload that began was brought to its end although the trainer cleared the snapshot away"
    )


def test_retention_keeps_files_that_are_being_uploaded(
    attempt: Attempt, server: ScriptedServer
) -> None:
    """Regression: the worker's retention deleted them, shared segments among them."""
    first = attempt.save(1)
    calls = []

    def clear_meanwhile(method: str, _path: str) -> None:
        calls.append(method)
        if len(calls) == 2:
            for step in range(2, 6):
                attempt.save(step)

    server.fault = clear_meanwhile
    assert attempt.step()
    assert not (attempt.directory.snapshots / first).exists()
    assert is_stored_whole(server, attempt.announced[0])
    while attempt.step():
        pass
    assert [is_stored_whole(server, one) for one in attempt.announced] == [
        True,
        False,
        False,
        True,
        True,
    ]
    assert list(attempt.directory.outgoing.iterdir()) == []
    assert attempt.uploader.backlog.files == 0


def test_uploads_to_a_full_server_are_retried_and_reported(
    attempt: Attempt, server: ScriptedServer
) -> None:
    """Regression: 413 was treated as final, and the only copies were deleted."""
    attempt.save(1)
    server.fault = lambda _method, _path: make_problem(
        507, "storage_full", detail="The disk of the server's artifact store is full."
    )
    for _ in range(3):
        with pytest.raises(ServerUnreachableError):
            attempt.step()
    assert attempt.uploader.backlog.files == len(attempt.announced[0].files)
    assert attempt.uploader.backlog.size == sum(file.size for file in attempt.announced[0].files)
    assert "artifact store is full" in (attempt.uploader.backlog.problem or "")
    server.fault = lambda _method, _path: None
    assert attempt.step()
    assert is_stored_whole(server, attempt.announced[0])
    assert (attempt.uploader.backlog.files, attempt.uploader.backlog.problem) == (0, None)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 507])
def test_only_a_refusal_is_final(attempt: Attempt, server: ScriptedServer, status: int) -> None:
    """Every other answer is retried."""
    attempt.save(1)
    server.fault = lambda _method, _path: make_problem(status, "any")
    with pytest.raises(ServerUnreachableError):
        attempt.step()
    server.fault = lambda _method, _path: None
    assert attempt.step()
    assert is_stored_whole(server, attempt.announced[0])


def test_an_upload_that_a_proxy_refuses_for_its_size_waits_for_a_higher_limit(
    attempt: Attempt, server: ScriptedServer
) -> None:
    """A proxy's own page has no problem details, unlike the server's refusals."""
    attempt.save(1)
    server.fault = lambda method, _path: (413, {}) if method == "PUT" else None
    with pytest.raises(ServerUnreachableError, match="client_max_body_size"):
        attempt.step()
    assert "client_max_body_size" in (attempt.uploader.backlog.problem or "")
    assert attempt.said == []
    server.fault = lambda _method, _path: None
    assert attempt.step()
    assert is_stored_whole(server, attempt.announced[0])


def test_refused_files_stay_on_the_worker_and_the_run_has_failed(
    attempt: Attempt, server: ScriptedServer
) -> None:
    """Regression: refused files were deleted."""
    export = attempt.directory.exports / RUN / "weights.safetensors"
    export.parent.mkdir(parents=True)
    export.write_bytes(b"the only copy")
    server.fault = lambda _method, path: (
        make_problem(413, "too_large") if path.endswith("artifacts") else None
    )
    attempt.uploader.deliver(attempt.spool.last_seq())
    attempt.directory.clear_blobs()
    (kept,) = [path for path in attempt.directory.kept.rglob("*") if path.is_file()]
    assert kept.read_bytes() == b"the only copy"
    assert any(str(kept) in line for line in attempt.said)
    judged = attempt.uploader.missing.judge(
        AttemptReport(outcome=Outcome.SUCCEEDED, cause=Cause.BUDGET)
    )
    assert (judged.outcome, judged.cause) == (Outcome.FAILED, Cause.NO_RESULT)
    assert judged.failure is not None
    assert "weights.safetensors" in judged.failure.message


def test_content_damaged_during_the_upload_is_sent_again(
    attempt: Attempt, server: ScriptedServer
) -> None:
    """Regression: the answer `hash_mismatch`, which asks for a repetition, was treated as final."""
    attempt.save(1)
    answers: list[Any] = [make_problem(422, "hash_mismatch")]
    server.fault = lambda method, _path: answers.pop() if method == "PUT" and answers else None
    with pytest.raises(ServerUnreachableError):
        attempt.step()
    assert attempt.step()
    assert is_stored_whole(server, attempt.announced[0])


def test_a_snapshot_that_the_server_skips_is_not_uploaded(
    attempt: Attempt, server: ScriptedServer
) -> None:
    """The server answers `snapshot_skipped`."""
    attempt.save(1)
    server.fault = lambda _method, path: (
        make_problem(409, "snapshot_skipped") if path.endswith("artifacts") else None
    )
    assert attempt.step()
    assert not attempt.step()
    assert (
        attempt.uploader.missing.judge(
            AttemptReport(outcome=Outcome.SUCCEEDED, cause=Cause.BUDGET)
        ).outcome
        is Outcome.SUCCEEDED
    )


Judge = Callable[[MissingResults], None]


@pytest.mark.parametrize(
    ("happened", "outcome"),
    [
        (
            lambda missing: missing.record_missing_snapshot(make_snapshot_record(5), "no"),
            Outcome.FAILED,
        ),
        (
            lambda missing: (
                missing.record_missing_snapshot(make_snapshot_record(5), "no"),
                missing.record_stored(make_snapshot_record(6)),
            ),
            Outcome.SUCCEEDED,
        ),
        (
            lambda missing: (
                missing.record_stored(make_snapshot_record(4)),
                missing.record_missing_snapshot(make_snapshot_record(5), "no"),
            ),
            Outcome.FAILED,
        ),
        (lambda missing: missing.record_missing_export(RUN, "weights", "no"), Outcome.FAILED),
    ],
)
def test_a_run_has_a_result_only_if_its_last_snapshot_and_its_exports_are_stored(
    happened: Judge, outcome: Outcome
) -> None:
    """Otherwise the run has failed."""
    missing = MissingResults()
    happened(missing)
    assert (
        missing.judge(AttemptReport(outcome=Outcome.SUCCEEDED, cause=Cause.BUDGET)).outcome
        is outcome
    )
    assert (
        missing.judge(AttemptReport(outcome=Outcome.PAUSED, cause=Cause.USER)).outcome
        is Outcome.PAUSED
    )


def test_of_a_pack_only_the_run_without_a_result_has_failed() -> None:
    """The other runs of the pack have succeeded."""
    other = "run_" + "2" * 26
    missing = MissingResults()
    missing.record_missing_export(RUN, "weights", "no")
    ends = tuple(
        RunEnd(run_id=run, outcome=Outcome.SUCCEEDED, cause=Cause.BUDGET) for run in (RUN, other)
    )
    judged = missing.judge(AttemptReport(outcome=Outcome.SUCCEEDED, cause=Cause.BUDGET, runs=ends))
    assert [end.outcome for end in judged.runs] == [Outcome.FAILED, Outcome.SUCCEEDED]
    assert judged.outcome is Outcome.SUCCEEDED

"""A training is not final before its results are stored.

This holds whatever happens to server and supervisor until then.
"""

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from scripted_server import make_problem

from palestra.telemetry.transport import open_client
from tests.support.waiting import wait_for
from workers.host import registration
from workers.host.adoption import Adopter
from workers.host.registration import list_local_attempts
from workers.host.slots import Slots
from workers.ipc.attempt_directory import AttemptDirectory
from workers.ipc.server_api import WorkerApi

pytestmark = pytest.mark.processes

WORKER = "wrk_" + "0" * 26
FULL = "The disk of the server's artifact store is full."


def answer_full_disk(_method: str, path: str) -> Any:
    return make_problem(507, "storage_full", detail=FULL) if "artifacts" in path else None


def count_stored(server: Any, kind: str) -> int:
    return sum(
        artifact["kind"] == kind and artifact["stored"] for artifact in server.artifacts.values()
    )


def wait_until_upload_is_pending(supervised: Any, server: Any) -> None:
    wait_for(supervised.directory.ending.exists, f"the trainer ends\n{supervised.log()}")
    wait_for(
        lambda: (
            server.renewals[-1]["backlog"]["problem"]
            and server.renewals[-1]["backlog"]["delivering"]
        ),
        "it is told",
    )


def test_uploads_wait_for_a_server_with_a_full_disk(start_supervisor, server):
    """Regression: 413 ended every upload, the attempt was released as succeeded and its files
    deleted.
    """
    server.fault = answer_full_disk
    supervised = start_supervisor("train:60")
    wait_until_upload_is_pending(supervised, server)
    wait_for(
        lambda: server.renewals[-1]["backlog"]["files"] == 2 + 2 + 1,
        "two snapshots, a video with its poster, an export",
    )
    backlog = server.renewals[-1]["backlog"]
    assert FULL in backlog["problem"]
    assert backlog["size"] > 20_000
    assert server.releases == []
    assert not supervised.is_slot_free()
    assert len(list(supervised.directory.snapshots.glob("*/weights.bin"))) == 2
    server.fault = lambda _method, _path: None
    report = supervised.wait_for_end()
    assert (report["outcome"], report["cause"]) == ("succeeded", "budget")
    assert (
        count_stored(server, "snapshot"),
        count_stored(server, "export"),
        count_stored(server, "video"),
    ) == (
        2,
        1,
        2,
    )
    assert not supervised.directory.snapshots.exists()


def test_a_run_whose_results_a_user_gave_up_has_failed(start_supervisor, server):
    """Regression: a run whose model was lost was shown as succeeded."""
    server.fault = answer_full_disk
    supervised = start_supervisor("train:60")
    wait_until_upload_is_pending(supervised, server)
    server.give_up = True
    report = supervised.wait_for_end()
    assert (report["outcome"], report["cause"]) == ("failed", "no_result")
    assert "given up by a person" in report["failure"]["message"]
    assert count_stored(server, "snapshot") == 0
    assert not supervised.directory.snapshots.exists()


def test_a_supervisor_killed_during_uploads_is_replaced(start_supervisor, server, tmp_path):
    """Regression: the attempt was reported as lost and its files, the only copies, were deleted
    later.
    """
    server.fault = answer_full_disk
    supervised = start_supervisor("train:60")
    wait_until_upload_is_pending(supervised, server)
    supervised.send_signal(signal.SIGKILL)
    wait_for(supervised.is_gone, "the supervisor is gone")
    census = list_local_attempts(tmp_path, time.time())
    assert [[one.attempt_id for one in some] for some in (census.live, census.dead)] == [[], []]
    assert [one.attempt_id for one in census.orphaned] == [supervised.order.attempt_id]
    slots = Slots(tmp_path, 3)
    server.further_slots = [2]
    with open_client(server.url, "worker-token") as client:
        adopter = Adopter(server.url, slots)
        adopter.adopt(census.orphaned, WorkerApi(client), WORKER)
        assert server.adoptions == [{"worker_id": WORKER}]
        assert len(list_local_attempts(tmp_path, time.time()).live) == 1, supervised.log()
        assert slots.busy_indices() == (0, 2), (
            "the attempt holds its slots until its results are stored"
        )
    assert server.releases == []
    server.fault = lambda _method, _path: None
    wait_for(supervised.directory.released.exists, f"released\n{supervised.log()}")
    assert server.releases[0]["report"]["outcome"] == "succeeded"
    assert (count_stored(server, "snapshot"), count_stored(server, "export")) == (2, 1)
    assert server.list_steps() == list(range(1, 61))
    wait_for(lambda: slots.count_free() == 3, "all its slots are free")


def test_an_attempt_that_the_server_marked_as_lost_is_not_adopted(
    start_supervisor, server, tmp_path
):
    """Adoption is not retried, and the files of the attempt are not deleted at once."""
    server.fault = answer_full_disk
    supervised = start_supervisor("train:60")
    wait_until_upload_is_pending(supervised, server)
    supervised.send_signal(signal.SIGKILL)
    wait_for(supervised.is_gone, "the supervisor is gone")
    server.fault = lambda _method, path: (
        make_problem(409, "stale_attempt") if "adopt" in path else None
    )
    with open_client(server.url, "worker-token") as client:
        Adopter(server.url, Slots(tmp_path, 1)).adopt(
            list_local_attempts(tmp_path, time.time()).orphaned, WorkerApi(client), WORKER
        )
    census = list_local_attempts(tmp_path, time.time())
    assert (census.live, census.dead, census.orphaned) == ((), (), ())
    assert len(list(supervised.directory.snapshots.glob("*/weights.bin"))) == 2


def test_results_that_the_server_refused_are_never_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Directories of ended attempts are deleted after a week, unless they contain the only copy of
    a result.
    """
    for name in ("att_" + "1" * 26, "att_" + "2" * 26):
        attempt = AttemptDirectory(tmp_path / "attempts" / name)
        attempt.create(b"{}")
        attempt.released.touch()
        os.utime(attempt.released, (0, 0))
    (attempt.kept / "run" / "export").mkdir(parents=True)
    list_local_attempts(tmp_path, registration._KEEP_SECONDS + 1)
    assert [path.name for path in (tmp_path / "attempts").iterdir()] == [attempt.attempt_id]

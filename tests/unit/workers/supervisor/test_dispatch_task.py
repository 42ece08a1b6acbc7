"""A real Celery worker on a real Valkey, with a scripted server and the real trainer."""

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import make_work_order
from scripted_server import ScriptedServer
from worker_bench import QUEUE, WorkerBench, grant_once, make_long_training

from palestra.contract.names import DISPATCH_TASK, new_id
from palestra.contract.work_order import ClaimAnswer
from tests.support.waiting import PATIENCE_SECONDS, wait_for
from workers.host.options import BusyError
from workers.host.slots import HeldSlots
from workers.host.state_lock import StateLock
from workers.host.supervisor_start import SupervisorStart, SupervisorStartError, start_supervisor
from workers.host.worker import make_app
from workers.ipc.attempt_directory import AttemptDirectory, attempts_under
from workers.ipc.credentials import Credentials

pytestmark = pytest.mark.processes


def test_a_worker_claims_again_after_a_killed_broker_was_restarted(
    bench: WorkerBench, server: ScriptedServer
):
    broker = bench.start_broker()
    worker = bench.start_worker()
    bench.dispatch()
    wait_for(lambda: len(server.claims) == 1, f"a claim\n{bench.log('worker')}")
    for round_number in range(2):
        waits = bench.log("worker").count("worker.waits_for_broker")
        broker.kill()
        broker.wait()
        wait_for(
            lambda n=waits: bench.log("worker").count("worker.waits_for_broker") > n,
            lambda: f"the worker waits for the broker\n{bench.log('worker')}",
        )
        broker = bench.start_broker()
        bench.dispatch()
        wait_for(
            lambda n=round_number: len(server.claims) >= n + 2,
            f"a claim after the restart\n{bench.log('worker')}",
        )
    broker.kill()
    broker.wait()
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(PATIENCE_SECONDS) == 0, "it ends without a broker, too"


def test_a_claim_whose_answer_was_lost_is_repeated(bench: WorkerBench, server: ScriptedServer):
    """The same claim is sent for the same slot until its answer arrives."""
    bench.start_broker()
    answers: dict[str, tuple[int, Any]] = {}
    grant_once(server, definition=make_long_training())
    first = server.grant

    def grant(claim: dict[str, Any]) -> tuple[int, Any]:
        return answers.setdefault(json.dumps(claim), first(claim))

    server.grant = grant
    server.loses_answer = lambda path: path.endswith("/leases") and len(server.claims) <= 4
    bench.start_worker()
    bench.dispatch()
    wait_for(lambda: bench.get_counters().get("started"), f"it starts\n{bench.log('worker')}")
    assert len(server.claims) == 5
    assert len(answers) == 1, "all claims were equal"
    assert len(list(attempts_under(bench.state))) == 1


def test_after_slot_busy_the_next_free_slot_is_claimed(bench: WorkerBench, server: ScriptedServer):
    """Slot 0 is always tried first; if it is refused with `slot_busy`, the next free
    slot is used.
    """
    bench.start_broker()
    order = make_work_order(definition=make_long_training())
    answer = ClaimAnswer(
        work_order=order, token="attempt-token", lease_seconds=60.0, renew_seconds=0.3
    )
    busy = {0, 1}

    def grant(claim: dict[str, Any]) -> tuple[int, Any]:
        return (
            (409, {"code": "slot_busy", "detail": "it runs", "status": 409})
            if claim["slot"] in busy
            else (201, json.loads(answer.model_dump_json()))
        )

    server.grant = grant
    bench.start_worker(slots=3)
    bench.dispatch()
    wait_for(bench.get_counters, f"it is answered\n{bench.log('worker')}")
    assert [claim["slot"] for claim in server.claims] == [0, 1, 2]
    assert bench.get_counters() == {"started": 1}
    busy.add(2)
    bench.dispatch()
    wait_for(lambda: bench.get_counters().get("slot_busy"), "both free slots were refused")
    assert [claim["slot"] for claim in server.claims[3:]] == [0, 1]


MALFORMED = [
    b"hello",
    b"{}",
    b"[]",
    b"null",
    b'"text"',
    b"\xff\xfe\x00",
    b"gASVBQAAAAAAAABdlC4=",
    json.dumps({"body": "aGVsbG8=", "properties": {}, "headers": {}}).encode(),
    json.dumps(
        {
            "body": "gASVBQAAAAAAAABdlC4=",
            "content-type": "application/x-python-serialize",
            "content-encoding": "binary",
            "headers": {"task": DISPATCH_TASK, "id": "x", "lang": "py"},
            "properties": {
                "body_encoding": "base64",
                "delivery_tag": "1",
                "delivery_info": {"exchange": "", "routing_key": QUEUE},
            },
        }
    ).encode(),
    b"x" * 5_000_000,
]


def test_malformed_messages_do_not_stop_the_worker(bench: WorkerBench, server: ScriptedServer):
    bench.start_broker()
    worker = bench.start_worker()
    bench.push(*MALFORMED)
    with make_app(bench.broker_url, QUEUE) as app:
        app.send_task("os.system", args=["true"], queue=QUEUE, retry=False)
        app.send_task(DISPATCH_TASK, args=["positional"], queue=QUEUE, retry=False)
        for wrong in (
            {"v": 2},
            {"job_id": "../../etc"},
            {"expected_attempt": -1},
            {"more": 1},
            {"job_id": None},
        ):
            message = {"v": 1, "job_id": new_id("job"), "expected_attempt": 1, **wrong}
            app.send_task(DISPATCH_TASK, kwargs=message, queue=QUEUE, retry=False)
    bench.dispatch()
    wait_for(
        lambda: len(server.claims) == 1,
        f"the good dispatch message is answered\n{bench.log('worker')[-3000:]}",
    )
    wait_for(
        lambda: bench.get_counters().get("malformed", 0) >= 7 + len(MALFORMED),
        f"all are counted: {bench.get_counters()}",
    )
    assert worker.poll() is None


def test_many_equal_dispatch_messages_start_one_attempt(bench: WorkerBench, server: ScriptedServer):
    bench.start_broker()
    grant_once(server, definition=make_long_training())
    job_id = new_id("job")
    with make_app(bench.broker_url, QUEUE) as app:
        for _ in range(50):
            app.send_task(
                DISPATCH_TASK,
                kwargs={"v": 1, "job_id": job_id, "expected_attempt": 1},
                queue=QUEUE,
                retry=False,
            )
    bench.start_worker(slots=3)
    wait_for(
        lambda: sum(bench.get_counters().values()) == 50,
        f"all are answered: {bench.get_counters()}",
    )
    assert bench.get_counters().get("started") == 1
    assert len(list(attempts_under(bench.state))) == 1


def test_a_full_worker_claims_once_a_slot_is_free(bench: WorkerBench, server: ScriptedServer):
    bench.start_broker()
    grant_once(server, definition=make_long_training())
    bench.start_worker(slots=1)
    bench.dispatch()
    wait_for(lambda: bench.get_counters().get("started"), f"it starts\n{bench.log('worker')}")
    grant, releases_at_claim = server.grant, []

    def record_releases(claim: dict[str, Any]) -> tuple[int, Any]:
        releases_at_claim.append(len(server.releases))
        return grant(claim)

    server.grant = record_releases
    bench.dispatch()
    wait_for(lambda: bench.count_queued() == 0, "the worker takes the second message")
    assert bench.get_counters() == {"started": 1}, "the second message waits for the slot"
    server.order = "cancel"
    wait_for(lambda: releases_at_claim == [1], "it claims once the slot is free")


def test_a_worker_that_cannot_start_a_supervisor_gives_the_attempt_back(
    bench: WorkerBench, server: ScriptedServer
):
    """Regression: it counted as a loss of the worker, of which a job survives a limited number."""
    bench.start_broker()
    grant_once(server)
    bench.start_worker()
    (bench.state / "attempts").write_text("not a directory")
    bench.dispatch()
    wait_for(lambda: server.releases, lambda: f"the attempt is given back\n{bench.log('worker')}")
    report = server.releases[0]["report"]
    assert (report["outcome"], report["cause"]) == ("failed", "not_started")
    assert "Not a directory" in report["failure"]["message"]
    wait_for(lambda: bench.get_counters() == {"not_started": 1}, "it is counted")


def test_a_supervisor_that_crashes_at_its_start_is_reported_with_its_last_line(
    tmp_path: Path, server: ScriptedServer
):
    """Regression: the reason was only in a file on the worker."""
    directory = AttemptDirectory(tmp_path / "attempts" / new_id("att"))
    directory.create(b"no work order")
    credentials = Credentials(server=server.url, token="attempt-token", renew_seconds=1.0)
    start = SupervisorStart(directory=directory, credentials=credentials, slots=HeldSlots((), ()))
    with pytest.raises(SupervisorStartError, match=r"Its last line: .*\S"):
        start_supervisor(start)


def test_a_worker_logs_why_the_server_makes_it_drain(bench: WorkerBench, server: ScriptedServer):
    bench.start_broker()
    bench.start_worker()
    server.worker_order, server.drain_reason = "drain", "3 attempts could not be started."
    wait_for(
        lambda: "worker.drains" in bench.log("worker"), lambda: f"the log\n{bench.log('worker')}"
    )
    assert "3 attempts could not be started." in bench.log("worker")


def test_a_draining_worker_goes_on_reading_its_queue(bench: WorkerBench, server: ScriptedServer):
    """The server refuses its claims; a worker that stopped reading would lose what it had read."""
    bench.start_broker()
    bench.start_worker()
    server.worker_order = "drain"
    wait_for(lambda: len(server.heartbeats) >= 2, "it is told to drain")
    bench.dispatch()
    wait_for(lambda: len(server.claims) == 1, "the server decides on its claim")


def test_a_worker_waits_for_an_unreachable_server_and_logs_why(
    bench: WorkerBench, server: ScriptedServer
):
    bench.start_broker()
    server.stop()
    command = [sys.executable, "-m", "workers.host", *bench.worker_options]
    worker = bench._start("worker", command)
    wait_for(lambda: "worker.waits_for_server" in bench.log("worker"), "the reason")
    server.start()
    wait_for(lambda: server.heartbeats, f"a sign of life\n{bench.log('worker')}")
    (registration,) = server.registrations
    assert {"dqn", "ppo"} <= {agent["name"] for agent in registration["catalogue"]["agents"]}
    cartpole = next(
        env for env in registration["catalogue"]["environments"] if env["id"] == "CartPole-v1"
    )
    assert cartpole["action_space"]["n"] == 2
    with pytest.raises(BusyError, match=f"used by the worker with pid {worker.pid}:") as refusal:
        StateLock(bench.state, patience_seconds=0)
    assert refusal.value.exit_status == 75
    assert worker.poll() is None, "a lock that its owner holds is no leftover"

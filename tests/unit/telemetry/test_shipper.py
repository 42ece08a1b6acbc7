import json
import threading
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palestra.contract.telemetry import MAX_BATCH_BYTES, TelemetryBatch
from palestra.telemetry.shipper import Shipper, StaleAttemptError
from palestra.telemetry.spool import SpoolReader, SpoolWriter
from palestra.telemetry.transport import HttpTransport, Reply, SendResult, interpret
from tests.support.waiting import PATIENCE_SECONDS, wait_for

Handler = Callable[[httpx.Request], httpx.Response]


class FakeIngest:
    """The server's side of ingest, in memory; `faults` are answered first."""

    def __init__(self) -> None:
        self.stored: list[dict] = []
        self.faults: list[Handler] = []
        self.batches: list[dict] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        batch = json.loads(request.content)
        self.batches.append(batch)
        if self.faults:
            return self.faults.pop(0)(request)
        return self.take(batch)

    def take(self, batch: dict) -> httpx.Response:
        first, expected = batch["first_seq"], len(self.stored) + 1
        if first > expected:
            return make_problem(409, "seq_gap", expected_seq=expected)
        for index, record in enumerate(batch["records"]):
            seq = first + index
            if seq <= len(self.stored):
                assert self.stored[seq - 1] == record, (
                    "the same number always carries the same record"
                )
            else:
                self.stored.append(record)
        return httpx.Response(200, json={"acked_seq": len(self.stored)})


def make_problem(status: int, code: str, **extra) -> httpx.Response:
    body = {
        "type": "about:blank",
        "title": code,
        "status": status,
        "code": code,
        "detail": f"because of {code}",
        "request_id": "r",
        **extra,
    }
    return httpx.Response(
        status,
        json=body,
        headers={"content-type": "application/problem+json", **extra.pop("headers", {})},
    )


@pytest.fixture
def server() -> FakeIngest:
    return FakeIngest()


@pytest.fixture
def make_shipper(server: FakeIngest, spool_directory: Path):
    def make(after_seq: int = 0, **options) -> Shipper:
        client = httpx.Client(
            base_url="http://palestra.test", transport=httpx.MockTransport(server)
        )
        return Shipper(
            SpoolReader(spool_directory, after_seq), HttpTransport(client, "att_x"), **options
        )

    return make


@pytest.fixture
def append_points(spool_directory: Path, make_point):
    def append(first: int, last: int) -> int:
        with SpoolWriter(spool_directory) as writer:
            return writer.append([make_point(step) for step in range(first, last + 1)])

    return append


def list_steps(server: FakeIngest) -> list[int]:
    return [record["env_step"][0] for record in server.stored]


def ship_until_settled(shipper: Shipper) -> None:
    for _ in range(200):
        if not shipper.ship_once() and not shipper.pause:
            return
    raise AssertionError("never settles")


def test_batches_match_the_contracts_schema(server, make_shipper, append_points):
    append_points(1, 12)
    shipper = make_shipper()
    ship_until_settled(shipper)
    (batch,) = server.batches
    assert len(TelemetryBatch.model_validate_json(json.dumps(batch)).records) == 12
    assert list_steps(server) == list(range(1, 13))
    assert shipper.acked_seq == 12


def test_an_empty_spool_sends_nothing(server, make_shipper):
    assert make_shipper().ship_once() is False
    assert server.batches == []


def test_a_batch_stays_within_the_servers_limits(
    server, make_shipper, append_points, spool_directory, monkeypatch
):
    sizes: list[int] = []

    def measure(request: httpx.Request) -> httpx.Response:
        sizes.append(len(request.content))
        return server.take(json.loads(request.content))

    server.faults = [measure] * 100
    append_points(1, 12_000)
    ship_until_settled(make_shipper())
    assert list_steps(server) == list(range(1, 12_001))
    assert max(sizes) <= MAX_BATCH_BYTES
    assert len(server.batches[0]["records"]) == 5_000


def test_a_lost_answer_duplicates_no_record(server, make_shipper, append_points):
    def take_and_lose(request: httpx.Request) -> httpx.Response:
        server.take(json.loads(request.content))
        raise httpx.ReadError("gone")

    append_points(1, 5)
    server.faults = [take_and_lose]
    shipper = make_shipper()
    assert shipper.ship_once() is False
    assert shipper.pause > 0
    append_points(6, 7)
    ship_until_settled(shipper)
    assert list_steps(server) == [1, 2, 3, 4, 5, 6, 7]


def test_a_gap_rewinds_to_the_expected_sequence_number(server, make_shipper, append_points):
    append_points(1, 9)
    server.take(
        {
            "first_seq": 1,
            "records": [
                json.loads(p)
                for p in SpoolReader(make_shipper()._reader._directory).read(3).payloads
            ],
        }
    )
    shipper = make_shipper(after_seq=7)
    ship_until_settled(shipper)
    assert list_steps(server) == list(range(1, 10))
    assert shipper.counts.rewinds == 1


def test_records_that_a_server_lost_are_sent_again(server, make_shipper, append_points):
    append_points(1, 9)
    shipper = make_shipper()
    ship_until_settled(shipper)
    del server.stored[4:]
    append_points(10, 10)
    ship_until_settled(shipper)
    assert list_steps(server) == list(range(1, 11))


@pytest.mark.parametrize(
    ("status", "code"),
    [(409, "stale_attempt"), (409, "attempt_ended"), (401, "unauthenticated"), (404, "not_found")],
)
def test_a_stale_attempt_stops(server, make_shipper, append_points, status, code):
    append_points(1, 2)
    server.faults = [lambda _: make_problem(status, code)]
    with pytest.raises(StaleAttemptError, match=code):
        make_shipper().ship_once()


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(404, text="<html>nginx</html>"),
        httpx.Response(502, text="bad gateway"),
        httpx.Response(200, text="<html>login</html>", headers={"content-type": "text/html"}),
        make_problem(500, "internal"),
        make_problem(503, "unavailable"),
        make_problem(429, "too_many_requests"),
    ],
    ids=["proxy404", "502", "portal", "500", "503", "429"],
)
def test_other_errors_are_retried(server, make_shipper, append_points, answer):
    append_points(1, 3)
    server.faults = [lambda _: answer]
    said: list[str] = []
    shipper = make_shipper(report=said.append)
    ship_until_settled(shipper)
    assert list_steps(server) == [1, 2, 3]
    assert shipper.counts.retries == 1
    assert len(said) == 1


def test_retry_after_is_respected():
    answer = make_problem(429, "too_many_requests")
    answer.headers["retry-after"] = "7"
    assert interpret(answer) == Reply(
        SendResult.LATER, wait=7.0, reason="429 because of too_many_requests"
    )


def test_retry_delays_grow_with_jitter_up_to_a_limit(server, make_shipper, append_points):
    def fail(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    append_points(1, 1)
    server.faults = [fail] * 30
    shipper = make_shipper()
    waits = []
    for _ in range(30):
        assert shipper.ship_once() is False
        waits.append(shipper.pause)
    ceilings = [min(0.2 * 2**n, 30.0) for n in range(30)]
    assert all(
        ceiling / 2 <= wait <= ceiling for wait, ceiling in zip(waits, ceilings, strict=True)
    )
    assert (
        len({round(wait / ceiling, 6) for wait, ceiling in zip(waits, ceilings, strict=True)}) > 20
    )
    ship_until_settled(shipper)
    assert shipper.pause == 0
    assert list_steps(server) == [1]


def test_too_large_batches_are_halved_and_grow_again(server, make_shipper, append_points):
    def accept_at_most_three(request: httpx.Request) -> httpx.Response:
        batch = json.loads(request.content)
        return make_problem(413, "too_large") if len(batch["records"]) > 3 else server.take(batch)

    append_points(1, 20)
    server.faults = [accept_at_most_three] * 12
    ship_until_settled(make_shipper())
    assert list_steps(server) == list(range(1, 21))
    assert len(server.batches[-1]["records"]) > 3


def test_a_record_that_a_proxy_refuses_for_its_size_waits(server, make_shipper, append_points):
    reasons: list[str] = []
    append_points(1, 3)
    server.faults = [lambda _: httpx.Response(413, text="<html>Too Large</html>")] * 4
    shipper = make_shipper(report=reasons.append)
    while not shipper.pause:
        shipper.ship_once()
    assert "client_max_body_size" in reasons[0]
    assert shipper.counts.refused == 0
    server.faults = []
    ship_until_settled(shipper)
    assert list_steps(server) == [1, 2, 3]


def test_an_unstorable_record_is_replaced_by_a_note(
    server, make_shipper, append_points, spool_directory, make_point
):
    def refuse_metric(request: httpx.Request) -> httpx.Response:
        batch = json.loads(request.content)
        bad = any(record.get("series") == "one/too/many" for record in batch["records"])
        return make_problem(422, "too_many_metrics") if bad else server.take(batch)

    append_points(1, 6)
    with SpoolWriter(spool_directory) as writer:
        writer.append([make_point(7, series="one/too/many")])
    append_points(8, 12)
    server.faults = [refuse_metric] * 100
    said: list[str] = []
    shipper = make_shipper(report=said.append)
    ship_until_settled(shipper)
    kinds = [record["type"] for record in server.stored]
    assert kinds == ["points"] * 6 + ["note"] + ["points"] * 5
    assert server.stored[6]["code"] == "record_refused"
    assert "one/too/many" in server.stored[6]["message"]
    assert shipper.counts.refused == 1
    assert said


def test_records_of_a_type_that_an_older_server_does_not_know_wait_for_its_upgrade(
    server, make_shipper, append_points
):
    def refuse_third(request: httpx.Request) -> httpx.Response:
        batch = json.loads(request.content)
        place = 3 - batch["first_seq"]
        if place >= len(batch["records"]):
            return server.take(batch)
        errors = [{"pointer": f"/records/{place}", "code": "not_a_choice", "message": "no"}]
        return make_problem(422, "invalid_document", errors=errors)

    append_points(1, 5)
    server.faults = [refuse_third] * 9
    said: list[str] = []
    shipper = make_shipper(report=said.append)
    while shipper.ship_once() or not shipper.pause:
        pass
    assert list_steps(server) == [1, 2]
    assert (shipper.acked_seq, shipper.counts.refused) == (2, 0)
    assert "older than this recorder" in said[-1]
    server.faults = []
    ship_until_settled(shipper)
    assert list_steps(server) == [1, 2, 3, 4, 5]


def test_a_record_of_an_unknown_run_is_replaced_by_a_note(server, make_shipper, append_points):
    """Regression: such a record ended the whole attempt as stale."""
    other = "run_" + "9" * 26

    def refuse_other(request: httpx.Request) -> httpx.Response:
        batch = json.loads(request.content)
        return (
            server.take(batch)
            if all(record["run"] == other for record in batch["records"])
            else make_problem(403, "other_run")
        )

    append_points(1, 2)
    server.faults = [refuse_other] * 100
    shipper = make_shipper(runs=(other,))
    ship_until_settled(shipper)
    assert [(record["type"], record["run"]) for record in server.stored] == [("note", other)] * 2
    assert shipper.counts.refused == 2


def test_no_record_is_replaced_while_the_server_refuses_notes(server, make_shipper, append_points):
    """A server with a broken schema, for example, refuses every record.

    Regression: every record had become a note when the server was repaired.
    """
    append_points(1, 3)
    server.faults = [lambda _: make_problem(422, "unstorable_record")] * 9
    shipper = make_shipper()
    ship_until_settled(shipper)
    assert list_steps(server) == [1, 2, 3]
    assert shipper.counts.refused == 0


def test_a_conflict_with_stored_content_is_counted_and_skipped(server, make_shipper, append_points):
    def answer_conflict(request: httpx.Request) -> httpx.Response:
        batch = json.loads(request.content)
        return (
            make_problem(409, "seq_conflict")
            if batch["first_seq"] <= 2 < batch["first_seq"] + len(batch["records"])
            else server.take(batch)
        )

    append_points(1, 4)
    server.take({"first_seq": 1, "records": [{"env_step": [1]}, {"env_step": [-2]}]})
    server.stored[0] = json.loads(
        SpoolReader(make_shipper()._reader._directory).read(1).payloads[0]
    )
    server.faults = [answer_conflict] * 20
    shipper = make_shipper()
    ship_until_settled(shipper)
    assert list_steps(server) == [1, -2, 3, 4]
    assert shipper.counts.conflicts == 1


class ManualClock(threading.Event):
    """A clock that is advanced by the waits for the event."""

    now = 0.0

    def read(self) -> float:
        return self.now

    def wait(self, timeout: float | None = None) -> bool:
        self.now += timeout or 0.0
        return self.is_set()


def test_flush_returns_whether_all_records_arrived(server, make_shipper, append_points):
    append_points(1, 3)
    assert make_shipper().flush(PATIENCE_SECONDS) is True
    append_points(4, 4)
    server.faults = [lambda _: make_problem(503, "unavailable")] * 1_000
    clock = ManualClock()
    assert make_shipper(clock=clock.read).flush(0.3, clock) is False
    assert clock.now == pytest.approx(0.3)
    assert len(server.faults) < 1_000


def test_the_shipper_runs_in_a_thread_until_it_is_stopped(server, make_shipper, append_points):
    shipper, stop = make_shipper(interval_seconds=0.005), threading.Event()
    thread = threading.Thread(target=shipper.run, args=(stop,))
    thread.start()
    for step in range(1, 6):
        append_points(step, step)
    wait_for(lambda: shipper.acked_seq == 5, "the records arrive")
    stop.set()
    thread.join()
    assert list_steps(server) == [1, 2, 3, 4, 5]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_sequence_of_faults_delivers_every_record_once(tmp_path_factory, data, make_point):
    directory = tmp_path_factory.mktemp("spool")
    server = FakeIngest()

    def lose(request: httpx.Request) -> httpx.Response:
        server.take(json.loads(request.content))
        raise httpx.ReadTimeout("late")

    def forget(request: httpx.Request) -> httpx.Response:
        return server.take(json.loads(request.content))

    def cut(request: httpx.Request) -> httpx.Response:
        batch = json.loads(request.content)
        batch["records"] = batch["records"][: max(1, len(batch["records"]) // 2)]
        return server.take(batch)

    def refuse_as_too_large(request: httpx.Request) -> httpx.Response:
        batch = json.loads(request.content)
        return make_problem(413, "too_large") if len(batch["records"]) > 1 else server.take(batch)

    weather = [lose, forget, cut, refuse_as_too_large, lambda _: make_problem(503, "unavailable")]
    client = httpx.Client(base_url="http://palestra.test", transport=httpx.MockTransport(server))
    writer, shipper = (
        SpoolWriter(directory, segment_bytes=1_000),
        Shipper(SpoolReader(directory), HttpTransport(client, "att_x")),
    )
    count = 0
    for size in data.draw(st.lists(st.integers(0, 8), max_size=12)):
        count = writer.append([make_point(count + i + 1) for i in range(size)])
        server.faults = data.draw(st.lists(st.sampled_from(weather), max_size=2))
        for _ in range(data.draw(st.integers(0, 3))):
            shipper.ship_once()
        if data.draw(st.booleans()):
            shipper = Shipper(
                SpoolReader(directory, data.draw(st.integers(0, count))),
                HttpTransport(client, "att_x"),
            )
    server.faults = []
    ship_until_settled(shipper)
    for _ in range(2):
        ship_until_settled(
            Shipper(SpoolReader(directory, len(server.stored)), HttpTransport(client, "att_x"))
        )
    assert list_steps(server) == list(range(1, count + 1))

"""Answers are read tolerantly, requests and identity-bearing documents strictly."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from pydantic import BaseModel, ValidationError

from palestra.connection import read
from palestra.contract.answers import read_answer
from palestra.contract.pools import WorkerView
from palestra.contract.registration import RegistrationAnswer, WorkerHeartbeatAnswer
from palestra.contract.resources import ExperimentDetail
from palestra.contract.states import Order
from palestra.contract.telemetry import TelemetryAck
from palestra.contract.work_order import (
    AdoptionAnswer,
    Claim,
    ClaimAnswer,
    FollowAnswer,
    Renewal,
    RenewalAnswer,
    SnapshotFileRef,
    SnapshotRef,
)
from palestra.errors import UnexpectedAnswerError
from palestra.telemetry.transport import SendResult, interpret, open_client
from tests.support.fake_http_server import Answer, FakeHttpServer, run_fake_server
from tests.support.trainings import make_definition, make_work_order
from workers.ipc.server_api import AttemptApi, ServerUnreachableError, WorkerApi

JOB, WORKER = "job_" + "0" * 26, "wrk_" + "0" * 26
SNAPSHOT = SnapshotRef(
    snapshot_id="snp_" + "0" * 26,
    env_step=1,
    update=2,
    episode=3,
    resume_exact=True,
    files=(SnapshotFileRef(name="agent.json", size=1, sha256="0" * 64, artifact_id="art_1"),),
)
CLAIMED = ClaimAnswer(
    work_order=make_work_order(make_definition()), token="t", lease_seconds=1, renew_seconds=1
)
ANSWERS = [
    RegistrationAnswer(
        worker_id=WORKER,
        broker_url="",
        queue="q",
        heartbeat_seconds=1,
        work_order_versions=(2,),
    ),
    WorkerHeartbeatAnswer(order="drain"),
    CLAIMED,
    RenewalAnswer(order=Order.CONTINUE, acked_seq=3, lease_seconds=1),
    AdoptionAnswer(token="t", slot=0, renew_seconds=1),
    FollowAnswer(training="live", snapshot=SNAPSHOT),
    TelemetryAck(acked_seq=4),
]
UNKNOWN = {"unknown": {"nested": [1, None]}}


def add_unknown_keys(value: Any) -> Any:
    """Returns JSON with an unknown key in every object except work orders."""
    if isinstance(value, dict):
        inner = {
            key: item if key == "work_order" else add_unknown_keys(item)
            for key, item in value.items()
        }
        return {**inner, **UNKNOWN}
    return [add_unknown_keys(item) for item in value] if isinstance(value, list) else value


def dump_json(model: BaseModel) -> Any:
    return json.loads(model.model_dump_json())


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: type(answer).__name__)
def test_unknown_keys_of_answers_are_ignored_at_every_depth(answer: BaseModel) -> None:
    sent = json.dumps(add_unknown_keys(dump_json(answer)))
    assert sent.count("unknown") >= 1
    assert read_answer(type(answer), sent) == answer
    with pytest.raises(ValidationError):
        type(answer).model_validate_json(sent)


def test_required_fields_of_answers_are_checked() -> None:
    for sent in ('{"acked_seq": "4"}', '{"acked_seq": -1}', "{}"):
        with pytest.raises(ValidationError):
            read_answer(TelemetryAck, sent)


@pytest.mark.parametrize(
    "place",
    [
        ("work_order",),
        ("work_order", "runs", 0),
        ("work_order", "resources"),
        ("work_order", "definition"),
        ("work_order", "definition", "agent"),
        ("work_order", "definition", "env"),
    ],
    ids=lambda place: "/".join(map(str, place)),
)
def test_a_work_order_with_an_unknown_key_is_refused(place: tuple[str | int, ...]) -> None:
    sent = dump_json(CLAIMED)
    found = sent
    for step in place:
        found = found[step]
    found.update(UNKNOWN)
    with pytest.raises(ValidationError) as refused:
        read_answer(ClaimAnswer, json.dumps(sent))
    error = refused.value.errors()[0]
    assert (error["type"], error["loc"][0], error["loc"][-1]) == (
        "extra_forbidden",
        "work_order",
        "unknown",
    )


def make_worker_view() -> dict[str, Any]:
    return {
        "id": "wrk_1",
        "name": "one",
        "pool": "default",
        "host": "host",
        "state": "online",
        "version": "0.1.0",
        "slots": [{"index": 0, "attempt_id": None, "job_id": None, "run_ids": []}],
        "gpus": [{"index": 0, "name": "GPU", "uuid": "", "memory_mib": 1}],
        "registered_at": "2026-01-01T00:00:00Z",
        "last_heartbeat_at": "2026-01-01T00:00:00Z",
    }


def make_response(body: Any, status: int = 200) -> httpx.Response:
    return httpx.Response(status, json=body, request=httpx.Request("GET", "http://server/x"))


def test_a_client_ignores_unknown_keys_of_documents_in_views() -> None:
    """The documents in a view (here a GPU) are also part of requests, which refuse unknown keys."""
    known = read(WorkerView, make_response(make_worker_view()))
    assert read(WorkerView, make_response(add_unknown_keys(make_worker_view()))) == known
    with pytest.raises(ValidationError):
        WorkerView.model_validate_json(json.dumps(add_unknown_keys(make_worker_view())))


def test_a_client_refuses_a_definition_with_an_unknown_key() -> None:
    raw = {"definition": {**make_definition(), **UNKNOWN}}
    with pytest.raises(ValidationError) as refused:
        read_answer(ExperimentDetail, json.dumps(raw))
    assert any(
        error["loc"][0] == "definition" and error["loc"][-1] == "unknown"
        for error in refused.value.errors()
    )
    with pytest.raises(UnexpectedAnswerError):
        read(ExperimentDetail, make_response(raw))


@pytest.fixture
def server() -> Iterator[FakeHttpServer]:
    with run_fake_server() as running:
        yield running


def test_a_supervisor_reads_the_renewal_of_a_newer_server_and_names_its_version(
    server: FakeHttpServer,
) -> None:
    newer = {"order": "pause", "acked_seq": 7, "lease_seconds": 30, **UNKNOWN}
    server.set_answers("POST", "/leases/att_1:renew", Answer(body=newer))
    with open_client(server.url, "token") as client:
        answer = AttemptApi(client, "att_1").renew(Renewal())
    assert (answer.order, answer.acked_seq, answer.give_up) == ("pause", 7, False)
    assert [asked.headers["palestra-contract"] for asked in server.asked] == ["2"]


def test_a_worker_does_not_start_a_work_order_that_it_does_not_know_whole(
    server: FakeHttpServer,
) -> None:
    newer = dump_json(CLAIMED)
    newer["work_order"]["definition"]["agent"].update(UNKNOWN)
    server.set_answers("POST", "/leases", Answer(body=newer))
    claim = Claim(job_id=JOB, expected_attempt=1, worker_id=WORKER, slot=0)
    with (
        open_client(server.url, "token") as client,
        pytest.raises(ServerUnreachableError, match=r"work_order.*unknown"),
    ):
        WorkerApi(client).claim(claim)


def test_an_acknowledgement_with_an_unknown_key_counts() -> None:
    reply = interpret(make_response({"acked_seq": 9, **UNKNOWN}))
    assert (reply.result, reply.seq) == (SendResult.ACKNOWLEDGED, 9)

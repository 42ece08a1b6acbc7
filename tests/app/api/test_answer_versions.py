"""Each worker is sent the answers of the contract's version that it names; none means the first."""

import json
from typing import Any

import pytest
from fastapi.routing import APIRoute, iter_route_contexts

from app.api.answer_route import AnswerRoute
from app.domain import answer_fields
from app.domain.answer_fields import FIELDS
from app.main import create_app
from app.settings import Settings
from palestra.contract.answers import CONTRACT_HEADER, CONTRACT_VERSION, read_answer
from palestra.contract.documents import Document
from palestra.contract.telemetry import TelemetryAck
from palestra.contract.work_order import DispatchMessage, RenewalAnswer
from tests.app.api.serving import AppServer

pytestmark = pytest.mark.asyncio(loop_scope="module")


def list_routes() -> list[APIRoute]:
    contexts = iter_route_contexts(create_app(Settings()).routes)
    return [
        context.original_route
        for context in contexts
        if isinstance(context.original_route, APIRoute)
    ]


async def test_every_answer_that_older_workers_read_strictly_is_recorded_and_cut() -> None:
    strict = [
        route
        for route in list_routes()
        if isinstance(route.response_model, type) and issubclass(route.response_model, Document)
    ]
    assert len(strict) >= 7
    for route in strict:
        assert route.response_model in FIELDS, route.path
        assert isinstance(route, AnswerRoute), f"{route.path}: route_class=AnswerRoute"
    answered = {route.response_model for route in strict}
    inside = {model for model in FIELDS if model not in answered}
    assert {model.__name__ for model in inside} == {"SnapshotRef", "SnapshotFileRef"}
    assert DispatchMessage not in FIELDS


async def renew_lease(served: AppServer, version: str | None) -> dict[str, Any]:
    headers = {} if version is None else {CONTRACT_HEADER: version}
    async with served.client("live_attempt") as client:
        path = f"/api/v1/leases/{served.names['live_attempt']}:renew"
        answer = await client.post(path, json={}, headers=headers)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-length"] == str(len(answer.content))
    assert answer.headers["content-type"] == "application/json"
    found: dict[str, Any] = answer.json()
    return found


async def test_a_later_field_is_sent_to_the_callers_that_know_it(
    shared: AppServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = set(RenewalAnswer.model_fields)
    for version in (None, "1", str(CONTRACT_VERSION), str(CONTRACT_VERSION + 1)):
        assert set(await renew_lease(shared, version)) == everything
    later = {**FIELDS, RenewalAnswer: {**FIELDS[RenewalAnswer], "give_up": 2}}
    monkeypatch.setattr(answer_fields, "FIELDS", later)
    for version in (None, "1"):
        answer = await renew_lease(shared, version)
        assert set(answer) == everything - {"give_up"}
        assert read_answer(RenewalAnswer, json.dumps(answer)).acked_seq >= 3
    for version in (str(CONTRACT_VERSION), str(CONTRACT_VERSION + 1)):
        assert set(await renew_lease(shared, version)) == everything


async def test_other_answers_of_an_older_worker_keep_status_and_content(shared: AppServer) -> None:
    attempt = shared.names["live_attempt"]
    async with shared.client("live_attempt") as client:
        sent = await client.post(
            f"/api/v1/attempts/{attempt}/telemetry",
            json={"first_seq": 9_000, "records": [log_line(shared.names["live_run"])]},
        )
    assert (sent.status_code, sent.json()["code"]) == (409, "seq_gap")
    assert sent.headers["content-type"] == "application/problem+json"
    async with shared.client("own_worker") as client:
        beat = await client.post(
            f"/api/v1/workers/{shared.names['other_worker']}:heartbeat", json={}
        )
    assert (beat.status_code, beat.json()["code"]) == (403, "other_worker")


def log_line(run_id: str) -> dict[str, Any]:
    return {"type": "log", "run": run_id, "stream": "stdout", "wall": 0, "lines": ["x"]}


@pytest.mark.parametrize("sent", ["0", "-1", "2.0", "", "two", "1" * 7, "٢"])
async def test_a_version_that_is_no_number_is_refused_before_anything_happens(
    shared: AppServer, sent: str
) -> None:
    async with shared.client("live_attempt") as client:
        answer = await client.post(
            f"/api/v1/leases/{shared.names['live_attempt']}:renew",
            json={},
            headers=[(CONTRACT_HEADER.encode(), sent.encode())],
        )
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_contract_version")
    assert CONTRACT_HEADER in answer.json()["detail"]


async def test_an_acknowledgement_is_cut_like_every_answer(
    shared: AppServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_fields, "FIELDS", {**FIELDS, TelemetryAck: {"acked_seq": 2}})
    attempt, first = (
        shared.names["live_attempt"],
        (await renew_lease(shared, None))["acked_seq"] + 1,
    )
    batch = {"first_seq": first, "records": [log_line(shared.names["live_run"])]}
    async with shared.client("live_attempt") as client:
        path = f"/api/v1/attempts/{attempt}/telemetry"
        assert (await client.post(path, json=batch)).json() == {}
        newer = await client.post(path, json=batch, headers={CONTRACT_HEADER: "2"})
    assert newer.json() == {"acked_seq": first}

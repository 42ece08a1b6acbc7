"""The bad-input corpus: each row is answered with problem details that name pointer, code and
remedy.

No row causes a status 500 or a partial change.
"""

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from palestra.presets import list_presets
from tests.app.api.corpus import Row, expand, make_body, make_declaration, read_rows
from tests.app.api.serving import HOST, AppServer
from tests.support.phrases import find_pydantic_phrases
from tests.support.server_fixture import make_definition

pytestmark = pytest.mark.asyncio(loop_scope="module")

both_databases = pytest.mark.both_databases(
    "Submissions and claims lock rows on PostgreSQL, where numbers have other types.",
    of=(
        "app.db.repositories.attempts",
        "app.db.repositories.experiments",
        "app.db.repositories.telemetry",
    ),
)

FILES = ("bodies", "runs", "definitions", "artifacts", "headers", "telemetry", "messages")
ROWS = [
    pytest.param(row, id=f"{row['id']}-{row['name']}") for name in FILES for row in read_rows(name)
]
_UPLOAD = {"Content-Type": "application/octet-stream"}
_CHANGED_BY_A_LOGIN = {"login_sessions", "login_links", "audit", "audit_chain"}


@pytest.mark.parametrize("row", ROWS)
async def test_a_row_of_the_corpus_is_answered_as_it_expects(shared: AppServer, row: Row) -> None:
    names = {**shared.names, **{f"token_of_{who}": token for who, token in shared.tokens.items()}}
    await _prepare(shared, names, row)
    before = await shared.count_rows()
    answer = await _send(shared, names, row)
    assert answer.status_code == row["status"], f"{answer.status_code} {answer.text[:500]}"
    if answer.status_code >= 400:
        _check_problem(row, answer)
        after = await shared.count_rows()
        changed = {name for name in after if after[name] != before[name]}
        assert not changed - (_CHANGED_BY_A_LOGIN if row["as"] == "browser" else set())
    if "answer" in row:
        assert answer.json() == row["answer"]
    if "no_header" in row:
        assert row["no_header"] not in answer.headers


def _check_problem(row: Row, answer: httpx.Response) -> None:
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert set(problem) >= {"type", "title", "status", "code", "detail", "request_id", "errors"}
    assert problem["status"] == answer.status_code
    assert problem["request_id"] == answer.headers["x-request-id"]
    assert len(problem["detail"]) > 20, "a sentence a user can act on"
    assert len(answer.content) < 20_000, "an answer that repeats the input"
    if "code" in row:
        assert problem["code"] == row["code"], problem
    if "expected_seq" in row:
        assert problem["expected_seq"] == row["expected_seq"]
    sentences = [problem["detail"], *(error["message"] for error in problem["errors"])]
    assert not find_pydantic_phrases(" ".join(sentences)), "errors use our own wording"
    assert any(row.get("text", "") in sentence for sentence in sentences), sentences
    if "pointer" in row:
        found = [error for error in problem["errors"] if error["pointer"] == row["pointer"]]
        assert found, problem["errors"]
        assert row.get("field_code") in {None, *(error["code"] for error in found)}, found


async def _prepare(served: AppServer, names: dict[str, str], row: Row) -> None:
    """Declares the artifact of a row or, for an upload, the small valid artifact.

    Adds the upload path to `names`.
    """
    if "before" not in row and "upload" not in row:
        return
    base = f"/api/v1/attempts/{names['live_attempt']}/artifacts"
    async with served.client("live_attempt") as client:
        declared = await client.post(base, json=make_declaration(names, **row.get("before", {})))
        assert declared.status_code == 201, declared.text
        names["declared"] = f"{base}/{declared.json()['id']}"
        if row.get("stored"):
            assert (
                await client.put(names["declared"], content=row["upload"].encode(), headers=_UPLOAD)
            ).status_code == 200


async def _send(served: AppServer, names: dict[str, str], row: Row) -> httpx.Response:
    if "upload" in row:
        async with served.client("live_attempt") as client:
            return await client.put(
                names["declared"], content=row["upload"].encode(), headers=_UPLOAD
            )
    client, csrf = (
        await served.browser() if row["as"] == "browser" else (served.client(row["as"]), "")
    )
    try:
        return await client.send(_request(client, row, names, csrf))
    finally:
        await client.aclose()


def _request(
    client: httpx.AsyncClient, row: Row, names: dict[str, str], csrf: str
) -> httpx.Request:
    content = make_body(row, names)
    given = expand(row.get("headers", {}), names)
    pairs = list(given.items()) if isinstance(given, dict) else [tuple(pair) for pair in given]
    request = client.build_request(row["method"], expand(row["path"], names), content=content)
    told = {name.lower() for name, _ in pairs}
    kept = [(name, value) for name, value in request.headers.multi_items() if name not in told]
    if content is not None and "content-type" not in told:
        kept.append(("content-type", "application/json"))
    if row.get("csrf"):
        kept.append(("x-csrf-token", csrf))
    if row.get("no_host"):
        kept = [(name, value) for name, value in kept if name != "host"]
    request.headers = httpx.Headers(
        kept + [(name, value) for name, value in pairs if value or name.lower() == "host"]
    )
    return request


def _list_files(directory: Path) -> set[Path]:
    return {path for path in directory.rglob("*") if path.is_file()}


async def test_a_refused_upload_leaves_no_file(shared: AppServer) -> None:
    directory = shared.app.state.settings.artifact_dir
    before = _list_files(directory)
    async with shared.client("live_attempt") as client:
        base = f"/api/v1/attempts/{shared.names['live_attempt']}/artifacts"
        document = {
            **make_declaration(shared.names),
            "name": "other.bin",
            "size": 3,
            "sha256": hashlib.sha256(b"abc").hexdigest(),
        }
        declared = await client.post(base, json=document)
        path = f"{base}/{declared.json()['id']}"
        for content in (b"ab", b"abcd", b"cba"):
            assert (await client.put(path, content=content)).status_code == 422
    assert _list_files(directory) == before


@both_databases
async def test_telemetry_stores_every_number_exactly(shared: AppServer) -> None:
    """Row T5: non-finite numbers are sent as strings, and every float64 keeps all its bits.

    Row T6: a worker's clock in 1970 or 2100 is stored as it is.
    """
    values: list[Any] = ["NaN", "Infinity", "-Infinity", -0.0, 5e-324, 1.7976931348623157e308, 0.1]
    run, attempt = shared.names["live_run"], shared.names["live_attempt"]
    columns = {
        "env_step": list(range(7)),
        "update": [0] * 7,
        "episode": [0] * 7,
        "wall": [0.0, 4.1e9, *[1.7e9] * 5],
        "value": values,
    }
    record = {"type": "points", "run": run, "series": "numbers", **columns}
    async with shared.client("live_attempt") as client:
        for _ in range(2):
            sent = await client.post(
                f"/api/v1/attempts/{attempt}/telemetry", json={"first_seq": 4, "records": [record]}
            )
            assert sent.json() == {"acked_seq": 4}, sent.text
    async with shared.client("user") as client:
        (info,) = [
            info
            for info in (await client.get(f"/api/v1/runs/{run}/series")).json()["items"]
            if info["name"] == "numbers"
        ]
        assert (info["points"], info["nonfinite"]) == (7, 3)
        query = {"select": [{"run_id": run, "series": "numbers"}], "buckets": 7}
        (curve,) = (await client.post("/api/v1/series:query", json=query)).json()["series"]
    assert curve["n"] == [1] * 7
    assert curve["last"][3:] == [-0.0, 5e-324, 1.7976931348623157e308, 0.1]
    assert curve["last"][:3] == [None] * 3


def make_other_definition(number: int) -> dict[str, Any]:
    """Returns the valid definition of an experiment that no other number gives.

    Experiments that differ only in their name would be the same experiment.
    """
    return make_definition(name=f"number {number}", loop={"env_steps": 20_000 + number})


@both_databases
async def test_fifty_concurrent_equal_submissions_make_one_experiment(shared: AppServer) -> None:
    """Row B20, with and without an idempotency key."""
    body = {"definition": make_other_definition(1), "options": {"seeds": [0, 1]}}
    async with shared.client("user") as client:
        keyed = await asyncio.gather(
            *(
                client.post("/api/v1/experiments", json=body, headers={"Idempotency-Key": '"one"'})
                for _ in range(50)
            )
        )
        assert {answer.status_code for answer in keyed} == {201}
        assert len({answer.content for answer in keyed}) == 1
        assert sum("idempotency-replayed" in answer.headers for answer in keyed) == 49
        plain = await asyncio.gather(
            *(
                client.post(
                    "/api/v1/experiments", json={**body, "definition": make_other_definition(2)}
                )
                for _ in range(50)
            )
        )
        assert sorted(answer.status_code for answer in plain) == [200] * 49 + [201]
        assert len({answer.json()["id"] for answer in plain}) == 1
        runs = (await client.get(f"/api/v1/experiments/{plain[0].json()['id']}/runs")).json()[
            "items"
        ]
        assert sorted(run["seed"] for run in runs) == [0, 1]


async def test_an_idempotency_key_with_two_bodies_is_refused(shared: AppServer) -> None:
    """Row B21; the same key of another user is a separate key."""
    async with shared.client("user") as client:
        send = lambda path, body: client.post(path, json=body, headers={"Idempotency-Key": "k"})  # noqa: E731
        first = await send("/api/v1/experiments", {"definition": make_definition()})
        assert first.status_code in {200, 201}
        other = await send("/api/v1/experiments", {"definition": make_other_definition(1)})
        assert (other.status_code, other.json()["code"]) == (409, "idempotency_key_reused")
        elsewhere = await send(
            f"/api/v1/runs/{shared.names['lost_run']}/jobs", {"schedule": "train"}
        )
        assert elsewhere.status_code == 409
        assert (
            await client.post(
                "/api/v1/experiments", json={}, headers={"Idempotency-Key": "x" * 256}
            )
        ).status_code == 422
    async with shared.client("foreign") as client:
        foreign = await client.post(
            "/api/v1/experiments",
            json={"definition": make_other_definition(2), "options": {"pool": "elsewhere"}},
            headers={"Idempotency-Key": "k"},
        )
        assert foreign.status_code == 201


async def test_a_refused_request_does_not_use_up_its_idempotency_key(shared: AppServer) -> None:
    async with shared.client("user") as client:
        bad = await client.post(
            "/api/v1/experiments", json={"definition": {}}, headers={"Idempotency-Key": "again"}
        )
        assert bad.status_code == 422
        good = await client.post(
            "/api/v1/experiments",
            json={"definition": make_definition()},
            headers={"Idempotency-Key": "again"},
        )
        assert good.status_code in {200, 201}


@both_databases
async def test_ten_thousand_equal_dispatch_messages_start_one_attempt(shared: AppServer) -> None:
    """Row M4 on the server's side: each dispatch message becomes a claim.

    The same claim again is answered with the same lease.
    """
    claim = {
        "job_id": shared.names["queued_job"],
        "expected_attempt": 1,
        "worker_id": shared.names["worker"],
    }
    async with shared.client("own_worker") as client:
        answers = await asyncio.gather(
            *(
                client.post("/api/v1/leases", json={**claim, "slot": 4 + index % 12})
                for index in range(60)
            )
        )
    granted = [answer.json() for answer in answers if answer.status_code == 201]
    assert 1 <= len(granted) <= 5
    assert all(lease == granted[0] for lease in granted)
    assert {answer.status_code for answer in answers} == {201, 409}
    async with shared.client("user") as client:
        assert (await client.get(f"/api/v1/jobs/{claim['job_id']}")).json()["attempts"] == 1


async def test_a_body_above_the_size_limit_is_not_read_to_its_end(shared: AppServer) -> None:
    """Row B16: the server answers as soon as the limit is exceeded, whatever the declared
    length.
    """
    taken = 0

    async def yield_without_end() -> Any:
        nonlocal taken
        while True:
            taken += 65_536
            assert taken < 12 * 2**20, "read to the end"
            yield b" " * 65_536

    async with shared.client("user") as client:
        headers = {"Content-Type": "application/json"}
        answer = await client.post(
            "/api/v1/experiments", content=yield_without_end(), headers=headers
        )
        assert answer.status_code == 413
        declared = await client.post(
            "/api/v1/experiments",
            content=b"{}",
            headers={**headers, "Content-Length": "99999999999"},
        )
        assert declared.status_code == 413


async def test_the_answer_to_an_internal_error_does_not_reveal_its_cause(
    shared: AppServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise RuntimeError("the secret of the house")

    monkeypatch.setattr("app.services.runs.runs.list_runs", fail)
    async with shared.client("user") as client:
        answer = await client.get("/api/v1/runs?experiment=a-secret")
    assert answer.status_code == 500
    assert answer.json()["code"] == "internal_error"
    assert "secret" not in answer.text


async def test_every_answer_carries_the_security_headers(shared: AppServer) -> None:
    async with shared.client() as client:
        for path in ("/healthz", "/", "/api/v1/runs", "/no/such/page"):
            headers = (await client.get(path)).headers
            assert "script-src 'self';" in headers["content-security-policy"]
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["x-frame-options"] == "DENY"
            assert headers["x-request-id"]
        assert (await client.get("/healthz", headers={"X-Request-ID": "mine-1"})).headers[
            "x-request-id"
        ] == "mine-1"
        assert (
            await client.get("/healthz", headers={"Host": HOST, "X-Request-ID": "a b"})
        ).headers["x-request-id"] != "a b"


async def test_answers_are_standard_json(shared: AppServer) -> None:
    async with shared.client("user") as client:
        document = (await client.get("/api/v1/definitions/schema")).json()
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert document["properties"]["definition"]


async def test_presets_are_those_of_the_command(shared: AppServer) -> None:
    async with shared.client("viewer") as client:
        answer = await client.get("/api/v1/definitions/presets")
    assert answer.status_code == 200
    assert answer.json()["items"] == [one.model_dump(mode="json") for one in list_presets()]


async def test_a_definition_of_an_older_schema_version_is_the_same_experiment(
    shared: AppServer,
) -> None:
    """The API upgrades the definition; the same training in the present version has the same ID."""
    old = make_definition(
        schema_version=1,
        agent={"name": "ppo", "value_coefficient": 0.5},
        env={"id": "CartPole-v1", "num_envs": 8},
    )
    new = {**old, "schema_version": 2, "agent": {"name": "ppo", "value_coefficient": 0.25}}
    other = {**new, "agent": {"name": "ppo", "value_coefficient": 0.5}}
    async with shared.client("user") as client:
        answers = [
            await client.post("/api/v1/experiments", json={"definition": one})
            for one in (old, new, other, {**old, "schema_version": 4})
        ]
        assert [answer.status_code for answer in answers] == [201, 200, 201, 422], [
            answer.text[:300] for answer in answers
        ]
        assert answers[0].json()["id"] == answers[1].json()["id"] != answers[2].json()["id"]
        assert answers[0].json()["definition"]["agent"]["value_coefficient"] == 0.25
        assert answers[3].json()["errors"][0]["pointer"] == "/definition/schema_version"
        assert "upgrade Palestra" in answers[3].json()["detail"]

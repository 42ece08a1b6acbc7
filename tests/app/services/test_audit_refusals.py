"""Refusals in the audit log: counted in memory, one entry per credential, route and minute."""

import asyncio
import contextlib
from typing import Any

import pytest

from app.db.engine import Database
from app.db.repositories.credentials import Credential
from app.domain.secrets import generate_secret, hash_secret
from app.services.access import tokens
from app.services.audit import refusals
from app.services.audit.refusals import MAX_KEYS, Refusal, Refusals
from palestra.contract.access import TokenRequest
from palestra.contract.names import Scope
from tests.app.services.test_audit_chain import check_chain, read_entries
from tests.support.server_fixture import World

BEGIN = 1_770_000_000.0
"""A whole minute."""


class Clock:
    def __init__(self) -> None:
        self.now = BEGIN - BEGIN % 60

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def counted_refusals(clock: Clock) -> Refusals:
    return Refusals(clock)


def make_caller(number: int = 1) -> Credential:
    return Credential(id=f"tok_{number}", actor=f"token:tok_{number}", project_id="p", user_id="u")


def make_refusal(**changes: Any) -> Refusal:
    values = {"route": "POST /api/v1/x", "code": "missing_scope", "caller": make_caller()}
    return Refusal(**{**values, "address": "10.0.0.1", **changes})


async def test_refusals_of_a_minute_are_one_entry_with_a_count(
    database: Database, counted_refusals: Refusals, clock: Clock
) -> None:
    for seconds in range(50):
        clock.now = BEGIN - BEGIN % 60 + seconds
        counted_refusals.note(make_refusal())
    counted_refusals.note(make_refusal(route="GET /api/v1/x", address="10.0.0.2"))
    counted_refusals.note(make_refusal(caller=make_caller(2)))
    await counted_refusals.flush(database)
    assert await read_entries(database) == [], "the minute is not over"
    clock.now += 60
    counted_refusals.note(make_refusal())
    await counted_refusals.flush(database)
    first, *others = await check_chain(database)
    assert (first.action, first.object_type, first.object_id) == (
        "request.refuse",
        "request",
        "POST /api/v1/x",
    )
    assert (first.outcome, first.code, first.count) == ("refused", "missing_scope", 50)
    assert (first.actor, first.credential, first.user_id) == ("token:tok_1", "tok_1", "u")
    assert (first.project_id, first.address) == ("p", "10.0.0.1")
    assert first.data == {"first": "2026-02-02T02:40:00+00:00", "last": "2026-02-02T02:40:49+00:00"}
    assert [(row.object_id, row.credential, row.count) for row in others] == [
        ("GET /api/v1/x", "tok_1", 1),
        ("POST /api/v1/x", "tok_2", 1),
    ]
    await counted_refusals.flush(database, everything=True)
    await counted_refusals.flush(database, everything=True)
    assert len(await check_chain(database)) == 4, "the refusal of the second minute, once"


async def test_several_addresses_of_one_credential_are_counted(
    database: Database, counted_refusals: Refusals
) -> None:
    for i in range(300):
        counted_refusals.note(make_refusal(address=f"10.0.{i // 250}.{i % 250}"))
    await counted_refusals.flush(database, everything=True)
    (row,) = await check_chain(database)
    assert (row.count, row.address, row.data["addresses"]) == (300, "10.0.0.0", 100)


async def test_a_credential_that_has_ended_is_named(
    world: World, database: Database, counted_refusals: Refusals
) -> None:
    request = TokenRequest(name="t", scopes=(Scope.READ,))
    async with database.write() as session:
        token = await tokens.issue_token(session, world.project_id, world.admin.user_id, request)
        await tokens.revoke_token(session, world.admin, token.id)
    worker = await world.register()
    for secret in (token.secret, worker.secret, generate_secret("plr"), generate_secret("pls")):
        counted_refusals.note(
            make_refusal(caller=None, code="unauthenticated", secret_hash=hash_secret(secret or ""))
        )
    await counted_refusals.flush(database, everything=True)
    found = [row for row in await check_chain(database) if row.outcome == "refused"]
    assert [(row.actor, row.credential, row.user_id, row.project_id) for row in found] == [
        (f"token:{token.id}", token.id, world.admin.user_id, world.project_id),
        (f"worker:{worker.worker_id}", worker.worker_id, None, None),
    ]


async def test_tried_logins_name_the_user_or_the_address(
    database: Database, counted_refusals: Refusals
) -> None:
    tried = {"caller": None, "action": "login.refuse", "code": "wrong_login"}
    for i in range(30):
        counted_refusals.note(
            make_refusal(**tried, user_id="usr_1", object_id="usr_1", address=f"10.0.0.{i}")
        )
        counted_refusals.note(make_refusal(**tried, object_id="unknown", address="10.9.9.9"))
    await counted_refusals.flush(database, everything=True)
    known, unknown = await check_chain(database)
    assert (known.actor, known.user_id, known.object_id, known.count) == (
        "anonymous",
        "usr_1",
        "usr_1",
        30,
    )
    assert known.data["addresses"] == 30
    assert (unknown.user_id, unknown.address, unknown.count) == (None, "10.9.9.9", 30)


async def test_a_flood_of_unknown_secrets_is_bounded_and_hides_no_known_caller(
    database: Database, counted_refusals: Refusals
) -> None:
    for i in range(3 * MAX_KEYS):
        counted_refusals.note(make_refusal(caller=None, secret_hash=f"{i:064x}"))
    counted_refusals.note(make_refusal())
    assert len(counted_refusals._counts) <= MAX_KEYS + 2
    for i in range(3 * MAX_KEYS):
        counted_refusals.note(make_refusal(caller=make_caller(i)))
    assert len(counted_refusals._counts) <= 2 * MAX_KEYS + 2
    await counted_refusals.flush(database, everything=True)
    found = await check_chain(database)
    assert sum(row.count for row in found if row.credential) == MAX_KEYS + 1
    (rest,) = [row for row in found if row.object_id == "others"]
    assert rest.count == 2 * MAX_KEYS + 2 * MAX_KEYS
    counted_refusals.note(make_refusal(caller=make_caller(99_999)))
    assert len(counted_refusals._counts) == 1


async def test_counted_refusals_are_written_when_the_server_stops(
    database: Database, counted_refusals: Refusals
) -> None:
    running = asyncio.create_task(counted_refusals.run(database))
    await asyncio.sleep(0)
    counted_refusals.note(make_refusal())
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    assert len(await check_chain(database)) == 1


async def test_refusals_are_written_after_a_minute_in_which_the_database_was_unreachable(
    database: Database, counted_refusals: Refusals, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted_refusals.note(make_refusal(route="GET /lost"))
    clock.now += 60

    async def raise_connection_error(*_: Any) -> None:
        raise ConnectionError

    with monkeypatch.context() as patched:
        patched.setattr(refusals, "_write", raise_connection_error)
        await counted_refusals._try_to_flush(database, everything=False)
    counted_refusals.note(make_refusal(route="GET /kept"))
    await counted_refusals._try_to_flush(database, everything=True)
    assert [row.object_id for row in await check_chain(database)] == ["GET /kept"]

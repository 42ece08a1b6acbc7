"""Entries of the audit log that requests write.

An entry names the user, the address and the credential of its request.
"""

import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import pytest_asyncio
from sqlalchemy import select

from app.db.models import AuditRow
from tests.app.api.serving import ORIGIN, Served, serve

pytestmark = pytest.mark.asyncio(loop_scope="module")

PROXY = "127.0.0.1"
"""Address from which the requests of these tests come."""


async def entries(served: Served, action: str) -> Sequence[AuditRow]:
    """Returns the entries of an action, the oldest first."""
    query = select(AuditRow).where(AuditRow.action == action).order_by(AuditRow.id)
    async with served.database.read() as session:
        return (await session.scalars(query)).all()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def behind_proxy(
    module_database_url: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Served]:
    """A server that trusts the proxy from which the tests send requests."""
    directory: Path = tmp_path_factory.mktemp("proxied")
    async with serve(module_database_url, directory, trusted_proxies=(PROXY,)) as served:
        yield served


async def test_a_change_names_person_credential_and_address(behind_proxy: Served) -> None:
    served = behind_proxy
    client, csrf = await served.browser()
    headers = {"Origin": ORIGIN, "X-CSRF-Token": csrf, "X-Forwarded-For": "6.6.6.6, 2001:db8::9"}
    async with contextlib.aclosing(client):
        made = await client.post(
            "/api/v1/tokens", json={"name": "t", "scopes": ["read"]}, headers=headers
        )
        assert made.status_code == 201, made.text
    login = (await entries(served, "login.open"))[-1]
    row = (await entries(served, "token.create"))[-1]
    admin = served.world.admin.user_id
    assert (login.user_id, login.address, login.credential) == (admin, PROXY, None)
    assert (row.object_type, row.object_id) == ("token", made.json()["id"])
    assert (row.actor, row.user_id) == (f"user:{admin}", admin)
    assert row.credential == login.object_id
    assert row.address == "2001:db8::9", "the proxy's own words, not what the client wrote"


async def test_a_token_and_a_worker_are_named_as_credentials(behind_proxy: Served) -> None:
    served = behind_proxy
    worker = served.names["worker"]
    async with served.client("user") as client:
        assert (await client.post(f"/api/v1/workers/{worker}:drain")).status_code == 200
    drained = (await entries(served, "worker.drain"))[-1]
    assert drained.actor == f"token:{drained.credential}"
    assert drained.user_id == served.world.admin.user_id
    async with served.client("own_worker") as client:
        body = {"live_attempts": []}
        answer = await client.post(f"/api/v1/workers/{worker}:heartbeat", json=body)
        assert answer.status_code == 200, answer.text
    async with served.client("live_attempt") as client:
        attempt = served.names["live_attempt"]
        answer = await client.post(f"/api/v1/leases/{attempt}:renew", json={})
        assert answer.status_code == 200, answer.text
    moved = (await entries(served, "job.move"))[-1]
    assert moved.user_id is None

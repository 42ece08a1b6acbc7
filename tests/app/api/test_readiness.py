"""Anybody may ask whether the server is ready; that costs the database little."""

import asyncio

import pytest

from app.api.health import ReadinessCheck
from tests.app.api.serving import AppServer
from tests.support.statements import note_statements

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_requests_soon_after_a_check_share_its_answer(shared: AppServer) -> None:
    seconds = 0.0
    shared.app.state.readiness = ReadinessCheck(clock=lambda: seconds)
    async with shared.client() as client:

        async def ask() -> int:
            return (await client.get("/readyz")).status_code

        with note_statements(shared.reserved) as of_one:
            assert await ask() == 200
        assert of_one
        with note_statements(shared.reserved) as of_later:
            assert await asyncio.gather(*(ask() for _ in range(20))) == [200] * 20
        assert not of_later
        seconds = 1.0
        with note_statements(shared.reserved) as of_many:
            assert await asyncio.gather(*(ask() for _ in range(20))) == [200] * 20
        assert len(of_many) == len(of_one)

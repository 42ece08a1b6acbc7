"""Batches are refused while many wait for the compactor; their sender loses nothing."""

import asyncio
import json
from pathlib import Path

import httpx
import pytest

from app.db.engine import Database
from app.services.telemetry import compaction, tail_limit
from app.services.telemetry.group_commit import Intake
from app.services.telemetry.tail_limit import TailLimit
from palestra.telemetry.shipper import Shipper
from palestra.telemetry.spool import SpoolReader, SpoolWriter
from palestra.telemetry.transport import HttpTransport
from tests.app.api.serving import serve
from tests.app.services.telemetry_training import Training
from tests.support import records
from tests.support.stored_points import read_columns

LIMIT = 3


class LoopTransport(httpx.BaseTransport):
    """Sends the requests of a synchronous client through an asynchronous one.

    Args:
        client: Client of an application that runs in the test's event loop.
        loop: That event loop.
    """

    def __init__(self, client: httpx.AsyncClient, loop: asyncio.AbstractEventLoop) -> None:
        self._client = client
        self._loop = loop
        self.answers: list[httpx.Response] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        sent = self._client.post(
            request.url.path, content=request.content, headers={"Content-Type": "application/json"}
        )
        answer = asyncio.run_coroutine_threadsafe(sent, self._loop).result()
        self.answers.append(answer)
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)


async def test_a_sender_waits_while_batches_of_its_run_wait_for_the_compactor(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every record arrives once, in order, although the server refuses some of the batches."""
    monkeypatch.setattr(tail_limit, "_COUNT_SECONDS", 0.0)
    async with serve(database_url, tmp_path) as served, served.client("live_attempt") as client:
        served.app.state.intake._tails._of_run = LIMIT
        run, attempt = served.names["live_run"], served.names["live_attempt"]
        sent = list(range(4, 24))
        spool = tmp_path / "spool"
        with SpoolWriter(spool) as writer:
            for step in range(1, 24):
                writer.append_raw(
                    [json.dumps(records.make_points(run, "limited", [step])).encode()]
                )
        transport = LoopTransport(client, asyncio.get_running_loop())
        sender = httpx.Client(base_url="http://palestra.test", transport=transport)
        shipper = Shipper(SpoolReader(spool, 3), HttpTransport(sender, attempt))
        refused = 0
        for _ in range(3 * len(sent)):
            shipper._max_records = 1
            await asyncio.to_thread(shipper.ship_once)
            if shipper.pause:
                refused += 1
                assert transport.answers[-1].status_code == 429
                assert transport.answers[-1].json()["code"] == "curves_behind"
                assert shipper.pause >= int(transport.answers[-1].headers["Retry-After"])
                await compaction.compact_tail(served.database, run)
            if shipper.acked_seq == sent[-1]:
                break
        assert refused >= len(sent) // LIMIT - 1
        assert shipper.acked_seq == sent[-1]
        async with served.database.read() as session:
            found = await read_columns(session, run, "limited")
        steps = [step for columns in found for step in columns.env_step.tolist()]
        assert steps == sent


async def test_only_attempts_of_a_run_with_a_long_tail_are_refused(
    training: Training, database: Database
) -> None:
    other = await training.world.submit_one_job(seeds=[99])
    claimed = await training.world.start(other.id, training.worker_id, slot=1)
    intake = Intake(database, TailLimit(database, of_run=LIMIT, of_all=2 * LIMIT))
    task = asyncio.create_task(intake.run())

    async def send(attempt_id: str, run_id: str, seq: int) -> int | str:
        batch = records.make_delivery(attempt_id, seq, [records.make_points(run_id, "loss", [seq])])
        try:
            return await intake.take(batch)
        except Exception as refusal:  # noqa: BLE001
            return str(getattr(refusal, "code", refusal))

    one = (training.attempt_id, training.run_id)
    two = (claimed.work_order.attempt_id, other.run_ids[0])
    answers = [await send(*one, seq) for seq in range(1, LIMIT + 2)]
    assert (answers[0], answers[-1]) == (1, "curves_behind")
    answers = [await send(*two, seq) for seq in range(1, LIMIT + 2)]
    assert (answers[0], answers[-1]) == (1, "curves_behind")
    task.cancel()

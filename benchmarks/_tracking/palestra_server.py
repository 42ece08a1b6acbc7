"""Palestra's server under measurement, on SQLite or on PostgreSQL, without worker and broker."""

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import orjson

from app.db.engine import Database
from app.db.migrate import upgrade
from app.db.repositories import compaction as rows
from app.services.access import tokens
from benchmarks import list_queries
from benchmarks._tracking import load
from benchmarks._tracking.clients import PalestraClient
from benchmarks._tracking.load import HttpConnection, Load
from benchmarks._tracking.servers import CURVE, SERIES, TrackingServer
from benchmarks._tracking.workloads import Workload
from palestra.contract.access import TokenRequest
from palestra.contract.names import Scope
from tests.support.process_stack import Stack
from tests.support.server_fixture import make_world
from tests.support.waiting import wait_for

_STEPS: Final = 5_000
"""Steps of one record that fills a curve."""
_SERIES: Final = 4
"""Series of one such record, so that it is shorter than the limit of a batch."""
_COMPACTION_SECONDS: Final = 900.0
_WAIT: Final = frozenset({429, 503})
_OK: Final = 200


class Palestra(TrackingServer):
    """The server of `palestra up` with its daemons.

    Args:
        directory: Directory of its data.
        url: An empty database.
        attempts: Live attempts that the database gets.
        runs: Finished runs that the database gets, for lists.
    """

    name = "Palestra"
    has_lists = True

    def __init__(self, directory: Path, url: str, attempts: int, runs: int = 0) -> None:
        super().__init__(directory)
        self.url = url
        upgrade(url)
        self.clients, token = asyncio.run(_make_clients(url, attempts, runs))
        # No attempt renews its lease.
        settings = {
            "PALESTRA_API_REQUESTS_PER_SECOND": "0",
            "PALESTRA_RECLAIM_SECONDS": "86400",
        }
        self.stack = Stack(directory, database_url=url, settings=settings)
        self.stack.tokens["user"] = token
        self.port = self.stack.port
        self._curve_run = ""

    def start(self) -> None:
        self.stack.start_server()
        self.process = self.stack.processes["server"]

    def stop(self) -> None:
        self.stack.__exit__()

    def take_clients(self, number: int) -> list[PalestraClient]:
        """Returns attempts that have sent nothing yet."""
        used, self.clients = self.clients[:number], self.clients[number:]
        return used

    def measure_load(self, workload: Workload, seconds: float) -> Load:
        clients = self.take_clients(workload.clients)
        return load.measure(self.port, workload, clients, seconds)

    def fill_curve(self, points: int) -> None:
        (client,) = self.take_clients(1)
        self._curve_run = client.run_id
        self.fill(client, [CURVE], points)

    def fill(self, client: PalestraClient, names: Sequence[str], points: int) -> None:
        """Sends series of equal lengths for an unused attempt, and waits for the compaction."""
        asyncio.run(_fill(self.port, client, names, points))
        self.wait_for_compaction()

    def wait_for_compaction(self) -> None:
        """Waits until all points are in blocks."""

        def is_compacted() -> bool:
            return asyncio.run(_count_tails(self.url)) == 0

        wait_for(is_compacted, "all points are in blocks", patience_seconds=_COMPACTION_SECONDS)

    def read_curve(self) -> int:
        query = {
            "select": [{"run_id": self._curve_run, "series": CURVE}],
            "buckets": 1_000,
            "columns": ["mean"],
        }
        return len(self.stack.post("series:query", query)["series"][0]["mean"])

    def fill_runs(self, runs: int) -> None:
        """Does nothing: they are written before the server starts."""

    def read_runs(self) -> int:
        wanted = {"filter": "agent:agent-1 env:env-2", "sort": "-evaluation/mean.best"}
        found = self.stack.get("runs", limit="100", **wanted)
        return len(found["items"])


async def _make_clients(url: str, attempts: int, runs: int) -> tuple[list[PalestraClient], str]:
    """Makes finished runs and live attempts in a database, and a token of a user who may read."""
    database = Database(url)
    try:
        world = await make_world(database)
        if runs:
            await list_queries.fill(database, world, runs, SERIES)
        worker = await world.register(slots=1 + attempts)
        clients = []
        for number in range(attempts):
            job = await world.submit_one_job(seeds=[1 + number])
            claimed = await world.start(job.id, worker.worker_id, slot=1 + number)
            attempt_id = claimed.work_order.attempt_id
            clients.append(PalestraClient(attempt_id, job.run_ids[0], claimed.token))
        async with database.write() as session:
            request = TokenRequest(name="bench", scopes=(Scope.READ,))
            token = await tokens.issue_token(session, None, world.admin.user_id, request)
        return clients, token.secret or ""
    finally:
        await database.dispose()


async def _count_tails(url: str) -> int:
    database = Database(url)
    try:
        async with database.read() as session:
            return await rows.count_tails(session)
    finally:
        await database.dispose()


async def _fill(port: int, client: PalestraClient, names: Sequence[str], points: int) -> None:
    connection = await HttpConnection.open(port, client.path, client.headers)
    chance = random.Random(1)
    seq = 1
    for first in range(0, points, _STEPS):
        at = range(first, min(first + _STEPS, points))
        axes = {
            "env_step": [64 * one for one in at],
            "update": list(at),
            "episode": [one // 7 for one in at],
            "wall": [1.7e9 + round(0.013 * one, 3) for one in at],
        }
        noise = [1.0 / (1 + one / 1e3) + 0.1 * chance.random() for one in at]
        values = np.array(noise, np.float32).astype(float).tolist()  # as losses are
        for begin in range(0, len(names), _SERIES):
            series = dict.fromkeys(names[begin : begin + _SERIES], values)
            record = {"type": "table", "run": client.run_id, **axes, "series": series}
            body = orjson.dumps({"first_seq": seq, "records": [record]})
            while (answer := await connection.send(body))[0] != _OK:
                assert answer[0] in _WAIT, answer
                await asyncio.sleep(1)
            seq += 1
    connection.close()

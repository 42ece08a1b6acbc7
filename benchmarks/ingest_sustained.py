"""Points a second that a server takes for a minute, while it is killed at random moments.

Twenty attempts send batches over HTTP as quickly as they are acknowledged. The server is killed by
SIGKILL ten times and started again; a client sends the batch that was not acknowledged again. At
the end every point that was sent is stored once, read back from blocks and tails. Memory of the
server and batches that wait for the compactor are sampled. The minute is time in which a server
was up; what a restart takes is added to it.

    python -m benchmarks.ingest_sustained [--seconds 60] [--kills 10] [--database sqlite]
"""

import argparse
import asyncio
import multiprocessing
import random
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Final

import psutil
from sqlalchemy import func, select

from app.db.engine import Database
from app.db.models import SeriesRow, TailRow
from benchmarks._report import align_columns, describe_machine
from benchmarks._tracking.clients import PalestraClient
from benchmarks._tracking.load import HttpConnection, encode_beforehand
from benchmarks._tracking.palestra_server import Palestra
from benchmarks._tracking.workloads import Workload
from benchmarks.audit_log import database_url
from tests.support.stored_points import read_columns

CLIENTS: Final = 20
LEAST_RATE: Final = 500_000.0
WORK: Final = Workload("50 steps x 20 series", CLIENTS, 50, 20)
_OK: Final = 200
_REST_SECONDS: Final = 0.05
_SAMPLE_SECONDS: Final = 1.0


@dataclass(slots=True)
class Samples:
    """What was seen of the server, once a second while it was up."""

    memory: list[float] = field(default_factory=list)
    """MiB of resident memory."""
    tails: list[int] = field(default_factory=list)
    """Batches that wait for the compactor."""
    up_seconds: float = 0.0


def encode(clients: Sequence[PalestraClient], seconds: float) -> None:
    """Encodes the batches of `send_all` in the process that calls it later."""
    encode_beforehand(WORK, clients, seconds)


def take_stop(stop: Event) -> None:
    """Keeps the event that ends `send_all` in the process of the load."""
    _stop.append(stop)


_stop: list[Event] = []


def send_all(port: int, clients: Sequence[PalestraClient]) -> tuple[list[int], float]:
    """Sends batches of all clients until the process is told to stop.

    Returns:
        The number of acknowledged batches of each, and the processor seconds that sending took.
    """
    began = time.process_time()
    return asyncio.run(_send_all(port, clients, _stop[0])), time.process_time() - began


async def _send_all(port: int, clients: Sequence[PalestraClient], stop: Event) -> list[int]:
    return list(await asyncio.gather(*(_send(port, one, stop) for one in clients)))


async def _send(port: int, client: PalestraClient, stop: Event) -> int:
    number = 0
    while not stop.is_set():
        try:
            connection = await HttpConnection.open(port, client.path, client.headers)
            while not stop.is_set():
                status, content = await connection.send(client.encode(WORK, number))
                if status == _OK:
                    number += 1
                    continue
                assert status in {429, 503}, content
                await asyncio.sleep(_REST_SECONDS)
            connection.close()
        except (OSError, asyncio.IncompleteReadError, ValueError):
            await asyncio.sleep(_REST_SECONDS)
    # The last batch of a killed server may be stored without an acknowledgement.
    return number


def kill_and_sample(server: Palestra, seconds: float, kills: int) -> Samples:
    """Samples the server while it is up, and kills it at random moments of that time."""
    chance = random.Random()
    moments = sorted(chance.uniform(0.05, 0.95) * seconds for _ in range(kills))
    samples = Samples()
    for moment in (*moments, seconds):
        _sample(server, samples, moment)
        if moment < seconds:
            server.stack.kill("server")
            server.start()
    return samples


def _sample(server: Palestra, samples: Samples, until: float) -> None:
    """Samples the server once a second until it was up for some seconds in all."""
    began = time.monotonic()
    before = samples.up_seconds
    while samples.up_seconds < until:
        time.sleep(min(_SAMPLE_SECONDS, until - samples.up_seconds))
        memory = psutil.Process(server.stack.processes["server"].pid).memory_info().rss / 2**20
        samples.memory.append(memory)
        samples.tails.append(asyncio.run(count_tails(server.url)))
        samples.up_seconds = before + time.monotonic() - began


async def count_tails(url: str) -> int:
    """Returns the number of batches that wait for the compactor."""
    database = Database(url, pool_size=1)
    try:
        async with database.read() as session:
            return await session.scalar(select(func.count()).select_from(TailRow)) or 0
    finally:
        await database.dispose()


async def find_faults(
    url: str, clients: Sequence[PalestraClient], acknowledged: Sequence[int]
) -> list[str]:
    """Compares what is stored with what was acknowledged, point by point."""
    database = Database(url)
    faults = []
    try:
        async with database.read() as session:
            for client, batches in zip(clients, acknowledged, strict=True):
                query = select(SeriesRow.name, SeriesRow.points).where(
                    SeriesRow.run_id == client.run_id
                )
                counted = dict((await session.execute(query)).all())
                for name in WORK.make_steps(0).series:
                    found = await read_columns(session, client.run_id, name)
                    updates = [one for columns in found for one in columns.update.tolist()]
                    # The batch under way at the end may be stored, too.
                    expected = {batches * WORK.steps, (batches + 1) * WORK.steps}
                    if len(updates) not in expected or updates != list(range(len(updates))):
                        fault = f"{len(updates)} stored, {batches * WORK.steps} acknowledged"
                        faults.append(f"{client.run_id} {name}: {fault}")
                    if counted.get(name) != len(updates):
                        faults.append(f"{client.run_id} {name}: {counted.get(name)} counted")
        return faults
    finally:
        await database.dispose()


def run(url: str, directory: Path, values: argparse.Namespace) -> bool:
    """Runs the load on one database and prints what was found."""
    server = Palestra(directory, url, CLIENTS)
    server.start()
    try:
        clients = server.take_clients(CLIENTS)
        context = multiprocessing.get_context("spawn")
        stop = context.Event()
        with ProcessPoolExecutor(1, context, take_stop, (stop,)) as pool:
            pool.submit(encode, clients, values.seconds).result()
            sending = pool.submit(send_all, server.port, clients)
            samples = kill_and_sample(server, values.seconds, values.kills)
            stop.set()
            acknowledged, sending_seconds = sending.result()
        began = time.monotonic()
        server.wait_for_compaction()
        drained = time.monotonic() - began
    finally:
        server.stop()
    faults = asyncio.run(find_faults(url, clients, acknowledged))
    points = sum(acknowledged) * WORK.points
    rate = points / samples.up_seconds
    tenth = max(1, len(samples.memory) // 10)
    rows = [
        ["points acknowledged", f"{points:,}"],
        ["points a second while up", f"{rate:,.0f}"],
        ["seconds up", f"{samples.up_seconds:.1f}"],
        [
            "memory MiB: first, last, largest",
            " ".join(
                f"{one:.0f}"
                for one in (
                    max(samples.memory[:tenth]),
                    max(samples.memory[-tenth:]),
                    max(samples.memory),
                )
            ),
        ],
        [
            "batches waiting: median, largest",
            f"{sorted(samples.tails)[len(samples.tails) // 2]:,} {max(samples.tails):,}",
        ],
        ["seconds until all is in blocks", f"{drained:.1f}"],
        ["processor seconds of the load", f"{sending_seconds:.1f}"],
        ["points lost or doubled", "none" if not faults else f"in {len(faults)} series"],
    ]
    print(align_columns(rows))
    for fault in faults[:5]:
        print(f"  {fault}")
    return not faults and (values.least is None or rate >= values.least)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--database", choices=("sqlite", "postgresql"), help="both by default")
    values = parser.parse_args()
    print(describe_machine())
    good = True
    for kind in (values.database,) if values.database else ("sqlite", "postgresql"):
        values.least = LEAST_RATE if kind == "sqlite" else None
        with (
            database_url(kind) as url,
            tempfile.TemporaryDirectory(prefix="plr-", dir="/tmp") as directory,
        ):
            print(f"\n{kind}, {CLIENTS} attempts, {values.kills} kills")
            good = run(url, Path(directory), values) and good
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())

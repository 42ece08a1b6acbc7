"""Points per second that a server takes from one client and from a hundred, over HTTP on loopback.

The server runs in a process of its own, as `palestra up` starts it, and this program sends batches
that it encoded before. It prints the disk's `fdatasync` time, since every batch is on the disk
before it is acknowledged, and the bytes of database per point.

    python -m benchmarks.tracking [--seconds 5] [--database sqlite | postgresql]
"""

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from app.db.engine import Database
from app.db.migrate import upgrade
from benchmarks._report import align_columns, describe_machine
from benchmarks.audit_log import database_url
from tests.support.process_stack import Stack
from tests.support.server_fixture import make_world

MOST_CLIENTS = 100


@dataclass(frozen=True)
class Sender:
    """An attempt that may write telemetry."""

    attempt_id: str
    run_id: str
    token: str


@dataclass(frozen=True)
class Workload:
    """Batches of `series` series with `steps` points each, from `clients` attempts at once."""

    name: str
    clients: int
    steps: int
    series: int

    def encode_batches(self, run_id: str) -> Iterator[bytes]:
        """Yields the bodies of consecutive batches of a run."""
        first_seq, step = 1, 0
        while True:
            at = range(step, step + self.steps)
            columns = {
                "env_step": [64 * one for one in at],
                "update": list(at),
                "episode": [one // 7 for one in at],
                "wall": [1.7e9 + round(0.013 * one, 3) for one in at],
            }
            series = {
                f"loss/{number}": [1.0 / (1 + one + number) for one in at]
                for number in range(self.series)
            }
            records = [{"type": "table", "run": run_id, **columns, "series": series}]
            yield json.dumps(
                {"first_seq": first_seq, "records": records}, separators=(",", ":")
            ).encode()
            first_seq, step = first_seq + 1, step + self.steps


WORKLOADS = (
    Workload("one client, 50 steps x 20 series", 1, 50, 20),
    Workload("one client, 1,000 points of one series", 1, 1_000, 1),
    Workload("100 clients, 10 steps x 10 series", MOST_CLIENTS, 10, 10),
)


async def make_senders(url: str) -> list[Sender]:
    """Makes one live attempt for each client of each workload in an empty database."""
    database = Database(url)
    try:
        world = await make_world(database)
        worker = await world.register(slots=sum(one.clients for one in WORKLOADS))
        senders = []
        for number in range(sum(one.clients for one in WORKLOADS)):
            job = await world.submit_one_job(seeds=[number])
            claimed = await world.start(job.id, worker.worker_id, slot=number)
            senders.append(Sender(claimed.work_order.attempt_id, job.run_ids[0], claimed.token))
        return senders
    finally:
        await database.dispose()


async def send(port: int, sender: Sender, bodies: Sequence[bytes], until: float) -> list[float]:
    """Sends batches over one connection until a time; returns the seconds of each request."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = (
        f"POST /api/v1/attempts/{sender.attempt_id}/telemetry HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: Bearer {sender.token}\r\nContent-Type: application/json\r\n"
        "Content-Length: {}\r\n\r\n"
    )
    taken = []
    for body in bodies:
        began = time.perf_counter()
        if began > until:
            break
        writer.write(head.format(len(body)).encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1])
            for line in answer.lower().split(b"\r\n")
            if line.startswith(b"content-length")
        )
        content = await reader.readexactly(length)
        assert answer.startswith(b"HTTP/1.1 200"), answer + content
        taken.append(time.perf_counter() - began)
    else:
        raise AssertionError("more batches have to be encoded")
    writer.close()
    return taken


async def measure(
    port: int, workload: Workload, senders: Sequence[Sender], seconds: float
) -> tuple[float, list[float]]:
    """Returns the points per second and the seconds of each batch."""
    each = int(max(40, seconds * 1_000 / workload.clients))
    bodies = [list(islice(workload.encode_batches(one.run_id), each)) for one in senders]
    began = time.perf_counter()
    found = await asyncio.gather(
        *(
            send(port, sender, some, began + seconds)
            for sender, some in zip(senders, bodies, strict=True)
        )
    )
    elapsed = time.perf_counter() - began
    times = [one for some in found for one in some]
    return len(times) * workload.steps * workload.series / elapsed, times


def time_fdatasync(directory: Path) -> float:
    """Returns the median seconds of an `fdatasync` of 4 KiB."""
    times = []
    with (directory / "probe").open("wb", buffering=0) as file:
        for _ in range(50):
            file.write(bytes(4_096))
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - began)
    return statistics.median(times)


def run(url: str, directory: Path, seconds: float) -> list[list[str]]:
    """Returns the rows of the table for one database."""
    upgrade(url)
    senders = asyncio.run(make_senders(url))
    settings = {"PALESTRA_DAEMONS": "false", "PALESTRA_API_REQUESTS_PER_SECOND": "0"}
    stack = Stack(directory, database_url=url, settings=settings)
    try:
        stack.start_server()
        rows = []
        for workload in WORKLOADS:
            used, senders = senders[: workload.clients], senders[workload.clients :]
            rate, times = asyncio.run(measure(stack.port, workload, used, seconds))
            times.sort()
            rows.append(
                [
                    workload.name,
                    f"{rate:,.0f}",
                    f"{1e3 * statistics.median(times):.1f}",
                    f"{1e3 * times[int(0.99 * len(times))]:.1f}",
                    f"{len(times):,}",
                ]
            )
        return rows
    finally:
        stack.__exit__()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5, help="of each workload")
    parser.add_argument("--database", choices=("sqlite", "postgresql"), help="both by default")
    values = parser.parse_args()
    print(describe_machine())
    for kind in (values.database,) if values.database else ("sqlite", "postgresql"):
        with (
            database_url(kind) as url,
            tempfile.TemporaryDirectory(prefix="plr-", dir="/tmp") as directory,
        ):
            print(f"\n{kind}: fdatasync {1e3 * time_fdatasync(Path(directory)):.2f} ms")
            rows = run(url, Path(directory), values.seconds)
            print(align_columns([["workload", "points/s", "p50 ms", "p99 ms", "batches"], *rows]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""A thousand clients of the live stream, of which fifty freeze, and 500 random aborts.

A server process, with Valkey between server processes, has 100 users in two projects and 20 runs
that write ten batches of points a second. 1,000 clients follow one run each, then all ten runs of
their project. The time of a batch is that from its encoding in the sender to its arrival at a
client. 50 clients stop reading: how long after the last byte that their system acknowledged does
the server end them? At last 500 clients abort at random times and are replaced, and no client may
receive a frame of a run that it did not ask for.

Senders and clients are processes of their own on the same machine. For server and clients it says
how long their threads, ready to run, waited for a processor: delivery cannot be faster than that.

    python -m benchmarks.stream_clients [--clients 1000] [--seconds 20]
        [--database sqlite | postgresql]
"""

import argparse
import asyncio
import multiprocessing
import os
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import uvloop

from app.connections import raise_descriptor_limit
from app.db.migrate import upgrade
from benchmarks._report import describe_machine, show
from benchmarks._streams import senders
from benchmarks._streams.clients import (
    Findings,
    FrozenClient,
    StreamClient,
    choose_runs,
    list_served,
)
from benchmarks._streams.content import Training, Viewer, fill
from benchmarks.audit_log import database_url
from tests.support.process_stack import Stack

RUNS, USERS, RATE = 20, 100, 10.0
FROZEN, ABORTS = 50, 500
MAX_LATENCY = 0.25
MAX_DROP = 30.0
MAX_MEMORY = 400
"""MiB of the server process."""
_ABORTERS = 50
"""Clients that abort and are replaced, at a time."""


class ProcessUse:
    """Memory and processor time of a process."""

    def __init__(self, pid: int) -> None:
        self.process = psutil.Process(pid)
        self._tasks = Path(f"/proc/{pid}/task")
        self.peak = 0.0
        self._before = self._read_seconds()

    def _read_seconds(self) -> tuple[float, float, float]:
        """Returns the time, the processor time, and the time that threads waited for a processor.

        All three in seconds.
        """
        times = self.process.cpu_times()
        waited = 0
        for task in self._tasks.iterdir():
            with suppress(OSError):
                waited += int((task / "schedstat").read_text().split()[1])
        return time.monotonic(), float(times.user + times.system), waited / 1e9

    def read_memory(self) -> float:
        """Returns the resident memory in MiB."""
        found = float(self.process.memory_info().rss) / 2**20
        self.peak = max(self.peak, found)
        return found

    def describe_processor(self) -> str:
        """Returns the average use of processors since the last call, in words."""
        before, self._before = self._before, self._read_seconds()
        passed, used, waited = (now - old for now, old in zip(self._before, before, strict=True))
        return f"{used / passed:.2f} cores (waited for {waited / passed:.2f})"


async def open_clients(
    port: int,
    trainings: Sequence[Training],
    viewers: Sequence[Viewer],
    findings: Findings,
    *,
    count: int,
    follow_all: bool,
) -> list[StreamClient]:
    """Opens clients, each of the next user."""
    clients = []
    for number in range(count):
        viewer = viewers[number % len(viewers)]
        runs = choose_runs(trainings, viewer, number // len(viewers), follow_all=follow_all)
        client = StreamClient(viewer, runs, findings)
        clients.append(client.open(port, f"127.0.1.{1 + number % 100}"))
    opened: list[StreamClient] = []
    for start in range(0, len(clients), 50):
        opened += await asyncio.gather(*clients[start : start + 50])
    return opened


async def measure_delivery(findings: Findings, use: ProcessUse, seconds: float) -> None:
    """Collects latencies for a while, and prints the memory and the processor time."""
    own = ProcessUse(os.getpid())
    await asyncio.sleep(3)
    for one in (use, own):
        one.describe_processor()
    findings.is_measuring, before = True, findings.frames
    for _ in range(int(seconds)):
        await asyncio.sleep(1)
        use.read_memory()
    findings.is_measuring = False
    rate = (findings.frames - before) / seconds
    print(
        f"  {rate:,.0f} frames/s; server {use.describe_processor()}, {use.read_memory():.0f} MiB; "
        f"clients {own.describe_processor()}"
    )


async def measure_frozen(clients: Sequence[StreamClient], use: ProcessUse) -> list[FrozenClient]:
    """Freezes clients, and watches them until the server has dropped all of them."""
    frozen = [FrozenClient(client) for client in clients]
    for one in frozen:
        one.freeze()
    end = time.monotonic() + 90
    while any(one.dropped_at is None for one in frozen) and time.monotonic() < end:
        await asyncio.sleep(0.5)
        use.read_memory()
        served = list_served(use.process)
        for one in frozen:
            one.look(served)
    return frozen


async def abort_randomly(
    port: int, trainings: Sequence[Training], viewers: Sequence[Viewer], findings: Findings
) -> None:
    """Lets clients abort at random times, each replaced by a client of another user."""
    chooser = random.Random(1)

    async def abort_some(count: int) -> None:
        for _ in range(count):
            viewer = chooser.choice(viewers)
            runs = choose_runs(trainings, viewer, chooser.randrange(RUNS), follow_all=False)
            client = StreamClient(viewer, runs, findings)
            await client.open(port, "127.0.2.1")
            await asyncio.sleep(chooser.random())
            client.abort()

    await asyncio.gather(*(abort_some(ABORTS // _ABORTERS) for _ in range(_ABORTERS)))


async def measure(
    stack: Stack,
    trainings: Sequence[Training],
    viewers: Sequence[Viewer],
    values: argparse.Namespace,
) -> bool:
    """Prints all figures; returns whether they are within their bounds."""
    use = ProcessUse(stack.processes["server"].pid)
    is_good = True
    print(f"server before the clients: {use.read_memory():.0f} MiB")
    for follow_all in (True, False):
        findings = Findings()
        clients = await open_clients(
            stack.port, trainings, viewers, findings, count=values.clients, follow_all=follow_all
        )
        frozen = asyncio.create_task(measure_frozen(clients[:FROZEN], use))
        print(
            f"{len(clients)} clients, {RUNS // 2 if follow_all else 1} runs each, {FROZEN} frozen"
        )
        await measure_delivery(findings, use, values.seconds)
        is_good &= show("delivery", findings.latencies, "s", bound=MAX_LATENCY, at=0.99)
        dropped = [one.wait for one in await frozen if one.wait is not None]
        queued = statistics.median(one.queued for one in frozen.result())
        print(f"  {len(dropped)} of {FROZEN} frozen dropped; {queued:,.0f} bytes unread each")
        is_good &= len(dropped) == FROZEN
        if dropped:
            is_good &= show("drop after the last acknowledged byte", dropped, "s", MAX_DROP, 1)
        if not follow_all:
            await abort_randomly(stack.port, trainings, viewers, findings)
            print(f"  {ABORTS} aborts: {findings.frames:,} frames, {findings.foreign} foreign")
        is_good &= report_faults(findings)
        for client in clients:
            client.abort()
    return show("peak memory of the server", [use.peak], "MiB", MAX_MEMORY) and is_good


def report_faults(findings: Findings) -> bool:
    """Prints what must not happen; returns whether nothing of it did."""
    lost = sorted(set(findings.lost))[:3]
    print(
        f"  foreign {findings.foreign}, repeated {findings.repeated}, "
        f"streams lost {len(findings.lost)} {lost or ''}"
    )
    return not (findings.foreign or findings.repeated or findings.lost)


@contextmanager
def run_server(url: str, directory: Path) -> Iterator[Stack]:
    """Starts Valkey and one server process whose caps suffice for all clients."""
    valkey = Stack(directory)
    caps = {
        # The compactor keeps tails short; the attempts have no supervisors to renew their leases.
        "PALESTRA_LEASE_SECONDS": "3600",
        "PALESTRA_RECLAIM_SECONDS": "3600",
        "PALESTRA_API_REQUESTS_PER_SECOND": "0",
        "PALESTRA_MAX_CONNECTIONS_PER_ADDRESS": "5000",
        "PALESTRA_SSE_STREAMS": "5000",
        "PALESTRA_SSE_STREAMS_PER_USER": "100",
        "PALESTRA_SSE_STREAMS_PER_CREDENTIAL": "100",
        "PALESTRA_BUS_URL": f"redis://127.0.0.1:{valkey.broker_port}/1",
    }
    stack = Stack(directory, database_url=url, settings=caps)
    try:
        valkey.start_broker()
        stack.start_server()
        yield stack
    finally:
        stack.__exit__()
        valkey.__exit__()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=20, help="of each measurement")
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    values = parser.parse_args()
    print(describe_machine())
    raise_descriptor_limit()
    with (
        database_url(values.database) as url,
        tempfile.TemporaryDirectory(prefix="plr-", dir="/tmp") as directory,
    ):
        upgrade(url)
        trainings, viewers = asyncio.run(fill(url, RUNS, USERS))
        with run_server(url, Path(directory)) as stack:
            spawn = multiprocessing.get_context("spawn")
            stop = spawn.Event()
            sender = spawn.Process(target=senders.run, args=(stack.port, trainings, RATE, stop))
            sender.start()
            try:
                is_good = uvloop.run(measure(stack, trainings, viewers, values))
            finally:
                stop.set()
                sender.join(10)
    return 0 if is_good else 1


if __name__ == "__main__":
    raise SystemExit(main())

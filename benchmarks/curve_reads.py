"""Milliseconds of a query for 1,000 buckets, by the length of the curve and the range, over HTTP.

Curves of 1,000 to 10 million points are sent and compacted, then read whole and in random ranges;
then 300 series on one grid, as JSON and as Arrow. The file cache is warm; the first reads of a
server that was just started and whose database file was dropped from the cache are printed, too.

    python -m benchmarks.curve_reads [--most 10000000] [--series 300] [--series-points 100000]
        [--plot reads.svg] [--database sqlite | postgresql]
"""

import argparse
import asyncio
import os
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from app.services.curves.answers import ARROW
from benchmarks._plot import write_plot
from benchmarks._report import describe_machine, show
from benchmarks._tracking.clients import PalestraClient
from benchmarks._tracking.load import HttpConnection
from benchmarks._tracking.palestra_server import Palestra
from benchmarks._tracking.servers import CURVE
from benchmarks.audit_log import database_url

BUCKETS: Final = 1_000
REPEATS: Final = 200
WIDE_REPEATS: Final = 20
_STRIDE: Final = 64
"""env_steps from one point to the next."""
_OK: Final = 200


async def time_queries(
    server: Palestra, queries: Sequence[dict[str, Any]], accept: str = "application/json"
) -> list[float]:
    """Returns the milliseconds of each query, sent one after the other over one connection."""
    headers = {"Authorization": f"Bearer {server.stack.tokens['user']}", "Accept": accept}
    connection = await HttpConnection.open(server.port, "/api/v1/series:query", headers)
    times = []
    for query in queries:
        body = orjson.dumps(query)
        began = time.perf_counter()
        status, content = await connection.send(body)
        times.append(1e3 * (time.perf_counter() - began))
        assert status == _OK, content
    connection.close()
    return times


def make_queries(client: PalestraClient, points: int, ranges: int) -> list[dict[str, Any]]:
    """Returns queries for random ranges of a curve, or for all of it with `ranges` 0."""
    base = {"select": [{"run_id": client.run_id, "series": CURVE}], "buckets": BUCKETS}
    if not ranges:
        return [base] * REPEATS
    chance = random.Random(points)
    found = []
    for _ in range(ranges):
        width = max(1, round(points * 10 ** chance.uniform(-3, 0)))
        start = chance.randrange(max(1, points - width))
        found.append({**base, "start": _STRIDE * start, "end": _STRIDE * (start + width)})
    return found


def drop_from_cache(url: str) -> None:
    """Asks the kernel to drop the pages of a SQLite database from its cache."""
    descriptor = os.open(url.removeprefix("sqlite:///"), os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def run(url: str, directory: Path, values: argparse.Namespace) -> bool:
    """Measures one database and prints what was found."""
    lengths = [10**power for power in range(3, 8) if 10**power <= values.most]
    server = Palestra(directory, url, len(lengths) + 1)
    server.start()
    good = True
    try:
        clients = server.take_clients(len(lengths) + 1)
        for client, points in zip(clients, lengths, strict=False):
            server.fill(client, [CURVE], points)
        medians: dict[str, list[float]] = {"whole curve": [], "random ranges": []}
        for client, points in zip(clients, lengths, strict=False):
            for what, ranges in (("whole curve", 0), ("random ranges", REPEATS)):
                queries = make_queries(client, points, ranges)
                times = asyncio.run(time_queries(server, [queries[0], *queries]))[1:]
                is_longest = points == lengths[-1]
                good &= show(f"{points:,} points, {what}", times, "ms", 10 if is_longest else None)
                if is_longest:
                    good &= show(f"{points:,} points, {what}", times, "ms", 30, 0.99)
                medians[what].append(sorted(times)[len(times) // 2])
        bound = 3 * max(medians["whole curve"][0], 5.0)
        is_flat = max(medians["whole curve"]) <= bound
        print(f"largest p50 of whole curves at most {bound:.1f} ms  {'ok' if is_flat else 'OVER'}")
        if values.plot:
            write_plot(values.plot, "Milliseconds over points of a curve", lengths, medians)
        good = measure_wide(server, clients[-1], values) and good and is_flat
        if url.startswith("sqlite"):
            measure_cold(server, url, clients[len(lengths) - 1], clients[-1], values)
        return good
    finally:
        server.stop()


def make_wide_query(client: PalestraClient, values: argparse.Namespace) -> dict[str, Any]:
    """Returns the query for all series of a run on one grid, for a chart of their means."""
    selected = [
        {"run_id": client.run_id, "series": f"wide/{number}"} for number in range(values.series)
    ]
    return {"select": selected, "buckets": BUCKETS, "columns": ["mean"]}


def measure_wide(server: Palestra, client: PalestraClient, values: argparse.Namespace) -> bool:
    """Reads many series on one grid."""
    names = [f"wide/{number}" for number in range(values.series)]
    server.fill(client, names, values.series_points)
    query, good = make_wide_query(client, values), True
    for accept, form in (("application/json", "JSON"), (ARROW, "Arrow")):
        times = asyncio.run(time_queries(server, [query] * (WIDE_REPEATS + 1), accept))[1:]
        what = f"{values.series} series x {values.series_points:,}, {form}"
        good = show(what, times, "ms", 250) and good
    return good


def measure_cold(
    server: Palestra,
    url: str,
    longest: PalestraClient,
    wide: PalestraClient,
    values: argparse.Namespace,
) -> None:
    """Prints the first read of the longest curve and of many series after a start."""
    for what, query in (
        ("the longest curve", make_queries(longest, values.most, 0)[0]),
        (f"{values.series} series", make_wide_query(wide, values)),
    ):
        server.stack.kill("server")
        drop_from_cache(url)
        server.start()
        show(f"cold: {what}", asyncio.run(time_queries(server, [query])), "ms")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--most", type=int, default=10_000_000, help="points of the longest curve")
    parser.add_argument("--series", type=int, default=300, help="series on one grid")
    parser.add_argument("--series-points", type=int, default=100_000, help="points of each")
    parser.add_argument("--plot", type=Path, help="file of a plot, as SVG")
    parser.add_argument("--database", choices=("sqlite", "postgresql"), help="both by default")
    values = parser.parse_args()
    print(describe_machine())
    good = True
    for kind in (values.database,) if values.database else ("sqlite", "postgresql"):
        with (
            database_url(kind) as url,
            tempfile.TemporaryDirectory(prefix="plr-", dir="/tmp") as directory,
        ):
            print(f"\n{kind}")
            good = run(url, Path(directory), values) and good
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())

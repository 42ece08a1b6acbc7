"""What tracking servers take and answer, beside each other on the same work over HTTP on loopback.

Palestra runs on SQLite and on PostgreSQL; Trackio, MLflow and Aim where `make bench-peers` has
installed them. Servers take turns in each round, so that other load on the machine affects all of
them; figures are medians of the rounds with the least and the largest. The load generator is a
process of its own, which encodes the batches beforehand; the share of a core that it takes is
printed. The disk's `fdatasync` time is printed, since Palestra acknowledges a batch once
it is on the disk. Aim is written to by its own library, whose calls return before the server has
the points: its rate includes the time until it has them, and it has no times of batches.

The list asks each server for the best 100 runs. MLflow answers runs with all of their metrics and
parameters (20 and 22 here) and cannot be asked for fewer; Palestra answers runs with state,
progress and their latest and best evaluations with the return of each episode, some 170 kB, and
with no column beside them.

    python -m benchmarks.tracking [--seconds 5] [--rounds 3] [--points 1000000] [--runs 10000]
        [--servers palestra,postgresql,trackio,mlflow,aim]
"""

import argparse
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from benchmarks._report import align_columns, describe_machine
from benchmarks._tracking.load import Load
from benchmarks._tracking.palestra_server import Palestra
from benchmarks._tracking.servers import PEERS, TrackingServer, list_installed
from benchmarks._tracking.workloads import WORKLOADS
from benchmarks.audit_log import database_url

OURS: Final = ("palestra", "postgresql")
CURVE: Final = "read of a curve"
LIST: Final = "best 100 of the runs of an agent and env"
MEMORY: Final = "memory when idle"
_MAX_P99: Final = 0.150

Figures = dict[str, dict[str, list[float]]]
"""Figures of all rounds by row and server."""


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


@contextmanager
def open_server(name: str, rounds: int, runs: int) -> Iterator[TrackingServer]:
    """Starts a server that holds `runs` finished runs, and ends it."""
    with ExitStack() as stack:
        directory = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="plr-", dir="/tmp"))
        )
        if name in OURS:
            url = stack.enter_context(database_url("sqlite" if name == "palestra" else name))
            attempts = 1 + rounds * sum(one.clients for one in WORKLOADS)
            server: TrackingServer = Palestra(directory, url, attempts, runs)
        else:
            server = PEERS[name](directory)
        stack.callback(server.stop)
        server.start()
        if runs and server.has_lists:
            server.fill_runs(runs)
        yield server


def measure(names: Sequence[str], values: argparse.Namespace) -> Figures:
    """Runs all work on all servers, in turns."""
    found: Figures = {}
    with ExitStack() as stack:
        servers = {
            name: stack.enter_context(open_server(name, values.rounds, values.runs))
            for name in names
        }
        time.sleep(values.rest)
        for name, server in servers.items():
            add(found, MEMORY, name, server.measure_memory())
        for _ in range(values.rounds):
            measure_round(found, servers, values)
        if values.points:
            for name, server in servers.items():
                if name == "aim":
                    continue  # it would write for ten minutes
                server.fill_curve(values.points)
                add(found, CURVE, name, *(1e3 * one for one in server.time_curve()))
    return found


def measure_round(
    found: Figures, servers: Mapping[str, TrackingServer], values: argparse.Namespace
) -> None:
    """Measures the batches and lists of all servers once."""
    for workload in WORKLOADS:
        for name, server in servers.items():
            done = server.measure_load(workload, values.seconds)
            add(found, workload.name, name, done.points_per_second)
            add_times(found, f"{workload.name}: batch", name, done)
    if values.runs:
        for name, server in servers.items():
            add(found, LIST, name, *(1e3 * one for one in server.time_runs()))


def add(found: Figures, row: str, name: str, *figures: float) -> None:
    """Adds figures of a server."""
    found.setdefault(row, {}).setdefault(name, []).extend(figures)


def add_times(found: Figures, row: str, name: str, done: Load) -> None:
    """Adds the median and the 99th percentile of a batch's milliseconds, and what was refused."""
    if done.seconds:
        times = done.seconds
        for part, value in (
            ("p50 ms", times[len(times) // 2]),
            ("p99 ms", times[int(0.99 * len(times))]),
        ):
            add(found, f"{row} {part}", name, 1e3 * value)
        add(found, f"{row}es: load generator, % of a core", name, 100 * done.generator_seconds)
    add(found, f"{row}es refused", name, done.refused)


def format_table(found: Figures, names: Sequence[str]) -> str:
    """Returns a row per figure and a column per server: the median, the least and the largest."""
    rows = [["", *names]]
    for row, by_server in found.items():
        if "refused" in row and not any(map(any, by_server.values())):
            continue
        cells = [_format(by_server.get(name, ())) for name in names]
        rows.append([row, *cells])
    return align_columns(rows)


def _format(values: Sequence[float]) -> str:
    if not values:
        return "-"
    middle = statistics.median(values)
    digits = 0 if middle >= 100 else 1
    text = f"{middle:,.{digits}f}"
    if len(values) > 1:
        text += f" ({min(values):,.{digits}f} to {max(values):,.{digits}f})"
    return text


def list_targets(found: Figures) -> Iterator[tuple[str, bool]]:
    """Yields each target of `palestra` beside a peer, with what was reached."""

    def median(row: str, name: str) -> float | None:
        values: Mapping[str, Sequence[float]] = found.get(row, {})
        return statistics.median(values[name]) if values.get(name) else None

    one, many = WORKLOADS[0].name, WORKLOADS[2].name
    for row, peer, least, is_rate in (
        (one, "trackio", 4.0, True),
        (one, "mlflow", 40.0, True),
        (many, "trackio", 10.0, True),
        (many, "mlflow", 10.0, True),
        (many, "aim", 10.0, True),
        (CURVE, "mlflow", 400.0, False),
        (LIST, "mlflow", 40.0, False),
        (MEMORY, "mlflow", 10.0, False),
    ):
        ours, theirs = median(row, "palestra"), median(row, peer)
        if ours and theirs:
            ratio = ours / theirs if is_rate else theirs / ours
            yield f"{row}: {ratio:.1f} x {peer} (target {least:g})", ratio >= least
    p99 = median(f"{many}: batch p99 ms", "palestra")
    if p99 is not None:
        yield f"{many}: p99 {p99:.0f} ms (target {1e3 * _MAX_P99:g})", p99 < 1e3 * _MAX_P99


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=5, help="of each work in each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--points", type=int, default=1_000_000, help="of the curve; 0: no curve")
    parser.add_argument("--runs", type=int, default=10_000, help="of the list; 0: no list")
    parser.add_argument("--rest", type=float, default=10, help="seconds before memory is read")
    parser.add_argument("--servers", default=",".join((*OURS, *PEERS)), help="by commas")
    values = parser.parse_args()
    # The servers are ended also where this process is told to end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    wanted = [name for name in values.servers.split(",") if name]
    for name in wanted:
        if name not in (*OURS, *PEERS):
            parser.error(f"{name!r} is none of {', '.join((*OURS, *PEERS))}")
    peers = list_installed([name for name in wanted if name in PEERS])
    names = [name for name in wanted if name in OURS or name in peers]
    print(describe_machine())
    with tempfile.TemporaryDirectory(prefix="plr-", dir="/tmp") as directory:
        print(f"fdatasync {1e3 * time_fdatasync(Path(directory)):.2f} ms")
    loads = [os.getloadavg()[0]]
    found = measure(names, values)
    loads.append(os.getloadavg()[0])
    print(f"load of the machine before and after: {loads[0]:.1f}, {loads[1]:.1f}\n")
    print("points a second; milliseconds; MiB")
    print(format_table(found, names))
    good = True
    for line, met in list_targets(found):
        print(f"{line}  {'ok' if met else 'MISSED'}")
        good = met and good
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())

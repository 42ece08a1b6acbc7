"""Memory and speed of exporting a series of ten million points, of the server and of the client.

Blocks of a series are written into SQLite as the compactor writes them. Processes of their own then
read the export from a server in each form, as points and as a data frame. Peaks are those of the
resident set (`VmHWM`) during each export.

    python -m benchmarks.record_exports [--points 10000000]
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import numpy as np
from sqlalchemy import update

from app.db.engine import Database
from app.db.models import AttemptRow
from app.db.repositories import compaction as compaction_rows
from app.db.repositories import telemetry as telemetry_rows
from app.db.repositories.compaction import NewBlock
from app.metrics import compaction
from app.metrics.columns import Columns
from app.services.telemetry import compaction as service
from benchmarks._record_client import FORMS, SERIES, read_memory
from benchmarks._report import align_columns, describe_machine
from benchmarks._tracking.clients import PalestraClient
from benchmarks._tracking.palestra_server import Palestra

SERVER_BOUND: Final = 160.0
"""Most MiB by which an export may raise the server's peak, some 70 of them for pyarrow."""
CLIENT_BOUND: Final = 100.0
"""Most MiB of a client that reads pieces or points, the interpreter with its imports included."""
_SECTION: Final = 16 * 65_536


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=10_000_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="plr-", dir="/tmp") as directory:
        rows, is_bounded = _measure(Path(directory), arguments.points)
    print(describe_machine())
    print(align_columns(rows))
    return 0 if is_bounded else 1


def _measure(directory: Path, points: int) -> tuple[list[tuple[str, ...]], bool]:
    server = Palestra(directory, f"sqlite:///{directory / 'palestra.db'}", 1)
    (client,) = server.clients
    try:
        started = time.perf_counter()
        asyncio.run(_fill(server, client, points))
        print(f"filled with {points:,} points in {time.perf_counter() - started:.0f} s", flush=True)
        server.start()
        pid = server.process.pid
        rows: list[tuple[str, ...]] = [
            ("export", "size", "seconds", "points/s", "server idle", "server peak", "client")
        ]
        is_bounded = True
        for form in FORMS:
            idle = read_memory(pid, "VmRSS")
            Path(f"/proc/{pid}/clear_refs").write_text("5")
            found = _run_client(server, client.run_id, form)
            peak = read_memory(pid, "VmHWM")
            assert found["points"] in {points, 0}, found
            is_bounded &= peak - idle < SERVER_BOUND
            is_bounded &= form == "frame" or found["peak"] < CLIENT_BOUND
            rows.append(
                (
                    form,
                    f"{found['bytes'] / 2**20:.0f} MiB",
                    f"{found['seconds']:.1f}",
                    f"{points / found['seconds']:,.0f}",
                    f"{idle:.0f} MiB",
                    f"{peak:.0f} MiB",
                    f"{found['peak']:.0f} MiB",
                )
            )
        return rows, is_bounded
    finally:
        server.stop()


async def _fill(server: Palestra, client: PalestraClient, points: int) -> None:
    """Writes the blocks of a series, as the attempt's only record for every 1,000 points."""
    chance = np.random.default_rng(1)
    database = Database(server.url)
    async with database.write() as session:
        row = {"run_id": client.run_id, "name": SERIES, "points": points, "nonfinite": 0}
        last = {"last_env_step": 64 * points, "last_value": "0.0"}
        (series_id,) = await telemetry_rows.add_series(session, [{**row, **last}])
        await session.execute(update(AttemptRow).values(acked_seq=points))
        key = (series_id, 1, client.attempt_id)
        for first in range(0, points, _SECTION):
            at = np.arange(first, min(first + _SECTION, points))
            wall = 1.7e9 + np.round(0.013 * at, 3)
            values = chance.standard_normal(len(at)).astype(np.float32).astype(np.float64)
            columns = Columns(at // 1_000 + 1, 64 * at, at, at // 7, wall, values)
            built = compaction.build_blocks(columns)
            blocks = [NewBlock(key, service.list_values(one), one.cells) for one in built]
            await compaction_rows.replace(session, (), (), blocks)
    await database.dispose()


def _run_client(server: Palestra, run_id: str, form: str) -> dict[str, float]:
    address = (server.stack.url, server.stack.tokens["user"], run_id, form)
    command = [sys.executable, "-m", "benchmarks._record_client", *address]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    raise SystemExit(main())

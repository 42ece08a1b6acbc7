"""Bytes of database per stored point on real trainings of DQN, PPO and SAC, after compaction.

Server and worker run as processes. One training of each kind is executed; after each, once its
points and epochs are in blocks and the digests of its records are deleted, the growth of the
database is divided by the points of its curves, for each table with its indexes. Events are kept
for an hour (`app.daemons.compactor`): their bytes are printed, then they are deleted as the
compactor would, and do not count. Series whose values use all bits of a float64 are counted apart,
since noise does not compress.

    python -m benchmarks.curve_size [--scale 1.0]
"""

import argparse
import asyncio
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import yaml

from app.db.engine import Database
from app.db.repositories import compaction as rows
from app.db.repositories import retention
from benchmarks._report import align_columns, describe_machine
from tests.support.process_stack import REPOSITORY, Stack
from tests.support.stored_points import read_columns
from tests.support.waiting import wait_for

FILES: Final = {
    "DQN": "examples/learning/cartpole-dqn.yaml",
    "PPO": "examples/cartpole-ppo.yaml",
    "SAC": "examples/learning/pendulum-sac.yaml",
}
GROUPS: Final = {
    "curve_blocks": "curves",
    "curve_rollups": "curves",
    "curve_tails": "curves",
    "series": "curves",
    "telemetry_batches": "digests",
    "events": "events",
    "evaluations": "evaluations",
    "epoch_stats": "epochs",
    "epoch_blocks": "epochs",
    "log_blocks": "logs",
    "open_log_lines": "logs",
}
MAX_CURVES: Final = 6.0
MAX_ALL: Final = 10.0
_TRAINING_SECONDS: Final = 3_600.0
_SETTLED_SECONDS: Final = 120.0


def make_definition(path: str, scale: float) -> dict[str, Any]:
    """Returns a preset without early stop, shortened or prolonged."""
    text = (REPOSITORY / path).read_text()
    definition: dict[str, Any] = yaml.safe_load(text)["definition"]
    definition.pop("stop", None)
    definition["loop"]["env_steps"] = round(definition["loop"]["env_steps"] * scale)
    return definition


def measure_tables(file: Path) -> Counter[str]:
    """Returns the bytes in pages of each group of tables, indexes included."""
    sizes: Counter[str] = Counter()
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        owners = dict(connection.execute("SELECT name, tbl_name FROM sqlite_schema").fetchall())
        for name, size in connection.execute("SELECT name, SUM(pgsize) FROM dbstat GROUP BY name"):
            sizes[GROUPS.get(owners.get(name, name), "all other tables")] += size
    return sizes


def is_settled(file: Path) -> bool:
    """Returns whether all points and epochs are in blocks and no digests are kept."""
    with sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=30) as connection:
        return not any(
            connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone()
            for table in ("curve_tails", "epoch_stats", "telemetry_batches")
        )


async def forget_events(url: str) -> None:
    """Deletes the events that the summariser has considered, whatever their age."""
    database = Database(url, pool_size=1)
    try:
        async with database.write() as session:
            await retention.forget_events(session, 0.0)
    finally:
        await database.dispose()


async def count_points(url: str, run_id: str) -> tuple[int, int]:
    """Returns the points of a run, and those of series whose values use all bits."""
    database = Database(url, pool_size=1)
    total = noisy = 0
    try:
        async with database.read() as session:
            for _, name in await rows.load_series_ids(session, [run_id]):
                values = np.concatenate(
                    [one.value for one in await read_columns(session, run_id, name)]
                )
                total += len(values)
                with np.errstate(over="ignore"):
                    narrowed = values.astype(np.float32).astype(np.float64)
                is_noise = np.mean(narrowed != values) > 0.5 and not np.all(
                    values == np.round(values)
                )
                noisy += len(values) if is_noise else 0
        return total, noisy
    finally:
        await database.dispose()


def train(stack: Stack, kind: str, scale: float) -> str:
    """Runs a training of one seed to its end; returns the ID of its run."""
    definition = make_definition(FILES[kind], scale)
    (run,) = stack.submit(definition, seeds=[0], resources={"cpu_threads": 1})
    stack.wait_for_run(
        run["id"],
        lambda one: one["state"] == "succeeded",
        f"{kind} ends",
        patience_seconds=_TRAINING_SECONDS,
    )
    return str(run["id"])


def show_row(kind: str, points: int, noisy: int, grown: Mapping[str, int]) -> bool:
    """Prints the bytes per point of one training."""
    per_point = {name: size / points for name, size in sorted(grown.items())}
    everything = sum(per_point.values())
    rows = [
        [f"{kind}: {points:,} points", f"{noisy / points:.0%} of them in float64 noise"],
        *([f"  {name}", f"{size:.2f} bytes"] for name, size in per_point.items()),
        ["  whole database", f"{everything:.2f} bytes"],
    ]
    print(align_columns(rows), flush=True)
    return per_point.get("curves", 0.0) <= MAX_CURVES and everything <= MAX_ALL


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=1.0, help="of the presets' env_steps")
    values = parser.parse_args()
    print(describe_machine())
    good = True
    with (
        tempfile.TemporaryDirectory(prefix="plr-", dir="/tmp") as directory,
        Stack(Path(directory) / "data") as stack,
    ):
        file = stack.directory / "palestra.db"
        for kind in FILES:
            before = measure_tables(file)
            run_id = train(stack, kind, values.scale)
            wait_for(
                lambda: is_settled(file), "the compactor is done", patience_seconds=_SETTLED_SECONDS
            )
            url = f"sqlite:///{file}"
            points, noisy = asyncio.run(count_points(url, run_id))
            events = measure_tables(file)["events"]
            asyncio.run(forget_events(url))
            after = measure_tables(file)
            print(f"{kind}: {events / points:.2f} bytes of events in the first hour")
            grown = {name: after[name] - before[name] for name in after}
            good = show_row(kind, points, noisy, grown) and good
    print(f"curves at most {MAX_CURVES:g}, everything at most {MAX_ALL:g} bytes a point")
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())

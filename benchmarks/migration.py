"""Time of the migration of a database from the previous version to the present schema.

    python -m benchmarks.migration [--runs 1000 10000] [--repeat 3]

The previous version's code makes each database, in SQLite and in PostgreSQL; `--repeat` migrates
that many copies.
"""

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from app.db.migrate import upgrade
from benchmarks._report import describe_machine, show
from tests.support import postgres
from tests.support.previous_version import fill_database, write_previous_version


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    root = postgres.make_root()
    print(describe_machine())
    try:
        server = postgres.ensure_server(root)
        with tempfile.TemporaryDirectory(prefix="plr-", dir="/tmp") as name:
            directory = Path(name)
            tree = write_previous_version(directory / "tree", "tests")
            for runs in arguments.runs:
                _measure_sqlite(tree, directory, runs, arguments.repeat)
                _measure_postgres(tree, directory, server, (runs, arguments.repeat))
    finally:
        postgres.stop(root)
    return 0


def _measure_sqlite(tree: Path, directory: Path, runs: int, repeat: int) -> None:
    path, target = directory / f"{runs}.db", directory / "copy.db"
    fill_database(tree, f"sqlite:///{path}", directory / f"sqlite-{runs}", runs)

    def copied() -> str:
        shutil.copy(path, target)
        return f"sqlite:///{target}"

    show(f"SQLite, {runs:,} runs", _times(copied, repeat), "s")


def _measure_postgres(
    tree: Path, directory: Path, server: postgres.PostgresServer, size: tuple[int, int]
) -> None:
    runs, repeat = size
    name = f"previous_{runs}"
    fill_database(tree, server.create_database(name), directory / f"postgresql-{runs}", runs)
    times = _times(lambda: server.create_database("migrated", template=name), repeat)
    show(f"PostgreSQL, {runs:,} runs", times, "s")


def _times(copied: Callable[[], str], repeat: int) -> list[float]:
    seconds = []
    for _ in range(repeat):
        url = copied()
        started = time.perf_counter()
        upgrade(url)
        seconds.append(time.perf_counter() - started)
    return seconds


if __name__ == "__main__":
    raise SystemExit(main())

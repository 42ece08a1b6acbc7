"""Time that the audit log's chain adds to a change of a job's state.

Pauses and resumes a queued job. Every second pair appends its entries as versions without the
chain did: one row of a table with a foreign key and one index, flushed with the other rows. Both
kinds alternate in one process, so that other load on the machine affects both.

    python -m benchmarks.audit_log [--pairs 800] [--database sqlite | postgresql]
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import ForeignKey, Index, String
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from app.db.engine import Database, Session
from app.db.migrate import upgrade
from app.db.models.base import Base, BigKey, Created
from app.db.models.projects import ProjectRow
from app.db.repositories import audit
from benchmarks._report import describe_machine
from tests.support import postgres
from tests.support.server_fixture import make_world

WARM_UP = 20
"""First pairs of each kind, which are not counted."""
BOUND = 1.05


class FormerBase(DeclarativeBase):
    """Base class of the former tables, with metadata apart from those of the application."""

    type_annotation_map = Base.type_annotation_map


class FormerRow(FormerBase):
    """An entry as it was before the chain."""

    __tablename__ = "former_audit"
    __table_args__ = (Index("ix_former", "project_id", "object_type", "object_id", "id"),)

    id: Mapped[int] = mapped_column(BigKey, primary_key=True, autoincrement=True)
    project_id: Mapped[str] = mapped_column(
        String(64), ForeignKey(ProjectRow.__table__.c.id, ondelete="CASCADE")
    )
    actor: Mapped[str] = mapped_column(String(96))
    action: Mapped[str] = mapped_column(String(64))
    object_type: Mapped[str] = mapped_column(String(32))
    object_id: Mapped[str] = mapped_column(String(96))
    data: Mapped[dict[str, Any]]
    at: Mapped[Created]


COLUMNS = ("project_id", "actor", "action", "object_type", "object_id", "data")


def append_former(session: Session, row: dict[str, Any]) -> None:
    session.add(FormerRow(**{name: row[name] for name in COLUMNS}))


KINDS = {"chained": audit.append, "former": append_former}


async def measure(url: str, pairs: int) -> dict[str, list[tuple[float, float]]]:
    """Returns the wall and CPU seconds of each move, by kind."""
    upgrade(url)
    database = Database(url)
    async with database.engine.begin() as connection:
        await connection.run_sync(FormerBase.metadata.create_all)
    world = await make_world(database)
    await world.register()
    job = await world.submit_one_job()
    found: dict[str, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
    for _ in range(pairs):
        for kind, append in KINDS.items():
            audit.append = append  # type: ignore[assignment]
            begin = time.perf_counter(), time.process_time()
            await world.pause(job.id)
            await world.resume(job.id)
            wall, cpu = time.perf_counter() - begin[0], time.process_time() - begin[1]
            found[kind].append((wall / 2, cpu / 2))
    await database.dispose()
    return {kind: times[WARM_UP:] for kind, times in found.items()}


def report(name: str, found: dict[str, list[tuple[float, float]]]) -> bool:
    """Prints medians and lowest tenths; returns whether the CPU time is within the bound."""
    is_good = True
    for index, clock in enumerate(("wall", "CPU")):
        for label, figure in (("median", statistics.median), ("p10", _tenth)):
            chained, former = (figure([move[index] for move in found[kind]]) for kind in KINDS)
            ratio = chained / former
            print(
                f"{name:10} {clock:4} {label:6} chained {1e3 * chained:7.2f} ms/move, former "
                f"{1e3 * former:7.2f}, ratio {ratio:.3f}"
            )
            if (clock, label) == ("CPU", "median"):
                is_good = ratio <= BOUND
    return is_good


def _tenth(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=10)[0]


@contextmanager
def database_url(kind: str) -> Iterator[str]:
    if kind == "sqlite":
        with tempfile.TemporaryDirectory() as directory:
            yield f"sqlite:///{Path(directory) / 'palestra.db'}"
        return
    root = postgres.make_root()
    try:
        yield postgres.ensure_server(root).create_database("audit_log")
    finally:
        postgres.stop(root)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=800, help="pairs of moves of each kind")
    parser.add_argument("--database", choices=("sqlite", "postgresql"), help="both by default")
    values = parser.parse_args()
    print(describe_machine())
    kinds = (values.database,) if values.database else ("sqlite", "postgresql")
    is_good = True
    for kind in kinds:
        with database_url(kind) as url:
            is_good = report(kind, asyncio.run(measure(url, values.pairs))) and is_good
    return 0 if is_good else 1


if __name__ == "__main__":
    raise SystemExit(main())

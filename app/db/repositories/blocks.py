"""Reads blocks of curves and logs."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import func, select, tuple_

from app.db.engine import Session
from app.db.models.curves import Block, Evaluation, Series
from app.db.models.experiments import Run
from app.db.models.logs import LogBlock
from app.db.repositories.in_lists import cut
from palestra.contract.states import RunState


@dataclass(frozen=True, slots=True)
class StoredBlock:
    """A block as a query reads it."""

    fence: int
    content: bytes


async def hold_snapshot(session: Session) -> None:
    """Makes everything that the session reads from now on one state of the database. Must be its first statement.

    SQLite does so by itself within a transaction; PostgreSQL needs REPEATABLE READ.
    """
    if session.get_bind().dialect.name == "postgresql":
        await session.connection(execution_options={"isolation_level": "REPEATABLE READ"})


async def by_ids(session: Session, ids: Collection[int]) -> Mapping[int, Block]:
    """Returns blocks by id."""
    return {block.id: block for block in await session.scalars(select(Block).where(Block.id.in_(ids)))} if ids else {}


async def logs_by_ids(session: Session, ids: Collection[int]) -> Mapping[int, LogBlock]:
    """Returns pieces of logs by id."""
    return {block.id: block for block in await session.scalars(select(LogBlock).where(LogBlock.id.in_(ids)))} if ids else {}


async def projects_of(session: Session, run_ids: Collection[str]) -> dict[str, str]:
    """Returns the project of each run that exists."""
    found: dict[str, str] = {}
    for some in cut(run_ids):
        found.update((await session.execute(select(Run.id, Run.project_id).where(Run.id.in_(some)))).all())
    return found


async def succeeded(session: Session, run_ids: Collection[str]) -> frozenset[str]:
    """Returns which of the runs have succeeded."""
    found: set[str] = set()
    for some in cut(run_ids):
        found.update(await session.scalars(select(Run.id).where(Run.id.in_(some), Run.state == RunState.SUCCEEDED.value)))
    return frozenset(found)


async def count_points(session: Session, keys: Collection[tuple[str, str]]) -> int:
    """Returns how many points some series (run, name) hold."""
    total = 0
    for some in cut(keys):
        query = select(func.coalesce(func.sum(Series.points), 0)).where(tuple_(Series.run_id, Series.name).in_(some))
        total += int(await session.scalar(query) or 0)
    return total


async def of_series(session: Session, keys: Collection[tuple[str, str]]) -> dict[tuple[str, str], list[StoredBlock]]:
    """Returns the blocks of some series (run, name), each in the order (fence, record)."""
    found: dict[tuple[str, str], list[StoredBlock]] = {key: [] for key in keys}
    for some in cut(keys):
        query = (
            select(Series.run_id, Series.name, Block.fence, Block.content)
            .join(Block, Block.series_id == Series.id)
            .where(tuple_(Series.run_id, Series.name).in_(some))
            .order_by(Block.series_id, Block.fence, Block.first_seq, Block.id)
        )
        for run_id, name, fence, content in await session.execute(query):
            found[run_id, name].append(StoredBlock(fence, content))
    return found


async def evaluations(session: Session, run_ids: Collection[str], *, superseded: bool) -> Sequence[Evaluation]:
    """Returns the evaluations of runs in the order (fence, record); superseded ones on request."""
    found: list[Evaluation] = []
    for some in cut(run_ids):
        query = select(Evaluation).where(Evaluation.run_id.in_(some)).order_by(Evaluation.run_id, Evaluation.fence, Evaluation.seq)
        found.extend(await session.scalars(query if superseded else query.where(Evaluation.superseded.is_(False))))
    return found


async def series_of_run(session: Session, run_id: str, after: str, limit: int) -> Sequence[Series]:
    """Returns a run's series by name, those after a name."""
    query = select(Series).where(Series.run_id == run_id, Series.name > after).order_by(Series.name).limit(limit)
    return (await session.scalars(query)).all()


async def log_after(session: Session, run_id: str, after: int, limit: int) -> Sequence[LogBlock]:
    """Returns the pieces of a run's log that hold lines after an ordinal, in order."""
    query = select(LogBlock).where(LogBlock.run_id == run_id, LogBlock.last_line > after)
    return (await session.scalars(query.order_by(LogBlock.first_line).limit(limit))).all()

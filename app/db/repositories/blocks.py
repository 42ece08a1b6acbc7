"""Reads blocks of curves and logs."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import func, select, tuple_

from app.db.engine import Session
from app.db.models.curves import BlockRow, EvaluationRow, SeriesRow
from app.db.models.experiments import RunRow
from app.db.models.logs import LogBlockRow
from app.db.repositories.value_lists import split_values
from palestra.contract.states import RunState


@dataclass(frozen=True, slots=True)
class StoredBlock:
    """The columns of a block that queries read."""

    fence: int
    content: bytes


class RunBatch(NamedTuple):
    """The points of one run in one batch of an attempt."""

    run_id: str
    attempt_id: str
    first_seq: int


async def load_batches(
    session: Session, wanted: Collection[RunBatch]
) -> dict[RunBatch, dict[str, StoredBlock]]:
    """Returns the existing blocks of the given batches, by the name of their series."""
    found: dict[RunBatch, dict[str, StoredBlock]] = {}
    for some in split_values({(batch.attempt_id, batch.first_seq) for batch in wanted}):
        query = (
            select(
                SeriesRow.run_id,
                BlockRow.attempt_id,
                BlockRow.first_seq,
                SeriesRow.name,
                BlockRow.fence,
                BlockRow.content,
            )
            .join(SeriesRow, SeriesRow.id == BlockRow.series_id)
            .where(tuple_(BlockRow.attempt_id, BlockRow.first_seq).in_(some))
            .order_by(BlockRow.id)
        )
        for run_id, attempt_id, first_seq, name, fence, content in await session.execute(query):
            batch = found.setdefault(RunBatch(run_id, attempt_id, first_seq), {})
            batch[name] = StoredBlock(fence, content)
    return found


async def load_log_blocks(session: Session, ids: Collection[int]) -> Mapping[int, LogBlockRow]:
    """Returns blocks of logs by ID."""
    return (
        {
            block.id: block
            for block in await session.scalars(select(LogBlockRow).where(LogBlockRow.id.in_(ids)))
        }
        if ids
        else {}
    )


async def load_projects(session: Session, run_ids: Collection[str]) -> dict[str, str]:
    """Returns the project of each run that exists."""
    found: dict[str, str] = {}
    for some in split_values(run_ids):
        found.update(
            (
                await session.execute(
                    select(RunRow.id, RunRow.project_id).where(RunRow.id.in_(some))
                )
            ).all()
        )
    return found


async def filter_succeeded_runs(session: Session, run_ids: Collection[str]) -> frozenset[str]:
    """Returns which of the runs have succeeded."""
    found: set[str] = set()
    for some in split_values(run_ids):
        found.update(
            await session.scalars(
                select(RunRow.id).where(
                    RunRow.id.in_(some), RunRow.state == RunState.SUCCEEDED.value
                )
            )
        )
    return frozenset(found)


async def count_points(session: Session, keys: Collection[tuple[str, str]]) -> int:
    """Returns how many points the given series (run, name) hold."""
    total = 0
    for some in split_values(keys):
        query = select(func.coalesce(func.sum(SeriesRow.points), 0)).where(
            tuple_(SeriesRow.run_id, SeriesRow.name).in_(some)
        )
        total += int(await session.scalar(query) or 0)
    return total


async def load_series_blocks(
    session: Session, keys: Collection[tuple[str, str]]
) -> dict[tuple[str, str], list[StoredBlock]]:
    """Returns the blocks of the given series (run, name), each in the order (fence, record)."""
    found: dict[tuple[str, str], list[StoredBlock]] = {key: [] for key in keys}
    for some in split_values(keys):
        query = (
            select(SeriesRow.run_id, SeriesRow.name, BlockRow.fence, BlockRow.content)
            .join(BlockRow, BlockRow.series_id == SeriesRow.id)
            .where(tuple_(SeriesRow.run_id, SeriesRow.name).in_(some))
            .order_by(BlockRow.series_id, BlockRow.fence, BlockRow.first_seq, BlockRow.id)
        )
        for run_id, name, fence, content in await session.execute(query):
            found[run_id, name].append(StoredBlock(fence, content))
    return found


async def list_evaluations(
    session: Session, run_ids: Collection[str], *, superseded: bool
) -> Sequence[EvaluationRow]:
    """Returns the evaluations of runs in the order (fence, record); superseded ones on request."""
    found: list[EvaluationRow] = []
    for some in split_values(run_ids):
        query = (
            select(EvaluationRow)
            .where(EvaluationRow.run_id.in_(some))
            .order_by(EvaluationRow.run_id, EvaluationRow.fence, EvaluationRow.seq)
        )
        found.extend(
            await session.scalars(
                query if superseded else query.where(EvaluationRow.superseded.is_(False))
            )
        )
    return found


async def list_series_for_run(
    session: Session, run_id: str, after: str, limit: int
) -> Sequence[SeriesRow]:
    """Returns a run's series whose names follow `after`, by name."""
    query = (
        select(SeriesRow)
        .where(SeriesRow.run_id == run_id, SeriesRow.name > after)
        .order_by(SeriesRow.name)
        .limit(limit)
    )
    return (await session.scalars(query)).all()


async def list_log_blocks(
    session: Session, run_id: str, after: int, limit: int
) -> Sequence[LogBlockRow]:
    """Returns the blocks of a run's log that hold lines after an ordinal, in order."""
    query = select(LogBlockRow).where(LogBlockRow.run_id == run_id, LogBlockRow.last_line > after)
    return (await session.scalars(query.order_by(LogBlockRow.first_line).limit(limit))).all()

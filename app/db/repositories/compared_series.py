"""Reads the stored points of some series of many runs that are compared with thresholds."""

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import select

from app.db.engine import Session
from app.db.list_parameters import is_any_of
from app.db.models.curves import BlockRow, SeriesRow
from app.db.models.summaries import SeriesNameRow, SeriesSummaryRow


class ComparedBlock(NamedTuple):
    """A block of a series of a run."""

    run_id: str
    name: str
    fence: int
    attempt_id: str
    content: bytes


async def load_best(
    session: Session, run_ids: Collection[str], names: Collection[str]
) -> dict[tuple[str, str], float | None]:
    """Returns the best value of those of the series that have points, by run and name."""
    query = (
        select(SeriesSummaryRow.run_id, SeriesNameRow.name, SeriesSummaryRow.best)
        .join(SeriesNameRow, SeriesNameRow.id == SeriesSummaryRow.name_id)
        .where(SeriesNameRow.name.in_(names))
    )
    return {
        (run_id, name): best
        for run_id, name, best in await session.execute(
            query.where(is_any_of(SeriesSummaryRow.run_id, run_ids))
        )
    }


async def load_blocks(
    session: Session, run_ids: Collection[str], names: Collection[str]
) -> list[ComparedBlock]:
    """Returns the blocks of the series."""
    query = (
        select(
            SeriesRow.run_id, SeriesRow.name, BlockRow.fence, BlockRow.attempt_id, BlockRow.content
        )
        .join(SeriesRow, SeriesRow.id == BlockRow.series_id)
        .where(SeriesRow.name.in_(names))
    )
    return [
        ComparedBlock(*row)
        for row in await session.execute(query.where(is_any_of(SeriesRow.run_id, run_ids)))
    ]

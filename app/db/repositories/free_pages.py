"""Pages of an SQLite file that hold no rows any more."""

from typing import Final, NamedTuple

from sqlalchemy import text

from app.db.engine import Session

_INCREMENTAL: Final = 2


class FreePages(NamedTuple):
    """Numbers of pages of a database file.

    Attributes:
        free: Those without content.
        total: All of them.
        size: Bytes of one.
    """

    free: int
    total: int
    size: int


async def count(session: Session) -> FreePages | None:
    """Returns the free pages; `None` for a database that returns no pages bit by bit."""
    if session.get_bind().dialect.name != "sqlite":
        return None
    if await _read(session, "auto_vacuum") != _INCREMENTAL:
        return None
    return FreePages(
        await _read(session, "freelist_count"),
        await _read(session, "page_count"),
        await _read(session, "page_size"),
    )


async def give_back(session: Session, most: int) -> None:
    """Moves pages from the end of the file to free ones, and cuts the end off, in a transaction.

    Args:
        session: A writing session.
        most: Largest number of pages.
    """
    await session.execute(text(f"PRAGMA incremental_vacuum({most:d})"))


async def _read(session: Session, pragma: str) -> int:
    return await session.scalar(text(f"PRAGMA {pragma}")) or 0

"""Reads the stored points of a series, wherever they are stored."""

from app.db.engine import Session
from app.db.repositories.blocks import load_series_blocks
from app.metrics import blocks
from app.metrics.blocks import Columns


async def read_columns(session: Session, run_id: str, name: str) -> list[Columns]:
    """Returns the points of a series in the order (fence, attempt, record), as they are stored."""
    found = await load_series_blocks(session, [(run_id, name)])
    columns = (blocks.decode(one.content) for one in found[run_id, name])
    return [one for one in columns if len(one)]

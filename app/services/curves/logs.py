"""Logs of runs, line by line."""

from typing import Final

from app.db.engine import Session
from app.db.repositories import blocks as rows
from app.db.repositories import open_log_lines
from app.domain.principal import Principal
from app.metrics import logs
from app.services.runs import runs
from palestra.contract.queries import LogLine, LogView, OpenLogLine

MAX_TEXT: Final = 2**20
"""Largest number of characters in an answer."""
_MAX_BLOCKS: Final = 200
"""Largest number of stored blocks that one answer reads."""


async def read(
    session: Session, principal: Principal, run_id: str, *, after: int, limit: int
) -> LogView:
    """Returns lines of a run's log after an ordinal: at most `limit`, within `MAX_TEXT` characters.

    The last page has the open lines, too.

    Raises:
        NotFoundError: If the project has no such run.
    """
    run = await runs.find(session, principal, run_id)
    blocks = await rows.list_log_blocks(session, run.id, after, min(limit + 1, _MAX_BLOCKS))
    stored = (
        LogLine(
            n=block.first_line + i,
            attempt_id=block.attempt_id,
            stream=line.stream,
            wall=line.wall,
            text=line.text,
        )
        for block in blocks
        for i, line in enumerate(logs.decode(block.content))
    )
    shown: list[LogLine] = []
    size, complete = 0, len(blocks) < _MAX_BLOCKS
    for line in (line for line in stored if line.n > after):
        if len(shown) == limit or size >= MAX_TEXT:
            complete = False
            break
        shown.append(line)
        size += len(line.text)
    open_rows = await open_log_lines.list_for_runs(session, [run.id]) if complete else ()
    return LogView(
        run_id=run.id,
        lines=shown,
        next_after=shown[-1].n if shown else after,
        complete=complete,
        open_lines=tuple(
            OpenLogLine(
                attempt_id=row.attempt_id, stream=line.stream, wall=line.wall, text=line.text
            )
            for row in open_rows
            for line in logs.decode(row.content)
        ),
    )

"""Logs of runs, line by line."""

from itertools import islice

from app.db.engine import Session
from app.db.repositories import blocks as rows
from app.domain.principal import Principal
from app.metrics import logs
from app.services import runs
from palestra.contract.queries import LogLine, LogView


async def read(session: Session, principal: Principal, run_id: str, *, after: int, limit: int) -> LogView:
    """Returns lines of a run's log after an ordinal.

    Raises:
        NotFoundError: If the project has no such run.
    """
    run = await runs.find(session, principal, run_id)
    blocks = await rows.log_after(session, run.id, after, limit + 1)
    stored = (
        LogLine(n=block.first_line + i, attempt_id=block.attempt_id, stream=line.stream, wall=line.wall, text=line.text)
        for block in blocks
        for i, line in enumerate(logs.decode(block.content))
    )
    found = list(islice((line for line in stored if line.n > after), limit + 1))
    shown = found[:limit]
    return LogView(run_id=run.id, lines=shown, next_after=shown[-1].n if shown else after, complete=len(found) <= limit)

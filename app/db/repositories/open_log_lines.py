"""Lines of runs' logs that are not complete yet."""

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import Select, delete, select

from app.db.engine import Session
from app.db.models.logs import OpenLogLinesRow
from app.db.upsert import insert_or_replace


async def replace(
    session: Session, run_id: str, attempt_id: str, contents: Mapping[str, bytes | None]
) -> bool:
    """Replaces the open lines of an attempt in a run's log; false if there were and are none.

    Args:
        session: A writing session.
        run_id: The run.
        attempt_id: The attempt.
        contents: By stream, the lines as a block; `None` for no line.
    """
    key = {"run_id": run_id, "attempt_id": attempt_id}
    rows = [
        {**key, "stream": stream, "content": content}
        for stream, content in contents.items()
        if content is not None
    ]
    if rows:
        await session.execute(insert_or_replace(session, OpenLogLinesRow, rows))
    removed: Sequence[str] = ()
    if len(rows) < len(contents):
        streams = [stream for stream, content in contents.items() if content is None]
        statement = (
            delete(OpenLogLinesRow)
            .where(
                OpenLogLinesRow.run_id == run_id,
                OpenLogLinesRow.attempt_id == attempt_id,
                OpenLogLinesRow.stream.in_(streams),
            )
            .returning(OpenLogLinesRow.stream)
            .execution_options(synchronize_session=False)
        )
        removed = (await session.scalars(statement)).all()
    return bool(rows or removed)


async def list_for_runs(session: Session, run_ids: Collection[str]) -> Sequence[OpenLogLinesRow]:
    """Returns the open lines of runs, by attempt and stream."""
    query = select(OpenLogLinesRow).where(OpenLogLinesRow.run_id.in_(run_ids))
    return await _list(session, query) if run_ids else ()


async def list_for_attempt(session: Session, attempt_id: str) -> Sequence[OpenLogLinesRow]:
    """Returns the open lines of an attempt, by run and stream."""
    return await _list(
        session, select(OpenLogLinesRow).where(OpenLogLinesRow.attempt_id == attempt_id)
    )


async def _list(session: Session, query: Select[OpenLogLinesRow]) -> Sequence[OpenLogLinesRow]:
    query = query.order_by(
        OpenLogLinesRow.run_id, OpenLogLinesRow.attempt_id, OpenLogLinesRow.stream
    )
    # Statements write these rows, so objects of the session may be older.
    return (await session.scalars(query.execution_options(populate_existing=True))).all()

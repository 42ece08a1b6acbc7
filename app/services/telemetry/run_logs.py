"""Writes the logs of runs: complete lines as blocks, and the newest text of open lines."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from app.db.engine import Session
from app.db.models.jobs import AttemptRow, JobRow
from app.db.repositories import jobs as job_rows
from app.db.repositories import open_log_lines
from app.db.repositories import telemetry as rows
from app.metrics import logs
from app.metrics.logs import StoredLogLine, Stream
from app.services.events import event_log

MAX_LOG_BYTES: Final = 2**30
"""Maximum size of a run's log in bytes."""


async def append(
    session: Session,
    attempt_id: str,
    event_ids: Mapping[str, Any],
    lines: Sequence[StoredLogLine],
    open_lines: Mapping[Stream, Sequence[StoredLogLine]],
) -> None:
    """Appends lines to a run's log and replaces open lines of an attempt.

    Open lines do not count towards the log's limit, and none is stored once it is reached.

    Args:
        session: A writing session that has locked the run.
        attempt_id: The attempt that wrote the lines.
        event_ids: IDs with which the event is recorded, `run_id` among them.
        lines: Complete lines.
        open_lines: The open lines of each stream that is to be changed.
    """
    run_id = event_ids["run_id"]
    last_line, total = await rows.read_log_end(session, run_id)
    fitting, total = _cut_to_limit(lines, total)
    block_id = None
    if fitting:
        row = {
            "run_id": run_id,
            "attempt_id": attempt_id,
            "first_line": last_line + 1,
            "last_line": last_line + len(fitting),
            "total_bytes": total,
            "content": logs.encode(fitting),
        }
        block_id = await rows.add_log(session, row)
    contents: dict[str, bytes | None] = {
        stream: logs.encode(some) if some and total <= MAX_LOG_BYTES else None
        for stream, some in open_lines.items()
    }
    if await open_log_lines.replace(session, run_id, attempt_id, contents) or fitting:
        content = {"block": block_id, "last_line": last_line + len(fitting)}
        event_log.record(session, "log", content, **event_ids)


async def complete_open_lines(session: Session, job: JobRow, attempt: AttemptRow) -> None:
    """Appends the open lines of an attempt that has ended to the logs of its runs."""
    stored = await open_log_lines.list_for_attempt(session, attempt.id)
    if not stored:
        return
    await job_rows.list_runs_with_links(session, job.id, lock=True)
    for row in stored:
        event_ids = {
            "project_id": job.project_id,
            "experiment_id": job.experiment_id,
            "run_id": row.run_id,
            "job_id": job.id,
        }
        lines = logs.decode(row.content)
        await append(session, attempt.id, event_ids, lines, {lines[0].stream: ()})


def _cut_to_limit(
    lines: Sequence[StoredLogLine], total: int
) -> tuple[Sequence[StoredLogLine], int]:
    """Returns the lines that fit within the log's size limit, and the size after them.

    If lines are dropped, a last line states it.
    """
    fitting: list[StoredLogLine] = []
    for line in lines:
        if total + line.size > MAX_LOG_BYTES:
            full = StoredLogLine(
                "palestra",
                line.wall,
                f"log_full: the log reached {MAX_LOG_BYTES} bytes; later lines are dropped",
            )
            return ([] if total > MAX_LOG_BYTES else [*fitting, full]), MAX_LOG_BYTES + 1
        total += line.size
        fitting.append(line)
    return fitting, total

"""Removes the oldest entries of the audit log; the hash of the last one becomes the checkpoint."""

from typing import Final

from app.db.engine import Session
from app.db.repositories import audit_entries
from app.services.audit import audit_log

CUT: Final = "audit.cut"
"""Action of the entry that tells of a removal."""
_DAY: Final = 86_400.0
_BATCH: Final = 10_000
"""Entries removed per call, so that other writers do not wait long."""


async def cut(session: Session, keep_days: int) -> int:
    """Removes entries that are older than `keep_days`, at most 10,000 of them.

    Waits until some are a day older, since each removal is itself an entry of the log.

    Returns:
        The number of removed entries.
    """
    if not keep_days or not await audit_entries.has_older(session, (keep_days + 1) * _DAY):
        return 0
    await audit_entries.lock(session)
    before = await audit_entries.read_ends(session)
    place = await audit_entries.find_last_older(session, keep_days * _DAY, limit=_BATCH)
    if before is None or place is None:
        return 0
    await audit_entries.remove_through(session, place)
    removed = place.id - before.checkpoint.id
    data = {"last_id": place.id, "hash": place.hash, "entries": removed, "keep_days": keep_days}
    audit_log.record(session, CUT, "log", project_id=None, actor="daemon:compactor", data=data)
    return removed

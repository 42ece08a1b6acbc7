"""Searches the audit log, and exports what it finds as JSON lines."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Final

from app.db.engine import BACKGROUND_STATEMENT_SECONDS, Database, Session
from app.db.models.audit import AuditRow
from app.db.repositories import audit_entries
from app.db.repositories.audit_entries import AuditFilter
from app.domain.paging import PageRequest, build_keyset, encode_cursor, refuse_cursor
from app.domain.principal import Principal
from palestra.contract.audit import AuditEntry
from palestra.contract.permissions import Permission
from palestra.contract.views import Page

__all__ = ["SORT", "AuditFilter", "export", "search"]

SORT: Final = "-id"
"""The order of a search: the newest entry first."""
_BATCH: Final = 500


async def search(
    session: Session, principal: Principal, wanted: AuditFilter, request: PageRequest
) -> Page[AuditEntry]:
    """Returns a page of entries, the newest first.

    Raises:
        InvalidError: `invalid_cursor` if the cursor is not of this search.
    """
    keys = build_keyset(request, ("id",))
    before = None if keys.after is None else keys.after[0]
    if not isinstance(before, int | None):
        raise refuse_cursor()
    found = await audit_entries.list_newest_first(
        session, _restrict_to_permitted(principal, wanted), before=before, limit=keys.limit + 1
    )
    shown = found[: keys.limit]
    cursor = None
    if len(found) > keys.limit:
        last = shown[-1].id
        cursor = encode_cursor(request.sort, (last,), str(last))
    return Page(items=await _views(session, shown), next_cursor=cursor)


async def export(
    database: Database, principal: Principal, wanted: AuditFilter
) -> AsyncIterator[bytes]:
    """Yields all entries as JSON lines, the oldest first, up to the newest at the call."""
    permitted = _restrict_to_permitted(principal, wanted)
    async with database.read(BACKGROUND_STATEMENT_SECONDS) as session:
        newest = await audit_entries.list_newest_first(session, permitted, before=None, limit=1)
    last, after = (newest[0].id if newest else 0), 0
    while after < last:
        async with database.read(BACKGROUND_STATEMENT_SECONDS) as session:
            batch = await audit_entries.list_oldest_first(
                session, permitted, after=after, last=last, limit=_BATCH
            )
            views = await _views(session, batch)
        if not batch:
            return
        yield b"".join(view.model_dump_json().encode() + b"\n" for view in views)
        after = batch[-1].id


def _restrict_to_permitted(principal: Principal, wanted: AuditFilter) -> AuditFilter:
    """Limits a search to the entries that the caller may read; no other code decides this.

    An administrator of the server reads the entries of all projects and those without a project.
    """
    if principal.permits(Permission.SERVER_AUDIT) and not principal.is_within_project:
        return wanted
    return replace(wanted, project_ids=principal.projects_with(Permission.PROJECT_AUDIT))


async def _views(session: Session, rows: Sequence[AuditRow]) -> list[AuditEntry]:
    names = await audit_entries.load_user_names(
        session, {row.user_id for row in rows if row.user_id}
    )
    columns = [name for name in AuditEntry.model_fields if name != "user"]
    return [
        AuditEntry(
            **{name: getattr(row, name) for name in columns}, user=names.get(row.user_id or "")
        )
        for row in rows
    ]

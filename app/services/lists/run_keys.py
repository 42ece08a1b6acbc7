"""The keys that filters, orders, columns and groups of runs may name."""

from typing import Final

from app.db.engine import Session
from app.db.repositories import list_names
from app.domain.principal import Principal
from palestra.contract.filters import FILTER_FIELDS
from palestra.contract.run_lists import ListFieldView, RunKeysView

MOST: Final = 2_000
"""Members and series that are named, of each."""


async def list_keys(session: Session, principal: Principal) -> RunKeysView:
    """Returns the fields of runs, and members and series that the caller's projects have."""
    projects = principal.project_ids
    paths = await list_names.list_members(session, projects, MOST + 1)
    # Members at the top of a definition have no key, since a dot distinguishes members.
    members = [path for path in paths if "." in path]
    series = await list_names.list_series(session, projects, MOST + 1)
    return RunKeysView(
        fields=tuple(
            ListFieldView(
                name=name,
                kind=field.kind,
                description=field.description,
                choices=field.choices,
            )
            for name, field in FILTER_FIELDS.items()
            if field.only != "experiments"
        ),
        members=tuple(members[:MOST]),
        series=tuple(series[:MOST]),
        is_complete=max(len(paths), len(series)) <= MOST,
    )

"""The keys that filters, orders, columns and groups of runs may name."""

from typing import Final

from app.db.engine import Session
from app.db.repositories import list_names
from app.db.repositories import thresholds as threshold_rows
from app.domain.principal import Principal
from app.services.lists import found_runs
from palestra.contract.filters import FILTER_FIELDS
from palestra.contract.run_lists import ListFieldView, RunKeysView

MAX_KEYS: Final = 2_000
"""Members and series that are named, of each."""


SEARCHED: Final = 2_000
"""Runs of a filter whose series are named, the newest first."""


async def list_keys(session: Session, principal: Principal, text: str = "") -> RunKeysView:
    """Returns the fields of runs, and members and series that the caller's projects have.

    Args:
        session: Session.
        principal: The caller.
        text: Filter; series are those of the runs that it finds, of the newest `SEARCHED` if it
            finds more. Without one they are those of all runs.

    Raises:
        InvalidError: If the filter has a fault.
    """
    projects = principal.project_ids
    paths = await list_names.list_members(session, projects, MAX_KEYS + 1)
    # Members at the top of a definition have no key, since a dot distinguishes members.
    members = [path for path in paths if "." in path]
    series, searched = await _find_series(session, principal, text)
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
        members=tuple(members[:MAX_KEYS]),
        series=tuple(series[:MAX_KEYS]),
        thresholds=tuple(await threshold_rows.list_names(session, projects))[:MAX_KEYS],
        searched_runs=searched,
        is_complete=max(len(paths), len(series)) <= MAX_KEYS and searched is None,
    )


async def _find_series(
    session: Session, principal: Principal, text: str
) -> tuple[list[str], int | None]:
    """Returns the series of the runs that a filter finds, and of how many runs if not of all."""
    projects = principal.project_ids
    if not text:
        return await list_names.list_series(session, projects, MAX_KEYS + 1), None
    found = await found_runs.find_ids(session, principal, text, SEARCHED + 1, sort="-created")
    series = await list_names.list_series_of_runs(session, found[:SEARCHED])
    if len(found) <= SEARCHED:
        return series, None
    request = await found_runs.resolve(session, principal, text, sort="-created")
    possible = await list_names.list_possible_series(session, request.terms, request.scope)
    return series, None if possible == set(series) else SEARCHED

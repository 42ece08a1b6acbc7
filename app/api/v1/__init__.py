"""Routes of version 1: everything behind authentication but the three routes that open a login."""

from types import ModuleType
from typing import Final

from fastapi import Depends, FastAPI

from app.api.auth import (
    DECLARED_CREDENTIALS,
    authenticate,
    note_use,
    note_use_of_token,
)
from app.api.query import check_query
from app.api.telemetry_route import UsualBatches
from app.api.v1 import (
    account,
    artifacts,
    audit,
    definitions,
    document,
    events,
    experiments,
    invitations,
    jobs,
    leases,
    moves,
    pools,
    projects,
    records,
    runs,
    saved_views,
    series,
    service_accounts,
    session,
    statistics,
    telemetry,
    tokens,
    usage,
    users,
    workers,
)

PREFIX = "/api/v1"
PUBLIC: Final = frozenset(
    {
        ("GET", f"{PREFIX}/session:options"),
        ("POST", f"{PREFIX}/session"),
        ("POST", f"{PREFIX}/session:redeem"),
    }
)
"""Methods and paths that need no credential."""

PARTS: Final[tuple[ModuleType, ...]] = (
    # A request is compared with the routes in their order; these are asked most often.
    leases,
    telemetry,
    artifacts,
    workers,
    events,
    series,
    session,
    account,
    tokens,
    invitations,
    projects,
    service_accounts,
    users,
    document,
    definitions,
    experiments,
    moves,
    runs,
    saved_views,
    jobs,
    records,
    statistics,
    pools,
    usage,
    audit,
)


def include(app: FastAPI) -> None:
    """Adds all routes.

    One level deep: the framework builds every route anew for each router around it, which takes
    time at start. The routes of a module's `limited_router` take the query parameter `project`.
    """
    app.router.routes.append(UsualBatches(f"{PREFIX}{telemetry.PATH}"))
    app.include_router(session.public_router, prefix=PREFIX, dependencies=[Depends(check_query)])
    for part in PARTS:
        used = note_use_of_token if part is events else note_use
        called = (Depends(one) for one in (authenticate, used, check_query))
        known = [*DECLARED_CREDENTIALS, *called]
        if hasattr(part, "router"):
            app.include_router(part.router, prefix=PREFIX, dependencies=known)
        if hasattr(part, "limited_router"):
            app.include_router(part.limited_router, prefix=PREFIX, dependencies=known)

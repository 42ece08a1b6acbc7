"""Routes of version 1: everything behind authentication but the two routes that open a login."""

from fastapi import APIRouter, Depends

from app.api.auth import authenticate
from app.api.v1 import (
    artifacts,
    definitions,
    document,
    events,
    experiments,
    jobs,
    leases,
    runs,
    series,
    session,
    telemetry,
    tokens,
    workers,
)

PREFIX = "/api/v1"
PUBLIC_PATHS = frozenset({f"{PREFIX}/session", f"{PREFIX}/session:redeem"})

public = APIRouter(prefix=PREFIX)
public.include_router(session.public_router)

private = APIRouter(prefix=PREFIX, dependencies=[Depends(authenticate)])
for part in (session, tokens, document, definitions, experiments, runs, jobs, series, events, leases, telemetry, artifacts, workers):
    private.include_router(part.router)

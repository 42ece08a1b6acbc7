"""Dependencies of routes: settings, sessions, and objects with the lifetime of the process."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Annotated, Final

from fastapi import Depends, Request

from app.api.origin import read_origin
from app.api.turns import Turns
from app.db import faults
from app.db.engine import Database, Session
from app.domain.principal import Principal
from app.services.access import principals
from app.services.artifacts.blob_store import BlobStore
from app.services.audit import audit_log
from app.services.workers.broker_users import BrokerUsers
from app.settings import Settings

_OF_ATTEMPTS: Final = ("/api/v1/leases", "/api/v1/attempts")
_OF_WORKERS: Final = "/api/v1/workers"


def get_settings(request: Request) -> Settings:
    """Returns the settings of the process."""
    found: Settings = request.app.state.settings
    return found


def get_database(request: Request) -> Database:
    """Returns the database, with the connections of the request's kind.

    Workers and attempts have some of their own, so that trainings go on while reads of people use
    all of the others.
    """
    state = request.app.state
    database: Database = state.reserved if _is_of_machine(request) else state.database
    return database


def _is_of_machine(request: Request) -> bool:
    path: str = request.scope["path"]
    return path.startswith(_OF_ATTEMPTS) or (
        path.startswith(_OF_WORKERS) and request.scope["method"] == "POST"
    )


def get_broker_users(request: Request) -> BrokerUsers:
    """Returns the users of the broker, as this process knows them."""
    users: BrokerUsers = request.app.state.broker_users
    return users


def store(request: Request) -> BlobStore:
    """Returns the blob store of the process."""
    found: BlobStore = request.app.state.store
    return found


def get_server_url(request: Request) -> str:
    """Returns the address of the server, with its path, for links that the caller passes on.

    The address is the setting `public_url`, or else the address of the request.
    """
    found = get_settings(request)
    return found.public_url or f"{request.url.scheme}://{request.url.netloc}"


async def read_session(request: Request) -> AsyncIterator[Session]:
    """Yields a session that is rolled back before the answer is sent."""
    async with get_database(request).read() as session:
        yield session


def _take_turn(request: Request) -> AbstractAsyncContextManager[None]:
    principal: Principal | None = getattr(request.state, "principal", None)
    if principal is None or _is_of_machine(request):
        return nullcontext()
    writes: Turns = request.app.state.writes
    return writes.take_turn(principal.person_id)


async def write_session(request: Request) -> AsyncIterator[Session]:
    """Yields a session: committed before the answer is sent, rolled back if the route raises.

    One person's changes are made one after the other: SQLite has one writer at a time, and those
    that wait would use up the connections of others.

    Raises:
        TooManyRequestsError: `too_many_writes` if the person's earlier changes take too long.
        UnauthenticatedError: `unauthenticated` if a row cannot be stored because its user was
            deleted since the request was authenticated.
    """
    try:
        async with _take_turn(request), get_database(request).write() as session:
            audit_log.set_origin(session, read_origin(request))
            yield session
    except Exception as error:
        if faults.refers_to_missing_row(error):
            async with get_database(request).read() as session:
                await principals.check_still_there(session, request.state.principal)
        raise


# FastAPI calls plain functions in a thread, which costs more than these do.
async def _provide_settings(request: Request) -> Settings:
    return get_settings(request)


async def _provide_server_url(request: Request) -> str:
    return get_server_url(request)


async def _provide_store(request: Request) -> BlobStore:
    return store(request)


async def _provide_database(request: Request) -> Database:
    return get_database(request)


SettingsDep = Annotated[Settings, Depends(_provide_settings)]
ServerUrl = Annotated[str, Depends(_provide_server_url)]
StoreDep = Annotated[BlobStore, Depends(_provide_store)]
DatabaseDep = Annotated[Database, Depends(_provide_database)]
ReadSession = Annotated[Session, Depends(read_session, scope="function")]
WriteSession = Annotated[Session, Depends(write_session, scope="function")]

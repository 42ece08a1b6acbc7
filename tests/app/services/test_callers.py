"""Callers are found by one statement, as they are by the statements that load many of them."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import update

from app.db.clock import db_now
from app.db.engine import Database, Session
from app.db.models import MembershipRow, ProjectRow, TokenRow, UserRow
from app.domain.principal import Principal
from app.services.access import principals, sessions, tokens
from app.services.audit.audit_log import RequestOrigin
from app.settings import Settings
from palestra.contract.access import TokenRequest
from palestra.contract.names import Scope, new_id
from palestra.contract.permissions import Role
from tests.support.server_fixture import World
from tests.support.statements import note_statements

pytestmark = pytest.mark.both_databases(
    "The statement that finds a caller is compiled for each database.",
    of=("app.db.prepared",),
)


SETTINGS = Settings()
Change = Callable[[Session, World], Awaitable[Any]]


async def add_projects(world: World) -> list[str]:
    """Adds two projects of the second user, of which one is archived."""
    rows = [
        ProjectRow(id=new_id("prj"), slug=slug, name=slug, archived_at=archived)
        for slug, archived in (("walkers", None), ("ants", db_now()))
    ]
    async with world.database.write() as session:
        session.add_all(rows)
        await session.flush()
        session.add_all(
            MembershipRow(project_id=row.id, user_id=world.other.user_id, role=Role.VIEWER.value)
            for row in rows
        )
    return [row.id for row in rows]


async def issue(world: World, project_id: str | None, user_id: str) -> str:
    request = TokenRequest(name=new_id("tok"), scopes=(Scope.READ, Scope.SUBMIT))
    async with world.database.write() as session:
        made = await tokens.issue_token(session, project_id, user_id, request)
    assert made.secret is not None
    return made.secret


async def log_in(world: World, user_id: str) -> str:
    async with world.database.write() as session:
        opened = await sessions.open_login(session, user_id, "link", RequestOrigin())
    return opened.secret


async def find(database: Database, secret: str) -> Principal | None:
    """Returns the caller with a token or a login as a request finds it, by one statement."""
    with note_statements(database) as statements:
        found = await _find(database, secret)
    assert [one.partition(" ")[0] for one in statements] == ["SELECT"]
    async with database.read() as session:
        assert await _find(session, secret) == found
    return found


async def _find(source: Database | Session, secret: str) -> Principal | None:
    if secret.startswith("plr_"):
        return await principals.find_by_token(source, secret)
    login = await principals.find_by_session(source, secret, SETTINGS)
    return None if login is None else login[0]


async def test_callers_are_those_that_streams_load(world: World, database: Database) -> None:
    first, _ = await add_projects(world)
    admin, bea = world.admin.user_id, world.other.user_id
    lonely = UserRow(id=new_id("usr"), name="lonely")
    async with database.write() as session:
        session.add(lonely)
    secrets = [
        await issue(world, None, admin),
        await issue(world, world.project_id, admin),
        await issue(world, None, bea),
        await issue(world, first, bea),
        await issue(world, None, lonely.id),
        await log_in(world, bea),
        await log_in(world, admin),
        await log_in(world, lonely.id),
    ]
    found = [await find(database, secret) for secret in secrets]
    callers = [one for one in found if one is not None]
    assert len(callers) == len(secrets)
    async with database.read() as session:
        loaded = await principals.load_present_principals(session, callers, SETTINGS)
    assert [replace(one, derivation_key="") for one in callers] == [
        loaded[one.credential_id] for one in callers
    ]
    assert [[held.slug for held in one.memberships] for one in callers] == [
        ["default"],
        ["default"],
        ["ants", "default", "walkers"],
        ["walkers"],
        [],
        ["ants", "default", "walkers"],
        ["default"],
        [],
    ]
    assert [held.archived for held in callers[2].memberships] == [True, False, False]
    assert [one.is_admin for one in callers[:2]] == [True, False]


async def revoke(session: Session, _world: World) -> None:
    await session.execute(update(TokenRow).values(revoked_at=db_now()))


async def expire(session: Session, _world: World) -> None:
    await session.execute(update(TokenRow).values(expires_at=db_now(-1.0)))


async def disable(session: Session, _world: World) -> None:
    await session.execute(update(UserRow).values(disabled_at=db_now()))


async def delete_project(session: Session, world: World) -> None:
    mine = ProjectRow.id == world.project_id
    await session.execute(update(ProjectRow).where(mine).values(deleted_at=db_now()))


@pytest.mark.parametrize("change", [revoke, expire, disable, delete_project])
async def test_a_token_that_ended_finds_nobody_at_once(
    world: World, database: Database, change: Change
) -> None:
    secret = await issue(world, world.project_id, world.other.user_id)
    assert await find(database, secret) is not None
    async with database.write() as session:
        await change(session, world)
    assert await find(database, secret) is None


async def test_a_login_ends_at_once_and_loses_deleted_projects(
    world: World, database: Database
) -> None:
    secret = await log_in(world, world.other.user_id)
    async with database.write() as session:
        await delete_project(session, world)
    found = await find(database, secret)
    assert found is not None
    assert found.memberships == ()
    async with database.write() as session:
        await sessions.log_out(session, found)
    assert await find(database, secret) is None

"""Who lost a right after the request was authenticated cannot give rights to others any more."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import pytest
from sqlalchemy import select

from app.db.engine import Session
from app.db.models import InvitationRow, UserRow
from app.domain.errors import ForbiddenError, NotFoundError, UnauthenticatedError
from app.domain.principal import Principal
from app.services import user_removal
from app.services.access import invitations, service_accounts, tokens, users
from app.services.projects import members
from palestra.contract.access import TokenRequest
from palestra.contract.names import Scope, new_id
from palestra.contract.people import (
    DisableRequest,
    InvitationRequest,
    InviteRequest,
    UserChange,
)
from palestra.contract.permissions import Role
from palestra.contract.service_accounts import ServiceAccountRequest
from tests.support.locks import until_locked_out
from tests.support.server_fixture import World

pytestmark = pytest.mark.both_databases(
    "Rights are held by locks of rows on PostgreSQL, and by the writer's turn on SQLite.",
    of=(
        "app.db.repositories.present_rights",
        "app.db.repositories.tokens",
        "app.db.repositories.users",
    ),
)


Act = Callable[[Session, Principal], Awaitable[object]]

TOKEN = TokenRequest(name="t", scopes=(Scope.READ,))
INVITE = InviteRequest(invitations=(InvitationRequest(name="new"),))
URL = "http://127.0.0.1"


async def _demote(session: Session, by: Principal) -> object:
    return await users.change(session, by, "bea", UserChange(is_admin=False))


async def _disable(session: Session, by: Principal) -> object:
    return await user_removal.disable(session, by, "bea", DisableRequest())


async def _make_viewer(session: Session, by: Principal) -> object:
    return await members.set_role(session, by, "default", "bea", Role.VIEWER)


async def _remove(session: Session, by: Principal) -> object:
    return await members.remove(session, by, "default", "bea")


async def _invite(session: Session, by: Principal) -> object:
    return await invitations.invite(session, by, INVITE, URL)


async def _appoint(session: Session, by: Principal) -> object:
    return await users.change(session, by, "carl", UserChange(is_admin=True))


async def _reset(session: Session, by: Principal) -> object:
    return await users.reset_password(session, by, "carl", 60, URL)


async def _set_role(session: Session, by: Principal) -> object:
    return await members.set_role(session, by, "default", "carl", Role.MAINTAINER)


async def _make_account(session: Session, by: Principal) -> object:
    return await service_accounts.create(session, by, ServiceAccountRequest(name="robot"))


async def _make_account_token(session: Session, by: Principal) -> object:
    return await service_accounts.create_token(session, by, "ci", TOKEN)


async def _make_token(session: Session, by: Principal) -> object:
    return await tokens.create_token(session, by, TOKEN)


@dataclass(frozen=True)
class Case:
    loses: Act
    acts: Act
    error: type[Exception]
    is_admin: bool = False


CASES = {
    "demoted, invites": Case(_demote, _invite, ForbiddenError, True),
    "disabled, invites": Case(_disable, _invite, UnauthenticatedError, True),
    "demoted, appoints": Case(_demote, _appoint, ForbiddenError, True),
    "disabled, appoints": Case(_disable, _appoint, ForbiddenError, True),
    "demoted, resets": Case(_demote, _reset, ForbiddenError, True),
    "viewer, gives a role": Case(_make_viewer, _set_role, ForbiddenError),
    "removed, gives a role": Case(_remove, _set_role, NotFoundError),
    "viewer, makes an account": Case(_make_viewer, _make_account, ForbiddenError),
    "removed, makes an account": Case(_remove, _make_account, NotFoundError),
    "viewer, makes an account's token": Case(_make_viewer, _make_account_token, ForbiddenError),
    "removed, makes an account's token": Case(_remove, _make_account_token, NotFoundError),
    "disabled, makes a token": Case(_disable, _make_token, UnauthenticatedError),
}


async def _authenticate_bea(world: World, *, is_admin: bool) -> Principal:
    """Returns bea as an authenticated caller; the test takes rights from her afterwards."""
    async with world.database.write() as session:
        await service_accounts.create(session, world.admin, ServiceAccountRequest(name="ci"))
        await users.change(session, world.admin, "bea", UserChange(is_admin=is_admin))
        session.add(UserRow(id=new_id("usr"), name="carl"))
    return replace(world.other, is_admin=is_admin)


@pytest.mark.parametrize("name", CASES)
async def test_a_right_lost_before_the_commit_gives_nothing(world: World, name: str) -> None:
    case = CASES[name]
    bea = await _authenticate_bea(world, is_admin=case.is_admin)

    async def act() -> None:
        async with world.database.write() as session:
            await case.acts(session, bea)

    async with world.database.write() as session:
        await case.loses(session, world.admin)
        await session.flush()
        acting = asyncio.create_task(act())
        await until_locked_out(world.database, acting)
    with pytest.raises(case.error):
        await acting


async def test_an_invitation_before_the_demotion_is_revoked_with_it(world: World) -> None:
    bea = await _authenticate_bea(world, is_admin=True)

    async def demote() -> None:
        async with world.database.write() as session:
            await _demote(session, world.admin)

    async with world.database.write() as session:
        made = await invitations.invite(session, bea, INVITE, URL)
        demoting = asyncio.create_task(demote())
        await until_locked_out(world.database, demoting)
        assert not demoting.done(), "the demotion waits for the transaction that invites"
    await demoting
    async with world.database.read() as session:
        query = select(InvitationRow.revoked_at).where(InvitationRow.id == made.items[0].id)
        assert await session.scalar(query) is not None


async def test_two_administrators_who_demote_each_other_leave_one(world: World) -> None:
    bea = await _authenticate_bea(world, is_admin=True)

    async def demote(by: Principal, name: str) -> None:
        async with world.database.write() as session:
            await users.change(session, by, name, UserChange(is_admin=False))

    outcomes = await asyncio.gather(
        demote(bea, "admin"), demote(world.admin, "bea"), return_exceptions=True
    )
    assert [type(one) for one in outcomes if one is not None] == [ForbiddenError]

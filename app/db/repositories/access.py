"""Rows of users and credentials. Secrets are passed to this module as hashes only."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from sqlalchemy import (
    ScalarSelect,
    Select,
    String,
    Table,
    bindparam,
    case,
    func,
    or_,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError

from app.db.clock import db_now
from app.db.engine import Session
from app.db.models.access import IdempotencyKeyRow, LoginLinkRow, LoginSessionRow, TokenRow
from app.db.models.projects import MembershipRow, ProjectRow, UserRow
from app.domain.principal import Membership
from palestra.contract.names import slugify
from palestra.contract.permissions import Role


class CallingUser(NamedTuple):
    """What a principal tells of its user."""

    id: str
    name: str
    display_name: str
    is_admin: bool
    service_project_id: str | None
    made_by: str | None


@dataclass(frozen=True, slots=True)
class Holder:
    """The user of a credential, with the user's memberships."""

    user: UserRow
    memberships: tuple[Membership, ...]

    @property
    def calling_user(self) -> CallingUser:
        """The user as a principal tells of it."""
        user = self.user
        return CallingUser(
            user.id,
            user.name,
            user.display_name,
            user.is_admin,
            user.service_project_id,
            user.made_by,
        )


async def find_project_by_name(session: Session, name: str) -> ProjectRow | None:
    """Returns the project of that name; `None` if there is none."""
    return await session.scalar(select(ProjectRow).where(ProjectRow.name == name))


async def find_user_by_name(session: Session, name: str) -> UserRow | None:
    """Returns the user with that login name; `None` if there is none."""
    return await session.scalar(select(UserRow).where(UserRow.name == name))


async def rename_user(session: Session, user_id: str, name: str) -> bool:
    """Gives a user another login name; returns false if another user has it."""
    try:
        async with session.begin_nested():
            await session.execute(update(UserRow).where(UserRow.id == user_id).values(name=name))
    except IntegrityError:
        return False
    return True


def select_user_id(name: str) -> ScalarSelect[str]:
    """Returns the subquery of the ID of the user with that login name."""
    return select(UserRow.id).where(UserRow.name == name).scalar_subquery()


async def find_user_by_login(session: Session, typed: str) -> UserRow | None:
    """Returns the person who is identified by the text of a login form.

    The text is a login name in any case and punctuation, or a display name that only one person
    has.
    """
    slug = slugify(typed, 64, substitute="")
    named = or_(UserRow.name == slug, UserRow.display_name == typed)
    query = select(UserRow).where(named, UserRow.service_project_id.is_(None))
    exact_first = case((UserRow.name == slug, 0), else_=1)
    found = (await session.scalars(query.order_by(exact_first, UserRow.id).limit(2))).all()
    return found[0] if len(found) == 1 or (found and found[0].name == slug) else None


async def load_user_names(session: Session, user_ids: Collection[str]) -> dict[str, str]:
    """Returns the login names of users, by user ID."""
    rows = await session.execute(select(UserRow.id, UserRow.name).where(UserRow.id.in_(user_ids)))
    return dict(rows.all())


async def is_service_account(session: Session, user_id: str) -> bool:
    """Returns whether a user is a service account."""
    query = select(UserRow.id).where(UserRow.id == user_id, UserRow.service_project_id.is_not(None))
    return await session.scalar(query) is not None


async def load_project_slugs(session: Session, project_ids: Collection[str]) -> dict[str, str]:
    """Returns the slugs of projects, by project ID."""
    query = select(ProjectRow.id, ProjectRow.slug).where(ProjectRow.id.in_(project_ids))
    return dict((await session.execute(query)).all())


async def list_slugs_with_prefix(session: Session, beginning: str) -> set[str]:
    """Returns the slugs of projects that begin with a text, deleted ones included."""
    query = select(ProjectRow.slug).where(ProjectRow.slug.startswith(beginning, autoescape=True))
    return set(await session.scalars(query))


async def find_first_project(session: Session) -> ProjectRow | None:
    """Returns the oldest project that is not deleted."""
    return await session.scalar(
        select(ProjectRow)
        .where(ProjectRow.deleted_at.is_(None))
        .order_by(ProjectRow.created_at, ProjectRow.id)
        .limit(1)
    )


async def find_first_admin(session: Session) -> UserRow | None:
    """Returns the oldest server administrator who may log in."""
    query = select(UserRow).where(UserRow.is_admin, UserRow.disabled_at.is_(None))
    return await session.scalar(query.order_by(UserRow.created_at, UserRow.id).limit(1))


async def find_holder(session: Session, user_id: str) -> Holder | None:
    """Returns a user with all memberships; `None` once the user is disabled."""
    return (await load_holders(session, [user_id])).get(user_id)


async def load_holders(session: Session, user_ids: Collection[str]) -> dict[str, Holder]:
    """Returns users that are not disabled, with their memberships by the project's name."""
    values = {"user_ids": list(user_ids)}
    memberships: dict[str, list[Membership]] = {}
    found = await session.execute(_select_memberships(), values)
    for user_id, role, owner, slug, name, archived in found:
        membership = Membership(
            project_id=owner, slug=slug, name=name, role=role, archived=archived
        )
        memberships.setdefault(user_id, []).append(membership)
    return {
        user.id: Holder(user, tuple(memberships.get(user.id, ())))
        for user in await session.scalars(_select_enabled_users(), values)
    }


# Built once, since each live stream executes them repeatedly.
@cache
def _select_enabled_users() -> Select[UserRow]:
    return select(UserRow).where(
        UserRow.id.in_(bindparam("user_ids", expanding=True)), UserRow.disabled_at.is_(None)
    )


@cache
def _select_memberships() -> Select[str, Role, str, str, str, bool]:
    return (
        select(
            MembershipRow.user_id,
            MembershipRow.role,
            ProjectRow.id,
            ProjectRow.slug,
            ProjectRow.name,
            ProjectRow.archived_at.is_not(None),
        )
        .join(ProjectRow, ProjectRow.id == MembershipRow.project_id)
        .where(
            MembershipRow.user_id.in_(bindparam("user_ids", expanding=True)),
            ProjectRow.deleted_at.is_(None),
        )
        .order_by(ProjectRow.name, ProjectRow.id)
    )


async def has_password(session: Session) -> bool:
    """Returns whether any user who may log in has a password."""
    found = (
        select(UserRow.id)
        .where(UserRow.password_hash.is_not(None), UserRow.disabled_at.is_(None))
        .limit(1)
    )
    return await session.scalar(found) is not None


async def replace_password_hash(session: Session, user_id: str, old: str, new: str) -> bool:
    """Replaces a user's password hash if it is still `old`; returns whether it was.

    Locks the user's row, so that the password cannot change within the transaction.
    """
    statement = (
        update(UserRow)
        .where(UserRow.id == user_id, UserRow.password_hash == old)
        .values(password_hash=new)
        .returning(UserRow.id)
    )
    return await session.scalar(statement) is not None


async def find_role(session: Session, project_id: str, user_id: str) -> Role | None:
    """Returns the user's role in a project; `None` for none."""
    return await session.scalar(
        select(MembershipRow.role).where(
            MembershipRow.project_id == project_id, MembershipRow.user_id == user_id
        )
    )


async def insert_link(session: Session, code_hash: str, user_id: str, seconds: float) -> None:
    """Adds a link that is valid once, for `seconds`."""
    link = LoginLinkRow(code_hash=code_hash, user_id=user_id, expires_at=db_now(seconds))
    session.add(link)
    await session.flush()


async def find_user_by_link(session: Session, code_hash: str) -> UserRow | None:
    """Returns the user of a login link that is unused and has not expired."""
    return await session.scalar(
        select(UserRow)
        .join(LoginLinkRow, LoginLinkRow.user_id == UserRow.id)
        .where(
            LoginLinkRow.code_hash == code_hash,
            LoginLinkRow.used_at.is_(None),
            LoginLinkRow.expires_at > db_now(),
        )
    )


async def use_link(session: Session, code_hash: str) -> str | None:
    """Invalidates a link and returns its user; `None` if it is unknown, used or expired.

    Of concurrent calls only one succeeds.
    """
    good = (
        LoginLinkRow.code_hash == code_hash,
        LoginLinkRow.used_at.is_(None),
        LoginLinkRow.expires_at > db_now(),
    )
    statement = (
        update(LoginLinkRow).where(*good).values(used_at=db_now()).returning(LoginLinkRow.user_id)
    )
    return (await session.execute(statement)).scalar_one_or_none()


async def touch(session: Session, tokens: Mapping[str, str], sessions: Mapping[str, str]) -> None:
    """Stores that credentials were used now, with the address of each; empty for none."""
    for table, used in ((TokenRow.__table__, tokens), (LoginSessionRow.__table__, sessions)):
        if used:
            assert isinstance(table, Table)
            statement = (
                update(table)
                .where(table.c.id == bindparam("used_id"))
                .values(
                    last_used_at=db_now(),
                    last_used_address=func.coalesce(
                        bindparam("address", type_=String), table.c.last_used_address
                    ),
                )
            )
            # In the order of the IDs, so that two processes do not wait for each other's locks.
            rows = [{"used_id": key, "address": used[key] or None} for key in sorted(used)]
            await (await session.connection()).execute(statement, rows)


async def claim_key(session: Session, user_id: str, key: str, request_hash: str) -> bool:
    """Inserts an idempotency key; returns false if a committed request has it.

    Waits for an open transaction that inserts the same key.
    """
    dialect = sqlite if session.get_bind().dialect.name == "sqlite" else postgresql
    values = {
        "user_id": user_id,
        "key": key,
        "request_hash": request_hash,
        "status": 0,
        "body": b"",
    }
    statement = (
        dialect.insert(IdempotencyKeyRow)
        .values(**values)
        .on_conflict_do_nothing()
        .returning(IdempotencyKeyRow.key)
    )
    return (await session.execute(statement)).one_or_none() is not None


async def find_idempotency_key(
    session: Session, user_id: str, key: str
) -> IdempotencyKeyRow | None:
    """Returns the stored answer of an idempotency key."""
    return await session.get(IdempotencyKeyRow, (user_id, key), populate_existing=True)


async def fill_key(
    session: Session, user_id: str, key: str, answer: Mapping[str, str | bytes | int | None]
) -> None:
    """Stores the answer of the request with an idempotency key."""
    mine = (IdempotencyKeyRow.user_id == user_id, IdempotencyKeyRow.key == key)
    await session.execute(update(IdempotencyKeyRow).where(*mine).values(**answer))


async def has_logged_in(session: Session, user_id: str) -> bool:
    """Returns whether the user ever opened a browser login."""
    return (
        await session.scalar(
            select(LoginSessionRow.id).where(LoginSessionRow.user_id == user_id).limit(1)
        )
        is not None
    )

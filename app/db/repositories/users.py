"""Rows of people: lists, numbers of their objects, and transfers of these objects."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Column, Table, delete, func, or_, select, union_all, update
from sqlalchemy.orm import InstrumentedAttribute

from app.db.clock import db_now
from app.db.engine import Session
from app.db.models import Base
from app.db.models.access import IdempotencyKeyRow, LoginLinkRow, LoginSessionRow, TokenRow
from app.db.models.experiments import RunRow
from app.db.models.invitations import InvitationRow
from app.db.models.jobs import JobRow, JobRunRow
from app.db.models.projects import MembershipRow, ProjectRow, UserRow
from app.db.repositories.keyset_pages import select_page
from app.domain.paging import Keyset
from palestra.contract.states import FINAL_JOB_STATES

COLUMNS: Final[Mapping[str, InstrumentedAttribute[Any]]] = {
    "name": UserRow.name,
    "created_at": UserRow.created_at,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class UserFilter:
    """The filter of the list of people."""

    text: str | None = None
    """Part of the login name, display name or e-mail address."""
    disabled: bool | None = None


async def list_page(session: Session, wanted: UserFilter, keys: Keyset) -> Sequence[UserRow]:
    """Returns a page of people and one row more; service accounts are left out."""
    query = select(UserRow).where(UserRow.service_project_id.is_(None))
    if wanted.text:
        columns = (UserRow.name, UserRow.display_name, UserRow.email)
        query = query.where(or_(*(one.icontains(wanted.text, autoescape=True) for one in columns)))
    if wanted.disabled is not None:
        is_disabled = UserRow.disabled_at.is_not(None)
        query = query.where(is_disabled if wanted.disabled else ~is_disabled)
    return (await session.scalars(select_page(query, keys, COLUMNS, UserRow.id))).all()


async def find_person(session: Session, wanted: str, *, lock: bool = False) -> UserRow | None:
    """Returns the person with this ID or login name, locked until the transaction ends if asked."""
    query = (
        select(UserRow)
        .where(or_(UserRow.id == wanted, UserRow.name == wanted))
        .where(UserRow.service_project_id.is_(None))
        .execution_options(populate_existing=True)
    )
    return await session.scalar(query.with_for_update() if lock else query)


async def lock_administrators(session: Session) -> set[str]:
    """Returns the server administrators who may log in, and locks their rows until the commit.

    Of two transactions that each remove an administrator, the second waits and then sees the result
    of the first.
    """
    query = select(UserRow.id).where(
        UserRow.is_admin, UserRow.disabled_at.is_(None), UserRow.service_project_id.is_(None)
    )
    return set(await session.scalars(query.order_by(UserRow.id).with_for_update()))


async def load_memberships(
    session: Session, user_ids: Collection[str]
) -> dict[str, list[tuple[str, ProjectRow]]]:
    """Returns role and project of each membership of the given users, by the project's name."""
    query = (
        select(MembershipRow.user_id, MembershipRow.role, ProjectRow)
        .join(ProjectRow, ProjectRow.id == MembershipRow.project_id)
        .where(MembershipRow.user_id.in_(user_ids), ProjectRow.deleted_at.is_(None))
        .order_by(ProjectRow.name, ProjectRow.id)
    )
    found: dict[str, list[tuple[str, ProjectRow]]] = {}
    for user_id, role, project in await session.execute(query):
        found.setdefault(user_id, []).append((role, project))
    return found


async def load_last_used(session: Session, user_ids: Collection[str]) -> dict[str, datetime]:
    """Returns the time at which a login or token of each user was last used."""
    uses = union_all(
        *(
            select(table.user_id, table.last_used_at.label("at")).where(
                table.user_id.in_(user_ids), table.last_used_at.is_not(None)
            )
            for table in (LoginSessionRow, TokenRow)
        )
    ).subquery()
    query = select(uses.c.user_id, func.max(uses.c.at)).group_by(uses.c.user_id)
    return dict((await session.execute(query)).all())


async def count_owned(session: Session, user_id: str) -> dict[str, int]:
    """Returns the number of rows that a user owns, by table, and of `live_jobs`."""
    counts = {
        table.name: select(func.count()).select_from(table).where(column == user_id)
        for table, column in _list_owner_columns()
    }
    live = JobRow.state.not_in(FINAL_JOB_STATES)
    counts["live_jobs"] = select(func.count()).where(JobRow.created_by == user_id, live)
    columns = (count.scalar_subquery().label(name) for name, count in counts.items())
    return dict((await session.execute(select(*columns))).mappings().one())


def _list_owner_columns() -> Iterator[tuple[Table, Column[Any]]]:
    """Yields the columns that name the owner of a row that must survive the user."""
    for table in Base.metadata.sorted_tables:
        for column in table.columns:
            for key in column.foreign_keys:
                if key.column is UserRow.__table__.c.id and key.ondelete is None:
                    yield table, column


async def transfer(session: Session, user_id: str, to: str) -> dict[str, int]:
    """Gives everything that a user owns to another user; returns the number of rows by table."""
    moved = {}
    for table, column in _list_owner_columns():
        statement = update(table).where(column == user_id).values({column: to})
        result = await session.execute(statement)
        moved[table.name] = int(result.rowcount)  # type: ignore[attr-defined]
    return {name: count for name, count in moved.items() if count}


async def transfer_live_jobs(session: Session, user_id: str, to: str) -> int:
    """Gives a user's jobs that have not ended, and their runs, to another user.

    Returns the number of jobs.
    """
    live = (
        JobRow.created_by == user_id,
        JobRow.state.not_in(FINAL_JOB_STATES),
    )
    of_jobs = select(JobRunRow.run_id).join(JobRow, JobRow.id == JobRunRow.job_id).where(*live)
    await session.execute(
        update(RunRow)
        .where(RunRow.created_by == user_id, RunRow.id.in_(of_jobs))
        .values(created_by=to)
        .execution_options(synchronize_session=False)
    )
    statement = update(JobRow).where(*live).values(created_by=to).returning(JobRow.id)
    statement = statement.execution_options(synchronize_session=False)
    return len((await session.scalars(statement)).all())


async def list_live_jobs(session: Session, user_id: str) -> Sequence[JobRow]:
    """Returns a user's jobs that have not ended, locked until the transaction ends."""
    query = (
        select(JobRow)
        .where(JobRow.created_by == user_id)
        .where(JobRow.state.not_in(FINAL_JOB_STATES))
        .order_by(JobRow.id)
        .with_for_update()
        .execution_options(populate_existing=True)
    )
    return (await session.scalars(query)).all()


async def end_access(session: Session, user_id: str, *, keep: str | None = None) -> int:
    """Ends all login links and logins of a user, but for the login `keep`.

    Returns the number of logins.
    """
    await session.execute(
        update(LoginLinkRow)
        .where(LoginLinkRow.user_id == user_id, LoginLinkRow.used_at.is_(None))
        .values(used_at=db_now())
    )
    mine = (LoginSessionRow.user_id == user_id, LoginSessionRow.ended_at.is_(None))
    statement = (
        update(LoginSessionRow)
        .where(*mine, LoginSessionRow.id != (keep or ""))
        .values(ended_at=db_now())
        .returning(LoginSessionRow.id)
    )
    return len((await session.scalars(statement)).all())


async def revoke_invitations_of(session: Session, user_id: str) -> None:
    """Revokes the open invitations that a user made."""
    await session.execute(
        update(InvitationRow)
        .where(
            InvitationRow.created_by == user_id,
            InvitationRow.redeemed_at.is_(None),
            InvitationRow.revoked_at.is_(None),
        )
        .values(revoked_at=db_now())
    )


async def insert(session: Session, values: Mapping[str, Any]) -> UserRow:
    """Adds a user whose login name is free."""
    user = UserRow(**values)
    session.add(user)
    await session.flush()
    return user


def change(user: UserRow, values: Mapping[str, Any]) -> None:
    """Sets columns of a user."""
    for name, value in values.items():
        setattr(user, name, value)


async def set_disabled(session: Session, user: UserRow, *, disabled: bool) -> None:
    """Disables a user by the database's clock, or enables the user."""
    at = db_now() if disabled else None
    await session.execute(
        update(UserRow)
        .where(UserRow.id == user.id)
        .values(disabled_at=at)
        .execution_options(synchronize_session=False)
    )
    await session.refresh(user)


async def delete_user(session: Session, user_id: str) -> None:
    """Deletes a user with the logins, tokens and memberships."""
    await session.execute(delete(IdempotencyKeyRow).where(IdempotencyKeyRow.user_id == user_id))
    await session.execute(delete(UserRow).where(UserRow.id == user_id))

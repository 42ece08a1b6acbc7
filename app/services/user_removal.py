"""Disables and deletes people, and pauses, cancels or transfers their jobs."""

import asyncio

from app.db.engine import ACCESS, Session, announce
from app.db.models.projects import UserRow
from app.db.repositories import users as rows
from app.domain import transitions
from app.domain.errors import ConflictError, InvalidError
from app.domain.principal import Principal
from app.services.access import users
from app.services.access.audit_actor import describe_actor
from app.services.access.invitations import require_user_management
from app.services.audit import audit_log
from app.services.jobs import job_state
from app.services.jobs.job_state import TransitionDetails
from palestra.contract.people import DisableRequest, UserDeleted, UserDisabled
from palestra.contract.states import Cause


async def disable(
    session: Session, principal: Principal, wanted: str, request: DisableRequest
) -> UserDisabled:
    """Ends a person's logins, tokens and streams; workers and running attempts go on.

    Tokens are refused while the person is disabled. Open invitations that the person made are
    revoked. For a disabled person, a call only applies its choice for the jobs.

    Raises:
        NotFoundError: If there is no such person.
        InvalidError: `transfer_target_needed`, `no_such_user` or `transfer_to_self`.
        ConflictError: `last_administrator`.
    """
    require_user_management(principal)
    administrators = await users.lock_administrators(session, principal)
    user = await users.find(session, wanted, lock=True)
    users.keep_an_administrator(administrators, user)
    live = (await rows.count_owned(session, user.id))["live_jobs"]
    changed = await _change_jobs(session, principal, user, request)
    if user.disabled_at is None:
        await rows.set_disabled(session, user, disabled=True)
        ended = await rows.end_access(session, user.id)
        await rows.revoke_invitations_of(session, user.id)
        data = {"sessions": ended, "live_jobs": live, "jobs": request.jobs}
        audit_log.record(
            session,
            "user.disable",
            user.id,
            project_id=None,
            actor=describe_actor(principal),
            data=data,
        )
        announce(session, ACCESS)
    return UserDisabled(
        user=await users.load_detail(session, user), live_jobs=live, changed_jobs=changed
    )


async def _change_jobs(
    session: Session, principal: Principal, user: UserRow, request: DisableRequest
) -> int:
    """Pauses, cancels or transfers a person's jobs as requested; returns their number."""
    if request.jobs == "transfer":
        return await _transfer_jobs(session, principal, user, request.transfer_to)
    if request.transfer_to is not None:
        raise InvalidError(
            "transfer_not_asked",
            "Leave this out, or ask for `jobs: transfer`.",
            pointer="/transfer_to",
        )
    if request.jobs == "keep":
        return 0
    details = TransitionDetails(
        actor=describe_actor(principal), cause=Cause.USER, reason="The user was disabled."
    )
    follow = (
        transitions.find_state_after_pause
        if request.jobs == "pause"
        else transitions.find_state_after_cancel
    )
    changed = 0
    for job in await rows.list_live_jobs(session, user.id):
        state = job.state
        to = follow(state)
        # A lost job is queued again or fails within seconds, and cannot be stopped until then.
        if to is not None and to in transitions.ALLOWED[state]:
            await job_state.move(session, job, to, details)
            changed += 1
        await asyncio.sleep(0)
    return changed


async def _transfer_jobs(
    session: Session, principal: Principal, user: UserRow, wanted: str | None
) -> int:
    if wanted is None:
        raise InvalidError(
            "transfer_target_needed",
            "Name the user to whom the jobs are transferred.",
            pointer="/transfer_to",
        )
    to = await users.find_receiver(session, wanted, user, "/transfer_to")
    moved = await rows.transfer_live_jobs(session, user.id, to.id)
    if moved:
        _record_transfer(session, principal, user, to, {"jobs": moved})
    return moved


async def delete(
    session: Session, principal: Principal, wanted: str, transfer_to: str | None
) -> UserDeleted:
    """Deletes a person with the logins, tokens and memberships; the audit log stays.

    Everything that the person owns, jobs included, is transferred, and running jobs continue.

    Raises:
        NotFoundError: If there is no such person.
        InvalidError: `no_such_user` or `transfer_to_self`.
        ConflictError: `last_administrator`; `transfer_needed` if the person owns something and
            `transfer_to` is `None`.
    """
    require_user_management(principal)
    administrators = await users.lock_administrators(session, principal)
    user = await users.find(session, wanted, lock=True)
    users.keep_an_administrator(administrators, user)
    moved: dict[str, int] = {}
    to = None
    if transfer_to is not None:
        to = await users.find_receiver(session, transfer_to, user, "query/transfer_to")
        moved = await rows.transfer(session, user.id, to.id)
        _record_transfer(session, principal, user, to, moved)
    else:
        await _check_owns_nothing(session, user)
    await rows.revoke_invitations_of(session, user.id)
    data = {"name": user.name, "transferred_to": None if to is None else to.id}
    audit_log.record(
        session, "user.delete", user.id, project_id=None, actor=describe_actor(principal), data=data
    )
    await rows.delete_user(session, user.id)
    announce(session, ACCESS)
    return UserDeleted(transferred=moved, transferred_to=None if to is None else to.name)


async def _check_owns_nothing(session: Session, user: UserRow) -> None:
    owned = await rows.count_owned(session, user.id)
    named = ", ".join(
        f"{count:,} {name}" for name, count in owned.items() if count and name != "live_jobs"
    )
    if named:
        raise ConflictError(
            "transfer_needed",
            f"This user owns {named}. Name with `transfer_to` the user who gets them.",
            pointer="query/transfer_to",
        )


def _record_transfer(
    session: Session, principal: Principal, user: UserRow, to: UserRow, moved: dict[str, int]
) -> None:
    audit_log.record(
        session,
        "user.transfer",
        user.id,
        project_id=None,
        actor=describe_actor(principal),
        data={"to": to.id, **moved},
    )

"""The row of the dispatcher's lease (`docs/decisions/0017-lease-of-the-dispatcher.md`)."""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import func, literal, or_, select, text, update

from app.db.clock import db_now
from app.db.engine import Session
from app.db.models.dispatcher_lease import DispatcherLeaseRow
from app.db.upsert import insert_new

_ROW: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseState:
    """The lease as it is stored now."""

    holder: str
    epoch: int
    is_held: bool
    """Whether its time has not passed by the database's clock."""


async def read(session: Session) -> LeaseState | None:
    """Returns the lease; `None` if no dispatcher ever took it."""
    row = DispatcherLeaseRow
    query = select(row.holder, row.epoch, row.held_until > db_now()).where(row.id == _ROW)
    found = (await session.execute(query)).one_or_none()
    if found is None:
        return None
    holder, epoch, is_held = found
    return LeaseState(holder=holder, epoch=epoch, is_held=is_held)


async def take(
    session: Session, holder: str, seconds: float, *, from_living: bool = False
) -> int | None:
    """Takes an expired lease.

    Args:
        session: A writing session.
        holder: Name of the dispatcher.
        seconds: Time for which it is held.
        from_living: Whether to take a lease that has not expired.

    Returns:
        The new epoch; `None` while another dispatcher holds the lease.
    """
    row = DispatcherLeaseRow
    values = {"holder": holder, "taken_at": db_now(), "held_until": db_now(seconds)}
    first = insert_new(session, row, [{"id": _ROW, "epoch": 1, **values}]).returning(row.epoch)
    if (epoch := await session.scalar(first)) is not None:
        return int(epoch)
    taken = (
        update(row)
        .where(row.id == _ROW, or_(literal(from_living), row.held_until <= db_now()))
        .values(epoch=row.epoch + 1, **values)
        .returning(row.epoch)
        .execution_options(synchronize_session=False)
    )
    epoch = await session.scalar(taken)
    return None if epoch is None else int(epoch)


async def renew(session: Session, epoch: int, seconds: float) -> bool:
    """Holds the lease for some seconds from now; false if another dispatcher took it.

    Until the transaction ends no other dispatcher can take the lease. An expired lease is renewed
    too: while its epoch is the same, no other dispatcher has held it.
    """
    row = DispatcherLeaseRow
    statement = (
        update(row)
        .where(row.id == _ROW, row.epoch == epoch)
        .values(held_until=db_now(seconds))
        .returning(row.epoch)
        .execution_options(synchronize_session=False)
    )
    return await session.scalar(statement) is not None


async def release(session: Session, epoch: int) -> None:
    """Ends the lease, if it still has this epoch, so that another dispatcher can take it."""
    row = DispatcherLeaseRow
    await session.execute(
        update(row)
        .where(row.id == _ROW, row.epoch == epoch)
        .values(held_until=db_now())
        .execution_options(synchronize_session=False)
    )


async def end_if_idle(session: Session, seconds: float) -> None:
    """Sets PostgreSQL to end this transaction when its process is idle for `seconds`.

    A process that is stopped within a transaction would keep its locks. On SQLite this has no
    effect: there is one process only.
    """
    if session.get_bind().dialect.name == "postgresql":
        timeout = func.set_config(
            "idle_in_transaction_session_timeout", str(round(1_000 * seconds)), text("true")
        )
        await session.execute(select(timeout))

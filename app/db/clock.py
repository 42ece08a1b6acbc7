"""The database's clock as SQL: the only clock by which leases are written and compared.

SQLite stores a time as whole microseconds since the Unix epoch, PostgreSQL as `timestamptz`; in
Python they are aware datetimes in UTC.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import BigInteger, DateTime, bindparam, select
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import ColumnElement
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import Float, TypeDecorator, TypeEngine

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class Skew:
    """Seconds added to the database's clock in this process.

    Tests increase the skew to simulate elapsed time; otherwise the skew is 0.
    """

    seconds: float = 0.0


SKEW: Final = Skew()


class Timestamp(TypeDecorator[datetime]):
    """Column type of an instant. Naive datetimes are refused."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Returns the column type of each dialect."""
        return dialect.type_descriptor(
            BigInteger() if dialect.name == "sqlite" else DateTime(timezone=True)
        )

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        """Returns the stored form."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("the time has no time zone")
        return (value - EPOCH) // timedelta(microseconds=1) if dialect.name == "sqlite" else value

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        """Returns an aware datetime in UTC."""
        if value is None:
            return None
        return (
            EPOCH + timedelta(microseconds=value)
            if dialect.name == "sqlite"
            else value.astimezone(UTC)
        )


class db_now(FunctionElement[datetime]):  # noqa: N801 - reads as a SQL function
    """SQL function `db_now(seconds)`: the database's time plus `seconds`, possibly negative."""

    inherit_cache = True
    type = Timestamp()

    def __init__(self, seconds: float | ColumnElement[float] = 0.0) -> None:
        super().__init__(_offset(seconds))


def _offset(seconds: float | ColumnElement[float]) -> ColumnElement[float]:
    skew: ColumnElement[float] = bindparam(
        None, callable_=lambda: SKEW.seconds, type_=Float(), unique=True
    )
    moved = (
        seconds
        if isinstance(seconds, ColumnElement)
        else bindparam(None, seconds, Float(), unique=True)
    )
    return skew + moved


@compiles(db_now, "sqlite")
def _sqlite_now(element: db_now, compiler: SQLCompiler, **options: Any) -> str:
    offset = compiler.process(element.clauses, **options)
    return (
        f"CAST(ROUND((julianday('now') - 2440587.5) * 86400000000.0) + ({offset}) * "
        "1000000.0 AS INTEGER)"
    )


@compiles(db_now, "postgresql")
def _postgresql_now(element: db_now, compiler: SQLCompiler, **options: Any) -> str:
    offset = compiler.process(element.clauses, **options)
    return f"(clock_timestamp() + make_interval(secs => ({offset})))"


async def now(session: AsyncSession) -> datetime:
    """Returns the database's time."""
    found: datetime = (await session.execute(select(db_now()))).scalar_one()
    return found

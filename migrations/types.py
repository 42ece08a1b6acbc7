"""Column types of the migrations. A released step never changes, so these stay as they are."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql


def instant() -> sa.types.TypeEngine[Any]:
    """A point in time: `timestamptz` on PostgreSQL, microseconds since the Unix epoch on SQLite."""
    return sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")


def document() -> sa.types.TypeEngine[Any]:
    """JSON that SQL can query."""
    return sa.JSON(none_as_null=True).with_variant(
        postgresql.JSONB(none_as_null=True), "postgresql"
    )


def big_key() -> sa.types.TypeEngine[Any]:
    """An auto-incremented integer key."""
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")

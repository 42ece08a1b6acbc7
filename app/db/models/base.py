"""The base of all tables, and the column types they share."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final

from sqlalchemy import JSON, BigInteger, Enum, Float, Integer, MetaData, String
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, mapped_column

from app.db.clock import Timestamp, db_now
from palestra.contract.names import Schedule
from palestra.contract.states import Cause

NAMING: Final = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}

JsonColumn: Final = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
"""JSON that SQL can query; Python's `None` is SQL's NULL."""

BigKey: Final = BigInteger().with_variant(Integer, "sqlite")
"""An auto-incremented integer key on both dialects."""

Id = Annotated[str, mapped_column(String(64))]
"""A prefixed identifier (`palestra.contract.names.new_id`) or an experiment's ID."""

Counter64 = Annotated[int, mapped_column(BigInteger)]
Json = Annotated[dict[str, Any], mapped_column(JsonColumn)]
Created = Annotated[datetime, mapped_column(Timestamp, default=db_now())]
"""The database's time at insert."""


def build_enumeration_type(kind: type[StrEnum], length: int = 16) -> Enum:
    """Returns the type of a column that holds the values of an enumeration's members as text.

    Args:
        kind: The enumeration. Values read from the column are members; another text raises
            `LookupError`.
        length: Characters of the column.
    """
    return Enum(
        kind,
        native_enum=False,
        length=length,
        values_callable=lambda members: [member.value for member in members],
    )


class Base(DeclarativeBase):
    """Base class of all tables. Tables have no relationships: every query lists what it reads."""

    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map = {  # noqa: RUF012 - read by SQLAlchemy
        datetime: Timestamp(),
        dict[str, Any]: JsonColumn,
        list[Any]: JsonColumn,
        float: Float(53),
        # SQLAlchemy replaces it by the enumeration of each column.
        StrEnum: build_enumeration_type(StrEnum),
        Cause: build_enumeration_type(Cause, length=32),
        Schedule: build_enumeration_type(Schedule, length=32),
    }

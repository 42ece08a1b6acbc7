"""Lists of values as one parameter: any length, any text, and still found by an index."""

import pytest
from sqlalchemy import func, literal, select, text, union_all
from sqlalchemy.types import BigInteger, String

from app.db.engine import Database
from app.db.list_parameters import is_any_of, is_any_pair, is_listed, list_pairs
from app.db.models.experiments import RunRow
from app.db.prepared import Read, fetch_all
from tests.app.services.telemetry_training import Training

pytestmark = pytest.mark.both_databases(
    "A list is a text of JSON on SQLite, and an array on PostgreSQL.",
    of=("app.db.list_parameters",),
)
TEXTS = ["a", 'with "quotes"', "it's", "back\\slash", "naïve ∞", "{1,2}", "", "NULL", "a,b"]
_ROWS = union_all(
    *(
        select(
            literal(name, String()).label("name"),
            literal(2**40 + number, BigInteger()).label("number"),
        )
        for number, name in enumerate(TEXTS)
    )
).subquery("rows")


async def test_texts_are_found_whatever_they_hold(database: Database) -> None:
    query = select(_ROWS.c.name).order_by(_ROWS.c.number)
    async with database.read() as session:
        for texts in ([], TEXTS[:1], TEXTS[1:], [*TEXTS, *(f"x{n}" for n in range(100_000))]):
            chosen = await session.scalars(query.where(is_any_of(_ROWS.c.name, texts)))
            assert list(chosen) == [name for name in TEXTS if name in texts]
            others = await session.scalars(query.where(~is_any_of(_ROWS.c.name, texts)))
            assert list(others) == [name for name in TEXTS if name not in texts]


async def test_numbers_are_found(database: Database) -> None:
    numbers = {2**40 + 1, 2**40 + 3, 7}
    query = select(_ROWS.c.name).where(is_any_of(_ROWS.c.number, numbers))
    async with database.read() as session:
        assert set(await session.scalars(query)) == {TEXTS[1], TEXTS[3]}


async def test_pairs_are_found(database: Database) -> None:
    other = _ROWS.alias("other")
    query = select(_ROWS.c.name, other.c.name).select_from(_ROWS.join(other, text("1 = 1")))
    pairs = {(TEXTS[1], TEXTS[2]), (TEXTS[2], TEXTS[1]), (TEXTS[3], "none")}
    async with database.read() as session:
        rows = await session.execute(query.where(is_any_pair(_ROWS.c.name, other.c.name, pairs)))
        assert {tuple(row) for row in rows} == {pair for pair in pairs if "none" not in pair}
        rows = await session.execute(query.where(is_any_pair(_ROWS.c.name, other.c.name, [])))
        assert rows.all() == []


async def test_named_lists_and_pairs_are_parameters_of_prepared_statements(
    database: Database,
) -> None:
    table, first, second = list_pairs(BigInteger())
    pairs = select(first.label("first"), second.label("second")).select_from(table)
    names = select(_ROWS.c.name).where(is_listed(_ROWS.c.name))
    async with database.read() as session:
        for numbers in ([(1, 2), (2**40, -3)], []):
            found, chosen = await fetch_all(
                session,
                [Read(pairs, {"pairs": numbers}), Read(names, {"ids": TEXTS[: len(numbers)]})],
            )
            assert [tuple(row) for row in found] == numbers
            assert {row.name for row in chosen} == {*TEXTS[: len(numbers)]}


async def test_a_list_is_looked_up_by_an_index(training: Training) -> None:
    query = select(func.count()).where(is_any_of(RunRow.id, [training.run_id, "run_none"]))
    async with training.database.read() as session:
        assert await session.scalar(query) == 1
        if training.database.dialect_name == "sqlite":
            statement = str(query.compile(dialect=session.get_bind().dialect)).replace("?", ":ids")
            plan = await session.execute(text(f"EXPLAIN QUERY PLAN {statement}"), {"ids": "[]"})
            assert any("SEARCH runs USING" in row.detail for row in plan)

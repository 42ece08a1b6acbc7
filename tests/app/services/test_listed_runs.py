"""What lists show of runs, read in one call, equals what the driver's rows hold."""

import pytest

from app.db import prepared
from app.db.prepared import Read
from app.db.repositories import listed_runs
from tests.app.services.test_list_filters import list_runs
from tests.app.services.test_list_filters import listed as listed
from tests.support.server_fixture import World

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.both_databases(
        "Rows are read without the mapper, with types and lists of IDs that differ by database.",
        of=(
            "app.db.list_parameters",
            "app.db.prepared",
        ),
    ),
]


@pytest.mark.parametrize("part", ["runs", "evaluations", "definitions"])
async def test_rows_have_the_values_and_types_of_the_mapper(listed: World, part: str) -> None:
    runs = await list_runs(listed)
    async with listed.database.read() as session:
        ids = {
            "definitions": sorted({run.experiment_id for run in runs}),
            "evaluations": [
                view.id
                for run in runs
                for view in (run.latest_evaluation, run.best_evaluation)
                if view is not None
            ],
        }.get(part, [run.id for run in runs])
        values = {"ids": ids, "projects": [listed.project_id]}
        if part != "definitions":
            del values["projects"]
        statement = getattr(listed_runs, f"_select_{part}")()
        (found,) = await prepared.fetch_all(session, [Read(statement, values)])
        expected = (await (await session.connection()).execute(statement, values)).all()
    assert len(found) == len(expected) > 0
    assert sorted(map(repr, map(tuple, found))) == sorted(map(repr, map(tuple, expected)))
    assert [*found[0]._fields] == [*expected[0]._fields]

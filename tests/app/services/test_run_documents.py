"""The JSON of a list of runs is that of its models, and evaluations are read once."""

import json
import math

import orjson
import pytest
from sqlalchemy import update

from app.db.models.experiments import RunRow
from app.domain.list_filters import RunFilter
from app.domain.paging import PageRequest
from app.services.runs import runs
from app.services.views import runs as views
from palestra.contract.resources import RunView
from tests.app.services.test_list_filters import list_runs
from tests.app.services.test_list_filters import listed as listed
from tests.support.server_fixture import World

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.both_databases(
        "Prepared statements read other types of each driver.",
        of=("app.db.prepared",),
    ),
]


@pytest.mark.parametrize("sort", ["-evaluation/mean.best", "-created"])
async def test_the_json_of_a_list_is_that_of_its_models(listed: World, sort: str) -> None:
    failure = {"message": "The loss is not finite.", "exception": "ValueError"}
    async with listed.database.write() as session:
        changes = {"failure": failure, "env_steps_per_second": math.inf, "cause": "diverged"}
        await session.execute(update(RunRow).where(RunRow.seed == 1).values(changes))
    wanted = RunFilter(columns=("agent.gamma", "evaluation/mean.last", "finding"))
    for selected in (RunFilter(), wanted):
        async with listed.database.read() as session:
            request = PageRequest(sort=sort)
            page = await runs.list_runs(session, listed.admin, selected, request)
        items = json.loads(page.encode())["items"]
        assert len(items) == 4
        for item in items:
            view = RunView.model_validate_json(json.dumps(item))
            assert item == json.loads(view.model_dump_json())
            assert item.keys() == RunView.model_fields.keys()
        rates = {item["seed"]: item["progress"]["env_steps_per_second"] for item in items}
        assert rates[1] == "Infinity"
        assert {type(item["failure"]) for item in items} == {type(None), dict}


async def test_evaluations_are_read_once_and_long_ones_each_time(
    listed: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[str] = []
    build = views.build_evaluation_view

    def count(row: object) -> object:
        built.append(row.id)  # type: ignore[attr-defined]
        return build(row)  # type: ignore[arg-type]

    monkeypatch.setattr(views, "build_evaluation_view", count)
    before = await list_runs(listed)
    built.clear()
    assert await list_runs(listed) == before
    assert built == []
    monkeypatch.setattr(views, "_evaluations", views.KnownContents[orjson.Fragment](1))
    monkeypatch.setattr(views, "_MAX_BYTES", 0)
    for _ in range(2):
        built.clear()
        assert await list_runs(listed) == before
        # The latest and the best one of three runs, which are the same one of one of these.
        assert len(built) == 5

"""The curves that are made from evaluations."""

import json

from app.db.engine import Database
from app.services import curves, series
from palestra.contract.queries import SeriesQuery
from tests.support import records
from tests.support.records import Json
from tests.support.storing import Storing


def judged(run_id: str, env_step: int, success_rate: float | None, **changes: str) -> Json:
    return {**records.evaluation(run_id, env_step, float(env_step)), "success_rate": success_rate, **changes}


async def test_a_success_rate_is_a_curve_where_an_evaluation_has_one(storing: Storing, database: Database) -> None:
    run = storing.run_id
    await storing.send(judged(run, 10, None))
    assert "evaluation/success_rate" not in await names(storing, database)
    await storing.send(judged(run, 20, 0.25), judged(run, 30, 0.75), judged(run, 30, 0.5, source="train_data"))
    assert {"evaluation/success_rate", "evaluation_on_train_data/success_rate"} <= await names(storing, database)
    body = {"select": [{"run_id": run, "series": "evaluation/success_rate"}], "start": 1, "end": 30, "buckets": 3}
    answer = await curves.query(database, storing.world.admin, SeriesQuery.model_validate_json(json.dumps(body)))
    assert (answer.series[0].mean, answer.series[0].n) == ([None, 0.25, 0.75], [0, 1, 1])


async def names(storing: Storing, database: Database) -> set[str]:
    async with database.read() as session:
        page = await series.list_of_run(session, storing.world.admin, storing.run_id, after="", limit=100)
    return {info.name for info in page.items}

"""The series made from evaluations, and the records that a `test` job leaves."""

import json

import pytest

from app.db.engine import Database
from app.domain.errors import InvalidError
from app.metrics import sort_records as metrics
from app.services.curves import curves, series
from app.services.runs import evaluations
from palestra.contract.names import EvaluationSource, Schedule
from palestra.contract.queries import SeriesQuery
from palestra.contract.resources import EvaluationView
from palestra.contract.states import RunState
from tests.app.services.continuous_evaluations import end, evaluate, start_continuous_eval
from tests.support import records
from tests.support.artifact_store import AttemptWithStore
from tests.support.server_fixture import World, definition


async def shown(
    storing: AttemptWithStore, source: EvaluationSource | None = None
) -> list[EvaluationView]:
    from app.domain.paging import PageRequest

    async with storing.database.read() as session:
        request = PageRequest(limit=100, sort="env_step")
        return (
            await evaluations.list_for_run(
                session, storing.world.admin, storing.run_id, request, source=source
            )
        ).items


async def points(storing: AttemptWithStore, name: str) -> list[float]:
    select = [{"run_id": storing.run_id, "series": name}]
    query = SeriesQuery.model_validate_json(
        json.dumps({"select": select, "start": 0, "end": 1000, "buckets": 10})
    )
    (found,) = (await curves.query(storing.database, storing.world.admin, query)).series
    return [value for value in found.mean if value is not None]


async def names(storing: AttemptWithStore) -> set[str]:
    async with storing.database.read() as session:
        return {
            one.name
            for one in (
                await series.list_for_run(
                    session, storing.world.admin, storing.run_id, after="", limit=500
                )
            ).items
        }


async def test_each_source_is_a_series_of_its_own(storing: AttemptWithStore) -> None:
    await storing.send(records.evaluation(storing.run_id, 50, 3.0))
    snapshot = await storing.snapshot(100)
    one = await start_continuous_eval(storing, Schedule.CONTINUOUS_EVAL_ON_TRAIN_DATA)
    await evaluate(one, snapshot, 99.0, source="train_data")
    assert [(row.mean, row.source) for row in await shown(storing)] == [
        (3.0, "evaluation"),
        (99.0, "train_data"),
    ]
    assert [row.mean for row in await shown(storing, EvaluationSource.TRAIN_DATA)] == [99.0]
    assert (
        await points(storing, "evaluation/mean"),
        await points(storing, "evaluation_on_train_data/mean"),
    ) == ([3.0], [99.0])
    assert {"evaluation/mean", "evaluation_on_train_data/length_max"} <= await names(storing)
    assert not any(name.startswith("evaluation_of_test/") for name in await names(storing))
    run = await storing.world.run(storing.run_id)
    assert run.latest_evaluation is not None
    assert run.best_evaluation is not None
    assert (run.latest_evaluation.mean, run.best_evaluation.mean) == (3.0, 3.0), (
        "scores are of fresh episodes"
    )


@pytest.mark.parametrize("prefix", list(metrics.VIRTUAL))
async def test_records_may_not_use_names_of_evaluation_series(
    storing: AttemptWithStore, prefix: str
) -> None:
    with pytest.raises(InvalidError) as refused:
        await storing.send(records.points(storing.run_id, f"{prefix}/mean", [1]))
    assert refused.value.code == "reserved_series"


async def test_a_test_job_sets_the_state_of_an_untrained_run(
    world: World, database: Database
) -> None:
    worker = (await world.register()).worker_id
    document = definition()
    await world.submit(document, schedule="test")
    (job,) = await world.jobs()
    run_id = job.run_ids[0]
    order = (await world.start(job.id, worker)).work_order
    assert (order.schedule, order.runs[0].snapshot, order.runs[0].fence) == (Schedule.TEST, None, 0)
    assert (await world.run(run_id)).state is RunState.RUNNING
    tester = AttemptWithStore(world, database, None, None, run_id, job.id, worker, order.attempt_id)  # type: ignore[arg-type]
    with pytest.raises(InvalidError) as refused:
        await tester.send(records.points(run_id, "loss", [1]))
    assert refused.value.code == "not_training"
    await tester.send({**records.evaluation(run_id, 40, 9.0), "source": "test"})
    await end(tester)
    tested = await world.run(run_id)
    assert (tested.state, tested.job_id, tested.latest_evaluation, tested.progress.env_step) == (
        RunState.SUCCEEDED,
        job.id,
        None,
        0,
    )
    assert [(row.mean, row.source) for row in await shown(tester)] == [(9.0, "test")]

    experiment, new = await world.submit(document)
    assert not new
    training = next(one for one in await world.jobs() if one.schedule is Schedule.TRAIN)
    run = await world.run(run_id)
    assert (run.state, run.job_id, run.started_at, run.experiment_id) == (
        RunState.QUEUED,
        training.id,
        None,
        experiment.id,
    )
    assert (await world.start(training.id, worker)).work_order.runs[0].snapshot is None
    assert [(row.mean, row.superseded) for row in await shown(tester)] == [(9.0, False)]
    await world.submit(document)
    assert len([one for one in await world.jobs() if one.schedule is Schedule.TRAIN]) == 1


async def test_a_test_job_during_a_training_does_not_change_the_run(
    storing: AttemptWithStore,
) -> None:
    snapshot = await storing.snapshot(100)
    one = await start_continuous_eval(storing, Schedule.TEST)
    await one.send({**records.evaluation(one.run_id, 40, 9.0), "source": "test"})
    await end(one)
    run = await storing.world.run(storing.run_id)
    assert (run.state, run.job_id, run.fence, run.progress.env_step) == (
        RunState.RUNNING,
        storing.job_id,
        1,
        100,
    )
    assert not (await storing.snapshots())[snapshot].superseded
    assert (await storing.world.job(one.job_id)).evaluate is None


async def test_evaluations_of_an_older_schema_have_the_source_evaluation(
    storing: AttemptWithStore, database_url: str
) -> None:
    from alembic import command

    from app.db.migrate import _connection, config, upgrade

    await storing.send(records.evaluation(storing.run_id, 50, 3.0))
    await storing.database.dispose()
    try:
        with _connection(database_url) as connection:
            configuration = config()
            configuration.attributes["connection"] = connection
            command.downgrade(configuration, "0001")
    finally:
        upgrade(database_url)
    assert [(row.mean, row.source) for row in await shown(storing)] == [(3.0, "evaluation")]
    assert (await storing.world.run(storing.run_id)).latest_evaluation is not None

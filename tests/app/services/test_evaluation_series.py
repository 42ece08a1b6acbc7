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
from tests.app.services.continuous_evaluations import (
    end_attempt,
    send_evaluation,
    start_continuous_eval,
)
from tests.support import records
from tests.support.artifact_store import AttemptWithStore
from tests.support.server_fixture import World, make_definition


async def list_evaluations(
    live_run: AttemptWithStore, source: EvaluationSource | None = None
) -> list[EvaluationView]:
    from app.domain.paging import PageRequest

    async with live_run.database.read() as session:
        request = PageRequest(limit=100, sort="env_step")
        return (
            await evaluations.list_for_run(
                session, live_run.world.admin, live_run.run_id, request, source=source
            )
        ).items


async def read_points(live_run: AttemptWithStore, name: str) -> list[float]:
    select = [{"run_id": live_run.run_id, "series": name}]
    query = SeriesQuery.model_validate_json(
        json.dumps({"select": select, "start": 0, "end": 1000, "buckets": 10})
    )
    (found,) = (await curves.query(live_run.database, live_run.world.admin, query)).series
    return [value for value in found.mean if value is not None]


async def list_series(live_run: AttemptWithStore) -> set[str]:
    async with live_run.database.read() as session:
        return {
            one.name
            for one in (
                await series.list_for_run(
                    session, live_run.world.admin, live_run.run_id, after="", limit=500
                )
            ).items
        }


@pytest.mark.both_databases(
    "The attempts of runs are listed by a parameter of another type on each database.",
    of=("app.db.repositories.snapshots",),
)
async def test_each_source_is_a_series_of_its_own(live_run: AttemptWithStore) -> None:
    await live_run.send(records.make_evaluation(live_run.run_id, 50, 3.0))
    snapshot = await live_run.write_snapshot(100)
    one = await start_continuous_eval(live_run, Schedule.CONTINUOUS_EVAL_ON_TRAIN_DATA)
    await send_evaluation(one, snapshot, 99.0, source="train_data")
    assert [(row.mean, row.source) for row in await list_evaluations(live_run)] == [
        (3.0, "evaluation"),
        (99.0, "train_data"),
    ]
    assert [row.mean for row in await list_evaluations(live_run, EvaluationSource.TRAIN_DATA)] == [
        99.0
    ]
    assert (
        await read_points(live_run, "evaluation/mean"),
        await read_points(live_run, "evaluation_on_train_data/mean"),
    ) == ([3.0], [99.0])
    assert {"evaluation/mean", "evaluation_on_train_data/length_max"} <= await list_series(live_run)
    assert not any(name.startswith("evaluation_of_test/") for name in await list_series(live_run))
    run = await live_run.world.run(live_run.run_id)
    assert run.latest_evaluation is not None
    assert run.best_evaluation is not None
    assert (run.latest_evaluation.mean, run.best_evaluation.mean) == (3.0, 3.0), (
        "scores are of fresh episodes"
    )


@pytest.mark.parametrize("prefix", list(metrics.VIRTUAL))
async def test_records_may_not_use_names_of_evaluation_series(
    live_run: AttemptWithStore, prefix: str
) -> None:
    with pytest.raises(InvalidError) as refused:
        await live_run.send(records.make_points(live_run.run_id, f"{prefix}/mean", [1]))
    assert refused.value.code == "reserved_series"


async def test_a_test_job_sets_the_state_of_an_untrained_run(
    world: World, database: Database
) -> None:
    worker = (await world.register()).worker_id
    document = make_definition()
    await world.submit(document, schedule="test")
    (job,) = await world.list_jobs()
    run_id = job.run_ids[0]
    order = (await world.start(job.id, worker)).work_order
    assert (order.schedule, order.runs[0].snapshot, order.runs[0].fence) == (Schedule.TEST, None, 0)
    assert (await world.run(run_id)).state is RunState.RUNNING
    tester = AttemptWithStore(world, database, None, None, run_id, job.id, worker, order.attempt_id)  # type: ignore[arg-type]
    with pytest.raises(InvalidError) as refused:
        await tester.send(records.make_points(run_id, "loss", [1]))
    assert refused.value.code == "not_training"
    await tester.send({**records.make_evaluation(run_id, 40, 9.0), "source": "test"})
    await end_attempt(tester)
    tested = await world.run(run_id)
    assert (tested.state, tested.job_id, tested.latest_evaluation, tested.progress.env_step) == (
        RunState.SUCCEEDED,
        job.id,
        None,
        0,
    )
    assert [(row.mean, row.source) for row in await list_evaluations(tester)] == [(9.0, "test")]

    experiment, new = await world.submit(document)
    assert not new
    training = next(one for one in await world.list_jobs() if one.schedule is Schedule.TRAIN)
    run = await world.run(run_id)
    assert (run.state, run.job_id, run.started_at, run.experiment_id) == (
        RunState.QUEUED,
        training.id,
        None,
        experiment.id,
    )
    assert (await world.start(training.id, worker)).work_order.runs[0].snapshot is None
    assert [(row.mean, row.superseded) for row in await list_evaluations(tester)] == [(9.0, False)]
    await world.submit(document)
    assert len([one for one in await world.list_jobs() if one.schedule is Schedule.TRAIN]) == 1


async def test_a_test_job_during_a_training_does_not_change_the_run(
    live_run: AttemptWithStore,
) -> None:
    snapshot = await live_run.write_snapshot(100)
    one = await start_continuous_eval(live_run, Schedule.TEST)
    await one.send({**records.make_evaluation(one.run_id, 40, 9.0), "source": "test"})
    await end_attempt(one)
    run = await live_run.world.run(live_run.run_id)
    assert (run.state, run.job_id, run.fence, run.progress.env_step) == (
        RunState.RUNNING,
        live_run.job_id,
        1,
        100,
    )
    assert not (await live_run.list_snapshots())[snapshot].superseded
    assert (await live_run.world.job(one.job_id)).evaluate is None

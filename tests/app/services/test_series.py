"""Curves made from evaluations, and statistics over the runs of a group."""

import json
from dataclasses import dataclass

import pytest

from app.db.engine import Database
from app.services.curves import curves, series
from palestra.contract.queries import GridGroup, SeriesQuery
from palestra.contract.resources import JobView
from palestra.contract.states import Cause, Outcome
from tests.support import records
from tests.support.artifact_store import AttemptWithStore
from tests.support.records import Json
from tests.support.server_fixture import World, make_definition, make_supervised_definition
from tests.support.training import make_evaluations, train


def make_evaluation_with_success_rate(
    run_id: str, env_step: int, success_rate: float | None, **changes: str
) -> Json:
    return {
        **records.make_evaluation(run_id, env_step, float(env_step)),
        "success_rate": success_rate,
        **changes,
    }


async def test_a_success_rate_is_a_curve_where_an_evaluation_has_one(
    live_run: AttemptWithStore, database: Database
) -> None:
    run = live_run.run_id
    await live_run.send(make_evaluation_with_success_rate(run, 10, None))
    assert "evaluation/success_rate" not in await list_series(live_run, database)
    await live_run.send(
        make_evaluation_with_success_rate(run, 20, 0.25),
        make_evaluation_with_success_rate(run, 30, 0.75),
        make_evaluation_with_success_rate(run, 30, 0.5, source="train_data"),
    )
    assert {
        "evaluation/success_rate",
        "evaluation_on_train_data/success_rate",
    } <= await list_series(live_run, database)
    body = {
        "select": [{"run_id": run, "series": "evaluation/success_rate"}],
        "start": 8,
        "end": 31,
        "buckets": 3,
    }
    answer = await curves.query(
        database, live_run.world.admin, SeriesQuery.model_validate_json(json.dumps(body))
    )
    assert (answer.start, answer.width, answer.end) == (8, 8, 32)
    assert (answer.series[0].mean, answer.series[0].n) == ([None, 0.25, 0.75], [0, 1, 1])


class TestScoreOfAnExperiment:
    """A score shows only measured numbers.

    A single run has no standard deviation, and a supervised score is not negated.
    """

    async def test_one_run_has_no_standard_deviation_and_two_have_that_of_a_sample(
        self, world: World
    ) -> None:
        registered = await world.register(slots=2)
        await world.submit(seeds=(0, 1))
        one, two = await world.list_jobs()
        assert await self.compute_score_after(world, one, registered.worker_id, 0, 100.0) == (
            1,
            None,
            100.0,
            None,
        )
        runs, metric, mean, stdev = await self.compute_score_after(
            world, two, registered.worker_id, 1, 104.0
        )
        assert (runs, metric, mean, stdev) == (2, None, 102.0, pytest.approx(2.8284, abs=1e-3))

    async def test_a_supervised_score_is_its_metric_as_it_was_measured(self, world: World) -> None:
        registered = await world.register()
        await world.submit(make_supervised_definition())
        (job,) = await world.list_jobs()
        found = await self.compute_score_after(
            world, job, registered.worker_id, 0, -0.25, make_supervised_definition()
        )
        assert found == (1, "loss", 0.25, None)

    async def compute_score_after(
        self,
        world: World,
        job: JobView,
        worker_id: str,
        slot: int,
        mean: float,
        document: Json | None = None,
    ) -> tuple[int, str | None, float, float | None]:
        """Sends an evaluation of a run.

        Returns number of runs, metric, mean and standard deviation of the experiment's score.
        """
        await train(world, job, (worker_id, slot), make_evaluations(mean))
        experiment, _ = await world.submit(document, seeds=(0,))
        score = experiment.latest_evaluation
        assert score is not None
        return score.runs, score.metric, score.mean, score.stdev


class TestCarryForward:
    """Ended runs can stay in the mean with their last value.

    The last value is taken from all data of the run, not only from the queried range.
    """

    async def test_only_succeeded_runs_are_carried_forward_and_counted(
        self, world: World, database: Database
    ) -> None:
        group = await train_three_runs(world, Outcome.SUCCEEDED, Cause.SUCCESS_SCORE)
        plain = await group.query_statistics(database)
        assert (plain.mean, plain.n, plain.carried) == ([100.0, 280.0, 300.0], [3, 3, 2], [0, 0, 0])
        carried = await group.query_statistics(database, carry_forward=True)
        assert (carried.mean, carried.n, carried.carried) == (
            [100.0, 280.0, 350.0],
            [3, 3, 3],
            [0, 0, 1],
        )

    async def test_the_carried_value_may_lie_before_the_queried_range(
        self, world: World, database: Database
    ) -> None:
        group = await train_three_runs(world, Outcome.SUCCEEDED, Cause.SUCCESS_SCORE)
        zoomed = await group.query_statistics(database, carry_forward=True, start=24, buckets=1)
        assert (zoomed.mean, zoomed.n, zoomed.carried) == ([350.0], [3], [1])

    async def test_a_failed_run_is_not_carried_forward(
        self, world: World, database: Database
    ) -> None:
        group = await train_three_runs(world, Outcome.FAILED, Cause.DIVERGED)
        carried = await group.query_statistics(database, carry_forward=True)
        assert (carried.n, carried.carried) == ([3, 3, 2], [0, 0, 0])


@dataclass
class Group:
    """Runs of an experiment and the user who queries them."""

    world: World
    run_ids: list[str]

    async def query_statistics(
        self, database: Database, *, carry_forward: bool = False, start: int = 8, buckets: int = 3
    ) -> GridGroup:
        group = {
            "name": "mean",
            "run_ids": self.run_ids,
            "series": "evaluation/mean",
            "carry_forward": carry_forward,
        }
        body = {"groups": [group], "start": start, "end": 31, "buckets": buckets}
        answer = await curves.query(
            database, self.world.admin, SeriesQuery.model_validate_json(json.dumps(body))
        )
        return answer.groups[0]


async def train_three_runs(world: World, outcome: Outcome, cause: Cause) -> Group:
    """Trains three runs.

    The first ends after its second evaluation; its mean of 450 is the highest.
    """
    registered = await world.register(slots=3)
    await world.submit(make_definition(), seeds=(0, 1, 2))
    means = ((100.0, 450.0), (100.0, 190.0, 306.0), (100.0, 200.0, 294.0))
    ends = ((outcome, cause), None, None)
    jobs = enumerate(await world.list_jobs())
    return Group(
        world,
        [
            await train(
                world, job, (registered.worker_id, slot), make_evaluations(*means[slot]), ends[slot]
            )
            for slot, job in jobs
        ],
    )


async def list_series(live_run: AttemptWithStore, database: Database) -> set[str]:
    async with database.read() as session:
        page = await series.list_for_run(
            session, live_run.world.admin, live_run.run_id, after="", limit=100
        )
    return {info.name for info in page.items}

"""Statistics of groups of curves equal numpy over the exported points, whatever is shown."""

import csv
import io
import json
from typing import Any

import numpy as np
import scipy.stats

from app.metrics import groups
from app.services.curves import answers, curves, record_exports
from app.services.curves.record_exports import RunningExports
from palestra.contract.queries import SeriesQuery
from palestra.contract.record_exports import RecordQuery
from palestra.contract.states import Cause, Outcome
from tests.support import records
from tests.support.server_fixture import World, make_definition
from tests.support.training import train

SEEDS = 7
END = (Outcome.SUCCEEDED, Cause.SUCCESS_SCORE)
STATISTICS = ["mean", "median", "iqm", "stdev", "stderr", "min", "max", "interval", "iqm_interval"]


async def train_seeds(world: World) -> list[str]:
    """Trains seeds whose points differ in number, step and size; the first three stop early."""
    rng = np.random.default_rng(5)
    worker = await world.register(slots=SEEDS)
    await world.submit(seeds=list(range(SEEDS)))
    runs = []
    for slot, job in enumerate(await world.list_jobs()):
        last = 2_000 if slot < 3 else 5_000
        steps = np.unique(rng.integers(0, last, 300)).tolist()
        values = (rng.normal(scale=10.0**slot, size=len(steps))).tolist()
        values[3] = "NaN"  # kept in the export, left out of the statistics
        point = records.make_points("", "loss/td", steps, values)
        runs.append(await train(world, job, (worker.worker_id, slot), [point], END))
    return runs


def read_points(text: str) -> dict[str, list[tuple[int, float]]]:
    found: dict[str, list[tuple[int, float]]] = {}
    for row in csv.DictReader(io.StringIO(text)):
        found.setdefault(row["run_id"], []).append((int(row["env_step"]), float(row["value"])))
    return found


async def export_points(world: World, runs: list[str]) -> dict[str, list[tuple[int, float]]]:
    wanted = RecordQuery(runs=tuple(runs), series=("loss/td",))
    found = await record_exports.export(
        world.database, world.admin, wanted, "csv", RunningExports()
    )
    try:
        return read_points(b"".join([piece async for piece in found.read()]).decode())
    finally:
        await found.close()


async def ask(world: World, runs: list[str], **more: Any) -> dict[str, Any]:
    body = {
        "runs": runs,
        "names": ["loss/td"],
        "group_by": ["env"],
        "buckets": 80,
        "statistics": STATISTICS,
        **more,
    }
    wanted = SeriesQuery.model_validate_json(json.dumps(body))
    found = await curves.read(world.database, world.admin, wanted)
    assert found.answer is not None
    answer: dict[str, Any] = json.loads(answers.encode_json(found.answer))
    return answer


async def test_groups_equal_numpy_over_the_export(world: World) -> None:
    runs = await train_seeds(world)
    points = await export_points(world, runs)
    assert set(points) == set(runs)
    answer = await ask(world, runs)
    (group,) = answer["groups"]
    sizes = np.zeros(len(answer["grid"]))
    means = np.full((SEEDS, len(answer["grid"])), np.nan)
    for row, run in enumerate(runs):
        buckets: dict[int, list[float]] = {}
        for step, value in points[run]:
            if np.isfinite(value):
                place = int((step - answer["start"]) // answer["width"])
                buckets.setdefault(place, []).append(value)
        for place, values in buckets.items():
            means[row, place] = np.mean(values)
            sizes[place] += np.abs(values).sum()
    compare(group, means, sizes)
    hidden = await ask(world, runs, show_runs=False)
    assert hidden["series"] == []
    assert hidden["groups"] == answer["groups"], "hiding every run changed the statistics"


def compare(group: dict[str, Any], means: np.ndarray, sizes: np.ndarray) -> None:
    """Compares each bucket with numpy and scipy, to 1e-9 of the sum of the sizes in it."""
    checked = 0
    for place, size in enumerate(sizes):
        values = means[:, place][~np.isnan(means[:, place])]
        assert group["n"][place] == len(values)
        if not len(values):
            assert group["mean"][place] is None
            continue
        expected = {
            "mean": values.mean(),
            "median": np.median(values),
            "iqm": scipy.stats.trim_mean(values, 0.25),
            "min": values.min(),
            "max": values.max(),
        }
        if len(values) > 1:
            expected |= {
                "stdev": values.std(ddof=1),
                "stderr": values.std(ddof=1) / np.sqrt(len(values)),
            }
        for name, value in expected.items():
            assert abs(group[name][place] - value) <= 1e-9 * size, (name, place)
            checked += 1
        assert (group["low"][place] is None) == (len(values) < 3)
    assert checked > 200


async def test_ended_runs_are_carried_forward_on_request_and_counted(world: World) -> None:
    runs = await train_seeds(world)
    plain, carried = await ask(world, runs), await ask(world, runs, carry_forward=True)
    late = [i for i, x in enumerate(plain["grid"]) if x > 2_100]
    (before,), (after,) = plain["groups"], carried["groups"]
    assert max(before["n"][i] for i in late) <= 4
    assert not any(before["carried"])
    for i in late:
        assert after["carried"][i] >= (3 if before["n"][i] else 0)
        assert after["n"][i] == before["n"][i] + after["carried"][i]


async def test_intervals_of_a_group_of_two_environments_are_stratified(world: World) -> None:
    """The runs of an environment are equal, so no resample within it differs."""
    worker = await world.register(slots=8)
    runs = []
    for place, env in enumerate(("CartPole-v1", "Pendulum-v1")):
        agent = {"name": "ppo"}
        experiment, _ = await world.submit(
            make_definition(env={"id": env}, agent=agent), seeds=[0, 1, 2, 3]
        )
        for slot, job in enumerate(await world.list_jobs(experiment_id=experiment.id)):
            content = [records.make_points("", "loss/td", [1, 2], [100.0 * place] * 2)]
            runs.append(await train(world, job, (worker.worker_id, 4 * place + slot), content, END))
    (group,) = (await ask(world, runs, group_by=["agent"]))["groups"]
    filled = [place for place, n in enumerate(group["n"]) if n]
    assert filled
    for place in filled:
        assert group["n"][place] == 8
        ends = [group[name][place] for name in ("low", "mean", "high", "iqm_low", "iqm_high")]
        np.testing.assert_allclose(ends, 50.0)


def test_the_interval_of_a_bucket_equals_rliable_on_the_same_resamples() -> None:
    from rliable import metrics

    means = np.random.default_rng(1).normal(size=(9, 1))
    found = groups.summarise(means, groups.WantedIntervals(of_iqm=True))
    drawn = groups._draw(np.array([9]))
    ordered = np.sort(means, axis=0)
    resampled = [np.repeat(ordered, counts, axis=0) for counts in drawn]
    estimates = [metrics.aggregate_iqm(one) for one in resampled]
    expected = np.quantile(estimates, (0.025, 0.975))
    np.testing.assert_allclose([found.iqm_low[0], found.iqm_high[0]], expected, rtol=1e-9)
    means_of = [metrics.aggregate_mean(one) for one in resampled]
    expected = np.quantile(means_of, (0.025, 0.975))
    np.testing.assert_allclose([found.low[0], found.high[0]], expected, rtol=1e-9)

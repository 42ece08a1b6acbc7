"""Runtimes of similar jobs, and the starts that a simulation with the deciding function gives."""

import math
import random
import statistics
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from app.domain.queue import usage
from app.domain.queue.holds import RunningLimit, RunningLimits
from app.domain.queue.placement import WorkerOffer
from app.domain.queue.runtimes import (
    EndedJob,
    JobKind,
    RuntimeModel,
    RuntimeModels,
    Runtimes,
    fit,
)
from app.domain.queue.start_estimates import ComparedStart, add_jobs, measure_accuracy
from app.domain.queue.start_order import ExperimentKey, QueuedJob
from app.domain.queue.start_simulation import (
    JobRuntime,
    LiveJob,
    Simulated,
    StartInterval,
    estimate_starts,
)
from palestra.contract.names import PriorityClass
from tests.support.queue_states import NOW, make_job, make_state, make_worker


def worker(name: str = "w1", free_slots: int = 0, gpus: int = 0) -> WorkerOffer:
    return WorkerOffer(worker_id=name, free_slots=free_slots, gpus=gpus, versions=frozenset({1, 2}))


def exact(seconds: float) -> RuntimeModel:
    """A model that knows the runtime."""
    return RuntimeModel(
        mean=math.log(seconds),
        variance=1e-12,
        degrees=1e6,
        observations=1_000_000,
        failed=(),
        failing=0.0,
    )


def live(of: QueuedJob, model: RuntimeModel | None, worker_id: str = "w1", **more: Any) -> LiveJob:
    return LiveJob(
        worker_id=worker_id,
        group=of.group,
        experiment=of.experiment,
        devices=of.devices,
        runtime=JobRuntime(model=model, **more),
    )


def simulate(
    jobs: Sequence[QueuedJob],
    model: RuntimeModel | None,
    running: Sequence[LiveJob] = (),
    *,
    workers: Sequence[WorkerOffer] = (),
    limits: RunningLimits | None = None,
    usage_of: dict[tuple[str, str], float] | None = None,
    draws: int = 16,
) -> dict[str, StartInterval]:
    simulated = Simulated(
        state=make_state(jobs, workers or [worker()], usage_of, limits=limits),
        live=running,
        runtimes={job.id: JobRuntime(model=model) for job in jobs},
    )
    return estimate_starts(simulated, [job.id for job in jobs], draws=draws, seed=1)


def test_jobs_of_a_known_length_start_one_after_the_other() -> None:
    jobs = [make_job(f"job {number}", age=100 - number) for number in range(4)]
    running = [live(make_job("running"), exact(100), elapsed=40.0)]
    found = simulate(jobs, exact(100), running)
    medians = [found[job.id].median for job in jobs]
    assert medians == pytest.approx([60, 160, 260, 360], rel=0.001)
    assert found["job 3"].latest == pytest.approx(found["job 3"].earliest, rel=0.001)


def test_slots_that_become_free_go_to_the_person_with_the_least_usage() -> None:
    mine = [make_job(f"mine {number}", "ada", age=100 - number) for number in range(3)]
    theirs = make_job("theirs", "bob", age=1)
    running = [live(make_job("running"), exact(100), elapsed=90.0)]
    used = {("robots", "ada"): 90.0 + usage.QUANTUM_SECONDS}
    found = simulate([*mine, theirs], exact(1_000), running, usage_of=used)
    assert found["theirs"].median == pytest.approx(10, rel=0.01)
    assert found["mine 0"].median == pytest.approx(1_010, rel=0.01)


def test_a_free_slot_is_taken_at_once() -> None:
    found = simulate([make_job("a")], exact(10), workers=[worker(free_slots=1)])
    assert found["a"] == StartInterval(earliest=0.0, median=0.0, latest=0.0)


def test_a_limit_on_running_jobs_holds_until_one_of_them_ends() -> None:
    jobs = [make_job(f"job {number}", age=9 - number) for number in range(2)]
    limits = RunningLimits(
        experiments={ExperimentKey("robots", "exp_1"): RunningLimit(running=0, most=1)}
    )
    found = simulate(jobs, exact(50), workers=[worker(free_slots=4)], limits=limits)
    assert found["job 0"].median == 0.0
    assert found["job 1"].median == pytest.approx(50, rel=0.001)


def test_an_interactive_job_waits_for_the_other_one_of_its_person() -> None:
    jobs = [
        make_job(f"job {number}", priority_class=PriorityClass.INTERACTIVE, age=9 - number)
        for number in range(2)
    ]
    found = simulate(jobs, exact(50), workers=[worker(free_slots=4)])
    assert found["job 1"].median == pytest.approx(50, rel=0.001)


def test_nothing_is_estimated_behind_a_job_of_which_nothing_is_known() -> None:
    jobs = [make_job("a", age=2), make_job("b", age=1)]
    found = simulate(jobs, exact(10), [live(make_job("running"), None)])
    assert not found["a"].is_known
    assert not found["b"].is_known
    bounded = simulate(jobs, exact(10), [live(make_job("running"), None, limit=30.0)])
    assert bounded["a"].median == pytest.approx(30)


def test_a_job_that_no_worker_fits_never_starts_and_holds_nobody() -> None:
    jobs = [make_job("large", gpus=8, age=2), make_job("small", age=1)]
    found = simulate(jobs, exact(10), [live(make_job("running"), exact(10))])
    assert not found["large"].is_known
    assert found["small"].median == pytest.approx(10, rel=0.001)


def test_a_job_on_several_slots_frees_all_of_them_together() -> None:
    jobs = [make_job("large", gpus=2, age=9), *(make_job(f"small {n}", gpus=1) for n in range(2))]
    found = simulate(jobs, exact(50), workers=[make_worker("w1", free_slots=2, gpus=2)])
    assert found["large"].median == 0.0
    assert found["small 0"].median == pytest.approx(50, rel=0.001)
    assert found["small 1"].median == pytest.approx(50, rel=0.001)


def test_slots_are_kept_for_a_job_that_needs_several_until_it_starts() -> None:
    running = live(make_job("running", gpus=1), exact(100), elapsed=20.0, limit=300.0)
    large = make_job("large", gpus=2, age=9)
    short = make_job("short", gpus=1, wall_seconds=120, age=2)
    endless = make_job("endless", gpus=1, age=1)
    found = simulate(
        [large, short, endless],
        exact(60),
        [running],
        workers=[make_worker("w1", free_slots=1, gpus=2, busy=[300.0])],
    )
    assert found["short"].median == 0.0
    assert found["large"].median == pytest.approx(80, rel=0.001)
    assert found["endless"].median == pytest.approx(140, rel=0.001)


def test_the_interval_covers_what_four_in_five_draws_give() -> None:
    source = random.Random(3)
    model = fit(Runtimes(succeeded=[source.lognormvariate(5, 0.3) for _ in range(200)]))
    assert model is not None
    jobs = [make_job(f"job {number}", age=100 - number) for number in range(3)]
    found = simulate(jobs, model, [live(make_job("running"), model)], draws=200)
    interval = found["job 2"]
    sums = [sum(source.lognormvariate(5, 0.3) for _ in range(3)) for _ in range(2_000)]
    inside = sum(interval.earliest <= total <= interval.latest for total in sums) / len(sums)
    assert 0.7 < inside < 0.9
    assert interval.median == pytest.approx(statistics.median(sums), rel=0.1)


@pytest.mark.parametrize("known", [2, 4, 10])
def test_intervals_of_few_observations_cover_four_in_five(known: int) -> None:
    source = random.Random(known)
    inside = 0
    for _ in range(400):
        mean, deviation = source.uniform(3, 7), source.uniform(0.1, 0.4)
        seen = [source.lognormvariate(mean, deviation) for _ in range(known)]
        model = fit(Runtimes(succeeded=seen))
        assert model is not None
        drawn = sorted(model.draw_parameters(source).draw(source) for _ in range(99))
        inside += drawn[9] <= source.lognormvariate(mean, deviation) <= drawn[89]
    assert 0.72 < inside / 400 < 0.9


def test_what_a_job_has_run_already_conditions_what_it_still_runs() -> None:
    source = random.Random(0)
    model = fit(Runtimes(succeeded=[100.0] * 50))
    assert model is not None
    parameters = model.draw_parameters(source)
    for elapsed in (50.0, 100.0, 200.0, 1e6):
        drawn = [parameters.draw(source, elapsed) for _ in range(200)]
        assert min(drawn) >= elapsed
        assert all(map(math.isfinite, drawn))
    # Half of the runtimes are left at the median.
    assert statistics.median(parameters.draw(source, 1.0) for _ in range(500)) < 110
    assert statistics.median(parameters.draw(source, 100.0) for _ in range(500)) > 100


def test_jobs_that_were_stopped_count_as_longer_than_they_ran() -> None:
    plain = fit(Runtimes(succeeded=[100.0, 110.0, 90.0]))
    short = fit(Runtimes(succeeded=[100.0, 110.0, 90.0], stopped=[10.0]))
    long = fit(Runtimes(succeeded=[100.0, 110.0, 90.0], stopped=[150.0, 150.0, 150.0]))
    assert plain is not None
    assert short is not None
    assert long is not None
    assert short.mean == pytest.approx(plain.mean, abs=0.05)
    assert long.mean > plain.mean + 0.1
    assert fit(Runtimes(stopped=[10.0, 20.0])) is None


@pytest.mark.parametrize("seen", [(0.01, 1e6), (1.0, 1e7), (1e-2, 1e8)])
def test_runtimes_that_differ_without_bounds_break_nothing(seen: tuple[float, float]) -> None:
    model = fit(Runtimes(succeeded=seen))
    assert model is not None
    jobs = [make_job(f"job {number}", age=9 - number) for number in range(6)]
    running = [live(make_job("running"), model, elapsed=elapsed) for elapsed in (0.0, 1e9)]
    workers = [worker(free_slots=1)]
    found = simulate(jobs, model, running, workers=workers, draws=200)
    assert found["job 0"].is_known
    assert not found["job 5"].is_known


def test_failures_are_drawn_as_often_as_they_were_seen() -> None:
    source = random.Random(0)
    model = fit(Runtimes(succeeded=[100.0] * 30, failed=[2.0] * 10))
    assert model is not None
    parameters = model.draw_parameters(source)
    drawn = [parameters.draw(source) for _ in range(1_000)]
    assert sum(seconds == 2.0 for seconds in drawn) / 1_000 == pytest.approx(0.25, abs=0.05)
    assert all(parameters.draw(source, 50.0) > 50.0 for _ in range(100))


def make_kind(definition: str, budget: float = 1_000.0, **changes: Any) -> JobKind:
    kind = JobKind(definition, "dqn", "CartPole-v1", "train", 1, "env_steps", budget)
    return kind._replace(**changes)


def test_the_same_definition_comes_before_the_same_parts_and_these_before_nothing() -> None:
    ended = [
        EndedJob(make_kind("a"), 100.0, "succeeded"),
        EndedJob(make_kind("a"), 110.0, "succeeded"),
        EndedJob(make_kind("b", 2_000.0), 500.0, "succeeded"),
    ]
    models = RuntimeModels(ended)
    same, parts = models.find(make_kind("a")), models.find(make_kind("c", 4_000.0))
    assert same is not None
    assert math.exp(same.mean) == pytest.approx(105, abs=1)
    assert parts is not None
    # 0.1, 0.11 and 0.25 seconds a step, scaled by the budget.
    assert math.exp(parts.mean) == pytest.approx(4_000 * (0.1 * 0.11 * 0.25) ** (1 / 3), rel=0.01)
    assert models.find(make_kind("a", runs=4)) is None
    assert models.find(make_kind("a", environment="Pendulum-v1", definition_hash="d")) is None
    assert RuntimeModels(ended[:1]).find(make_kind("a")) is None


def test_jobs_are_added_to_the_loaded_part_of_a_queue() -> None:
    state = make_state([make_job("a", age=5)])
    first, last = make_job("first", priority=1), make_job("last")
    found = add_jobs(state, [first, last, make_job("other", "bob")])
    heads = {group.user_id: [job.id for job in one.jobs] for group, one in found.heads.items()}
    assert heads == {"ada": ["first", "a", "last"], "bob": ["other"]}


def test_errors_and_coverage_compare_first_estimates_with_starts() -> None:
    assert measure_accuracy([]).coverage is None
    made, earliest, median, latest, early, inside = (
        NOW + timedelta(seconds=seconds) for seconds in (0, 100, 110, 130, 95, 112)
    )
    at_once = ComparedStart(made, made, made, made, inside)
    compared = [ComparedStart(made, earliest, median, latest, at) for at in (early, inside)]
    assert measure_accuracy([*compared, at_once]) == (2, 8.5, 0.5)

"""Continuous evaluations: the order of snapshots, and waiting jobs with the reason why they
wait.
"""

import json
from dataclasses import replace
from typing import Any

import pytest

from app.daemons.dispatcher import Dispatcher
from app.db.engine import Database
from app.domain.errors import ConflictError, ForbiddenError
from app.services.attempts import continuous_evaluation
from app.services.jobs.dispatch_plan import ReadyJob
from palestra.contract.job_options import JobOptions, JobRequest
from palestra.contract.names import Schedule, new_id
from palestra.contract.states import Cause, JobState, Order, Outcome
from palestra.contract.work_order import FollowAnswer, FollowRequest
from tests.app.services.continuous_evaluations import SLOT, end, evaluate, start_continuous_eval
from tests.support.artifact_store import AttemptWithStore
from tests.support.server_fixture import World


class RecordingQueue:
    """Records the dispatch messages that it is sent."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def send(self, job: ReadyJob) -> None:
        self.sent.append(job.job_id)


async def next_of(
    one: AttemptWithStore, *evaluated: str, again: bool = False, run_id: str | None = None
) -> FollowAnswer:
    request = FollowRequest(run_id=run_id or one.run_id, evaluated=evaluated, again=again)
    return await continuous_evaluation.next_snapshot(one.database, one.attempt_id, request)


def snapshot_and_training_state(answer: FollowAnswer) -> tuple[str | None, str]:
    """Returns the snapshot ID in an answer and the state of the training."""
    return (None if answer.snapshot is None else answer.snapshot.snapshot_id, answer.training)


async def test_snapshots_are_given_newest_first_and_each_once(storing: AttemptWithStore) -> None:
    first, second = await storing.snapshot(100), await storing.snapshot(200)
    one = await start_continuous_eval(storing)
    answer = await next_of(one)
    assert snapshot_and_training_state(answer) == (second, "live")
    assert answer.snapshot is not None
    assert {file.name for file in answer.snapshot.files} == {"state", "memory"}
    assert snapshot_and_training_state(await next_of(one, second)) == (first, "live"), (
        "what is not stored yet counts when the attempt names it"
    )
    await evaluate(one, second)
    assert snapshot_and_training_state(await next_of(one)) == (first, "live"), (
        "what is stored counts for later attempts"
    )
    third = await storing.snapshot(300)
    assert snapshot_and_training_state(await next_of(one, first)) == (third, "live")
    await evaluate(one, third)
    nothing = await next_of(one, first)
    assert (snapshot_and_training_state(nothing), nothing.evaluated) == ((None, "live"), 2)
    assert snapshot_and_training_state(await next_of(one, first, again=True)) == (third, "live")


async def test_unverified_and_superseded_snapshots_are_left_out(storing: AttemptWithStore) -> None:
    kept = await storing.snapshot(100)
    one = await start_continuous_eval(storing)
    await storing.snapshot(200, upload=False)
    assert snapshot_and_training_state(await next_of(one)) == (kept, "live")
    await storing.world.heartbeat(storing.worker_id, dead=[storing.attempt_id])
    await storing.world.start(storing.job_id, storing.worker_id, attempt=2, slot=2)
    assert snapshot_and_training_state(await next_of(one)) == (kept, "live")
    assert snapshot_and_training_state(await next_of(one, kept)) == (None, "live")


async def test_the_files_of_a_given_snapshot_are_kept_until_the_next_one_is_given(
    storing: AttemptWithStore,
) -> None:
    first = await storing.snapshot(100)
    one = await start_continuous_eval(storing)
    await next_of(one)
    for step in (200, 300, 400):
        last = await storing.snapshot(step)
    assert (await storing.snapshots())[first].state == "verified"
    assert snapshot_and_training_state(await next_of(one, first)) == (last, "live")
    await storing.snapshot(500)
    assert (await storing.snapshots())[first].state == "deleted"


async def test_a_continuous_evaluation_releases_its_slot_without_a_live_training(
    storing: AttemptWithStore,
) -> None:
    first = await storing.snapshot(100)
    one = await start_continuous_eval(storing)
    await storing.world.pause(storing.job_id)
    assert snapshot_and_training_state(await next_of(one)) == (first, "live"), (
        "while it saves, more may come"
    )
    await end(storing, Outcome.PAUSED, Cause.USER)
    assert snapshot_and_training_state(await next_of(one)) == (first, "waiting"), (
        "what is there is evaluated first"
    )
    await evaluate(one, first)
    assert snapshot_and_training_state(await next_of(one, again=True)) == (None, "waiting")
    await end(one, Outcome.DRAINED, Cause.DRAIN)
    assert (await storing.world.job(one.job_id)).state is JobState.QUEUED


async def test_a_continuous_evaluation_ends_with_the_training(storing: AttemptWithStore) -> None:
    one = await start_continuous_eval(storing)
    last = await storing.snapshot(100)
    await end(storing)
    assert snapshot_and_training_state(await next_of(one)) == (last, "over")
    assert snapshot_and_training_state(await next_of(one, last)) == (None, "over")


async def test_only_a_live_continuous_evaluation_gets_snapshots_of_its_own_runs(
    storing: AttemptWithStore,
) -> None:
    await storing.snapshot(100)
    for trainer in (storing, await start_continuous_eval(storing, Schedule.EVALUATE)):
        with pytest.raises(ForbiddenError) as refused:
            await next_of(trainer)
        assert refused.value.code == "not_following"
        if trainer is not storing:
            await end(trainer)
    one = await start_continuous_eval(storing)
    await storing.world.submit(seeds=[77])
    other = next(job for job in await storing.world.jobs() if job.state is JobState.QUEUED)
    for run_id in (other.run_ids[0], new_id("run")):
        with pytest.raises(ForbiddenError) as refused:
            await next_of(one, run_id=run_id)
        assert refused.value.code == "other_run"
    await end(one)
    with pytest.raises(ConflictError) as stale:
        await next_of(one)
    assert stale.value.code == "stale_attempt"


async def test_a_resumed_training_is_dispatched_before_its_continuous_evaluation(
    world: World, database: Database, storing: AttemptWithStore
) -> None:
    """A continuous evaluation without a snapshot to evaluate is not dispatched, so one slot
    suffices.

    The queue shows the reason.
    """
    queue = RecordingQueue()
    dispatcher = Dispatcher(database, queue, ring_seconds=30)
    await world.pause(storing.job_id)
    await end(storing, Outcome.PAUSED, Cause.USER)
    job = await world.add_job(storing.run_id, Schedule.CONTINUOUS_EVAL)
    await dispatcher.tick()
    assert not queue.sent
    assert "Follows the training of its run" in ((await world.job(job.id)).waiting or "")
    await world.resume(storing.job_id)
    await dispatcher.tick()
    assert queue.sent == [storing.job_id], "the training goes first"
    training = replace(
        storing,
        attempt_id=(
            await world.start(storing.job_id, storing.worker_id, attempt=2)
        ).work_order.attempt_id,
        seq=0,
    )
    await dispatcher.tick()
    assert queue.sent == [storing.job_id, job.id]
    one = replace(
        storing,
        job_id=job.id,
        attempt_id=(await world.start(job.id, storing.worker_id, slot=SLOT)).work_order.attempt_id,
        seq=0,
    )
    saved = await training.snapshot(100)
    await world.pause(storing.job_id)
    await end(training, Outcome.PAUSED, Cause.USER)
    await end(one, Outcome.DRAINED, Cause.DRAIN)
    await dispatcher.tick()
    assert queue.sent[2:] == [job.id], "a snapshot waits for it"
    again = replace(
        one,
        attempt_id=(
            await world.start(job.id, storing.worker_id, attempt=2, slot=SLOT)
        ).work_order.attempt_id,
        seq=0,
    )
    await evaluate(again, saved)
    await end(again, Outcome.DRAINED, Cause.DRAIN)
    await dispatcher.tick()
    assert len(queue.sent) == 3


async def test_an_order_reaches_a_continuous_evaluation(storing: AttemptWithStore) -> None:
    one = await start_continuous_eval(storing)
    await storing.world.pause(one.job_id)
    assert (await storing.world.renew(one.attempt_id)).order is Order.PAUSE
    await end(one, Outcome.PAUSED, Cause.USER)
    assert (await storing.world.job(one.job_id)).state is JobState.PAUSED


async def test_the_work_order_has_the_options_of_the_continuous_evaluation(
    storing: AttemptWithStore,
) -> None:
    world = storing.world
    options = {"throttle_seconds": 2.5, "delay_seconds": 1, "episodes": 3}
    plain = await world.add_job(storing.run_id, Schedule.CONTINUOUS_EVAL, evaluate=options)
    (run,) = (await world.claim(plain.id, storing.worker_id, slot=SLOT)).work_order.runs
    assert run.follow is not None
    assert (run.snapshot, run.episodes, run.follow.throttle_seconds, run.follow.delay_seconds) == (
        None,
        3,
        2.5,
        1,
    )
    assert (run.follow.only_once, run.follow.same_episodes) == (True, False)
    named = await world.add_job(storing.run_id, Schedule.CONTINUOUS_EVAL, evaluate={"seed": 4})
    (run,) = (await world.claim(named.id, storing.worker_id, slot=SLOT + 1)).work_order.runs
    assert run.follow is not None
    assert (run.follow.same_episodes, run.evaluation_seed) == (True, 4)


async def test_a_run_without_snapshots_cannot_be_evaluated_continuously(
    storing: AttemptWithStore,
) -> None:
    await storing.world.cancel(storing.job_id)
    await end(storing, Outcome.CANCELLED, Cause.USER)
    with pytest.raises(ConflictError) as refused:
        await start_continuous_eval(storing)
    assert refused.value.code == "no_snapshot"


@pytest.mark.parametrize(
    ("schedule", "options"),
    [
        ("continuous_eval", {"snapshot": "best"}),
        ("continuous_eval", {"only_once": False}),
        ("continuous_eval", {"throttle_seconds": -1}),
        ("continuous_eval_on_train_data", {"seed": 1}),
        ("continuous_eval_on_train_data", {"only_once": False, "throttle_seconds": 5}),
        ("evaluate", {"throttle_seconds": 5}),
        ("train", {"only_once": False}),
    ],
)
def test_options_without_effect_are_refused(schedule: str, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"evaluate|schedules|greater"):
        JobRequest.model_validate_json(json.dumps({"schedule": schedule, "evaluate": options}))


@pytest.mark.parametrize(
    "schedule", ["evaluate", "export", "continuous_eval", "continuous_eval_on_train_data"]
)
def test_a_definition_is_not_submitted_with_a_schedule_that_reads_a_run(schedule: str) -> None:
    with pytest.raises(ValueError, match="queue it on the run"):
        JobOptions.model_validate_json(json.dumps({"schedule": schedule}))

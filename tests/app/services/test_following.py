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
from app.services.jobs.dispatch_plan import AssignedJob
from palestra.contract.job_options import JobOptions, JobRequest
from palestra.contract.names import Schedule, new_id
from palestra.contract.states import Cause, JobState, Order, Outcome
from palestra.contract.work_order import FollowAnswer, FollowRequest
from tests.app.services.continuous_evaluations import (
    SLOT,
    end_attempt,
    send_evaluation,
    start_continuous_eval,
)
from tests.support.artifact_store import AttemptWithStore
from tests.support.server_fixture import World

both_databases = pytest.mark.both_databases(
    "The chosen snapshot is locked on PostgreSQL, where transactions write concurrently.",
    of=("app.db.repositories.snapshots",),
)


class RecordingQueue:
    """Records the dispatch messages that it receives."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def send(self, job: AssignedJob) -> None:
        self.sent.append(job.job_id)


async def request_next_snapshot(
    one: AttemptWithStore, *evaluated: str, again: bool = False, run_id: str | None = None
) -> FollowAnswer:
    request = FollowRequest(run_id=run_id or one.run_id, evaluated=evaluated, again=again)
    return await continuous_evaluation.find_next_snapshot(one.database, one.attempt_id, request)


def get_snapshot_and_training_state(answer: FollowAnswer) -> tuple[str | None, str]:
    """Returns the snapshot ID in an answer and the state of the training."""
    return (None if answer.snapshot is None else answer.snapshot.snapshot_id, answer.training)


@both_databases
async def test_snapshots_are_given_newest_first_and_each_once(live_run: AttemptWithStore) -> None:
    first, second = await live_run.write_snapshot(100), await live_run.write_snapshot(200)
    one = await start_continuous_eval(live_run)
    answer = await request_next_snapshot(one)
    assert get_snapshot_and_training_state(answer) == (second, "live")
    assert answer.snapshot is not None
    assert {file.name for file in answer.snapshot.files} == {"state", "memory"}
    assert get_snapshot_and_training_state(await request_next_snapshot(one, second)) == (
        first,
        "live",
    ), "what is not stored yet counts when the attempt names it"
    await send_evaluation(one, second)
    assert get_snapshot_and_training_state(await request_next_snapshot(one)) == (first, "live"), (
        "what is stored counts for later attempts"
    )
    third = await live_run.write_snapshot(300)
    assert get_snapshot_and_training_state(await request_next_snapshot(one, first)) == (
        third,
        "live",
    )
    await send_evaluation(one, third)
    nothing = await request_next_snapshot(one, first)
    assert (get_snapshot_and_training_state(nothing), nothing.evaluated) == ((None, "live"), 2)
    assert get_snapshot_and_training_state(await request_next_snapshot(one, first, again=True)) == (
        third,
        "live",
    )


async def test_unverified_and_superseded_snapshots_are_left_out(live_run: AttemptWithStore) -> None:
    kept = await live_run.write_snapshot(100)
    one = await start_continuous_eval(live_run)
    await live_run.write_snapshot(200, upload=False)
    assert get_snapshot_and_training_state(await request_next_snapshot(one)) == (kept, "live")
    await live_run.world.send_heartbeat(live_run.worker_id, dead=[live_run.attempt_id])
    await live_run.world.start(live_run.job_id, live_run.worker_id, attempt=2, slot=2)
    assert get_snapshot_and_training_state(await request_next_snapshot(one)) == (kept, "live")
    assert get_snapshot_and_training_state(await request_next_snapshot(one, kept)) == (None, "live")


@both_databases
async def test_the_files_of_a_given_snapshot_are_kept_until_the_next_one_is_given(
    live_run: AttemptWithStore,
) -> None:
    first = await live_run.write_snapshot(100)
    one = await start_continuous_eval(live_run)
    await request_next_snapshot(one)
    for step in (200, 300, 400):
        last = await live_run.write_snapshot(step)
    assert (await live_run.list_snapshots())[first].state == "verified"
    assert get_snapshot_and_training_state(await request_next_snapshot(one, first)) == (
        last,
        "live",
    )
    await live_run.write_snapshot(500)
    assert (await live_run.list_snapshots())[first].state == "deleted"


async def test_a_continuous_evaluation_releases_its_slot_without_a_live_training(
    live_run: AttemptWithStore,
) -> None:
    first = await live_run.write_snapshot(100)
    one = await start_continuous_eval(live_run)
    await live_run.world.pause(live_run.job_id)
    assert get_snapshot_and_training_state(await request_next_snapshot(one)) == (first, "live"), (
        "while it saves, more may come"
    )
    await end_attempt(live_run, Outcome.PAUSED, Cause.USER)
    assert get_snapshot_and_training_state(await request_next_snapshot(one)) == (
        first,
        "waiting",
    ), "what is there is evaluated first"
    await send_evaluation(one, first)
    assert get_snapshot_and_training_state(await request_next_snapshot(one, again=True)) == (
        None,
        "waiting",
    )
    await end_attempt(one, Outcome.DRAINED, Cause.DRAIN)
    assert (await live_run.world.job(one.job_id)).state is JobState.QUEUED


async def test_a_continuous_evaluation_ends_with_the_training(live_run: AttemptWithStore) -> None:
    one = await start_continuous_eval(live_run)
    last = await live_run.write_snapshot(100)
    await end_attempt(live_run)
    assert get_snapshot_and_training_state(await request_next_snapshot(one)) == (last, "over")
    assert get_snapshot_and_training_state(await request_next_snapshot(one, last)) == (None, "over")


async def test_only_a_live_continuous_evaluation_gets_snapshots_of_its_own_runs(
    live_run: AttemptWithStore,
) -> None:
    await live_run.write_snapshot(100)
    for trainer in (live_run, await start_continuous_eval(live_run, Schedule.EVALUATE)):
        with pytest.raises(ForbiddenError) as refused:
            await request_next_snapshot(trainer)
        assert refused.value.code == "not_following"
        if trainer is not live_run:
            await end_attempt(trainer)
    one = await start_continuous_eval(live_run)
    await live_run.world.submit(seeds=[77])
    other = next(job for job in await live_run.world.list_jobs() if job.state is JobState.QUEUED)
    for run_id in (other.run_ids[0], new_id("run")):
        with pytest.raises(ForbiddenError) as refused:
            await request_next_snapshot(one, run_id=run_id)
        assert refused.value.code == "other_run"
    await end_attempt(one)
    with pytest.raises(ConflictError) as stale:
        await request_next_snapshot(one)
    assert stale.value.code == "stale_attempt"


async def test_a_resumed_training_is_dispatched_before_its_continuous_evaluation(
    world: World, database: Database, live_run: AttemptWithStore
) -> None:
    """A continuous evaluation without a snapshot to evaluate is not dispatched, so one slot
    suffices.

    The queue shows the reason.
    """
    queue = RecordingQueue()
    dispatcher = Dispatcher(database, queue, assignment_seconds=30)
    await world.pause(live_run.job_id)
    await end_attempt(live_run, Outcome.PAUSED, Cause.USER)
    job = await world.add_job(live_run.run_id, Schedule.CONTINUOUS_EVAL)
    await dispatcher.tick()
    assert not queue.sent
    assert "Follows the training of its run" in ((await world.job(job.id)).waiting or "")
    await world.resume(live_run.job_id)
    await dispatcher.tick()
    assert queue.sent == [live_run.job_id], "the training goes first"
    training = replace(
        live_run,
        attempt_id=(
            await world.start(live_run.job_id, live_run.worker_id, attempt=2)
        ).work_order.attempt_id,
        seq=0,
    )
    await dispatcher.tick()
    assert queue.sent == [live_run.job_id, job.id]
    one = replace(
        live_run,
        job_id=job.id,
        attempt_id=(await world.start(job.id, live_run.worker_id, slot=SLOT)).work_order.attempt_id,
        seq=0,
    )
    saved = await training.write_snapshot(100)
    await world.pause(live_run.job_id)
    await end_attempt(training, Outcome.PAUSED, Cause.USER)
    await end_attempt(one, Outcome.DRAINED, Cause.DRAIN)
    await dispatcher.tick()
    assert queue.sent[2:] == [job.id], "a snapshot waits for it"
    again = replace(
        one,
        attempt_id=(
            await world.start(job.id, live_run.worker_id, attempt=2, slot=SLOT)
        ).work_order.attempt_id,
        seq=0,
    )
    await send_evaluation(again, saved)
    await end_attempt(again, Outcome.DRAINED, Cause.DRAIN)
    await dispatcher.tick()
    assert len(queue.sent) == 3


async def test_an_order_reaches_a_continuous_evaluation(live_run: AttemptWithStore) -> None:
    one = await start_continuous_eval(live_run)
    await live_run.world.pause(one.job_id)
    assert (await live_run.world.renew(one.attempt_id)).order is Order.PAUSE
    await end_attempt(one, Outcome.PAUSED, Cause.USER)
    assert (await live_run.world.job(one.job_id)).state is JobState.PAUSED


async def test_the_work_order_has_the_options_of_the_continuous_evaluation(
    live_run: AttemptWithStore,
) -> None:
    world = live_run.world
    options = {"throttle_seconds": 2.5, "delay_seconds": 1, "episodes": 3}
    plain = await world.add_job(live_run.run_id, Schedule.CONTINUOUS_EVAL, evaluate=options)
    (run,) = (await world.claim(plain.id, live_run.worker_id, slot=SLOT)).work_order.runs
    assert run.follow is not None
    assert (run.snapshot, run.episodes, run.follow.throttle_seconds, run.follow.delay_seconds) == (
        None,
        3,
        2.5,
        1,
    )
    assert (run.follow.only_once, run.follow.same_episodes) == (True, False)
    named = await world.add_job(live_run.run_id, Schedule.CONTINUOUS_EVAL, evaluate={"seed": 4})
    (run,) = (await world.claim(named.id, live_run.worker_id, slot=SLOT + 1)).work_order.runs
    assert run.follow is not None
    assert (run.follow.same_episodes, run.evaluation_seed) == (True, 4)


async def test_a_run_without_snapshots_cannot_be_evaluated_continuously(
    live_run: AttemptWithStore,
) -> None:
    await live_run.world.cancel(live_run.job_id)
    await end_attempt(live_run, Outcome.CANCELLED, Cause.USER)
    with pytest.raises(ConflictError) as refused:
        await start_continuous_eval(live_run)
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

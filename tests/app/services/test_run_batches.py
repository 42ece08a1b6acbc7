"""Actions on many runs at once: what is counted, what is changed, and what is refused."""

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest

from app.domain.errors import InvalidError
from app.domain.principal import Principal
from app.services.jobs import run_batches
from app.services.jobs.batch_time import LEAST, MAX_SECONDS
from palestra.contract.documents import encode_canonical_json
from palestra.contract.permissions import Role
from palestra.contract.run_batches import (
    MAX_RETRIES_PER_REQUEST,
    MAX_RUNS_PER_REQUEST,
    RunsActed,
    RunsAction,
)
from palestra.contract.states import Cause, Outcome, RunState
from tests.app.services.test_job_batches import with_role
from tests.support.server_fixture import World, make_definition
from tests.support.statements import note_statements


async def act(
    world: World,
    action: str,
    *,
    by: Principal | None = None,
    clock: Callable[[], float] = lambda: 0.0,
    **wanted: object,
) -> list[RunsActed]:
    """Acts on all runs that match, by as many requests as needed; returns the answers."""
    chosen = {key: wanted.pop(key) for key in ("runs", "filter") if key in wanted}
    found: list[RunsActed] = []
    after = ""
    while True:
        document = {"action": action, "selection": chosen, "after": after, **wanted}
        body = RunsAction.model_validate_json(encode_canonical_json(document))
        async with world.database.write() as session:
            found.append(await run_batches.act(session, by or world.admin, body, clock))
        if found[-1].next_after is None:
            return found
        after = found[-1].next_after


async def list_states(world: World) -> dict[str, RunState]:
    runs = {run_id for job in await world.list_jobs() for run_id in job.run_ids}
    return {run_id: (await world.run(run_id)).state for run_id in runs}


async def test_a_dry_run_counts_those_that_fit_and_changes_nothing(world: World) -> None:
    await world.submit(seeds=[*range(5)])
    await world.submit(make_definition(agent={"name": "ppo"}), seeds=[*range(2)])
    (counted,) = await act(world, "cancel", filter="agent:dqn seed<3", dry_run=True)
    assert (counted.matched, counted.not_permitted, counted.same_jobs) == (3, 0, 0)
    assert counted.done == ()
    assert set((await list_states(world)).values()) == {RunState.QUEUED}


async def test_all_that_fit_are_changed_by_several_requests_and_once(world: World) -> None:
    await world.submit(seeds=[*range(MAX_RUNS_PER_REQUEST + 3)])
    kept, _ = await world.submit(make_definition(agent={"name": "ppo"}), seeds=[0])
    answers = await act(world, "cancel", filter="agent:dqn")
    assert [len(one.done) for one in answers] == [MAX_RUNS_PER_REQUEST, 3]
    assert [one.matched for one in answers] == [MAX_RUNS_PER_REQUEST + 3, 3]
    states = [*(await list_states(world)).values()]
    assert states.count(RunState.CANCELLED) == MAX_RUNS_PER_REQUEST + 3
    assert states.count(RunState.QUEUED) == 1
    (again,) = await act(world, "cancel", filter=f"-experiment:{kept.id}")
    assert (again.matched, again.done) == (0, ())
    answers = await act(world, "retry", filter="state:cancelled seed<52")
    assert [len(one.done) for one in answers] == [MAX_RETRIES_PER_REQUEST, 2]


async def test_a_request_that_takes_long_leaves_runs_to_the_next(world: World) -> None:
    await world.submit(seeds=[*range(2 * LEAST)])
    seconds = itertools.count(step=2 * MAX_SECONDS)
    answers = await act(world, "cancel", clock=lambda: next(seconds))
    assert [(one.matched, len(one.done)) for one in answers] == [(2 * LEAST, LEAST), (LEAST, LEAST)]
    assert set((await list_states(world)).values()) == {RunState.CANCELLED}


@pytest.mark.parametrize(
    ("verb", "most"), [("pause", 4), ("resume", 7), ("cancel", 5), ("retry", 22)]
)
async def test_further_runs_take_few_statements_each(world: World, verb: str, most: int) -> None:
    """No request builds views of jobs, which it would not answer."""
    await world.register()
    await world.submit(seeds=[*range(30)])
    before = {"resume": "pause", "retry": "cancel"}.get(verb)
    counts = []
    for first, number in ((0, 10), (10, 20)):
        chosen = f"seed>={first} seed<{first + number}"
        if before is not None:
            await act(world, before, filter=chosen)
        with note_statements(world.database) as statements:
            (acted,) = await act(world, verb, filter=chosen)
        assert len(acted.done) == number
        counts.append(len(statements))
    assert counts[1] - counts[0] <= 10 * most


async def test_runs_are_paused_and_resumed_and_retried(world: World) -> None:
    jobs = [await world.submit_one_job(seeds=[seed]) for seed in range(3)]
    runs = [job.run_ids[0] for job in jobs]
    (paused,) = await act(world, "pause", runs=runs[:2])
    assert set(paused.done) == set(runs[:2])
    (resumed,) = await act(world, "resume", filter="state:paused")
    assert set(resumed.done) == set(runs[:2])
    worker = (await world.register()).worker_id
    attempt = (await world.start(jobs[2].id, worker)).work_order.attempt_id
    await world.release(attempt, Outcome.FAILED, Cause.USER_EXCEPTION)
    (retried,) = await act(world, "retry", filter="", origin="start")
    assert retried.done == (runs[2],)
    assert (await world.run(runs[2])).state is RunState.QUEUED
    (again,) = await act(world, "retry", filter="")
    assert again.matched == 0


async def test_the_runs_of_a_pack_are_counted_and_changed_together(world: World) -> None:
    await world.register(slots=4)
    await world.submit(seeds=[*range(4)], resources={"pack": 4})
    (job,) = await world.list_jobs()
    assert len(job.run_ids) == 4
    (counted,) = await act(world, "pause", filter="seed<2", dry_run=True)
    assert (counted.matched, counted.same_jobs) == (2, 2)
    (paused,) = await act(world, "pause", filter="seed<2")
    assert len(paused.done) == 2
    assert not paused.refused
    assert set((await list_states(world)).values()) == {RunState.PAUSED}


async def test_members_act_on_their_own_runs_and_viewers_on_none(world: World) -> None:
    await world.submit(seeds=[0, 1])
    member = with_role(world.admin, Role.MEMBER)
    other = replace(member, user_id="usr_other", user="other")
    (counted,) = await act(world, "cancel", by=other, dry_run=True)
    assert (counted.matched, counted.not_permitted) == (0, 2)
    (acted,) = await act(world, "cancel", by=with_role(world.admin, Role.VIEWER))
    assert (acted.matched, acted.done) == (0, ())
    (mine,) = await act(world, "cancel", by=member)
    assert len(mine.done) == 2


async def test_a_refused_run_does_not_keep_others_from_the_action(world: World) -> None:
    jobs = [await world.submit_one_job(seeds=[seed]) for seed in range(2)]
    worker = (await world.register()).worker_id
    await world.start(jobs[0].id, worker)
    await world.pause(jobs[0].id)
    await world.pause(jobs[1].id)
    (acted,) = await act(world, "cancel", filter="")
    assert len(acted.done) == 2
    assert await act(world, "resume", filter="state:cancelled") == [
        RunsActed(matched=0, not_permitted=0, same_jobs=0, done=(), refused=(), next_after=None)
    ]


@pytest.mark.parametrize(
    ("text", "code"),
    [("agnet:dqn", "unknown_filter_field"), ("seed>x", "filter_not_a_number")],
)
async def test_a_filter_that_cannot_be_read_changes_nothing(
    world: World, text: str, code: str
) -> None:
    await world.submit(seeds=[0])
    with pytest.raises(InvalidError) as refused:
        await act(world, "cancel", filter=text)
    assert (refused.value.code, refused.value.pointer) == (code, "/selection/filter")
    assert set((await list_states(world)).values()) == {RunState.QUEUED}

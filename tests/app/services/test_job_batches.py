"""Actions on many jobs at once: what is counted, what is changed, and what is refused."""

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest

from app.domain.errors import InvalidError
from app.domain.principal import Principal
from app.services.jobs import job_batches
from app.services.jobs.batch_time import LEAST, MAX_SECONDS
from palestra.contract.documents import encode_canonical_json
from palestra.contract.job_batches import MAX_JOBS_PER_REQUEST, JobsActed, JobsAction
from palestra.contract.names import Schedule
from palestra.contract.permissions import Role
from palestra.contract.states import JobState
from tests.app.services.test_retries import make_catalogue_with_digest
from tests.support.server_fixture import World, make_definition


async def act(
    world: World,
    action: str,
    *,
    by: Principal | None = None,
    dry_run: bool = False,
    change: object = None,
    clock: Callable[[], float] = lambda: 0.0,
    **chosen: object,
) -> JobsActed:
    """Acts on all jobs that match, by as many requests as needed; returns the last answer."""
    after = ""
    while True:
        document = {"action": action, "selection": chosen, "dry_run": dry_run, "after": after}
        document |= {} if change is None else {"change": change}
        body = JobsAction.model_validate_json(encode_canonical_json(document))
        async with world.database.write() as session:
            acted = await job_batches.act(session, by or world.admin, body, clock)
        if acted.next_after is None:
            return acted
        after = acted.next_after


def with_role(caller: Principal, role: Role) -> Principal:
    """Returns a caller with another role in its projects."""
    changed = tuple(replace(one, role=role) for one in caller.memberships)
    return replace(caller, memberships=changed)


async def count_in(world: World, state: JobState) -> int:
    return len(await world.list_jobs(state=state))


async def test_a_dry_run_counts_and_changes_nothing(world: World) -> None:
    await world.submit(seeds=[*range(5)])
    counted = await act(world, "cancel", dry_run=True)
    assert (counted.matched, counted.not_permitted, counted.done) == (5, 0, ())
    assert await count_in(world, JobState.QUEUED) == 5


async def test_all_that_match_are_cancelled_by_several_requests(world: World) -> None:
    await world.submit(seeds=[*range(MAX_JOBS_PER_REQUEST + 3)])
    await world.make_pool("other")
    await world.submit(seeds=[1_000], pool="other")
    acted = await act(world, "cancel", pool="default")
    assert (acted.matched, len(acted.done), acted.next_after) == (3, 3, None)
    assert await count_in(world, JobState.CANCELLED) == MAX_JOBS_PER_REQUEST + 3
    assert await count_in(world, JobState.QUEUED) == 1


async def test_a_request_that_takes_long_leaves_jobs_to_the_next(world: World) -> None:
    """Regression: one request changed 100 jobs in a transaction of 2.5 s while others waited."""
    await world.submit(seeds=[*range(LEAST + 8)])
    seconds = itertools.count(step=2 * MAX_SECONDS)
    acted = await act(world, "cancel", clock=lambda: next(seconds))
    assert (acted.matched, len(acted.done)) == (8, 8), "the second request did what was left"
    assert await count_in(world, JobState.CANCELLED) == LEAST + 8


async def test_named_jobs_in_other_states_are_left_alone(world: World) -> None:
    first, second = [await world.submit_one_job(seeds=[seed]) for seed in (0, 1)]
    await world.cancel(first.id)
    acted = await act(world, "pause", jobs=[first.id, second.id])
    assert (acted.matched, acted.done) == (1, (second.id,))
    acted = await act(world, "resume", jobs=[first.id, second.id])
    assert acted.done == (second.id,)


async def test_members_act_on_their_own_jobs_alone(world: World) -> None:
    await world.submit(seeds=[0, 1])
    await world.submit(seeds=[2], by=world.other)
    member = with_role(world.other, Role.MEMBER)
    acted = await act(world, "pause", by=member)
    assert (acted.matched, acted.not_permitted, len(acted.done)) == (1, 2, 1)
    viewer = with_role(world.other, Role.VIEWER)
    assert (await act(world, "resume", by=viewer)).matched == 0


async def test_a_refused_job_keeps_no_other_from_the_action(world: World) -> None:
    """One job's code differs from the worker's; the other resumes."""
    await world.register()
    await world.submit(make_definition(agent={"name": "tiny", "parameters": {}}))
    (own,) = await world.list_jobs(state=JobState.QUEUED)
    plain = await world.submit_one_job(seeds=[1])
    await act(world, "pause")
    await world.register(catalogue=make_catalogue_with_digest("8"))
    acted = await act(world, "resume")
    assert acted.done == (plain.id,)
    assert [(one.job_id, one.code) for one in acted.refused] == [(own.id, "code_changed")]


async def test_states_without_effect_are_refused(world: World) -> None:
    with pytest.raises(
        InvalidError, match="No job that is paused can be asked to pause"
    ) as refusal:
        await act(world, "pause", states=["paused"])
    assert (refusal.value.code, refusal.value.pointer) == ("invalid_state", "/selection/states")


async def test_the_filter_takes_class_schedule_and_person(world: World) -> None:
    await world.submit(seeds=[0], priority_class="idle")
    await world.submit(seeds=[1])
    assert (await act(world, "cancel", dry_run=True, priority_class="idle")).matched == 1
    assert (await act(world, "cancel", dry_run=True, user="me")).matched == 2
    assert (await act(world, "cancel", dry_run=True, user="bea")).matched == 0
    assert (await act(world, "cancel", dry_run=True, schedule=Schedule.EVALUATE)).matched == 0


async def test_the_class_of_many_jobs_is_changed(world: World) -> None:
    await world.submit(seeds=[0, 1])
    paused = await world.submit_one_job(seeds=[2])
    await world.pause(paused.id)
    acted = await act(world, "change", change={"priority_class": "idle"})
    assert (acted.matched, len(acted.done)) == (2, 2)
    assert {job.priority_class for job in await world.list_jobs(state=JobState.QUEUED)} == {"idle"}
    acted = await act(world, "change", change={"priority_class": "interactive"})
    assert {one.code for one in acted.refused} == {"interactive_too_long"}


@pytest.mark.parametrize(
    ("action", "change", "code"),
    [("change", None, "change_needed"), ("pause", {"priority": 1}, "change_without_effect")],
)
async def test_a_change_belongs_to_its_action(
    world: World, action: str, change: object, code: str
) -> None:
    with pytest.raises(InvalidError) as refusal:
        await act(world, action, change=change)
    assert refusal.value.code == code

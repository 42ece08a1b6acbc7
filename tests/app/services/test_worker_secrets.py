"""Worker secrets.

A worker's name, heartbeats, claims and attempts are bound to its own secret.
"""

import asyncio

import pytest

from app.db.models import WorkerRow
from app.domain.errors import ConflictError, ForbiddenError
from app.services.access import principals
from app.services.workers import heartbeats, workers
from palestra.contract.names import Scope
from palestra.contract.registration import RegistrationAnswer, WorkerHeartbeat
from palestra.contract.states import JobState
from palestra.contract.work_order import Claim
from tests.support.server_fixture import World, advance_clock

both_databases = pytest.mark.both_databases(
    "A worker's name is inserted once and its row locked by statements of each database.",
    of=("app.db.repositories.workers", "app.db.models.workers"),
)

NUMBER, OTHER = "1" * 64, "2" * 64


async def register_and_get_refusal(world: World, **changes: str | int) -> str:
    with pytest.raises(ConflictError) as refused:
        await world.register(by=await world.make_enrolment(), **changes)
    return refused.value.code


async def is_good(world: World, answer: RegistrationAnswer) -> bool:
    assert answer.secret is not None
    async with world.database.read() as session:
        return await principals.find_by_token(session, answer.secret) is not None


async def test_enrolment_gives_a_secret_once_and_keeps_its_hash(world: World) -> None:
    answer = await world.register()
    assert answer.secret is not None
    assert answer.secret.startswith("plw_")
    async with world.database.read() as session:
        worker = await session.get(WorkerRow, answer.worker_id)
    assert worker is not None
    assert worker.secret_hash is not None
    assert answer.secret not in worker.secret_hash
    own = world.own[answer.worker_id]
    assert (own.worker_id, own.project_ids, own.scopes) == (
        answer.worker_id,
        frozenset(),
        {Scope.WORKER},
    )
    again = await world.register(pid=200)
    assert (again.worker_id, again.secret) == (answer.worker_id, None)


@both_databases
async def test_a_repeated_enrolment_gets_the_same_secret(world: World) -> None:
    first = await world.register(enrolment=NUMBER)
    again = await world.register(by=await world.make_enrolment(), enrolment=NUMBER)
    assert (again.worker_id, again.secret) == (first.worker_id, first.secret)
    assert await register_and_get_refusal(world, enrolment=OTHER) == "worker_name_taken"
    other = await world.register(by=await world.make_enrolment(), name="w2", enrolment=NUMBER)
    assert other.secret != first.secret


@both_databases
@pytest.mark.parametrize("host", ["host-1", "host-2"])
async def test_the_name_of_a_live_worker_is_refused_whatever_host_is_claimed(
    world: World, host: str
) -> None:
    worker = await world.register()
    assert await register_and_get_refusal(world, host=host) == "worker_name_taken"
    assert await register_and_get_refusal(world, host=host, enrolment=NUMBER) == "worker_name_taken"
    advance_clock(world.settings.reclaim_seconds - 10)
    assert await register_and_get_refusal(world, host=host) == "worker_name_taken"
    assert await is_good(world, worker)


async def test_a_dead_workers_name_is_free_after_the_reclaim_time_and_its_secret_ends(
    world: World,
) -> None:
    first = await world.register()
    attempt = (
        await world.start((await world.submit_one_job()).id, first.worker_id)
    ).work_order.attempt_id
    advance_clock(world.settings.reclaim_seconds + 1)
    assert await register_and_get_refusal(world) == "worker_name_taken", "its attempt lives"
    await world.send_heartbeat(first.worker_id, dead=[attempt])
    advance_clock(world.settings.reclaim_seconds + 1)
    second = await world.register(by=await world.make_enrolment(), boot_id="boot-2")
    assert second.worker_id == first.worker_id
    assert await is_good(world, second)
    assert not await is_good(world, first)


async def test_a_worker_sends_heartbeats_only_for_itself(world: World) -> None:
    mine, other = (await world.register()).worker_id, (await world.register(name="w2")).worker_id
    job = await world.submit_one_job()
    attempt = (await world.start(job.id, mine)).work_order.attempt_id
    for caller in (world.own[other], await world.make_enrolment()):
        async with world.database.write() as session:
            with pytest.raises(ForbiddenError) as refused:
                await heartbeats.record_heartbeat(
                    session, caller, mine, WorkerHeartbeat(dead_attempts=(attempt,)), world.settings
                )
            assert refused.value.code == "other_worker"
    await world.send_heartbeat(other, dead=[attempt])
    assert (await world.job(job.id)).state is JobState.RUNNING


async def test_a_worker_claims_only_for_itself(world: World) -> None:
    from app.services.attempts import claims

    mine, other = (await world.register()).worker_id, (await world.register(name="w2")).worker_id
    job = await world.submit_one_job()
    claim = Claim(job_id=job.id, expected_attempt=1, worker_id=mine, slot=0)
    async with world.database.write() as session:
        with pytest.raises(ForbiddenError) as refused:
            await claims.claim(session, world.own[other], claim, world.settings)
    assert refused.value.code == "other_worker"


async def test_a_worker_cannot_register_under_another_name(world: World) -> None:
    worker = (await world.register()).worker_id
    with pytest.raises(ConflictError) as refused:
        await world.register(by=world.own[worker], name="w2")
    assert refused.value.code == "other_worker"


@both_databases
async def test_one_of_two_concurrent_workers_takes_the_name_of_a_forgotten_one(
    world: World,
) -> None:
    former = await world.register()
    async with world.database.write() as session:
        await workers.forget(session, world.admin, former.worker_id)
    machine = await world.make_enrolment()
    answers = await asyncio.gather(
        *(world.register(by=machine, enrolment=number) for number in (NUMBER, OTHER)),
        return_exceptions=True,
    )
    refusals = [answer.code for answer in answers if isinstance(answer, ConflictError)]
    assert refusals == ["worker_name_taken"]
    (present,) = (answer for answer in answers if isinstance(answer, RegistrationAnswer))
    assert present.worker_id != former.worker_id


async def test_an_admin_frees_the_name_of_a_worker_whose_secret_was_lost(world: World) -> None:
    first = await world.register()
    job = await world.submit_one_job()
    await world.start(job.id, first.worker_id)
    async with world.database.write() as session:
        await workers.forget(session, world.admin, first.worker_id)
    assert not await is_good(world, first)
    second = await world.register(
        by=await world.make_enrolment(), enrolment=OTHER, boot_id="boot-of-another-machine"
    )
    assert second.worker_id != first.worker_id
    assert (await world.job(job.id)).state is JobState.RUNNING, (
        "its attempt goes on by its own token"
    )

"""Enrolment tokens of pools, and the rotation of a worker's secret without a restart."""

import pytest

from app.db.models import EnrolmentTokenRow, UserRow, WorkerRow
from app.db.repositories import users as user_rows
from app.domain.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from app.domain.principal import Principal
from app.domain.secrets import hash_secret
from app.services.access import principals
from app.services.workers import enrolment_tokens, heartbeats, workers
from palestra.contract.names import new_id
from palestra.contract.pools import EnrolmentTokenRequest, EnrolmentTokenView, WorkerView
from palestra.contract.registration import WorkerHeartbeat
from palestra.contract.states import JobState
from palestra.contract.work_order import Claim
from tests.support.server_fixture import World, advance_clock, registration


async def make_token(world: World, pool: str, days: int | None = None) -> EnrolmentTokenView:
    request = EnrolmentTokenRequest(name=f"machines of {pool}", expires_in_days=days)
    async with world.database.write() as session:
        return await enrolment_tokens.create(session, world.admin, pool, request)


async def authenticate(world: World, secret: str | None) -> Principal | None:
    async with world.database.read() as session:
        return await principals.find_by_token(session, secret or "")


async def authenticate_machine(world: World, secret: str | None) -> Principal:
    found = await authenticate(world, secret)
    assert found is not None
    return found


async def list_tokens(world: World, pool: str) -> list[EnrolmentTokenView]:
    async with world.database.read() as session:
        return (await enrolment_tokens.list_tokens(session, world.admin, pool)).items


async def rotate(world: World, worker_id: str) -> WorkerView:
    async with world.database.write() as session:
        return await workers.rotate_secret(session, world.admin, worker_id)


async def send_heartbeat(world: World, own: Principal) -> str | None:
    """Sends a heartbeat without attempts; returns the new secret in the answer."""
    async with world.database.write() as session:
        answer = await heartbeats.record_heartbeat(
            session, own, own.worker_id or "", WorkerHeartbeat(), world.settings
        )
    return answer.secret


async def read_worker(world: World, worker_id: str) -> WorkerRow:
    async with world.database.read() as session:
        found = await session.get(WorkerRow, worker_id)
    assert found is not None
    return found


async def test_the_secret_is_shown_once_and_its_hash_is_kept(world: World) -> None:
    made = await make_token(world, "default", 30)
    assert made.secret is not None
    assert made.secret.startswith("ple_")
    (shown,) = await list_tokens(world, "default")
    assert shown == made.model_copy(update={"secret": None})
    assert (shown.created_by, shown.last_used_at) == ("admin", None)
    async with world.database.read() as session:
        row = await session.get(EnrolmentTokenRow, made.id)
    assert row is not None
    assert row.secret_hash == hash_secret(made.secret)


async def test_a_worker_joins_the_pool_of_its_token(world: World) -> None:
    await world.make_pool("gpu")
    token = await authenticate_machine(world, (await make_token(world, "gpu")).secret)
    body = registration(name="w9", pool=None)
    async with world.database.write() as session:
        answer = await workers.register(session, token, body, world.settings, world.broker_users)
    assert answer.secret is not None
    assert (await read_worker(world, answer.worker_id)).pool == "gpu"
    assert answer.queue == f"palestra.pool.gpu.{answer.worker_id}"
    assert (await list_tokens(world, "gpu"))[0].last_used_at is not None


async def test_another_pool_than_that_of_the_token_is_refused(world: World) -> None:
    await world.make_pool("gpu")
    token = await authenticate_machine(world, (await make_token(world, "gpu")).secret)
    async with world.database.write() as session:
        with pytest.raises(InvalidError, match="--pool gpu") as refused:
            await workers.register(
                session, token, registration(name="w9"), world.settings, world.broker_users
            )
    assert (refused.value.code, refused.value.pointer) == ("other_pool", "/pool")


async def test_a_workers_secret_keeps_it_in_its_pool(world: World) -> None:
    await world.make_pool("gpu")
    worker = await world.register()
    with pytest.raises(InvalidError, match="palestra forget-worker w1") as refused:
        await world.register(pool="gpu")
    assert refused.value.code == "other_pool"
    await world.register(pool=None, pid=7)
    assert (await read_worker(world, worker.worker_id)).pool == "default"


async def test_expired_and_revoked_tokens_enrol_nobody(world: World) -> None:
    short, other = await make_token(world, "default", 1), await make_token(world, "default")
    advance_clock(86_500)
    assert await authenticate(world, short.secret) is None
    assert await authenticate(world, other.secret) is not None
    async with world.database.write() as session:
        await enrolment_tokens.revoke(session, world.admin, "default", other.id)
        with pytest.raises(NotFoundError):
            await enrolment_tokens.revoke(session, world.admin, "default", other.id)
    assert await authenticate(world, other.secret) is None
    assert [token.id for token in await list_tokens(world, "default")] == [short.id]


async def test_a_token_and_its_workers_outlive_who_made_it(world: World) -> None:
    async with world.database.write() as session:
        maker = UserRow(id=new_id("usr"), name="maker", is_admin=True)
        session.add(maker)
        await session.flush()
        request = EnrolmentTokenRequest(name="t", expires_in_days=None)
        made = await enrolment_tokens.issue(session, "default", request, user_id=maker.id)
    token = await authenticate_machine(world, made.secret)
    async with world.database.write() as session:
        answer = await workers.register(
            session, token, registration(name="w5"), world.settings, world.broker_users
        )
    assert (await read_worker(world, answer.worker_id)).created_by == maker.id
    async with world.database.write() as session:
        assert (await user_rows.count_owned(session, maker.id)) == dict.fromkeys(
            await user_rows.count_owned(session, maker.id), 0
        )
        await user_rows.delete_user(session, maker.id)
    assert await authenticate(world, answer.secret) is not None
    assert await authenticate(world, made.secret) is not None
    assert [token.created_by for token in await list_tokens(world, "default")] == [None]


async def test_names_of_workers_are_unique_in_the_server(world: World) -> None:
    await world.make_pool("gpu")
    await world.register()
    token = await authenticate_machine(world, (await make_token(world, "gpu")).secret)
    async with world.database.write() as session:
        with pytest.raises(ConflictError) as refused:
            await workers.register(
                session, token, registration(pool="gpu"), world.settings, world.broker_users
            )
    assert refused.value.code == "worker_name_taken"


async def test_members_manage_no_tokens(world: World) -> None:
    request = EnrolmentTokenRequest(name="t", expires_in_days=None)
    worker = await world.register()
    async with world.database.write() as session:
        with pytest.raises(ForbiddenError):
            await enrolment_tokens.create(session, world.other, "default", request)
        with pytest.raises(ForbiddenError):
            await enrolment_tokens.list_tokens(session, world.other, "default")
        with pytest.raises(ForbiddenError):
            await workers.rotate_secret(session, world.other, worker.worker_id)


async def test_a_rotation_replaces_the_secret_once_the_worker_uses_the_new_one(
    world: World,
) -> None:
    worker = await world.register()
    own = world.own[worker.worker_id]
    assert await send_heartbeat(world, own) is None
    assert (await rotate(world, worker.worker_id)).secret_rotation == "pending"
    new = await send_heartbeat(world, own)
    assert new is not None
    assert new != worker.secret
    # A lost answer brings the same secret again, and the former one stays valid meanwhile.
    assert await send_heartbeat(world, own) == new
    assert await authenticate(world, worker.secret) is not None
    replaced = await authenticate_machine(world, new)
    assert await send_heartbeat(world, replaced) is None
    assert await authenticate(world, worker.secret) is None
    async with world.database.read() as session:
        view = await workers.get(session, world.admin, worker.worker_id)
    assert view.secret_rotation is None
    assert view.secret_since is not None
    assert await send_heartbeat(world, await authenticate_machine(world, new)) is None


async def test_asking_twice_is_one_rotation(world: World) -> None:
    worker = await world.register()
    await rotate(world, worker.worker_id)
    new = await send_heartbeat(world, world.own[worker.worker_id])
    await rotate(world, worker.worker_id)
    assert await send_heartbeat(world, world.own[worker.worker_id]) == new


async def test_a_worker_of_an_older_version_is_shown_as_unsupported(world: World) -> None:
    worker = await world.register()
    async with world.database.write() as session:
        await workers.register(
            session,
            world.own[worker.worker_id],
            registration(),
            world.settings,
            world.broker_users,
            contract_version=1,
        )
    assert (await rotate(world, worker.worker_id)).secret_rotation == "unsupported"
    assert await authenticate(world, worker.secret) is not None


async def test_a_forgotten_worker_has_no_secret_to_rotate(world: World) -> None:
    worker = await world.register()
    await rotate(world, worker.worker_id)
    new = await send_heartbeat(world, world.own[worker.worker_id])
    async with world.database.write() as session:
        await workers.forget(session, world.admin, worker.worker_id)
    assert await authenticate(world, worker.secret) is None
    assert await authenticate(world, new) is None
    with pytest.raises(ConflictError) as refused:
        await rotate(world, worker.worker_id)
    assert refused.value.code == "not_enrolled"


async def test_a_claim_repeated_over_a_rotation_returns_the_same_attempt(world: World) -> None:
    worker = await world.register()
    job = await world.submit_one_job()
    first = await world.claim(job.id, worker.worker_id)
    await rotate(world, worker.worker_id)
    new = await authenticate_machine(
        world, await send_heartbeat_with(world, worker.worker_id, first.work_order.attempt_id)
    )
    world.own[worker.worker_id] = new
    again = await world.claim(job.id, worker.worker_id)
    assert again.work_order == first.work_order
    assert again.token != first.token
    assert await authenticate(world, first.token) is None
    assert await authenticate(world, again.token) is not None
    # With the renewal the supervisor has the lease: the claim is not repeated any more.
    await world.renew(again.work_order.attempt_id)
    with pytest.raises(ConflictError) as refused:
        await world.claim(job.id, worker.worker_id)
    assert refused.value.code == "not_claimable"
    assert (await world.job(job.id)).state is JobState.RUNNING


async def send_heartbeat_with(world: World, worker_id: str, attempt_id: str) -> str | None:
    """Sends a heartbeat with a live attempt; returns the new secret in the answer."""
    body = WorkerHeartbeat(live_attempts=(attempt_id,), busy_slots=(0,))
    async with world.database.write() as session:
        answer = await heartbeats.record_heartbeat(
            session, world.own[worker_id], worker_id, body, world.settings
        )
    return answer.secret


async def test_a_claim_repeated_within_a_rotation_returns_the_same_token(world: World) -> None:
    worker = await world.register()
    job = await world.submit_one_job()
    first = await world.claim(job.id, worker.worker_id)
    await rotate(world, worker.worker_id)
    await send_heartbeat_with(world, worker.worker_id, first.work_order.attempt_id)
    assert (await world.claim(job.id, worker.worker_id)).token == first.token


async def test_a_claim_with_the_new_secret_ends_the_former_one(world: World) -> None:
    worker = await world.register()
    job = await world.submit_one_job()
    await rotate(world, worker.worker_id)
    new = await authenticate_machine(
        world, await send_heartbeat(world, world.own[worker.worker_id])
    )
    claim = Claim(job_id=job.id, expected_attempt=1, worker_id=worker.worker_id, slot=0)
    world.own[worker.worker_id] = new
    claimed = await world.claim(claim.job_id, worker.worker_id)
    assert await authenticate(world, claimed.token) is not None
    assert await authenticate(world, worker.secret) is None

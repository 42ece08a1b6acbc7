"""Each worker has a user of the broker, which the server makes and ends."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

import pytest
import redis
from pydantic import SecretStr
from sqlalchemy import func, select

from app.bus import MemoryBus
from app.daemons.dispatcher import CeleryDispatchQueue, Dispatcher, MessageRefusedError
from app.db.engine import BROKER_USERS, Session
from app.db.models import JobRow, WorkerRow
from app.db.repositories import workers as worker_rows
from app.db.repositories.workers import WorkerQueue
from app.services.jobs.dispatch_plan import AssignedJob
from app.services.workers import pools, workers
from app.services.workers.broker_users import BrokerUsers
from app.settings import Settings
from palestra.cli.embedded.broker_users import build_user_lines
from palestra.contract.names import new_id
from palestra.contract.registration import RegistrationAnswer
from tests.support.server_fixture import World, advance_clock
from tests.support.valkey import Valkey
from tests.support.waiting import PATIENCE_SECONDS, cancel_after, until

PASSWORD = "password-of-server"
SHARED = "user worker on >password-of-worker ~palestra.pool.* +@all"


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[Valkey]:
    server = Valkey(tmp_path, [*build_user_lines(PASSWORD), SHARED])
    server.start()
    yield server
    server.close()


@dataclass
class Site:
    """A world whose workers get their access from a broker that runs."""

    world: World
    valkey: Valkey
    users: BrokerUsers = field(init=False)
    queue: CeleryDispatchQueue = field(init=False)

    def __post_init__(self) -> None:
        url = SecretStr(self.valkey.get_url("server", PASSWORD))
        shared = SecretStr(self.valkey.get_url("worker", "password-of-worker"))
        self.users = BrokerUsers(Settings(broker_url=url, worker_broker_url=shared))
        self.world.broker_users = self.users
        self.queue = CeleryDispatchQueue(url.get_secret_value())

    async def register(self, name: str = "w1", pool: str = "default") -> RegistrationAnswer:
        answer = await self.world.register(name=name, pool=pool, slots=1)
        await self.users.update(self.world.database)
        return answer

    async def forget(self, worker_id: str) -> None:
        async with self.world.database.write() as session:
            await workers.forget(session, self.world.admin, worker_id)
        del self.world.own[worker_id]
        await self.users.update(self.world.database)

    async def read(self, worker_id: str) -> WorkerRow:
        async with self.world.database.read() as session:
            worker = await session.get(WorkerRow, worker_id)
        assert worker is not None
        return worker

    def list_workers(self) -> set[str]:
        """Returns the workers' users that the broker knows."""
        return {name for name in self.valkey.execute("ACL", "USERS") if name.startswith("wrk_")}

    def assign(self, answer: RegistrationAnswer) -> AssignedJob:
        return AssignedJob(job_id=new_id("job"), expected_attempt=1, queue=answer.queue)


@pytest.fixture
async def site(world: World, valkey: Valkey) -> AsyncIterator[Site]:
    made = Site(world, valkey)
    await made.users.update(world.database)
    assert made.users.kind == "separate"
    yield made
    made.queue.close()


def connect(answer: RegistrationAnswer) -> redis.Redis:
    return redis.Redis.from_url(answer.broker_url)


async def test_a_worker_reaches_its_own_queue_alone(site: Site) -> None:
    own, other = await site.register("w1"), await site.register("w2")
    site.queue.send(site.assign(own))
    site.queue.send(site.assign(other))
    with connect(own) as connection:
        for command in ("BRPOP", "SADD", "LLEN", "LPUSH", "DEL"):
            arguments = {"LLEN": (), "DEL": ()}.get(command, ("1",))
            with pytest.raises(redis.exceptions.NoPermissionError):
                connection.execute_command(command, other.queue, *arguments)
        with pytest.raises(redis.exceptions.NoPermissionError):
            connection.sadd(own.queue, "x")
        with pytest.raises(redis.exceptions.NoPermissionError):
            connection.sadd(f"_kombu.binding.{other.queue}", "x")
        assert connection.brpop([own.queue], 1) is not None
    with connect(other) as connection:
        assert connection.llen(other.queue) == 1


async def test_the_server_keeps_only_a_hash_of_the_password(site: Site) -> None:
    answer = await site.register()
    location = urlsplit(answer.broker_url)
    assert (location.username, location.port) == (answer.worker_id, site.valkey.port)
    worker = await site.read(answer.worker_id)
    values = [str(getattr(worker, column.key)) for column in WorkerRow.__table__.columns]
    assert location.password is not None
    assert not [value for value in values if location.password in value]
    assert location.password not in "".join(site.valkey.execute("ACL", "LIST"))


async def test_forgetting_a_worker_ends_its_user_and_its_connections(site: Site) -> None:
    answer = await site.register()
    with connect(answer) as connection:
        assert connection.ping()
        await site.forget(answer.worker_id)
        with pytest.raises(redis.exceptions.ConnectionError):
            connection.ping()
    assert site.list_workers() == set()


async def test_deleting_a_pool_ends_the_users_of_its_workers(site: Site) -> None:
    await site.register(pool="gpu")
    advance_clock(site.world.settings.worker_offline_seconds + 1)
    async with site.world.database.write() as session:
        await pools.delete(session, site.world.admin, "gpu")
    await site.users.update(site.world.database)
    assert site.list_workers() == set()


async def test_a_forgotten_worker_enrols_again_with_another_id_and_queue(site: Site) -> None:
    former = await site.register()
    await site.forget(former.worker_id)
    present = await site.register()
    assert present.worker_id != former.worker_id
    assert present.queue != former.queue
    async with site.world.database.read() as session:
        listed = (await workers.list_workers(session, site.world.admin)).items
    assert [worker.id for worker in listed] == [present.worker_id]
    assert site.list_workers() == {present.worker_id}


async def test_users_are_made_again_after_a_restart_of_the_broker_before_messages_are_sent(
    site: Site,
) -> None:
    answer = await site.register()
    dispatcher = Dispatcher(
        site.world.database, site.queue, assignment_seconds=30, broker_users=site.users
    )
    site.valkey.kill()
    site.valkey.start()
    assert site.list_workers() == set()
    await site.world.submit_one_job()
    assert await dispatcher.tick() == 1
    with connect(answer) as connection:
        assert connection.llen(answer.queue) == 1


async def test_updates_end_at_whatever_step_they_are_cancelled(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def list_queues(_: Session) -> dict[str, WorkerQueue]:
        return {}

    # The steps of reading the database would outnumber those of talking to the broker.
    monkeypatch.setattr(worker_rows, "list_queues", list_queues)
    for steps in range(60):
        updates = asyncio.create_task(site.users.run(site.world.database, MemoryBus()))
        await cancel_after(updates, steps)
        assert updates.cancelled(), steps


async def test_users_of_other_installations_stay(site: Site) -> None:
    site.valkey.execute("ACL", "SETUSER", "wrk_of_another_server", "on")
    await site.register()
    await site.users.update(site.world.database)
    assert "wrk_of_another_server" in site.list_workers()


async def test_a_new_registration_replaces_the_password(site: Site) -> None:
    first, second = await site.register(), await site.register()
    assert first.worker_id == second.worker_id
    with connect(second) as connection:
        assert connection.ping()
    with connect(first) as connection, pytest.raises(redis.exceptions.AuthenticationError):
        connection.ping()


@pytest.mark.parametrize("refused", ["acl|list", "acl|setuser", "acl"])
async def test_workers_share_a_user_where_the_broker_lets_no_users_be_made(
    world: World, valkey: Valkey, refused: str, capsys: pytest.CaptureFixture[str]
) -> None:
    valkey.execute("ACL", "SETUSER", "server", f"-{refused}")
    site = Site(world, valkey)
    for _ in range(2):
        await world.register(name="w0")
        await site.users.update(world.database)
    assert site.users.kind == "shared"
    answer = await site.register()
    assert urlsplit(answer.broker_url).username == "worker"
    assert (await site.read(answer.worker_id)).broker_password_hash is None
    assert capsys.readouterr().out.count("workers_share_a_user") == 1


async def test_a_broker_that_was_not_reached_yet_gives_nobody_the_servers_password(
    world: World,
) -> None:
    url = SecretStr("redis://server:password-of-server@127.0.0.1:9/0")
    users = BrokerUsers(Settings(broker_url=url))
    await users.update(world.database)
    assert users.kind == "unknown"
    access = users.grant("wrk_1")
    assert PASSWORD not in access.url
    assert access.password_hash is not None


async def test_users_are_made_after_an_outage_of_the_database(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = await site.register()
    site.valkey.kill()
    site.valkey.start()
    bus, tried = MemoryBus(), asyncio.Event()

    def fail() -> NoReturn:
        tried.set()
        raise OSError("the database is away")

    with monkeypatch.context() as outage:
        outage.setattr(site.world.database, "read", fail)
        task = asyncio.create_task(site.users.run(site.world.database, bus))
        async with asyncio.timeout(PATIENCE_SECONDS):
            await tried.wait()
    bus.publish(BROKER_USERS)
    await until(lambda: site.list_workers() == {answer.worker_id}, "the user is made again")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("suffix", ["", "\x06\x163", "\x06\x169"])
async def test_a_queue_of_another_type_is_replaced(site: Site, suffix: str) -> None:
    answer = await site.register()
    site.valkey.execute("SADD", f"{answer.queue}{suffix}", "x")
    site.queue.send(site.assign(answer))
    with connect(answer) as connection:
        assert connection.llen(answer.queue) == 1


async def test_a_binding_of_another_type_is_replaced_and_messages_stay(site: Site) -> None:
    answer = await site.register()
    site.queue.send(site.assign(answer))
    binding = f"_kombu.binding.{answer.queue}"
    site.valkey.execute("DEL", binding)
    site.valkey.execute("SET", binding, "x")
    again = CeleryDispatchQueue(site.valkey.get_url("server", PASSWORD))
    again.send(site.assign(answer))
    again.close()
    with connect(answer) as connection:
        assert connection.llen(answer.queue) == 2


async def test_one_refused_message_does_not_keep_the_others_back(site: Site) -> None:
    answers = [await site.register(name) for name in ("w1", "w2", "w3")]
    site.valkey.execute("SADD", answers[1].queue, "x")
    site.valkey.execute("ACL", "SETUSER", "server", "-del")
    with pytest.raises(MessageRefusedError, match="permissions"):
        site.queue.send(site.assign(answers[1]))
    await site.world.submit(seeds=[1, 2, 3])
    dispatcher = Dispatcher(
        site.world.database, site.queue, assignment_seconds=30, broker_users=site.users
    )
    assert await dispatcher.tick() == 2
    assert {await count_messages(answer) for answer in (answers[0], answers[2])} == {1}
    async with site.world.database.read() as session:
        unassigned = select(func.count()).where(JobRow.assigned_worker_id.is_(None))
        assert await session.scalar(unassigned) == 1


async def count_messages(answer: RegistrationAnswer) -> int:
    with connect(answer) as connection:
        return int(connection.llen(answer.queue))

"""Several dispatchers and servers as real processes on one PostgreSQL."""

import secrets
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from tests.e2e.run_history import make_cartpole_definition
from tests.support.postgres import PostgresServer
from tests.support.several_servers import SeveralServers
from tests.support.waiting import PATIENCE_SECONDS, wait_for

pytestmark = pytest.mark.processes

_RECORD_WRITES = """
CREATE TABLE writes (number bigserial, writer text, what text);
CREATE FUNCTION record_write() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO writes (writer, what) VALUES (current_setting('application_name'), TG_TABLE_NAME);
    RETURN NULL;
END $$;
CREATE TRIGGER record_write AFTER UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION record_write();
CREATE TRIGGER record_write AFTER DELETE ON queue_groups
    FOR EACH ROW EXECUTE FUNCTION record_write();
CREATE TRIGGER record_write AFTER UPDATE ON dispatcher_lease
    FOR EACH ROW EXECUTE FUNCTION record_write();
"""


@pytest.fixture
def servers_url(postgres_server: PostgresServer, worker_id: str) -> str:
    return postgres_server.create_migrated_database(f"several_{worker_id}")


@pytest.fixture
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("s")


def make_held_definition(number: int) -> dict[str, Any]:
    """Returns a definition whose attempts hold a slot without a trainer."""
    return make_cartpole_definition(1_000 + number, name=f"no-op {number}")


def count_unfinished(stack: SeveralServers) -> int:
    return int(stack.query("SELECT count(*) FROM jobs WHERE state <> 'succeeded'")[0][0])


@pytest.fixture
def two_dispatchers(directory: Path, servers_url: str) -> Iterator[SeveralServers]:
    """One server without daemons, and two processes of daemons."""
    settings = {"PALESTRA_DAEMONS": "false"}
    with SeveralServers(
        directory, servers_url, servers=1, hold_seconds=(0.1, 0.4), settings=settings
    ) as stack:
        stack.start_daemons("daemons-1")
        stack.start_daemons("daemons-2")
        yield stack


def test_a_dispatcher_stopped_past_its_lease_writes_nothing_when_it_goes_on(
    two_dispatchers: SeveralServers,
) -> None:
    stack = two_dispatchers
    with psycopg.connect(stack.database_url, autocommit=True) as connection:
        connection.execute(_RECORD_WRITES.encode())
    for number in range(2):
        queue_jobs(stack, 3 * number)
        stopped = wait_for(stack.find_holder, "a dispatcher holds the lease")
        wait_for(lambda who=stopped: count_writes(stack, who, "jobs"), f"{stopped} assigns")
        epoch = read_epoch(stack)
        stack.processes[stopped].send_signal(signal.SIGSTOP)
        wait_for(lambda old=epoch: read_epoch(stack) > old, "the other takes over")
        other = ({"daemons-1", "daemons-2"} - {stopped}).pop()
        queue_jobs_for(stack, other, 3 * number + 1)
        written = read_last_write(stack, stopped)
        stack.processes[stopped].send_signal(signal.SIGCONT)
        wait_for(lambda who=stopped: "dispatcher.lease_lost" in stack.log(who), "it notices")
        queue_jobs_for(stack, other, 3 * number + 2)
        assert read_last_write(stack, stopped) == written
        assert read_epoch(stack) == epoch + 1
    wait_for(lambda: not count_unfinished(stack), "all jobs end")


def queue_jobs(stack: SeveralServers, number: int) -> None:
    """Queues jobs that keep the dispatchers at work."""
    definition = make_held_definition(number)
    stack.submit(definition, seeds=list(range(10)), resources={"pack": "off"})


def queue_jobs_for(stack: SeveralServers, dispatcher: str, number: int) -> None:
    """Queues jobs and waits until a dispatcher has assigned one."""
    before = count_writes(stack, dispatcher, "jobs")
    queue_jobs(stack, number)
    wait_for(lambda: count_writes(stack, dispatcher, "jobs") > before, f"{dispatcher} assigns")


def read_epoch(stack: SeveralServers) -> int:
    return int(stack.query("SELECT epoch FROM dispatcher_lease")[0][0])


def count_writes(stack: SeveralServers, writer: str, what: str) -> int:
    statement = "SELECT count(*) FROM writes WHERE writer = %s AND what = %s"
    return int(stack.query(statement, writer, what)[0][0])


def read_last_write(stack: SeveralServers, writer: str) -> int:
    statement = "SELECT coalesce(max(number), 0) FROM writes WHERE writer = %s"
    return int(stack.query(statement, writer)[0][0])


MAX_UNFINISHED = 20


class Submitter(threading.Thread):
    """Submits experiments until stopped; repeats requests without an answer."""

    def __init__(self, stack: SeveralServers) -> None:
        super().__init__(daemon=True)
        self._stack = stack
        self._client = httpx.Client(base_url=stack.url, timeout=10, trust_env=False)
        self._headers = {"Authorization": f"Bearer {stack.tokens['user']}"}
        self.stopping = threading.Event()
        self.created: list[str] = []

    def run(self) -> None:
        with self._client:
            while not self.stopping.is_set():
                self.created.append(self._submit(len(self.created)))
                wait_for(self._may_go_on, "jobs end")

    def _may_go_on(self) -> bool:
        return self.stopping.is_set() or count_unfinished(self._stack) < MAX_UNFINISHED

    def _submit(self, number: int) -> str:
        body = {
            "definition": make_held_definition(number),
            "options": {"seeds": [0, 1], "resources": {"pack": "off"}},
        }
        headers = {**self._headers, "Idempotency-Key": secrets.token_hex(8)}

        def try_to_submit() -> str | None:
            try:
                answer = self._client.post("/api/v1/experiments", json=body, headers=headers)
            except httpx.HTTPError:
                return None
            if answer.status_code == httpx.codes.CREATED:
                return str(answer.json()["id"])
            assert answer.status_code >= 500, answer.text
            return None

        return wait_for(try_to_submit, "a server accepts the experiment")


def wait_for_submissions(submitter: Submitter, more: int) -> None:
    before = len(submitter.created)
    wait_for(lambda: len(submitter.created) >= before + more, "experiments are submitted")


def read_place(stack: SeveralServers, name: str) -> str | None:
    """Returns where jobs are assigned, as one server says."""
    ready = stack.readiness(name)
    return None if ready is None else ready["dispatcher"]


def test_a_rolling_restart_under_load_loses_nothing(directory: Path, servers_url: str) -> None:
    with SeveralServers(directory, servers_url, hold_seconds=(0.1, 0.5)) as stack:
        submitter = Submitter(stack)
        submitter.start()
        for name in ("server-1", "server-2"):
            wait_for_submissions(submitter, 7)
            holder = wait_for(stack.find_holder, "a server assigns jobs")
            assert {one: read_place(stack, one) for one in stack.ports} == {
                one: "here" if one == holder else "elsewhere" for one in stack.ports
            }
            assert stack.stop(name) == 0, stack.log(name)
            wait_for(stack.find_holder, "a server assigns jobs")
            stack.start_one(name)
        wait_for_submissions(submitter, 7)
        submitter.stopping.set()
        submitter.join(PATIENCE_SECONDS)
        assert not submitter.is_alive()
        wait_for(lambda: not count_unfinished(stack), "all jobs end")
        assert len(submitter.created) > 20
        rows = stack.query(
            "SELECT experiment_id, count(*) FROM jobs WHERE state = 'succeeded' "
            "GROUP BY experiment_id"
        )
        assert dict(rows) == dict.fromkeys(submitter.created, 2)
        twice = "SELECT job_id FROM attempts GROUP BY job_id HAVING count(*) > 1"
        assert stack.query(twice) == []

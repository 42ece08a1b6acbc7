"""A database of the version before users, projects and pools is migrated with all it holds.

The previous version's own code makes it: 1,000 runs, live attempts, workers, tokens and logins. Its
migration is killed at each statement that writes. `tests/e2e/test_previous_version.py` has the live
worker of that version.
"""

import contextlib
import json
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import pytest_asyncio
import sqlalchemy as sa
from alembic import command
from alembic.script import ScriptDirectory
from asgi_lifespan import LifespanManager

from app.db import migrate
from app.main import create_app
from app.services.audit.verification import verify
from app.settings import Settings
from tests.app.api.serving import ORIGIN
from tests.support.killed_migration import read_content
from tests.support.postgres import PostgresServer
from tests.support.previous_version import fill_database, write_previous_version
from tests.support.process_stack import REPOSITORY
from tests.support.server_fixture import make_definition, registration
from tests.support.waiting import PATIENCE_SECONDS

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.processes,
    pytest.mark.extended,
]

RUNS = 1_000
PREVIOUS_SCHEMA = "0009"
KEPT = {
    "projects": "id, name",
    "memberships": "project_id, user_id",
    "experiments": "id, project_id, name, definition, created_by",
    "runs": "id, experiment_id, project_id, seed, state, fence, job_id, created_by",
    "jobs": "id, project_id, pool, state, priority, created_by",
    "job_runs": "job_id, run_id",
    "attempts": "id, job_id, worker_id, token_hash, state",
    "snapshots": "id, run_id, state",
    "submissions": "project_id, experiment_id",
    "events": "id, project_id, type, data",
    "tokens": "id, user_id, name, secret_hash, scopes, parent_id",
    "workers": "id, pool, secret_hash",
    "login_links": "code_hash, user_id, used_at",
    "login_sessions": "id, user_id, secret_hash, ended_at",
}
"""Columns whose values a migration must keep, by table."""
RENAMED = {"series_blocks": "curve_blocks"}
"""Present name of tables of the previous version."""


@dataclass(frozen=True)
class Databases:
    """URLs of empty databases, and a function that makes `copy_url` a copy of `url`."""

    url: str
    copy_url: str
    empty_url: str
    copy: Callable[[], object]


@dataclass
class MigratedDatabase:
    """A migrated database, its present server, and the facts that the previous version printed."""

    databases: Databases
    """The copy is of right after the migration."""
    facts: dict[str, Any]
    before: dict[str, Any]
    after: dict[str, Any]
    row_counts: dict[str, int]
    """Number of rows of each table right after the migration."""
    kills: dict[str, int]
    """Number of kills in each step."""
    app: Any

    def open_client(self, who: str | None = None, **options: Any) -> httpx.AsyncClient:
        headers = {} if who is None else {"Authorization": f"Bearer {self.facts['tokens'][who]}"}
        transport = httpx.ASGITransport(self.app)
        return httpx.AsyncClient(transport=transport, base_url=ORIGIN, headers=headers, **options)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def databases(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, worker_id: str
) -> Databases:
    """Empty databases of one kind."""
    if request.param == "sqlite":
        directory = tmp_path_factory.mktemp("databases")
        urls = [f"sqlite:///{directory / name}.db" for name in ("previous", "copy", "empty")]
        return Databases(
            *urls, lambda: shutil.copy(directory / "previous.db", directory / "copy.db")
        )
    server: PostgresServer = request.getfixturevalue("postgres_server")
    names = [f"{name}_{worker_id}" for name in ("previous", "previous_copy", "previous_empty")]
    first, copied, empty = map(server.create_database, names)
    return Databases(
        first, copied, empty, lambda: server.create_database(names[1], template=names[0])
    )


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def migrated_database(
    databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[MigratedDatabase]:
    """The previous version's database after a migration with many kills, and its server."""
    url = databases.url
    directory = tmp_path_factory.mktemp("previous")
    tree = write_previous_version(directory / "tree", "tests")
    facts = fill_database(tree, url, directory / "data", RUNS)
    before = read_rows(url)
    program = [sys.executable, "-m", "tests.support.killed_migration", url]
    done = subprocess.run(program, capture_output=True, text=True, cwd=REPOSITORY, check=False)
    assert done.returncode == 0, done.stderr
    after = read_rows(url)
    row_counts = read_content(url)["rows"]
    databases.copy()
    app = create_app(Settings(data_dir=directory / "data", database_url=url, daemons=False))
    kills = json.loads(done.stdout)
    async with LifespanManager(
        app, startup_timeout=PATIENCE_SECONDS, shutdown_timeout=PATIENCE_SECONDS
    ):
        yield MigratedDatabase(databases, facts, before, after, row_counts, kills, app)


def read_rows(url: str) -> dict[str, Any]:
    """Returns the rows of the tables whose content a migration must keep."""
    with migrate._connection(url) as connection:
        return {
            table: sorted(map(repr, connection.execute(sa.text(f"SELECT {columns} FROM {table}"))))
            for table, columns in KEPT.items()
        }


async def test_the_migration_was_killed_at_every_statement(
    migrated_database: MigratedDatabase,
) -> None:
    print(f"kills by step: {migrated_database.kills}")  # noqa: T201 - the number is to be seen
    assert next(iter(migrated_database.kills)) == "0010"
    assert list(migrated_database.kills)[-1] == migrate.read_required_version()
    assert min(migrated_database.kills.values()) >= 2, "each step has a statement and a commit"
    assert sum(migrated_database.kills.values()) > 80


async def test_the_schema_is_that_of_an_undisturbed_migration(
    migrated_database: MigratedDatabase,
) -> None:
    migrate.upgrade(migrated_database.databases.empty_url)
    empty = read_content(migrated_database.databases.empty_url)
    killed = read_content(migrated_database.databases.copy_url)
    assert killed["schema"] == empty["schema"]
    assert killed["alembic_version"] == empty["alembic_version"] == migrate.read_required_version()


async def test_no_row_is_lost_or_changed(migrated_database: MigratedDatabase) -> None:
    """Events of workers are dropped, and one event stands for all series of a run in a batch."""
    before, after = migrated_database.before, migrated_database.after
    dropped = [row for row in before["events"] if "'worker'" in row]
    points = [row for row in before["events"] if ", 'points', " in row]
    kept = [row for row in before["events"] if row not in dropped and row not in points]
    batches = [row for row in after["events"] if ", 'points', " in row]
    assert len(before["runs"]) == RUNS + 6
    assert dropped
    assert kept
    assert 0 < len(batches) <= len(points)
    assert after == {**before, "events": sorted(kept + batches)}
    facts = migrated_database.facts["rows"]
    assert facts["series_blocks"] > 0
    counts = migrated_database.row_counts
    assert {table: counts[RENAMED.get(table, table)] for table in facts} == {
        **facts,
        "events": len(kept) + len(batches),
    }


async def test_each_step_can_be_taken_back(migrated_database: MigratedDatabase) -> None:
    url = migrated_database.databases.copy_url
    script = ScriptDirectory.from_config(migrate.build_config())
    steps = [step.revision for step in script.walk_revisions(PREVIOUS_SCHEMA, "head")]
    migrate.upgrade(migrated_database.databases.empty_url)
    for revision in steps[1:]:
        for one in (url, migrated_database.databases.empty_url):
            downgrade(one, revision)
        assert (
            read_content(url)["schema"]
            == read_content(migrated_database.databases.empty_url)["schema"]
        )
    counts = read_content(url)["rows"]
    lost = {"events": migrated_database.row_counts["events"]}
    facts = migrated_database.facts["rows"]
    assert {table: counts[table] for table in facts} == {**facts, **lost}
    migrate.upgrade(url)
    assert read_rows(url) == migrated_database.after


def downgrade(url: str, revision: str) -> None:
    with migrate._connection(url) as connection:
        configuration = migrate.build_config()
        configuration.attributes["connection"] = connection
        command.downgrade(configuration, revision)


async def test_all_foreign_keys_hold(migrated_database: MigratedDatabase) -> None:
    with migrate._connection(migrated_database.databases.url) as connection:
        inspector = sa.inspect(connection)
        checked = 0
        for table in inspector.get_table_names():
            for key in inspector.get_foreign_keys(table):
                checked += 1
                assert count_orphans(connection, table, key) == 0, (table, key)
        assert checked > 20
        if connection.dialect.name == "sqlite":
            assert connection.execute(sa.text("PRAGMA foreign_key_check")).all() == []
            assert connection.scalar(sa.text("PRAGMA integrity_check")) == "ok"
        else:
            invalid = "SELECT conname FROM pg_constraint WHERE NOT convalidated"
            assert connection.execute(sa.text(invalid)).all() == []


def count_orphans(connection: sa.Connection, table: str, key: Any) -> int:
    """Returns the number of rows that refer to a row that is not there."""
    child = sa.table(table, *map(sa.column, key["constrained_columns"])).alias("child")
    parent = sa.table(key["referred_table"], *map(sa.column, key["referred_columns"]))
    parent_alias = parent.alias("parent")
    pairs = zip(key["constrained_columns"], key["referred_columns"], strict=True)
    same = sa.and_(*(child.c[one] == parent_alias.c[other] for one, other in pairs))
    is_set = [child.c[name].is_not(None) for name in key["constrained_columns"]]
    query = sa.select(sa.func.count()).select_from(child).where(*is_set, ~sa.exists().where(same))
    return int(connection.scalar(query) or 0)


async def test_the_audit_log_is_a_chain(migrated_database: MigratedDatabase) -> None:
    answer = await verify(migrated_database.app.state.database, None)
    assert answer.fault is None
    assert answer.entries >= migrated_database.facts["rows"]["audit"]


async def request_status(
    migrated: MigratedDatabase, who: str, method: str, path: str, **options: Any
) -> int:
    async with migrated.open_client(who) as client:
        return (await client.request(method, f"/api/v1{path}", **options)).status_code


@pytest.mark.parametrize(
    ("who", "reads", "submits", "lists_users"),
    [
        ("user", 200, 201, 200),
        ("reader", 200, 403, 403),
        ("submitter", 403, 201, 403),
        ("admin_only", 200, 201, 200),
        ("member", 200, 201, 403),
        ("viewer", 200, 403, 403),
        ("foreign", 200, 201, 403),
        ("worker", 403, 403, 403),
        ("own_worker", 403, 403, 403),
        ("live_attempt", 403, 403, 403),
        ("expired", 401, 401, 401),
        ("revoked", 401, 401, 401),
    ],
)
async def test_old_tokens_permit_what_the_present_role_and_their_scopes_do(
    migrated_database: MigratedDatabase, who: str, reads: int, submits: int, lists_users: int
) -> None:
    steps = 500 + 2 * sum(map(ord, who))
    body = {"definition": make_definition(loop={"env_steps": steps})}
    assert await request_status(migrated_database, who, "GET", "/runs") == reads
    assert (
        await request_status(migrated_database, who, "POST", "/experiments", json=body) == submits
    )
    assert await request_status(migrated_database, who, "GET", "/users") == lists_users


async def test_each_old_token_sees_its_project_only(migrated_database: MigratedDatabase) -> None:
    names = migrated_database.facts["names"]
    assert (
        await request_status(migrated_database, "user", "GET", f"/runs/{names['live_run']}") == 200
    )
    assert (
        await request_status(migrated_database, "user", "GET", f"/runs/{names['foreign_run']}")
        == 404
    )
    assert (
        await request_status(migrated_database, "foreign", "GET", f"/runs/{names['foreign_run']}")
        == 200
    )
    assert (
        await request_status(migrated_database, "foreign", "GET", f"/runs/{names['live_run']}")
        == 404
    )


async def test_roles_are_those_of_decision_0011(migrated_database: MigratedDatabase) -> None:
    found = {}
    for who in ("user", "foreign", "member", "viewer"):
        async with migrated_database.open_client(who) as client:
            session = (await client.get("/api/v1/session")).json()
        (project,) = session["projects"]
        found[who] = (session["user"], project["role"], "server.users" in session["permissions"])
    assert found == {
        "user": ("admin", "maintainer", True),
        "foreign": ("zoe", "maintainer", False),
        "member": ("mia", "member", False),
        "viewer": ("vera-viewer", "viewer", False),
    }


async def test_workers_and_attempts_go_on(migrated_database: MigratedDatabase) -> None:
    names = migrated_database.facts["names"]
    beat = f"/workers/{names['worker']}:heartbeat"
    body = {"live_attempts": [names["live_attempt"]]}
    assert await request_status(migrated_database, "own_worker", "POST", beat, json=body) == 200
    renew = f"/leases/{names['live_attempt']}:renew"
    assert await request_status(migrated_database, "live_attempt", "POST", renew, json={}) == 200
    claim = {"expected_attempt": 1, "worker_id": names["worker"], "slot": 7}
    claim["job_id"] = names["queued_job"]
    # A message of the previous version's dispatcher names no assignment: the job is assigned anew.
    lease = (migrated_database, "own_worker", "POST", "/leases")
    assert await request_status(*lease, json=claim) == 409
    async with migrated_database.app.state.database.write() as session:
        await session.execute(
            sa.text("UPDATE jobs SET assigned_worker_id = :worker WHERE id = :job"),
            {"worker": names["worker"], "job": names["queued_job"]},
        )
    assert await request_status(*lease, json=claim) == 201


async def test_the_old_enrolment_token_enrols_workers_in_the_pools_of_its_project(
    migrated_database: MigratedDatabase,
) -> None:
    for pool, status_code in (("default", 201), ("gpu", 201), ("lab", 422)):
        body = registration(name=f"new-{pool}", pool=pool).model_dump(mode="json")
        async with migrated_database.open_client("worker") as client:
            answer = await client.post("/api/v1/workers", json=body)
        assert answer.status_code == status_code, answer.text
        assert bool(answer.json().get("secret")) == (status_code == 201)


async def test_the_old_enrolment_token_is_listed_for_replacement(
    migrated_database: MigratedDatabase,
) -> None:
    async with migrated_database.open_client("user") as client:
        pools = (await client.get("/api/v1/pools")).json()["items"]
        assert {pool["name"] for pool in pools} == {"default", "gpu"}
        for pool in ("default", "gpu"):
            path = f"/api/v1/pools/{pool}/enrolment-tokens"
            listed = (await client.get(path)).json()["items"]
            assert {token["name"] for token in listed if token["legacy"]} >= {"worker"}


async def test_old_logins_links_and_passwords_work(migrated_database: MigratedDatabase) -> None:
    facts = migrated_database.facts
    cookies = {"palestra_session": facts["cookie"]}
    async with migrated_database.open_client(cookies=cookies) as browser:
        session = (await browser.get("/api/v1/session")).json()
        assert (session["user"], session["csrf_token"]) == ("admin", facts["csrf"])
        headers = {"Origin": ORIGIN, "X-CSRF-Token": facts["csrf"]}
        path = f"/api/v1/experiments/{facts['names']['foreign_experiment']}:archive"
        assert (await browser.post(path, headers=headers)).status_code == 404
    for path, body in (
        ("session", {"user": "admin", "password": facts["password"]}),
        ("session:redeem", {"code": facts["link"]}),
    ):
        client = migrated_database.open_client()
        async with contextlib.aclosing(client):
            headers = {"Origin": ORIGIN}
            answer = await client.post(f"/api/v1/{path}", json=body, headers=headers)
            assert answer.status_code == 201, answer.text
            assert (await client.get("/api/v1/session")).json()["user"] == "admin"

"""Time that the other projects of a server add to the lists of one project.

A server with 30 people, 10 projects and 10,000 runs answers the lists of one project's maintainer,
and a server that holds only this project answers the same lists. Both run in one process and are
queried in turn, so that other load on the machine affects both.

    python -m benchmarks.team_lists [--database sqlite | postgresql] [--requests 200] [--runs 1000]
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import structlog
from asgi_lifespan import LifespanManager
from sqlalchemy import insert, select, update

from app.db.engine import Database
from app.db.migrate import upgrade
from app.db.models import AttemptRow, EvaluationRow, JobRow, MembershipRow, RunRow, UserRow
from app.domain.principal import Membership
from app.main import create_app
from app.services.access import tokens
from app.services.projects import projects
from app.services.telemetry import batches
from app.settings import Settings
from benchmarks._report import describe_machine
from benchmarks.audit_log import database_url
from palestra.contract.access import TokenRequest
from palestra.contract.names import Scope, new_id
from palestra.contract.permissions import Role
from palestra.contract.projects import ProjectRequest
from palestra.contract.states import JobState
from tests.support import records
from tests.support.server_fixture import World, make_definition, make_world

PEOPLE, PROJECTS, EXPERIMENTS, QUEUED = 30, 10, 20, 10
"""People and projects of the large server; experiments and queued jobs of each project."""
BOUND = 1.5
LISTS = {
    "experiments": "/experiments",
    "experiments by name": "/experiments?sort=name&limit=200",
    "experiments by text": "/experiments?text=experiment 1",
    "experiments of a person": "/experiments?user=person-1",
    "experiments with failures": "/experiments?state=failed",
    "runs": "/runs",
    "runs, 200": "/runs?limit=200",
    "runs by env_step": "/runs?sort=-env_step",
    "runs of a state": "/runs?state=failed",
    "runs of a person": "/runs?user=person-1",
    "runs of an experiment": "/runs?experiment={experiment}",
    "jobs": "/jobs",
    "queued jobs with positions": "/jobs?state=queued",
    "jobs of a pool": "/jobs?pool=default&sort=-priority",
    "jobs of an experiment": "/jobs?experiment={experiment}",
    "workers": "/workers",
    "pools": "/pools",
    "catalogue": "/catalogue?pool=default",
    "projects": "/projects",
    "tokens": "/tokens",
    "audit": "/audit",
    "audit of jobs": "/audit?action=job.",
    "experiments of the project": "/experiments?project=default",
    "runs of the project": "/runs?project=default",
    "jobs of the project": "/jobs?project=default",
    "members": "/projects/default/members",
    "audit of the project": "/audit?project=default",
    "service accounts": "/projects/default/service-accounts",
}


@dataclass(frozen=True, slots=True)
class ListServer:
    """A server with its content and the client of a maintainer of its first project."""

    client: httpx.AsyncClient
    experiment: str

    async def seconds(self, path: str) -> float:
        """Returns the time of one request."""
        url = f"/api/v1{path.format(experiment=self.experiment)}"
        begun = time.perf_counter()
        answer = await self.client.get(url)
        spent = time.perf_counter() - begun
        assert answer.status_code == 200, answer.text
        return spent


@asynccontextmanager
async def run_list_server(
    url: str, directory: Path, count: int, runs: int
) -> AsyncIterator[ListServer]:
    """Runs a server with `count` projects, each of them with `runs` runs."""
    await asyncio.to_thread(upgrade, url)
    app = create_app(
        Settings(data_dir=directory, database_url=url, daemons=False, api_requests_per_second=0)
    )
    async with LifespanManager(app, startup_timeout=60, shutdown_timeout=60):
        world = await make_world(app.state.database)
        await add_people(world, PEOPLE if count > 1 else PEOPLE // PROJECTS)
        experiment = await fill(world, runs, 0)
        for number in range(1, count):
            await fill(await create_further_project(world, number), runs, number)
        for number in range(count, PROJECTS):
            await world.register(name=f"w{number}")
        request = TokenRequest(name="lists", scopes=(Scope.READ, Scope.ADMIN), expires_in_days=1)
        async with world.database.write() as session:
            made = await tokens.issue_token(session, None, world.other.user_id, request)
        await gather_statistics(app.state.database)
        headers = {"Authorization": f"Bearer {made.secret}"}
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://127.0.0.1", headers=headers
        ) as client:
            yield ListServer(client, experiment)


async def gather_statistics(database: Database) -> None:
    """Runs VACUUM ANALYZE on PostgreSQL, since autovacuum is off in the tests' server."""
    async with database.engine.connect() as connection:
        if connection.dialect.name == "postgresql":
            await connection.execution_options(palestra_begin=None)
            await connection.exec_driver_sql("VACUUM ANALYZE")


async def add_people(world: World, count: int) -> None:
    """Adds users, and gives each project three of them as members."""
    async with world.database.write() as session:
        people = [
            UserRow(id=new_id("usr"), name=f"person-{number}") for number in range(1, count + 1)
        ]
        session.add_all(people)
        await session.flush()
        session.add_all(
            MembershipRow(project_id=world.project_id, user_id=user.id, role=Role.MEMBER.value)
            for user in people[:3]
        )


async def create_further_project(world: World, number: int) -> World:
    """Creates a further project with three members; returns the world of its administrator."""
    async with world.database.write() as session:
        made = await projects.create(session, world.admin, ProjectRequest(name=f"p-{number}"))
        names = [f"person-{3 * number + place}" for place in (1, 2, 3)]
        people = await session.scalars(select(UserRow.id).where(UserRow.name.in_(names)))
        session.add_all(
            MembershipRow(project_id=made.id, user_id=user_id, role=Role.MEMBER.value)
            for user_id in people
        )
    own = Membership(project_id=made.id, slug=made.slug, name=made.name, role=Role.MAINTAINER)
    admin = replace(world.admin, memberships=(own,))
    return replace(world, project_id=made.id, admin=admin)


async def fill(world: World, runs: int, number: int) -> str:
    """Submits a project's experiments as its people; returns the ID of the first one."""
    found = ""
    people = await _people(world)
    for place in range(EXPERIMENTS):
        document = make_definition(name=f"experiment {place}", loop={"env_steps": 100 + place})
        seeds = list(range(runs // EXPERIMENTS))
        by = replace(world.admin, user_id=people[place % len(people)])
        experiment, _ = await world.submit(document, by=by, seeds=seeds)
        found = found or experiment.id
    await _train(world, number)
    return found


async def _people(world: World) -> list[str]:
    query = select(MembershipRow.user_id).where(
        MembershipRow.project_id == world.project_id, MembershipRow.role == Role.MEMBER.value
    )
    async with world.database.read() as session:
        return sorted(await session.scalars(query))


async def _train(world: World, number: int) -> None:
    """Trains all jobs but a few to their end, each in one attempt with two evaluations."""
    registered = await world.register(name=f"w{number}")
    queued = await world.list_jobs(state=JobState.QUEUED)
    first = await world.start(queued[0].id, registered.worker_id)
    run = queued[0].run_ids[0]
    record = records.make_evaluation(run, 5, 1.0)
    async with world.database.write() as session:
        await batches.take(session, records.make_delivery(first.work_order.attempt_id, 1, [record]))
    async with world.database.write() as session:
        attempt = _read_values(
            await session.execute(select(AttemptRow.__table__)), "job_id", queued[0].id
        )
        evaluation = _read_values(
            await session.execute(select(EvaluationRow.__table__)), "run_id", run
        )
        jobs = await session.execute(
            select(JobRow.id, RunRow.id, RunRow.experiment_id)
            .join(RunRow, RunRow.job_id == JobRow.id)
            .where(JobRow.project_id == world.project_id, JobRow.id != queued[0].id)
        )
        rows = [tuple(row) for row in jobs][QUEUED:]
        attempts = {job: new_id("att") for job, _, _ in rows}
        await session.execute(
            insert(AttemptRow),
            [
                attempt
                | {"id": attempts[job], "job_id": job, "token_hash": attempts[job]}
                | {"state": "ended", "outcome": "succeeded"}
                for job, _, _ in rows
            ],
        )
        await session.execute(
            insert(EvaluationRow),
            [
                evaluation
                | {"id": new_id("evl"), "run_id": run_id, "experiment_id": experiment_id}
                | {"job_id": job, "attempt_id": attempts[job], "seq": seq}
                | {"body": evaluation["body"].replace(run, run_id)}
                for job, run_id, experiment_id in rows
                for seq in (1, 2)
            ],
        )
        for place, state in enumerate(("succeeded", "failed")):
            some = [row for index, row in enumerate(rows) if (index % 10 == 0) == bool(place)]
            await session.execute(
                update(JobRow)
                .where(JobRow.id.in_([job for job, _, _ in some]))
                .values(state=state, attempt=1)
            )
            await session.execute(
                update(RunRow)
                .where(RunRow.id.in_([run_id for _, run_id, _ in some]))
                .values(state=state, env_step=place)
            )


def _read_values(found: Any, column: str, value: str) -> dict[str, Any]:
    """Returns the attributes of the row whose `column` has a value."""
    row = next(one for one in found.mappings() if one[column] == value)
    return {
        "update" if name == "update_count" else str(name): content for name, content in row.items()
    }


async def compare(pair: tuple[ListServer, ListServer], requests: int, only: str) -> bool:
    """Prints each list's medians on both servers; returns whether all are within the bound."""
    is_good = True
    for name, path in LISTS.items():
        if only not in name:
            continue
        times: tuple[list[float], list[float]] = ([], [])
        for index in range(requests + 5):
            for server, found in zip(pair, times, strict=True):
                spent = await server.seconds(path)
                if index >= 5:
                    found.append(1e3 * spent)
        alone, team = (statistics.median(found) for found in times)
        low, high = (statistics.quantiles(times[1], n=10)[place] for place in (0, 8))
        ratio = team / alone
        comparison = "ok" if ratio <= BOUND else f"OVER {BOUND}"
        print(
            f"  {name:28} alone {alone:7.2f} ms  team {team:7.2f} ms "
            f"(p10 {low:.2f}, p90 {high:.2f})  ratio {ratio:.2f}  {comparison}"
        )
        is_good = is_good and ratio <= BOUND
    return is_good


async def measure(urls: tuple[str, str], directory: Path, values: argparse.Namespace) -> bool:
    async with AsyncExitStack() as stack:
        pair = [
            await stack.enter_async_context(
                run_list_server(url, directory / str(count), count, values.runs)
            )
            for url, count in zip(urls, (1, PROJECTS), strict=True)
        ]
        return await compare((pair[0], pair[1]), values.requests, values.only)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=("sqlite", "postgresql"), help="both by default")
    parser.add_argument("--requests", type=int, default=200, help="of each list on each server")
    parser.add_argument("--runs", type=int, default=1_000, help="of each project")
    parser.add_argument("--only", default="", help="lists whose names hold this")
    values = parser.parse_args()
    print(describe_machine())
    is_good = True
    for kind in (values.database,) if values.database else ("sqlite", "postgresql"):
        print(f"{kind}: {PEOPLE} people, {PROJECTS} projects, {PROJECTS * values.runs:,} runs")
        with (
            database_url(kind) as first,
            database_url(kind) as second,
            tempfile.TemporaryDirectory() as directory,
        ):
            structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
            found = asyncio.run(measure((first, second), Path(directory), values))
            is_good = found and is_good
    return 0 if is_good else 1


if __name__ == "__main__":
    raise SystemExit(main())

"""Time of lists of runs that are filtered and sorted by what the runs reached.

100,000 runs of 48 pairs of agent and environment, with summaries of some series and two evaluations
each, are written through the tables of the server, which then answers the first 100 runs of each
list over HTTP on a loopback socket. Beside the time of the answers it prints the processor time
that the server used for one; on PostgreSQL the database's own is not in it.

    python -m benchmarks.list_queries [--database sqlite | postgresql] [--runs 100000]
        [--series 20] [--requests 50] [--only TEXT] [--url URL]

`--url` measures a database that is kept: it is filled if it has no runs, so that filling, which
takes minutes, is done once.
"""

import argparse
import asyncio
import random
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import structlog
import uvicorn
from asgi_lifespan import LifespanManager
from sqlalchemy import func, insert, select

from app.db.engine import Database
from app.db.migrate import upgrade
from app.db.models import (
    DefinitionMemberRow,
    EvaluationRow,
    ExperimentRow,
    RunRow,
    SeriesNameRow,
    SeriesSummaryRow,
    SetupRow,
    SubmissionRow,
    UserRow,
)
from app.main import create_app
from app.services.access import tokens
from app.services.telemetry import batches
from app.settings import Settings
from benchmarks._report import describe_machine, show
from benchmarks.audit_log import database_url
from benchmarks.team_lists import gather_statistics
from palestra.contract.access import TokenRequest
from palestra.contract.names import Scope, new_id
from tests.support import records
from tests.support.server_fixture import World, make_definition, make_world

AGENTS, ENVIRONMENTS, SEEDS, MAX_ROWS = 6, 8, 10, 5_000
BEST = "-evaluation/mean.best"
LISTS: dict[str, tuple[dict[str, str], float]] = {
    "by best evaluation, agent and env": (
        {"sort": BEST, "filter": "agent:agent-1 env:env-2"}, 20.0,
    ),
    "by best evaluation, one agent": ({"sort": BEST, "filter": "agent:agent-1"}, 60.0),
    "by best evaluation, env contains": ({"sort": BEST, "filter": "env:~NV-3"}, 60.0),
    "by best evaluation, all runs": ({"sort": BEST}, 60.0),
    "by the last value of a series": ({"sort": "-series-3/x.last"}, 60.0),
    "by the mean of ten, agent and env": (
        {"sort": "series-2/x.mean10", "filter": "agent:agent-0 env:env-0"}, 60.0,
    ),
    "few: best above a value": ({"sort": BEST, "filter": "evaluation/mean.best>999"}, 60.0),
    "few: a hyperparameter": ({"sort": BEST, "filter": "agent.gamma:0.123"}, 60.0),
    "few: a name": ({"sort": BEST, "filter": "name:~needle"}, 60.0),
    "few: a state and a seed": ({"sort": BEST, "filter": "state:failed seed:7"}, 60.0),
    "many: a state": ({"sort": BEST, "filter": "state:succeeded"}, 60.0),
    "many: agent, state and best": (
        {"sort": BEST, "filter": "agent:agent-1 state:succeeded evaluation/mean.best>500"}, 60.0,
    ),
    "many: best above a value": ({"sort": BEST, "filter": "evaluation/mean.best>500"}, 60.0),
    "many: another series above a value": ({"sort": BEST, "filter": "series-3/x.last>0"}, 60.0),
    "by agent, then best evaluation": ({"sort": f"agent,{BEST}"}, 60.0),
    "newest first": ({"sort": "-created_at"}, 60.0),
    "newest first of an agent": ({"sort": "-created_at", "filter": "agent:agent-1"}, 60.0),
    "by best evaluation, with columns": (
        {"sort": BEST, "filter": "agent:agent-1 env:env-2", "columns": "agent.gamma"}, 60.0,
    ),
}  # fmt: skip
"""Parameters of each list, and the bound of its median in milliseconds."""


async def fill(database: Database, world: World, runs: int, series: int) -> None:
    """Writes experiments with runs, evaluations and summaries."""
    chooser = random.Random(1)
    base, evaluation, submission = await _make_templates(world)
    names = ["evaluation/mean", *(f"series-{number}/x" for number in range(series - 1))]
    # The database numbers them: with numbers of ours, PostgreSQL would give the same ones again.
    named = [SeriesNameRow(name=name) for name in names]
    setups = {
        (agent, env): SetupRow(
            project_id=world.project_id, agent=f"agent-{agent}", env=f"env-{env}"
        )
        for agent in range(AGENTS)
        for env in range(ENVIRONMENTS)
    }
    async with database.write() as session:
        session.add_all([*named, *setups.values()])
    experiments, members, rows, evaluations, summaries = [], [], [], [], []
    for place in range(runs // SEEDS):
        agent, env = chooser.randrange(AGENTS), chooser.randrange(ENVIRONMENTS)
        experiment_id = f"experiment-{place}"
        name = "needle" if place % 1_000 == 7 else f"experiment {place}"
        values = {"id": experiment_id, "identity_hash": experiment_id, "name": name}
        values |= {"agent": f"agent-{agent}", "env": f"env-{env}"}
        experiments.append({**base[0], **values})
        gamma = 0.123 if place % 1_000 == 9 else 0.99
        for path, number in (("agent.gamma", gamma), *((f"agent.p{i}", 1.0) for i in range(20))):
            row = {"project_id": world.project_id, "experiment_id": experiment_id}
            members.append({**row, "path": path, "text": repr(number), "number": number})
        for seed in range(SEEDS):
            run_id = new_id("run")
            state = "failed" if chooser.random() < 0.02 else "succeeded"
            values = {"id": run_id, "experiment_id": experiment_id, "seed": seed, "state": state}
            rows.append({**base[1], **values, "submission_id": submission})
            score = chooser.uniform(0, 500 + 100 * agent)
            for seq in range(2):
                values = {"id": new_id("evl"), "run_id": run_id, "score": score - seq}
                values |= {"experiment_id": experiment_id, "seq": 10 + len(evaluations)}
                values |= {"body": evaluation["body"].replace(evaluation["run_id"], run_id)}
                evaluations.append({**evaluation, **values})
            for number in range(len(names)):
                best = score if number == 0 else chooser.gauss(0, 1)
                summaries.append(
                    {
                        "run_id": run_id, "name_id": named[number].id,
                        "setup_id": setups[agent, env].id, "points": 50, "nonfinite": 0,
                        "last": best - 0.5, "best": best, "best_env_step": 10,
                        "mean10": best - 0.25, "recent": "[1.0,2.0]",
                    }
                )  # fmt: skip
    written = (
        (ExperimentRow, experiments), (DefinitionMemberRow, members), (RunRow, rows),
        (EvaluationRow, evaluations), (SeriesSummaryRow, summaries),
    )  # fmt: skip
    for model, content in written:
        for first in range(0, len(content), MAX_ROWS):
            async with database.write() as session:
                await session.execute(insert(model), content[first : first + MAX_ROWS])


async def _make_templates(
    world: World,
) -> tuple[tuple[dict[str, Any], dict[str, Any]], dict[str, Any], int]:
    """Returns the columns of an experiment, of a run and of an evaluation, and a submission."""
    registered = await world.register()
    await world.submit(make_definition(), seeds=[0])
    (job,) = await world.list_jobs()
    claimed = await world.start(job.id, registered.worker_id)
    record = records.make_evaluation(job.run_ids[0], 5, 1.0)
    async with world.database.write() as session:
        delivery = records.make_delivery(claimed.work_order.attempt_id, 1, [record])
        await batches.take(session, delivery)
    async with world.database.read() as session:
        found = [(await session.scalars(select(row))).one() for row in (
            ExperimentRow, RunRow, EvaluationRow, SubmissionRow,
        )]  # fmt: skip
    experiment, run, evaluation, submission = found
    columns = [
        {key: getattr(row, key) for key in type(row).__mapper__.columns.keys()}  # noqa: SIM118
        for row in (experiment, run, evaluation)
    ]
    return (columns[0], columns[1]), columns[2], submission.id


async def prepare(url: str, directory: Path, values: argparse.Namespace) -> str:
    """Fills a database that has no runs; returns a token that may read it."""
    await asyncio.to_thread(upgrade, url)
    settings = Settings(data_dir=directory, database_url=url, daemons=False)
    app = create_app(settings)
    async with LifespanManager(app, startup_timeout=60, shutdown_timeout=60):
        database: Database = app.state.database
        async with database.read() as session:
            runs = await session.scalar(select(func.count()).select_from(RunRow))
        if not runs:
            world = await make_world(database)
            await fill(database, world, values.runs, values.series)
            await gather_statistics(database)
        request = TokenRequest(name=new_id("list"), scopes=(Scope.READ,), expires_in_days=1)
        async with database.write() as session:
            reader = (await session.scalars(select(UserRow.id).where(~UserRow.is_admin))).one()
            made = await tokens.issue_token(session, None, reader, request)
        return made.secret


def measure(url: str, directory: Path, token: str, values: argparse.Namespace) -> bool:
    """Prints the times of each list; returns whether all medians are within their bounds."""
    settings = Settings(
        data_dir=directory, database_url=url, daemons=False, api_requests_per_second=0
    )
    is_good = True
    headers = {"Authorization": f"Bearer {token}"}
    config = uvicorn.Config(create_app(settings), host="127.0.0.1", port=0, log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60) as client:
        for name, (parameters, bound) in LISTS.items():
            if values.only not in name:
                continue
            times: list[float] = []
            spent_by_server = 0.0
            for number in range(values.requests + 3):
                used = time.process_time() - time.thread_time()
                begun = time.perf_counter()
                answer = client.get("/api/v1/runs", params={**parameters, "limit": 100})
                spent = time.perf_counter() - begun
                assert answer.status_code == 200, answer.text
                if number >= 3:
                    times.append(1e3 * spent)
                    spent_by_server += time.process_time() - time.thread_time() - used
            rows = len(answer.json()["items"])
            is_good = show(f"{name} ({rows})", times, "ms", bound) and is_good
            print(f"    processor time of the server {1e3 * spent_by_server / len(times):.1f} ms")
    server.should_exit = True
    thread.join()
    return is_good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=("sqlite", "postgresql"), help="both by default")
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--series", type=int, default=20, help="of each run")
    parser.add_argument("--requests", type=int, default=50, help="of each list")
    parser.add_argument("--only", default="", help="lists whose names hold this")
    parser.add_argument("--url", help="a database that is kept, filled if it has no runs")
    values = parser.parse_args()
    print(describe_machine())
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    if values.url:
        return 0 if _run(values.url, values) else 1
    is_good = True
    for kind in (values.database,) if values.database else ("sqlite", "postgresql"):
        with database_url(kind) as url:
            is_good = _run(url, values) and is_good
    return 0 if is_good else 1


def _run(url: str, values: argparse.Namespace) -> bool:
    print(f"{url.partition(':')[0]}: {values.runs:,} runs, {values.series} series each")
    with tempfile.TemporaryDirectory() as directory:
        token = asyncio.run(prepare(url, Path(directory), values))
        return measure(url, Path(directory), token, values)


if __name__ == "__main__":
    raise SystemExit(main())

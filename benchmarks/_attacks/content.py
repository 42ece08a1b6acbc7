"""What the attacked server holds: finished runs with curves, and two persons."""

import asyncio
from typing import NamedTuple

import numpy as np
from sqlalchemy import insert, select, update

from app.db.clock import db_now
from app.db.engine import Database
from app.db.migrate import upgrade
from app.db.models import AttemptRow, AttemptRunRow, ExperimentRow, RunRow, WorkerRow
from app.db.models.curves import BlockRow, SeriesRow
from app.metrics import compaction
from app.metrics.columns import Columns
from app.services.access import tokens
from app.services.telemetry.compaction import list_values
from benchmarks import list_queries
from benchmarks.team_lists import gather_statistics
from palestra.contract.access import TokenRequest
from palestra.contract.names import Scope
from palestra.contract.states import Cause, Outcome
from tests.support.server_fixture import World, make_world

_SERIES = 20
_EXPERIMENTS = "experiment-%"
"""Pattern of the IDs that `list_queries.fill` gives."""
_POINTS = 500
"""Points of the curve of each run."""


class Content(NamedTuple):
    """What attacks need to know of the content."""

    token: str
    """Of the attacker, who is no administrator."""
    experiments: tuple[str, ...]


def fill(url: str, runs: int) -> Content:
    """Fills an empty database with runs, summaries, evaluations and curves."""
    upgrade(url)
    return asyncio.run(_fill(url, runs))


async def _fill(url: str, runs: int) -> Content:
    database = Database(url)
    try:
        world = await make_world(database)
        await list_queries.fill(database, world, runs, _SERIES)
        await _add_curves(database, await _end_template(world))
        await gather_statistics(database)
        request = TokenRequest(name="attack", scopes=(Scope.READ, Scope.SUBMIT))
        async with database.write() as session:
            made = await tokens.issue_token(session, None, world.other.user_id, request)
        async with database.read() as session:
            query = select(ExperimentRow.id).where(ExperimentRow.id.like(_EXPERIMENTS))
            return Content(made.secret or "", tuple(await session.scalars(query)))
    finally:
        await database.dispose()


async def _add_curves(database: Database, attempt_id: str) -> None:
    """Writes a curve of each run, as if the attempt had trained all of them."""
    at = np.arange(_POINTS)
    values = np.random.default_rng(1).standard_normal(_POINTS)
    columns = Columns(at + 1, 64 * at, at, at // 7, 1.7e9 + 0.5 * at, values)
    (built,) = compaction.build_blocks(columns)
    series = {"name": "loss/td", "points": _POINTS, "nonfinite": 0}
    series |= {"last_env_step": 64 * _POINTS, "last_value": "0.0"}
    block = {"fence": 1, "attempt_id": attempt_id, **list_values(built)}
    carried = {"attempt_id": attempt_id, "fence": 1, "training": True, "live_training": False}
    async with database.write() as session:
        await session.execute(update(AttemptRow).values(acked_seq=_POINTS))
        query = select(RunRow.id).where(RunRow.experiment_id.like(_EXPERIMENTS))
        run_ids = list(await session.scalars(query))
        for table, row in ((SeriesRow, series), (AttemptRunRow, carried)):
            await session.execute(insert(table), [{**row, "run_id": run_id} for run_id in run_ids])
        series_ids = await session.scalars(
            select(SeriesRow.id).where(SeriesRow.name == series["name"])
        )
        blocks = [{**block, "series_id": series_id} for series_id in series_ids]
        await session.execute(insert(BlockRow), blocks)


async def _end_template(world: World) -> str:
    """Ends the attempt from which `list_queries.fill` made the others, and its worker."""
    async with world.database.write() as session:
        attempt_id = (await session.scalars(select(AttemptRow.id))).one()
        await session.execute(update(WorkerRow).values(last_heartbeat_at=db_now(-86_400)))
    await world.release(attempt_id, Outcome.SUCCEEDED, Cause.BUDGET, last_seq=1)
    return attempt_id

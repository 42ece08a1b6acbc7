"""Findings are kept with runs, told to their followers, and can be filtered by."""

import pytest
from sqlalchemy import select

from app.daemons.judge import PAUSE, Judge
from app.daemons.summariser import Summariser
from app.db.models import EventRow, RunSummaryRow
from app.domain.list_filters import RunFilter
from app.domain.paging import PageRequest
from app.metrics.health import rules
from app.services.curves import health
from palestra.contract.health import RULES
from palestra.contract.resources import RunView
from tests.support import records
from tests.support.artifact_store import AttemptWithStore
from tests.support.run_pages import read_page

both_databases = pytest.mark.both_databases(
    "Summaries are locked on PostgreSQL while a run is judged.",
    of=("app.db.repositories.filter_conditions", "app.db.repositories.findings"),
)

STEPS = list(range(1_000, 21_000, 1_000))


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def send_values(live_run: AttemptWithStore, value: float, *, after: int = 0) -> None:
    steps = [after + step for step in STEPS]
    await live_run.send(
        records.make_points(live_run.run_id, "q/mean", steps, [value] * len(steps)),
        records.make_points(live_run.run_id, "reward/largest", steps, [1.0] * len(steps)),
        records.make_points(live_run.run_id, "episode/return", steps, [9.0] * len(steps)),
    )
    await Summariser(live_run.database).tick()


async def list_runs(live_run: AttemptWithStore, text: str = "") -> list[RunView]:
    wanted = RunFilter(filter=text)
    page = await read_page(live_run.database, live_run.world.admin, wanted, PageRequest())
    return page.items


async def list_told(live_run: AttemptWithStore) -> list[list[str]]:
    """Returns the rules of the findings of each event about them."""
    query = select(EventRow.data).where(EventRow.type == "run").order_by(EventRow.id)
    async with live_run.database.read() as session:
        return [
            [one["rule"] for one in data["findings"]]
            for data in await session.scalars(query)
            if "findings" in data
        ]


@both_databases
async def test_findings_come_and_go_with_the_curves(live_run: AttemptWithStore) -> None:
    clock = Clock()
    judge = Judge(live_run.database, clock)
    await send_values(live_run, 800.0)
    assert await judge.tick() == 1
    (run,) = await list_runs(live_run)
    assert [one.rule for one in run.findings] == ["values_above_rewards"]
    now = await health.judge(live_run.database, live_run.world.admin, live_run.run_id)
    assert run.findings == now.findings
    assert await list_told(live_run) == [["values_above_rewards"]]
    clock.now += PAUSE
    assert await judge.tick() == 0, "nothing new"

    await send_values(live_run, 2.0, after=50_000)
    assert await judge.tick() == 1
    (run,) = await list_runs(live_run)
    assert run.findings == []
    assert await list_told(live_run) == [["values_above_rewards"], []]


async def test_a_run_is_judged_once_in_thirty_seconds(live_run: AttemptWithStore) -> None:
    clock = Clock()
    judge = Judge(live_run.database, clock)
    await send_values(live_run, 2.0)
    assert await judge.tick() == 1
    await send_values(live_run, 800.0, after=50_000)
    clock.now += PAUSE / 2
    assert await judge.tick() == 0
    clock.now += PAUSE
    assert await judge.tick() == 1
    assert await list_told(live_run) == [["values_above_rewards"]]


@both_databases
async def test_of_two_judges_the_one_with_newer_curves_is_right(
    live_run: AttemptWithStore,
) -> None:
    await send_values(live_run, 800.0)
    known, unknown = live_run.run_id, "run_" + "0" * 26
    assert await health.judge_and_keep(live_run.database, [known, unknown]) == {known}
    assert not await health.judge_and_keep(live_run.database, [known])
    assert not await health.judge_and_keep(live_run.database, [unknown])
    async with live_run.database.read() as session:
        row = await session.get_one(RunSummaryRow, live_run.run_id)
    assert row.judged_version == row.version


@both_databases
@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("finding:any", True),
        ("finding:values_above_rewards", True),
        ("finding:return_fell,values_above_rewards", True),
        ("finding:return_fell", False),
        ("-finding:any", False),
        ("-finding:return_fell", True),
    ],
)
async def test_runs_are_filtered_by_findings(
    live_run: AttemptWithStore, text: str, fits: bool
) -> None:
    await send_values(live_run, 800.0)
    assert await Judge(live_run.database).tick() == 1
    assert len(await list_runs(live_run, text)) == fits


def test_the_contract_names_every_rule() -> None:
    functions = {rule.__name__ for rule in rules.RULES}
    assert len(functions) == len(RULES) == len(set(RULES))

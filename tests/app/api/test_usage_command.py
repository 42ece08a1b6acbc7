"""`palestra usage`, `GET /usage` and its export, on the application."""

import csv
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from app.db.models import UsageEntryRow
from palestra.contract.names import new_id
from tests.app.api.serving import AppServer
from tests.app.api.test_project_commands import Command, palestra, url

__all__ = ["palestra", "url"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

BEFORE = datetime(2026, 3, 2, tzinfo=UTC)
MARCH = ("--since", "2026-03-02T00:00:00Z", "--until", "2026-03-09T00:00:00Z")


async def book(shared: AppServer, hours: int, **changes: Any) -> None:
    entry = {
        "id": new_id("use"),
        "kind": "used",
        "pool": "default",
        "project_id": shared.world.project_id,
        "user_id": shared.world.admin.user_id,
        "experiment_id": "e-cart",
        "job_id": "job_1",
        "attempt_id": new_id("att"),
        "worker_id": "wrk_1",
        "schedule": "train",
        "priority_class": "normal",
        "environment": "CartPole-v1",
        "devices": 1,
        "is_gpu": False,
        "started_at": BEFORE,
        "ended_at": BEFORE + timedelta(hours=hours),
        **changes,
    }
    async with shared.world.database.write() as session:
        session.add(UsageEntryRow(**entry))


async def test_the_command_shows_hours_as_table_json_and_csv(
    palestra: Command, shared: AppServer, tmp_path: Path
) -> None:
    await book(shared, 30)
    await book(shared, 2, kind="lost", environment=None)
    code, out, err = await palestra("usage", *MARCH, "--by", "environment", "--bucket", "day")
    assert (code, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert ["CartPole-v1", "2026-03-02", "00:00", "24.00", "0.00", "0.00"] in lines
    assert ["CartPole-v1", "2026-03-03", "00:00", "6.00", "0.00", "0.00"] in lines
    assert ["total", "30.00", "0.00", "2.00"] in lines
    code, out, _ = await palestra("usage", *MARCH, "--by", "user", "--by", "pool", "--json")
    assert code == 0
    (group,) = json.loads(out)["groups"]
    assert (group["pool"], group["used_seconds"], group["project"]) == ("default", 108_000.0, None)
    file = tmp_path / "usage.csv"
    code, out, _ = await palestra("usage", *MARCH, "--bucket", "day", "--csv", str(file))
    assert (code, out) == (0, f"2 lines in {file}\n")
    rows = list(csv.DictReader(file.read_text().splitlines()))
    assert [row["used_device_seconds"] for row in rows] == ["86400.000", "21600.000"]
    assert [row["lost_device_seconds"] for row in rows] == ["7200.000", "0.000"]
    code, _, err = await palestra("usage", *MARCH, "--csv", str(file))
    assert code == 2
    assert "Name a file that does not exist yet" in err


async def test_what_a_pool_did_is_unknown_before_it_was_recorded(palestra: Command) -> None:
    code, out, _ = await palestra("usage", "--since", "2d", "--pool", "default")
    assert code == 0
    assert "unknown" in out


@pytest.mark.parametrize(
    ("arguments", "exit_code", "said"),
    [
        (("--since", "yesterday"), 2, "--since must be a time with its zone"),
        (("--by", "colour"), 2, "'colour' is not one of"),
        (("--since", "2999-01-01T00:00:00Z"), 1, "The period is empty"),
        (("--since", "100w", "--bucket", "hour"), 1, "a longer `bucket`"),
        (("--pool", "nowhere"), 1, "no such pool"),
    ],
)
async def test_faulty_options_are_named(
    palestra: Command, arguments: tuple[str, ...], exit_code: int, said: str
) -> None:
    code, out, err = await palestra("usage", *arguments)
    assert (code, out) == (exit_code, "")
    assert said in err


async def test_the_project_of_the_command_limits_the_report(
    palestra: Command, shared: AppServer
) -> None:
    code, out, _ = await palestra("--project", "elsewhere", "usage", *MARCH, "--json")
    assert (code, json.loads(out)["used_seconds"]) == (0, 0.0)
    async with shared.client("user") as client:
        answer = await client.get("/api/v1/usage", params={"since": "12"})
        assert answer.status_code == 422
        answer = await client.get("/api/v1/usage", params={"by": "user", "bukcet": "day"})
        assert answer.json()["errors"][0]["message"].endswith("did you mean bucket?")

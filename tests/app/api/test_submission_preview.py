"""`POST /experiments:preview` and `palestra submit --preview`, on the application."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from app.db.models import Base
from tests.app.api.serving import AppServer
from tests.app.api.test_project_commands import Command, palestra, url
from tests.support.server_fixture import make_definition

__all__ = ["palestra", "url"]

pytestmark = pytest.mark.asyncio(loop_scope="module")


def _body(env_steps: int, **options: Any) -> dict[str, Any]:
    definition = {**make_definition(), "name": "previewed", "loop": {"env_steps": env_steps}}
    return {"definition": definition, "options": options}


@asynccontextmanager
async def _unchanged(shared: AppServer) -> AsyncIterator[None]:
    """Checks that no row of any table but those of the credential's use is added."""
    before = await _count_rows(shared)
    yield
    assert await _count_rows(shared) == before


async def _count_rows(shared: AppServer) -> dict[str, int]:
    async with shared.world.database.read() as session:
        return {
            table.name: await session.scalar(select(func.count()).select_from(table)) or 0
            for table in Base.metadata.sorted_tables
        }


async def test_a_preview_says_what_the_submission_then_does(shared: AppServer) -> None:
    body = _body(1_001, seeds=[3, 1, 2], resources={"pack": 2})
    async with shared.client("user") as client:
        async with _unchanged(shared):
            found = (await client.post("/api/v1/experiments:preview", json=body)).json()
        assert (found["exists"], found["seeds"], found["packs"]) == (False, [3, 1, 2], [2, 1])
        assert found["jobs"] == 2
        made = (await client.post("/api/v1/experiments", json=body)).json()
        assert made["id"] == found["experiment_id"]
        assert await _list_packs(shared, made["id"]) == [2, 1]
        body["definition"]["name"] = "another name of the same"
        again = (await client.post("/api/v1/experiments:preview", json=body)).json()
        assert again["experiment_id"] == made["id"]
        assert (again["exists"], again["jobs"], again["seeds_there"]) == (True, 0, [3, 1, 2])
        assert again["first"] is None
        assert again["sentence"].startswith("Nothing would be queued")
        body["options"]["seeds"] = [1, 9]
        more = (await client.post("/api/v1/experiments:preview", json=body)).json()
        assert (more["seeds"], more["seeds_there"], more["jobs"]) == ([9], [1], 1)


async def _list_packs(shared: AppServer, experiment_id: str) -> list[int]:
    jobs = await shared.world.list_jobs(experiment_id=experiment_id)
    return [len(job.run_ids) for job in jobs]


async def test_the_number_of_jobs_ahead_is_that_of_the_submitted_job(shared: AppServer) -> None:
    await shared.world.submit_one_job(seeds=[7_001], pool="default")
    body = _body(1_002, priority=-100)
    async with shared.client("user") as client:
        found = (await client.post("/api/v1/experiments:preview", json=body)).json()
        made = (await client.post("/api/v1/experiments", json=body)).json()
        queued = (await client.get(f"/api/v1/experiments/{made['id']}/runs")).json()["items"]
        run = (await client.get(f"/api/v1/runs/{queued[0]['id']}")).json()
        why = (await client.get(f"/api/v1/jobs/{run['jobs'][0]['id']}/explain")).json()
    assert found["ahead"] == why["ahead"] > 0
    assert found["reason"] == why["reason"]


async def test_a_person_without_waiting_jobs_previews_beside_those_of_others(
    shared: AppServer,
) -> None:
    """Regression: the group of jobs that are not stored was looked up among the stored ones."""
    await shared.world.submit_one_job(seeds=[7_002], pool="default")
    async with shared.client("maintainer") as client:
        answer = await client.post("/api/v1/experiments:preview", json=_body(1_100))
        assert answer.status_code == 200, answer.text
        assert answer.json()["jobs"] == 1


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"pool": "nowhere"}, "unknown_pool"),
        ({"priority_class": "interactive"}, "interactive_too_long"),
        ({"seeds": [1, 1]}, "invalid_document"),
    ],
)
async def test_a_preview_is_refused_like_the_submission(
    shared: AppServer, change: dict[str, Any], code: str
) -> None:
    body = _body(1_003, **change)
    async with shared.client("user") as client:
        preview = await client.post("/api/v1/experiments:preview", json=body)
        submission = await client.post("/api/v1/experiments", json=body)
    assert preview.status_code == submission.status_code
    assert preview.json()["code"] == submission.json()["code"] == code
    assert preview.json()["errors"] == submission.json()["errors"]


async def test_the_command_submits_nothing(
    palestra: Command, shared: AppServer, tmp_path: Path
) -> None:
    file = tmp_path / "definition.json"
    file.write_text(json.dumps(_body(1_004, seeds=[1, 2])))
    async with _unchanged(shared):
        code, out, err = await palestra("submit", str(file), "--preview", "--no-provenance")
    assert (code, err) == (0, "")
    assert out.startswith("new experiment  previewed-")
    assert "would queue     2 jobs (pool default, class normal)" in out
    code, out, _ = await palestra("submit", str(file), "--preview", "--no-provenance", "--json")
    assert json.loads(out)["seeds"] == [1, 2]

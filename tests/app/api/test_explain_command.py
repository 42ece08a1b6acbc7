"""`palestra explain` and `GET /jobs/{id}/explain`, on the application."""

import json

import pytest

from tests.app.api.serving import AppServer
from tests.app.api.test_project_commands import Command, palestra, url

__all__ = ["palestra", "url"]

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_the_command_says_why_a_job_waits_and_what_decides_its_place(
    palestra: Command, shared: AppServer
) -> None:
    job_id = (await shared.world.submit_one_job(seeds=[4_001], pool="default")).id
    code, out, err = await palestra("explain", job_id, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    async with shared.client("user") as client:
        answer = (await client.get(f"/api/v1/jobs/{job_id}/explain")).json()
    for numbers in (found["terms"], answer["terms"]):
        # Usage grows between the two requests.
        numbers.pop("project_usage")
        numbers.pop("user_usage")
    assert found == answer
    code, out, _ = await palestra("explain", job_id)
    assert code == 0
    assert out.startswith(found["sentence"])
    assert "device-hours for" in out


async def test_a_job_of_another_project_does_not_exist(
    palestra: Command, shared: AppServer
) -> None:
    code, out, err = await palestra("explain", shared.names["foreign_job"])
    assert (code, out) == (1, "")
    assert "no such job" in err.lower()


async def test_a_job_that_has_ended_does_not_wait(palestra: Command, shared: AppServer) -> None:
    code, out, _ = await palestra("explain", shared.names["finished_job"])
    assert (code, out) == (0, "The job does not wait in the queue: it is succeeded.\n")

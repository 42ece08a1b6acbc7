"""`palestra health` and `Client.health`, against the real application."""

import json

import pytest

from tests.app.api.serving import AppServer
from tests.app.api.test_project_commands import Command, palestra, url

__all__ = ["palestra", "url"]

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_the_command_says_what_was_found(palestra: Command, shared: AppServer) -> None:
    code, out, err = await palestra("health", shared.names["live_run"])
    assert (code, err) == (0, "")
    assert out == "the run has no series to judge yet\n"
    code, out, _ = await palestra("health", shared.names["live_run"], "--json")
    assert (code, json.loads(out)["findings"]) == (0, [])
    code, _, err = await palestra("health", "run_" + "0" * 26)
    assert (code, "There is no such run" in err) == (1, True)

"""`palestra series` and `palestra filter-keys`, against the real application."""

import asyncio
import json

import pytest

from app.daemons.summariser import Summariser
from app.services.lists import run_keys
from palestra.client import Client
from palestra.contract.run_lists import RunKeysView
from tests.app.api.serving import AppServer
from tests.app.api.test_project_commands import Command, palestra, url

__all__ = ["palestra", "url"]

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_series_are_listed_and_shown_in_buckets(palestra: Command, shared: AppServer) -> None:
    run = shared.names["live_run"]
    code, out, err = await palestra("series", run)
    assert (code, err) == (0, "")
    (row,) = [line for line in out.splitlines() if line.split()[0] == "loss"]
    assert row.split()[1:3] == ["2", "2"]
    code, out, err = await palestra("series", run, "--name", "loss")
    assert (code, err) == (0, "")
    title, _, *rows = [line for line in out.splitlines() if set(line) - set(" ─━")]
    assert title == f"loss of {run}"
    assert [row.split()[0] for row in rows] == ["1", "2"]
    code, out, _ = await palestra("series", run, "--name", "loss", "--by", "agent", "--json")
    found = json.loads(out)
    assert (code, found["series"], found["groups"][0]["n"]) == (0, [], [1, 1])


async def test_what_cannot_be_shown_is_said(palestra: Command, shared: AppServer) -> None:
    code, _, err = await palestra("series", "--filter", "agent:dqn")
    assert (code, "give one run" in err) == (2, True)
    run = shared.names["live_run"]
    code, _, err = await palestra("series", run, "--name", "loss", "--by", "agnet")
    assert (code, "did you mean agent?" in err) == (1, True)
    code, _, err = await palestra("series", "--filter", "agnet:dqn", "--name", "loss")
    assert (code, "did you mean agent?" in err) == (1, True)
    code, _, err = await palestra("series", "--filter", "state:", "--name", "loss")
    assert (code, "at character" in err) == (1, True)


async def test_keys_of_filters_are_listed(palestra: Command, shared: AppServer) -> None:
    code, out, err = await palestra("filter-keys")
    assert (code, err) == (0, "")
    assert {"agent", "agent.learning_rate", "env"} <= set(out.split())
    assert "There are more" not in out
    code, _, err = await palestra("filter-keys", "--filter", "agnet:dqn")
    assert (code, "did you mean agent?" in err) == (1, True)


async def test_keys_of_more_runs_than_are_searched_say_so(
    palestra: Command, url: str, shared: AppServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await Summariser(shared.database).tick()
    await shared.world.submit_one_job()
    monkeypatch.setattr(run_keys, "SEARCHED", 1)
    code, out, err = await palestra("filter-keys", "--filter", "seed>=0")
    assert (code, err) == (0, "")
    last = " ".join(out.split()).rpartition("The series are ")[2]
    assert last.startswith("those of the newest 1 runs that the filter finds")

    def read() -> RunKeysView:
        with Client(url, shared.tokens["user"], project="default") as client:
            return client.run_keys(filter="seed>=0")

    found = await asyncio.to_thread(read)
    assert (found.searched_runs, found.is_complete) == (1, False)

"""`palestra runs --group`, `palestra views`, and actions on filtered runs."""

import asyncio
import json

import pytest

from app.daemons.summariser import Summariser
from palestra.client import Client
from palestra.contract.run_batches import RunSelection, RunVerb
from palestra.contract.states import RunState
from tests.app.api.serving import AppServer
from tests.app.api.test_project_commands import Command, palestra, url
from tests.app.services.test_statistics import CARTPOLE, OTHER_AGENT, train_seeds
from tests.support.server_fixture import make_definition

__all__ = ["palestra", "url"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

_OWN = {"loop": {"env_steps": 77_007}}
"""Makes definitions unlike those of other tests."""


async def test_groups_show_n_mean_and_standard_error(palestra: Command, shared: AppServer) -> None:
    await train_seeds(
        shared.world, {**CARTPOLE, "name": "first-of-groups", **_OWN}, [(9.0,), (11.0,)]
    )
    await train_seeds(shared.world, {**OTHER_AGENT, "name": "second-of-groups", **_OWN}, [(90.0,)])
    await Summariser(shared.database).tick()
    chosen = ("runs", "--group", "agent,name", "--filter", "name:~of-groups")
    code, out, err = await palestra(*chosen)
    assert code == 0, err
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines == [
        "agent name runs n mean stderr",
        "ppo second-of-groups 1 1 90 -",
        "dqn first-of-groups 2 2 10 1",
    ]
    code, out, _ = await palestra(*chosen, "--sort", "runs", "--json")
    assert [one["filter"] for one in json.loads(out)] == [
        "agent:ppo name:second-of-groups",
        "agent:dqn name:first-of-groups",
    ]
    code, _, err = await palestra(*chosen, "--ids")
    assert (code, "--group goes with" in err) == (2, True)


async def test_views_are_saved_shown_changed_and_deleted(
    palestra: Command, shared: AppServer
) -> None:
    code, out, err = await palestra(
        "views", "save", "best of dqn", "--filter", "agent:dqn", "--sort", "-evaluation/mean.best",
        "--columns", "name,agent.nothing", "--group", "agent", "--share", "--json",
    )  # fmt: skip
    assert code == 0, err
    view = json.loads(out)["id"]
    code, out, err = await palestra("views", "show", view)
    assert code == 0, err
    assert f"/runs?view={view}" in out
    assert "filter: agent:dqn" in out
    assert "`agent.nothing` is a member of no definition" in err
    code, out, _ = await palestra("views", "list")
    assert "best of dqn" in out
    code, out, err = await palestra("views", "change", view, "--filter", "agent:ppo", "--private")
    assert code == 0, err
    code, out, _ = await palestra("views", "show", view, "--json")
    shown = json.loads(out)
    assert (shown["visibility"], shown["state"]["filter"]) == ("private", "agent:ppo")
    assert shown["state"]["group_by"] == ["agent"]
    code, _, err = await palestra("views", "save", "x", "--filter", "agent>1")
    assert (code, "--filter: at character 6" in err) == (2, True)
    assert (await palestra("views", "change", view))[0] == 2
    assert (await palestra("views", "delete", view))[0] == 0
    assert (await palestra("views", "show", view))[0] == 1


async def test_filtered_runs_are_counted_then_changed(palestra: Command, shared: AppServer) -> None:
    document = make_definition(name="many-to-pause", loop={"env_steps": 4_321})
    await shared.world.submit(document, seeds=[0, 1, 2])
    chosen = ("--filter", "name:many-to-pause seed<2")
    code, _, err = await palestra("pause", *chosen)
    assert (code, "2 runs match. Repeat the command with --yes to pause them" in err) == (2, True)
    code, out, _ = await palestra("pause", *chosen, "--dry-run", "--json")
    assert json.loads(out)["matched"] == 2
    code, out, err = await palestra("pause", *chosen, "--yes")
    assert (code, out.strip()) == (0, "2 of 2 runs: asked to pause"), err
    code, out, _ = await palestra("cancel", "--filter", "name:many-to-pause", "--yes")
    assert (code, out.strip()) == (0, "3 of 3 runs: asked to cancel")
    code, out, _ = await palestra("retry", *chosen, "--yes")
    assert (code, out.strip()) == (0, "2 of 2 runs: asked to retry")
    code, _, err = await palestra("retry")
    assert (code, "give a run, or --filter" in err) == (2, True)
    code, _, err = await palestra("pause", "job_1", *chosen)
    assert (code, "give --filter alone" in err) == (2, True)
    code, _, err = await palestra("pause", "--filter", "agnet:x", "--yes")
    assert (code, "did you mean agent?" in err) == (2, True)


async def test_the_client_has_groups_keys_views_and_actions(url: str, shared: AppServer) -> None:
    def use() -> None:
        with Client(url, shared.tokens["user"], project="default") as client:
            (everything,) = client.run_groups()
            assert everything.runs == sum(1 for _ in client.runs())
            assert "agent.gamma" in client.run_keys().members
            counted = client.act_on_runs(RunVerb.CANCEL, RunSelection(runs=()), dry_run=True)
            assert counted.matched == 0
            assert RunState.QUEUED in everything.states

    await asyncio.to_thread(use)

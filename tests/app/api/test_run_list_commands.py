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
        "agent name runs n mean of evaluation/mean.last stderr",
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
    code, _, err = await palestra("runs", "--metric", "episode/return")
    assert (code, "give --group too" in err) == (2, True)
    code, _, err = await palestra("runs", "--group", "agnt")
    assert (code, err.startswith("palestra: --group: is no field of this list")) == (1, True)


async def test_what_the_server_refuses_names_the_option_and_the_place(
    palestra: Command, shared: AppServer
) -> None:
    """Names of members and series are known to the server alone."""
    await shared.world.submit(make_definition(name="refused-names"), seeds=[0])
    for chosen in (("--filter", "seed:0 agent.gama:1"), ("--filter=seed:0 agent.gama:1",)):
        code, _, err = await palestra("runs", *chosen)
        assert code == 1
        lines = err.splitlines()
        assert lines[0] == (
            "palestra: --filter: at character 8: is a member of no definition; did you mean "
            "agent.gamma? `palestra filter-keys` lists the names that there are."
        )
        assert lines[2].index("^") == lines[1].index("agent.gama")


async def test_keys_that_name_nothing_are_told(palestra: Command, shared: AppServer) -> None:
    document = {**CARTPOLE, "name": "unknown-keys", "loop": {"env_steps": 75_432}}
    await train_seeds(shared.world, document, [(9.0,)])
    await Summariser(shared.database).tick()
    chosen = ("--filter", "name:unknown-keys")
    code, out, err = await palestra(
        "runs", *chosen, "--sort", "agent,-evaluation/men.best", "--columns", "agent.gama,seed"
    )
    assert (code, out.count("run_")) == (0, 1)
    assert "--sort: evaluation/men.best is a series of no run; did you mean evaluation/m" in err
    assert "--columns: agent.gama is a member of no definition; did you mean agent.gamma?" in err
    code, _, err = await palestra("runs", *chosen, "--group", "agent", "--metric", "loss/x.best")
    assert (code, "--metric: loss/x.best is a series of no run" in err) == (0, True)
    code, _, err = await palestra("runs", *chosen, "--sort", "-agent.gamma", "--columns", "seed")
    assert (code, err) == (0, "")


async def test_lists_are_sorted_by_several_keys(
    palestra: Command, shared: AppServer, url: str
) -> None:
    loop = {"loop": {"env_steps": 77_008}}
    await train_seeds(shared.world, {**CARTPOLE, "name": "two-of-keys", **loop}, [(9.0,), (11.0,)])
    await train_seeds(shared.world, {**OTHER_AGENT, "name": "one-of-keys", **loop}, [(90.0,)])
    await Summariser(shared.database).tick()
    chosen = ("--filter", "name:~of-keys", "--columns", "agent,seed", "--json")
    code, out, err = await palestra("runs", *chosen, "--sort", "agent,-evaluation/mean.best")
    assert code == 0, err
    listed = [(one["values"]["agent"], one["values"]["seed"]) for one in json.loads(out)]
    assert listed == [("dqn", 1), ("dqn", 0), ("ppo", 0)]
    code, out, err = await palestra("experiments", *chosen[:2], "--ids", "--sort", "env,-agent")
    assert (code, len(out.split())) == (0, 2), err

    def list_seeds() -> list[int]:
        with Client(url, shared.tokens["user"], project="default") as client:
            return [run.seed for run in client.runs(filter="name:~of-keys", sort="-agent,seed")]

    assert await asyncio.to_thread(list_seeds) == [0, 0, 1]
    for sort, part in (
        ("agent,sed", "did you mean seed?"),
        ("agent,agent", "key 2 of sort is the same as key 1"),
    ):
        code, _, err = await palestra("runs", "--sort", sort)
        assert (code, part in " ".join(err.split())) == (2, True), err


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
    code, out, err = await palestra("views", "show", "best of dqn", "--json")
    assert (code, json.loads(out)["id"]) == (0, view), err
    code, _, err = await palestra("views", "show", "best of dqm")
    assert (code, "did you mean best of dqn?" in err) == (2, True)
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
    for confirmed in ((), ("--yes",), ("--dry-run",)):
        code, out, err = await palestra("pause", *chosen, *confirmed)
        assert code == 0, err
        assert "No run that fits the filter is queued or running: there is nothing to" in out
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
            assert client.run_keys(filter="seed:987").series == ()
            counted = client.act_on_runs(RunVerb.CANCEL, RunSelection(runs=()), dry_run=True)
            assert counted.matched == 0
            assert RunState.QUEUED in everything.states

    await asyncio.to_thread(use)

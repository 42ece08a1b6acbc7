"""`palestra statistics` and `Client.aggregate_statistics`, against the real application."""

import json

import pytest

from tests.app.api.serving import AppServer
from tests.app.api.test_project_commands import Command, palestra, url
from tests.app.services.test_statistics import CARTPOLE, OTHER_AGENT, train_seeds

__all__ = ["palestra", "url"]

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_the_command_shows_scores_intervals_and_advice(
    palestra: Command, shared: AppServer
) -> None:
    first = await train_seeds(shared.world, {**CARTPOLE, "name": "a"}, [(9.0,), (10.0,), (11.0,)])
    second = await train_seeds(shared.world, {**OTHER_AGENT, "name": "b"}, [(90.0,), (80.0,)])
    code, out, err = await palestra(
        "statistics",
        *first,
        *second,
        "--by",
        "agent",
        "--reference",
        "CartPole-v1=0,100",
        "--part",
        "aggregates",
        "--part",
        "improvement",
        "--part",
        "paired",
    )
    assert code == 0, err
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines[0] == "group runs seeds mean median IQM optimality gap"
    assert lines[1].startswith("agent=dqn 3 3 0.1 [0.09, 0.11] ")
    assert lines[2] == "agent=ppo 2 2 0.85 0.85 0.85 0.15"
    assert "agent=ppo: 2 seeds give no interval: 3 are needed in every environment." in lines
    assert "agent=dqn scores higher than agent=ppo with probability 0." in lines
    assert "agent=dqn less agent=ppo over 2 pairs of the same seed: -0.755." in lines
    code, out, err = await palestra(
        *("statistics", *first, "--by", "agent"),
        *("--part", "profile", "--part", "efficiency", "--part", "improvement"),
    )
    assert code == 0, err
    lines = [" ".join(line.split()) for line in out.splitlines()]
    at = lines.index("score above agent=dqn")
    assert lines[at + 1] == "9 0.667"
    assert lines[at + 11] == "11 0"
    assert "env_step agent=dqn" in lines
    assert any("There is one group, so improvement compare" in line for line in lines)
    code, out, _ = await palestra("statistics", *first, *second, "--json")
    assert code == 0
    assert [list(group["by"]) for group in json.loads(out)["groups"]] == [["experiment"]] * 2
    code, out, _ = await palestra("statistics", *first, "--by", "seed", "--json")
    assert code == 0
    assert [group["by"] for group in json.loads(out)["groups"]] == [{"seed": i} for i in range(3)]


async def test_wrong_options_name_the_option(palestra: Command, shared: AppServer) -> None:
    run = shared.names["finished_run"]
    code, _, err = await palestra("statistics", run, "--reference", "CartPole-v1=1")
    assert (code, "--reference must be ENV=RANDOM,REFERENCE" in err) == (2, True)
    code, _, err = await palestra("statistics", run, "--resamples", "5")
    assert (code, "--resamples must be" in err) == (2, True)
    code, _, err = await palestra("statistics", run, "--normalise", "unknown")
    assert code == 1
    assert "reference scores" in err or "evaluations" in err
    code, _, err = await palestra("statistics")
    assert (code, "give IDs of runs or experiments, or --filter" in err) == (1, True)
    code, _, err = await palestra("statistics", run, "--by", "agent.gama")
    assert (code, err.startswith("palestra: --by: is no field of these definitions")) == (1, True)


@pytest.mark.parametrize(
    ("filters", "sentence"),
    [
        ("agnet:dqn", "did you mean agent?"),
        ("agent:dqn state:", "at character 17"),
        ("agent:none", "finds no run: widen it"),
    ],
)
@pytest.mark.parametrize("command", ["statistics", "compare"])
async def test_a_filter_that_gives_no_runs_is_refused_in_a_sentence(
    palestra: Command, shared: AppServer, command: str, filters: str, sentence: str
) -> None:
    code, _, err = await palestra(command, "--filter", filters)
    assert (code, sentence in err) == (1, True), err


async def test_runs_without_evaluations_are_named(palestra: Command, shared: AppServer) -> None:
    run = shared.names["finished_run"]
    code, out, err = await palestra("statistics", run)
    assert code == 1
    assert "has no run with a score" in err or "have no score" in err, (out, err)

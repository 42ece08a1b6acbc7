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

"""`palestra compare` and `Client.compare_runs`, against the real application."""

import json

import pytest

from tests.app.api.serving import AppServer
from tests.app.api.test_project_commands import Command, palestra, url
from tests.app.services.test_comparison import with_agent
from tests.app.services.test_statistics import PENDULUM, train_seeds

__all__ = ["palestra", "url"]

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_the_command_shows_differences_scores_and_importance(
    palestra: Command, shared: AppServer
) -> None:
    low = await train_seeds(shared.world, with_agent(gamma=0.8), [(9.0,), (10.0,)])
    high = await train_seeds(shared.world, with_agent(gamma=0.7), [(90.0,), (80.0,)])
    code, out, err = await palestra("compare", *low, *high, "--by", "agent.gamma")
    assert code == 0, err
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "1 agent.gamma=0.8 2 CartPole-v1 2 9.5 0.7071 9.5" in lines
    assert "agent.gamma 0.8 0.7" in lines
    assert "CartPole-v1, 4 runs with a score:" in lines
    assert any(line.startswith("agent.gamma 2 -0.89 0.99") for line in lines)
    assert not any(line.startswith("env.id") for line in lines)
    code, out, _ = await palestra("compare", *low, *high, "--all")
    assert any(line.split()[:2] == ["env.id", "CartPole-v1"] for line in out.splitlines())
    code, out, _ = await palestra("compare", *low, "--json")
    assert [run["score"] for run in json.loads(out)["runs"]] == [9.0, 10.0]


async def test_runs_without_a_score_have_the_environment_of_their_definition(
    palestra: Command, shared: AppServer
) -> None:
    cart = await train_seeds(shared.world, with_agent(gamma=0.71), [(9.0,), ()])
    pendulum = await train_seeds(shared.world, PENDULUM, [()])
    code, out, err = await palestra("compare", *cart, *pendulum, "--by", "env")
    assert code == 0, err
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "1 env=CartPole-v1 2 CartPole-v1 1 9 - 9" in lines
    assert "2 env=Pendulum-v1 1 Pendulum-v1 0 - - -" in lines


async def test_one_run_is_refused_in_a_sentence(palestra: Command, shared: AppServer) -> None:
    code, _, err = await palestra("compare", shared.names["finished_run"])
    assert code == 1
    assert "There is only one of the runs to compare: name at least two." in err

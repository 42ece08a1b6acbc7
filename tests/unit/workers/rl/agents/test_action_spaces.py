"""Each agent declares its action spaces once; the errors for other spaces follow from it."""

import re

import numpy as np
import pytest
from gymnasium import spaces

from palestra.contract.agents import BUILTIN_AGENTS
from palestra.contract.agents.actions import ACTION_SPACES, NEEDS_BOUNDS, list_supporting_agents
from palestra.contract.definition import read_definition
from palestra.contract.documents import encode_canonical_json
from tests.support.api_samples import make_definition
from tests.unit.workers.rl.agents.agent_kit import make_context
from workers.assembly.registry import agent_factory, make_agent
from workers.core.errors import DefinitionError

SPACES = {
    "discrete": spaces.Discrete(3),
    "box": spaces.Box(-1, 1, (2,), np.float32),
    "multi_discrete": spaces.MultiDiscrete([2, 3]),
    "multi_binary": spaces.MultiBinary(3),
}
OWN = sorted(set(BUILTIN_AGENTS) - {"sb3"})


def make_agent_for(name: str, space: spaces.Space) -> object:
    parameters = read_definition(encode_canonical_json(make_definition(agent={"name": name}))).agent
    return make_agent(parameters, make_context(space, num_envs=1))


def parse_agent_names(message: str) -> set[str]:
    found = re.search(r"choose one of (.*), which take", message)
    return set(found.group(1).split(", ")) if found else set()


@pytest.mark.parametrize("kind", sorted(SPACES))
@pytest.mark.parametrize("name", OWN)
def test_an_agent_refuses_undeclared_spaces_and_names_agents_for_them(name, kind) -> None:
    if kind in ACTION_SPACES[name]:
        assert make_agent_for(name, SPACES[kind])
        return
    with pytest.raises(DefinitionError, match=f"agent.name: {name} needs") as refused:
        make_agent_for(name, SPACES[kind])
    assert parse_agent_names(str(refused.value)) == set(list_supporting_agents(kind)), refused.value


@pytest.mark.parametrize("name", sorted(name for name in OWN if "box" in ACTION_SPACES[name]))
def test_an_unbounded_box_is_accepted_or_refused_with_other_agents(name) -> None:
    endless = spaces.Box(-np.inf, np.inf, (2,), np.float32)
    if name not in NEEDS_BOUNDS:
        assert make_agent_for(name, endless)
        return
    with pytest.raises(DefinitionError, match="needs finite bounds") as refused:
        make_agent_for(name, endless)
    assert (
        parse_agent_names(str(refused.value))
        == {name for name in OWN if "box" in ACTION_SPACES[name]} - NEEDS_BOUNDS
    )
    assert "Rescale" not in str(refused.value), "it needs bounds itself"


@pytest.mark.parametrize("name", ["dqn", "sac", "ppo", "cem"])
def test_a_space_that_no_agent_supports_is_refused(name) -> None:
    for space, sentence in (
        (spaces.Dict({"a": spaces.Discrete(2)}), "no built-in agent takes Dict"),
        (spaces.Box(0, 5, (1,), np.int64), "whole"),
    ):
        with pytest.raises(DefinitionError, match=sentence):
            make_agent_for(name, space)


def test_all_agents_are_declared() -> None:
    assert set(ACTION_SPACES) == set(BUILTIN_AGENTS)


@pytest.mark.parametrize("name", OWN)
def test_the_factory_of_an_agent_is_found_by_its_name(name) -> None:
    assert callable(agent_factory(name))

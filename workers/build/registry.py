"""Names of parts and the factories behind them."""

import importlib
from collections.abc import Mapping
from typing import Final, cast

from workers.core.errors import PartNotFoundError
from workers.core.protocols import AgentFactory

AGENTS: Final[Mapping[str, str]] = {"dqn": "workers.agents.dqn:build", "ppo": "workers.agents.ppo:build"}
"""`module:function` of each agent, imported when one is needed: its parameters are declared in `palestra.contract.agents`."""


def agent_factory(name: str) -> AgentFactory:
    """Returns the factory of a registered agent.

    Raises:
        PartNotFoundError: If there is none, or it cannot be imported.
    """
    target = AGENTS.get(name)
    if target is None:
        raise PartNotFoundError(f"no agent is called {name!r} here; there are {', '.join(sorted(AGENTS))}")
    module, _, function = target.partition(":")
    try:
        return cast("AgentFactory", getattr(importlib.import_module(module), function))
    except (ImportError, AttributeError) as error:
        raise PartNotFoundError(f"the agent {name!r} cannot be imported: {error}") from error

"""Builds an algorithm of Stable-Baselines3 from its declared parameters."""

import importlib.util

from palestra.contract.agents import Sb3Parameters
from workers.core.errors import PartNotFoundError
from workers.core.protocols import TrainableAgent
from workers.core.types import AgentContext


def build(parameters: Sb3Parameters, context: AgentContext) -> TrainableAgent:
    """Returns a new agent.

    Raises:
        PartNotFoundError: If Stable-Baselines3 is not installed on this machine.
        DefinitionError: If the algorithm refuses its parameters or the spaces.
    """
    if importlib.util.find_spec("stable_baselines3") is None:
        raise PartNotFoundError(
            "the agent 'sb3' needs Stable-Baselines3, which this worker lacks: run pip install "
            "'palestra[sb3]' there and start it again"
        )
    from workers.rl.agents.sb3.agent import Sb3Agent  # noqa: PLC0415 - loads the library

    return Sb3Agent(parameters, context)

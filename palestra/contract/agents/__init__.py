"""Hyperparameters of the built-in agents, declared here and nowhere else.

And the shape of those that distributions register.
"""

import re
from typing import Annotated, Any, Final

from pydantic import Discriminator, Field, Tag, model_validator

from palestra.contract.agents.continuous import DdpgParameters as DdpgParameters
from palestra.contract.agents.continuous import NafParameters as NafParameters
from palestra.contract.agents.continuous import SacParameters as SacParameters
from palestra.contract.agents.continuous import Td3Parameters as Td3Parameters
from palestra.contract.agents.evolution import CemParameters as CemParameters
from palestra.contract.agents.on_policy import A2cParameters as A2cParameters
from palestra.contract.agents.on_policy import A3cParameters as A3cParameters
from palestra.contract.agents.on_policy import PpoParameters as PpoParameters
from palestra.contract.agents.on_policy import RecurrentPpoParameters as RecurrentPpoParameters
from palestra.contract.agents.on_policy import ReinforceParameters as ReinforceParameters
from palestra.contract.agents.on_policy import TrpoParameters as TrpoParameters
from palestra.contract.agents.q_learning import C51Parameters as C51Parameters
from palestra.contract.agents.q_learning import DqnParameters as DqnParameters
from palestra.contract.agents.q_learning import DrqnParameters as DrqnParameters
from palestra.contract.agents.q_learning import IqnParameters as IqnParameters
from palestra.contract.agents.q_learning import RainbowParameters as RainbowParameters
from palestra.contract.documents import Document
from palestra.contract.free_parameters import FreeParameters
from palestra.contract.names import NAME_PATTERN, Name
from palestra.contract.sb3 import Sb3Parameters as Sb3Parameters


class RegisteredAgent(Document):
    """An agent that a distribution on the workers registers under the entry point group
    `palestra.agents`.
    """

    name: Name
    """Name of the entry point.

    The catalogue of a pool lists those that its workers offer, with a schema of their parameters.
    """

    parameters: FreeParameters = Field(default_factory=dict)
    """Parameters of the agent, as its schema in the catalogue describes them.

    Defaults are filled in at submission.
    """

    @model_validator(mode="before")
    @classmethod
    def _nothing_beside(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.keys() - cls.model_fields.keys():
            known = ", ".join(BUILTIN_AGENTS)
            raise ValueError(
                f"is none of the built-in agents {known}; the parameters of an agent that a distribution registers go under parameters"
            )
        return value


BuiltinAgent = (
    DqnParameters
    | C51Parameters
    | IqnParameters
    | RainbowParameters
    | DrqnParameters
    | PpoParameters
    | A2cParameters
    | A3cParameters
    | ReinforceParameters
    | TrpoParameters
    | RecurrentPpoParameters
    | SacParameters
    | Td3Parameters
    | DdpgParameters
    | NafParameters
    | CemParameters
    | Sb3Parameters
)
BUILTIN_AGENTS: Final = (
    "dqn",
    "ppo",
    "sb3",
    "c51",
    "iqn",
    "rainbow",
    "drqn",
    "sac",
    "td3",
    "ddpg",
    "naf",
    "cem",
    "a2c",
    "a3c",
    "reinforce",
    "trpo",
    "recurrent_ppo",
)
"""Names that no distribution can take."""


def _group_of(value: Any) -> str:
    """Tells registered names from all else, so that a fault in a built-in agent is told as
    precisely as if there were no others.
    """
    name = value.get("name") if isinstance(value, dict) else getattr(value, "name", None)
    registered = (
        isinstance(name, str)
        and name not in BUILTIN_AGENTS
        and re.fullmatch(NAME_PATTERN, name) is not None
    )
    return "tagged-union[registered]" if registered else "tagged-union[builtin]"


AgentParameters = Annotated[
    Annotated[Annotated[BuiltinAgent, Field(discriminator="name")], Tag("tagged-union[builtin]")]
    | Annotated[RegisteredAgent, Tag("tagged-union[registered]")],
    Discriminator(_group_of),
]

PACKABLE_AGENTS: Final = frozenset(
    {"dqn", "c51", "rainbow", "iqn", "ppo", "a2c", "sac", "td3", "ddpg"}
)
"""Agents whose seeds can be trained as one batch."""

"""Hyperparameters of the built-in agents, one model each in the modules of this package.

A built-in agent is found by its name: its parameter model is a subclass of `BuiltinParameters`
here, its factory is `build` in the module of the same name in `workers.rl.agents`. This module also
declares the shape of agents that distributions register.
"""

import importlib
import pkgutil
import re
from typing import TYPE_CHECKING, Annotated, Any, Final, Union

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
from palestra.contract.builtin_agents import PARAMETER_MODELS as PARAMETER_MODELS
from palestra.contract.builtin_agents import BuiltinParameters as BuiltinParameters
from palestra.contract.documents import Document
from palestra.contract.free_parameters import FreeParameters
from palestra.contract.names import NAME_PATTERN, Name
from palestra.contract.sb3 import Sb3Parameters as Sb3Parameters


class RegisteredAgent(Document):
    """An agent that an installed distribution registers under `palestra.agents`.

    The distribution is installed on the workers; `palestra.agents` is an entry point group.
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
                f"is none of the built-in agents {known}; the parameters of an agent that a "
                "distribution registers go under parameters"
            )
        return value


for _module in pkgutil.iter_modules(__path__):
    if _module.name != "actions":  # it reads the models that the others define
        importlib.import_module(f"{__name__}.{_module.name}")

if TYPE_CHECKING:
    BuiltinAgent = BuiltinParameters
else:
    BuiltinAgent = Union[tuple(PARAMETER_MODELS[name] for name in sorted(PARAMETER_MODELS))]  # noqa: UP007
BUILTIN_AGENTS: Final = tuple(sorted(PARAMETER_MODELS))
"""Names that no distribution can take."""


def _group_of(value: Any) -> str:
    """Returns the tag of the union: the name of a built-in agent, or `registered`.

    A fault in the parameters of a built-in agent is therefore reported for that agent alone.
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

PACKABLE_AGENTS: Final = frozenset(name for name, model in PARAMETER_MODELS.items() if model.packs)
"""Agents whose seeds can be trained as one batch."""

"""The base of the parameter models of built-in agents, and the models by the agent's name.

A subclass that declares its `name` as a literal is a built-in agent: defining the class adds the
agent to the definition's schema, to the catalogue and to the workers' registry.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Final, Literal, get_args

from palestra.contract.documents import Document

ActionKind = Literal["discrete", "box", "multi_discrete", "multi_binary"]
"""A kind of action space that agents can act in."""

ALL_ACTION_SPACES: Final[tuple[ActionKind, ...]] = get_args(ActionKind)

_models: Final[dict[str, type["BuiltinParameters"]]] = {}
PARAMETER_MODELS: Final[Mapping[str, type["BuiltinParameters"]]] = MappingProxyType(_models)
"""Parameter model of each built-in agent by name; import it from `palestra.contract.agents`."""


class BuiltinParameters(Document):
    """Base class of the parameters of a built-in agent."""

    name: str
    """Name of the agent."""

    action_spaces: ClassVar[tuple[ActionKind, ...]] = ()
    """Kinds of action spaces that the agent takes."""
    needs_bounds: ClassVar[bool] = False
    """Whether the agent takes a box only between finite bounds."""
    stochastic_policy: ClassVar[bool] = False
    """Whether the policy is a distribution, from which evaluations may draw their actions."""
    packs: ClassVar[bool] = False
    """Whether the seeds of an experiment can be trained as one batch."""

    @property
    def has_stochastic_policy(self) -> bool:
        """Whether the policy is a distribution, with these parameters."""
        return self.stochastic_policy

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Registers the model if its `name` is a literal."""
        super().__pydantic_init_subclass__(**kwargs)
        for name in get_args(cls.model_fields["name"].annotation):
            _models[name] = cls

"""The action spaces that each built-in agent supports.

The catalogue of a worker offers them, and the refusal of a space recommends agents by them.
"""

from collections.abc import Mapping
from typing import Final

from palestra.contract.agents import PARAMETER_MODELS
from palestra.contract.builtin_agents import ActionKind as ActionKind

ACTION_SPACES: Final[Mapping[str, tuple[ActionKind, ...]]] = {
    name: model.action_spaces for name, model in PARAMETER_MODELS.items()
}
"""Kinds of action spaces by agent; `sb3` has those of all its algorithms."""

NEEDS_BOUNDS: Final = frozenset(
    name for name, model in PARAMETER_MODELS.items() if model.needs_bounds
)
"""Agents that support a box only with finite bounds."""


def list_supporting_agents(kind: ActionKind, *, bounded: bool = True) -> tuple[str, ...]:
    """Returns the built-in agents that support a kind of action space, sorted by name.

    Args:
        kind: Kind of action space.
        bounded: False for a box with an infinite bound.
    """
    return tuple(
        sorted(
            name
            for name, kinds in ACTION_SPACES.items()
            if kind in kinds and (bounded or name not in NEEDS_BOUNDS)
        )
    )

"""Which action spaces each built-in agent takes: what a worker offers, and what the refusal of a
space recommends.
"""

from collections.abc import Mapping
from typing import Final, Literal, get_args

ActionKind = Literal["discrete", "box", "multi_discrete", "multi_binary"]
"""A kind of action space that agents can act in."""

_ALL: Final[tuple[ActionKind, ...]] = get_args(ActionKind)

ACTION_SPACES: Final[Mapping[str, tuple[ActionKind, ...]]] = {
    **dict.fromkeys(("dqn", "c51", "iqn", "rainbow", "drqn"), ("discrete",)),
    **dict.fromkeys(("sac", "td3", "ddpg", "naf"), ("box",)),
    "cem": ("discrete", "box"),
    **dict.fromkeys(("ppo", "a2c", "a3c", "reinforce", "trpo", "recurrent_ppo", "sb3"), _ALL),
}
"""Kinds of action spaces by agent; of `sb3` those of all its algorithms together."""

NEEDS_BOUNDS: Final = frozenset({"sac", "td3", "ddpg", "naf", "cem", "sb3"})
"""Agents that take a box only between finite bounds."""


def takers(kind: ActionKind, *, bounded: bool = True) -> tuple[str, ...]:
    """Returns the built-in agents that take a kind of action space, by name.

    Of boxes with an infinite bound those that take them.
    """
    return tuple(
        sorted(
            name
            for name, kinds in ACTION_SPACES.items()
            if kind in kinds and (bounded or name not in NEEDS_BOUNDS)
        )
    )

"""Parameters of the algorithms of Stable-Baselines3, as the definition names them.

Must not import the library.
"""

from collections.abc import Mapping
from typing import ClassVar, Final, Literal

from pydantic import Field

from palestra.contract.builtin_agents import ALL_ACTION_SPACES, ActionKind, BuiltinParameters
from palestra.contract.free_parameters import FreeParameters

_ANY: Final = ("discrete", "box", "multi_discrete", "multi_binary")
SB3_ACTION_SPACES: Final[Mapping[str, tuple[str, ...]]] = {
    "A2C": _ANY,
    "DDPG": ("box",),
    "DQN": ("discrete",),
    "PPO": _ANY,
    "SAC": ("box",),
    "TD3": ("box",),
}
"""Kinds of action spaces that each algorithm takes."""


_STOCHASTIC: Final = frozenset({"A2C", "PPO", "SAC"})


class Sb3Parameters(BuiltinParameters):
    """An algorithm of Stable-Baselines3 (Raffin et al. 2021), trained by its own `learn()`.

    The workers need the extra `sb3`.

    A resume is statistical: the position within the algorithm's own loop is not saved.
    `loop.env_steps` is needed, since the algorithm's schedules end there.
    """

    action_spaces: ClassVar[tuple[ActionKind, ...]] = ALL_ACTION_SPACES
    needs_bounds: ClassVar[bool] = True

    name: Literal["sb3"] = "sb3"
    """Name of the agent."""

    @property
    def has_stochastic_policy(self) -> bool:
        """Whether the policy is a distribution: that of A2C, PPO and SAC."""
        return self.algorithm in _STOCHASTIC

    algorithm: Literal["A2C", "DDPG", "DQN", "PPO", "SAC", "TD3"]
    """Class in Stable-Baselines3.

    A2C and PPO take any actions, DQN discrete ones, DDPG, SAC and TD3 boxes.
    """

    policy: Literal["MlpPolicy", "CnnPolicy", "MultiInputPolicy"] = "MlpPolicy"
    """Network: of layers, of convolutions for images, or of one input per part of a `Dict`
    observation.
    """

    parameters: FreeParameters = Field(default_factory=dict)
    """Keyword arguments of the algorithm, as Stable-Baselines3 documents them.

    Those left out take its defaults. Classes in `policy_kwargs` are named by their names, as in
    `{"activation_fn": "ReLU"}`, pairs such as `train_freq` are arrays, and `action_noise` is an
    object such as `{"name": "normal", "sigma": 0.1}`.
    """

"""Dueling networks.

Wang et al. 2016, "Dueling Network Architectures for Deep Reinforcement Learning".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from workers.rl.networks.mlp import Activation, Floats, Mlp
from workers.rl.networks.noisy import NoisyMlp
from workers.rl.networks.parameter_layout import Parameters


def combine_streams(value: Tensor, advantage: Tensor, dim: int = -1) -> Tensor:
    """Returns Q = V + A - mean of A over the actions (equation 9).

    Args:
        value: V, with one entry along `dim`.
        advantage: A, with one entry per action along `dim`.
        dim: Dimension of the actions.
    """
    return value + advantage - advantage.mean(dim, keepdim=True)


@dataclass(frozen=True, slots=True)
class DuelingHead:
    """A value stream and an advantage stream over the same features.

    With `atoms`, the value stream outputs one number per atom and the advantage stream one per
    action and atom; the streams are combined for each atom (Hessel et al. 2018, "Rainbow").
    """

    prefix: str
    """Prefix of parameter names.

    `q` gives `q.value.0.weight` … and `q.advantage.0.weight` …
    """
    features: int
    """Length of the input vector."""
    actions: int
    """Number of actions."""
    hidden: tuple[int, ...] = ()
    """Units of each hidden layer; both streams have layers of these sizes."""
    atoms: int | None = None
    """Numbers per action; `None` for one number and outputs without this dimension."""
    is_noisy: bool = False
    """Whether all layers of the head are noisy (`NoisyMlp`)."""
    activation: Activation = "relu"
    _streams: tuple[Mlp, Mlp] | tuple[NoisyMlp, NoisyMlp] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        atoms, units = self.atoms or 1, (self.features, *self.hidden)
        sizes = {
            f"{self.prefix}.value": (*units, atoms),
            f"{self.prefix}.advantage": (*units, self.actions * atoms),
        }
        kind = NoisyMlp if self.is_noisy else Mlp
        object.__setattr__(
            self,
            "_streams",
            tuple(kind(name, layers, self.activation) for name, layers in sizes.items()),
        )

    @property
    def outputs(self) -> int:
        """Number of outputs per sample: actions times atoms."""
        return self._streams[1].outputs

    @property
    def noise_size(self) -> int:
        """Number of normal random numbers that a call takes; 0 without noisy layers."""
        return sum(self._noise_sizes())

    def __call__(
        self, parameters: Parameters, features: Tensor, noise: Tensor | None = None
    ) -> Tensor:
        """Returns Q float32 [..., actions] or [..., actions, atoms].

        Args:
            parameters: Tensors by name; see `shapes`.
            features: float32 [..., features].
            noise: Noise of the value stream followed by that of the advantage stream; see
                `NoisyMlp`.
        """
        first, second = self._streams
        if noise is None or not isinstance(first, NoisyMlp) or not isinstance(second, NoisyMlp):
            value, advantage = first(parameters, features), second(parameters, features)
        else:
            parts = torch.split(noise, self._noise_sizes(), -1)
            value, advantage = (
                first(parameters, features, parts[0]),
                second(parameters, features, parts[1]),
            )
        if self.atoms is None:
            return combine_streams(value, advantage)
        return combine_streams(
            value.unsqueeze(-2),
            advantage.reshape(*advantage.shape[:-1], self.actions, self.atoms),
            -2,
        )

    def forward_numpy(
        self, parameters: Mapping[str, Floats], features: Floats, noise: Floats | None = None
    ) -> Floats:
        """Computes the same function in numpy; see `NoisyMlp.forward_numpy` for the arguments."""
        first, second = self._streams
        if noise is None or not isinstance(first, NoisyMlp) or not isinstance(second, NoisyMlp):
            value, advantage = (
                first.forward_numpy(parameters, features),
                second.forward_numpy(parameters, features),
            )
        else:
            size = first.noise_size
            value = first.forward_numpy(parameters, features, noise[..., :size])
            advantage = second.forward_numpy(parameters, features, noise[..., size:])
        dim = -1
        if self.atoms is not None:
            value, advantage, dim = (
                value[..., None, :],
                advantage.reshape(*advantage.shape[:-1], self.actions, self.atoms),
                -2,
            )
        joined: Floats = advantage + (value - advantage.mean(dim, keepdims=True))
        return joined

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Returns the shape of each parameter."""
        return {name: shape for stream in self._streams for name, shape in stream.shapes().items()}

    def draw_uniform(self, generator: torch.Generator) -> dict[str, Tensor]:
        """Returns initial parameters of both streams; see `Mlp` and `NoisyMlp`."""
        return {
            name: tensor
            for stream in self._streams
            for name, tensor in stream.draw_uniform(generator).items()
        }

    def _noise_sizes(self) -> list[int]:
        return [stream.noise_size for stream in self._streams if isinstance(stream, NoisyMlp)]

"""Networks whose outputs are numbers for each action: values, or atoms of distributions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from gymnasium import Space
from torch import Tensor

from workers.core.types import Array
from workers.rl.networks.dueling import DuelingHead
from workers.rl.networks.mlp import Activation, Floats, Mlp
from workers.rl.networks.nature_cnn import NatureCnn, image_features, is_image
from workers.rl.networks.noisy import NoisyMlp
from workers.rl.networks.observation_encoding import Encoding, encoding_of
from workers.rl.networks.parameter_layout import Parameters

Torso = Mlp | NatureCnn
Head = Mlp | NoisyMlp | DuelingHead


@dataclass(frozen=True)
class TorsoNetwork:
    """Base of the networks whose first part, the torso, computes features of each observation."""

    encoding: Encoding
    torso: Torso

    @property
    def parts(self) -> tuple[Any, ...]:
        """Layers with parameters, in the order in which their initial parameters are drawn."""
        raise NotImplementedError

    def features(self, parameters: Parameters, observation: Tensor) -> Tensor:
        """Returns the features float32 [N, features] of observations [N, ...]."""
        return self.torso(
            parameters,
            observation if isinstance(self.torso, NatureCnn) else self.encoding(observation),
        )

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Returns the shape of each parameter."""
        return {name: shape for part in self.parts for name, shape in part.shapes().items()}

    def draw_uniform(self, generator: torch.Generator) -> dict[str, Tensor]:
        """Returns initial parameters, drawn as in `torch.nn`.

        Those of noisy layers are drawn as in Fortunato et al. 2018.
        """
        return {
            name: tensor
            for part in self.parts
            for name, tensor in part.draw_uniform(generator).items()
        }


@dataclass(frozen=True)
class ActionValues(TorsoNetwork):
    """A torso, and a head that maps its features to one or several numbers per action.

    N samples, A actions.
    """

    head: Head
    actions: int
    """Number of actions, A."""
    atoms: int | None = None
    """Numbers per action; `None` for one number and outputs without this dimension."""

    @property
    def parts(self) -> tuple[Any, ...]:
        """Torso and head."""
        return (self.torso, self.head)

    @property
    def noise_size(self) -> int:
        """Number of normal random numbers of one perturbed network; 0 without noisy layers."""
        return 0 if isinstance(self.head, Mlp) else self.head.noise_size

    def __call__(
        self, parameters: Parameters, observation: Tensor, noise: Tensor | None = None
    ) -> Tensor:
        """Returns float32 [N, A], or [N, A, atoms].

        Args:
            parameters: Tensors by name; see `shapes`.
            observation: [N, ...]
            noise: float32 [noise_size] to perturb the weights alike for all samples, or [N,
                noise_size] for each sample; `None` for the mean weights.
        """
        features = self.features(parameters, observation)
        outputs = (
            self.head(parameters, features)
            if isinstance(self.head, Mlp)
            else self.head(parameters, features, noise)
        )
        return (
            outputs
            if self.atoms is None
            else outputs.reshape(*features.shape[:-1], self.actions, self.atoms)
        )

    def forward_numpy(
        self, parameters: Mapping[str, Array], observation: Array, noise: Floats | None = None
    ) -> Floats | None:
        """Computes the same function in numpy, which is faster for the few rows of acting.

        Returns `None` for networks with convolutions.

        Args:
            parameters: Arrays by name; for n stacked networks with a first dimension n.
            observation: [N, ...], or [n, N, ...] for stacked networks.
            noise: float32 [N, noise_size] or [n, N, noise_size]; `None` for the mean weights.
        """
        if isinstance(self.torso, NatureCnn):
            return None
        features = self.torso.forward_numpy(parameters, self.encoding.forward_numpy(observation))
        if isinstance(self.head, Mlp):
            outputs = self.head.forward_numpy(parameters, features)
        else:
            outputs = self.head.forward_numpy(parameters, features, noise)
        return (
            outputs
            if self.atoms is None
            else outputs.reshape(*features.shape[:-1], self.actions, self.atoms)
        )


def make_torso(
    space: Space[object], hidden: tuple[int, ...], activation: Activation
) -> tuple[Encoding, Torso]:
    """Returns the encoding of observations and the layers that compute features of them.

    Images pass the convolutions of Mnih et al. 2015 and then the hidden layers. Without hidden
    layers the features of a vector are the vector itself.

    Raises:
        DefinitionError: If the built-in networks cannot read the space.
    """
    encoding = encoding_of(space)
    if is_image(space):
        return encoding, image_features("torso", space, hidden)
    return encoding, Mlp("torso", (encoding.size, *hidden), activation, has_last_activation=True)


def make_action_values(  # noqa: PLR0913 - keyword only
    space: Space[object],
    actions: int,
    *,
    hidden: tuple[int, ...],
    activation: Activation = "relu",
    is_dueling: bool = False,
    is_noisy: bool = False,
    atoms: int | None = None,
) -> ActionValues:
    """Returns a network for an observation space and a number of actions.

    With dueling streams or noisy layers the last hidden layer is part of the head: each stream has
    its own (Wang et al. 2016, section 4.2), and it is noisy like the output layer (Fortunato et al.
    2018, section 3.2). The hidden layers before it are shared and not noisy.

    Raises:
        DefinitionError: If the built-in networks cannot read the space.
    """
    has_plain_head = not (is_dueling or is_noisy)
    shared, last = ((), hidden) if has_plain_head else (hidden[:-1], hidden[-1:])
    encoding, torso = make_torso(space, shared, activation)
    sizes = (torso.outputs, *last, actions * (atoms or 1))
    if is_dueling:
        head: Head = DuelingHead("q", torso.outputs, actions, last, atoms, is_noisy, activation)
    else:
        head = NoisyMlp("q", sizes, activation) if is_noisy else Mlp("q", sizes, activation)
    return ActionValues(encoding, torso, head, actions, atoms)

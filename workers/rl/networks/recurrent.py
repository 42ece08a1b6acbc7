"""Recurrent cells as functions of their parameters.

LSTM (Hochreiter & Schmidhuber 1997) and GRU (Cho et al. 2014).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import linear

from workers.rl.networks import initialisation
from workers.rl.networks.mlp import Floats, affine
from workers.rl.networks.parameter_layout import Parameters


@dataclass(frozen=True, slots=True)
class RecurrentLayer:
    """One recurrent layer with the arithmetic of `torch.nn.LSTMCell` or `GRUCell`.

    Its state is one tensor with S entries per sample.

    N samples, T steps, H units. S is H for a GRU, and 2 H for an LSTM: the output, then the cell.
    """

    prefix: str
    """Prefix of parameter names.

    `memory` gives `memory.inputs.weight`, `memory.state.weight` and their biases.
    """
    inputs: int
    """Length of the input vector."""
    units: int
    """Length of the output vector, H."""
    kind: Literal["lstm", "gru"] = "lstm"

    @property
    def outputs(self) -> int:
        """Length of the output vector, H."""
        return self.units

    @property
    def state_size(self) -> int:
        """Length of the state, S."""
        return 2 * self.units if self.kind == "lstm" else self.units

    def __call__(
        self, parameters: Parameters, inputs: Tensor, state: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Computes one step.

        Args:
            parameters: Tensors by name; see `shapes`.
            inputs: float32 [N, inputs].
            state: float32 [N, S]; zeros where an episode begins.

        Returns:
            Output float32 [N, H] and the next state [N, S].
        """
        return self._step(parameters, self._from_inputs(parameters, inputs), state)

    def forward_numpy(
        self, parameters: Mapping[str, Floats], inputs: Floats, state: Floats
    ) -> tuple[Floats, Floats]:
        """Computes the same step in numpy, which is faster for the few rows of acting.

        Args:
            parameters: Arrays by name, float32; for n stacked networks with a first dimension n.
            inputs: float32 [N, inputs], or [n, N, inputs] for stacked networks.
            state: float32 [N, S] or [n, N, S]; not modified.

        Returns:
            Output [N, H] or [n, N, H] and state [N, S] or [n, N, S], as new arrays; for a GRU both
                are the same array.
        """
        units, hidden = self.units, state[..., : self.units]
        given = affine(
            inputs,
            parameters[f"{self.prefix}.inputs.weight"],
            parameters[f"{self.prefix}.inputs.bias"],
        )
        carried = affine(
            hidden,
            parameters[f"{self.prefix}.state.weight"],
            parameters[f"{self.prefix}.state.bias"],
        )
        if self.kind == "gru":
            both = _sigmoid(given[..., : 2 * units] + carried[..., : 2 * units])
            mixed = np.tanh(given[..., 2 * units :] + both[..., :units] * carried[..., 2 * units :])
            mixed += both[..., units:] * (hidden - mixed)
            return mixed, mixed
        given += carried
        after: Floats = np.empty_like(state)
        two = _sigmoid(given[..., : 2 * units])
        cell = two[..., units:] * state[..., units:]
        cell += two[..., :units] * np.tanh(given[..., 2 * units : 3 * units])
        after[..., units:] = cell
        np.multiply(_sigmoid(given[..., 3 * units :]), np.tanh(cell), out=after[..., :units])
        return after[..., :units], after

    def unroll(
        self, parameters: Parameters, inputs: Tensor, state: Tensor, begins: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Computes T steps.

        Args:
            parameters: Tensors by name; see `shapes`.
            inputs: float32 [T, N, inputs].
            state: float32 [N, S] before the first step.
            begins: bool [T, N]: an episode begins with this step; the state before it is set to 0.

        Returns:
            Outputs float32 [T, N, H] and the state [N, S] after the last step.
        """
        states = self.states(parameters, inputs, state, begins)
        return states[..., : self.units], states[-1]

    def states(
        self, parameters: Parameters, inputs: Tensor, state: Tensor, begins: Tensor
    ) -> Tensor:
        """Computes T steps like `unroll` and returns the state after each, float32 [T, N, S].

        The first H entries of a state are the output.
        """
        given = self._from_inputs(parameters, inputs)
        kept = (~begins).to(state.dtype).unsqueeze(-1)
        states: list[Tensor] = []
        for gates, keep in zip(given.unbind(0), kept.unbind(0), strict=True):
            _, state = self._step(parameters, gates, state * keep)
            states.append(state)
        return torch.stack(states)

    def initial_state(self, count: int, device: torch.device | None = None) -> Tensor:
        """Returns the state float32 [N, S] at the beginning of N episodes."""
        return torch.zeros(count, self.state_size, device=device)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Returns the shape of each parameter; the rows of the gates are in torch's order."""
        return initialisation.layer_shapes(self._weights())

    def draw_uniform(self, generator: torch.Generator) -> dict[str, Tensor]:
        """Returns weights and biases drawn from U(-1/sqrt(H), 1/sqrt(H)), as `torch.nn.LSTM` does.

        The bias of the gate that keeps the state is increased by 1, as in TensorFlow and Haiku
        (Gers et al. 2000, Jozefowicz et al. 2015): after twelve steps 8 % of an input remain in the
        state, but only 0.3 % with a gate that is half open initially.
        """
        parameters = {
            name: initialisation.draw_uniform(shape, self.units**-0.5, generator)
            for name, shape in self.shapes().items()
        }
        # These entries belong to the forget gate of an LSTM or the update gate of a GRU.
        parameters[f"{self.prefix}.inputs.bias"][self.units : 2 * self.units] += 1.0
        return parameters

    def draw_orthogonal(
        self, generator: torch.Generator, *, gain: float = 1.0
    ) -> dict[str, Tensor]:
        """Returns orthogonal weights, scaled by `gain`, and zero biases."""
        weights, parameters = self._weights(), dict[str, Tensor]()
        for name, shape in weights.items():
            parameters[f"{name}.weight"], parameters[f"{name}.bias"] = (
                initialisation.draw_linear_orthogonal(shape, gain, generator)
            )
        return parameters

    def _weights(self) -> dict[str, tuple[int, ...]]:
        rows = (4 if self.kind == "lstm" else 3) * self.units
        return {
            f"{self.prefix}.inputs": (rows, self.inputs),
            f"{self.prefix}.state": (rows, self.units),
        }

    def _from_inputs(self, parameters: Parameters, inputs: Tensor) -> Tensor:
        return linear(
            inputs,
            parameters[f"{self.prefix}.inputs.weight"],
            parameters[f"{self.prefix}.inputs.bias"],
        )

    def _step(self, parameters: Parameters, given: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        hidden = state[..., : self.units]
        carried = linear(
            hidden,
            parameters[f"{self.prefix}.state.weight"],
            parameters[f"{self.prefix}.state.bias"],
        )
        if self.kind == "gru":
            hidden = _gru(given, carried, hidden)
            return hidden, hidden
        hidden, cell = _lstm(given + carried, state[..., self.units :])
        return hidden, torch.cat((hidden, cell), -1)


def _sigmoid(values: Floats) -> Floats:
    """Returns the logistic function as (1 + tanh(x / 2)) / 2, which cannot overflow."""
    result: Floats = np.tanh(0.5 * values)
    result += 1
    result *= 0.5
    return result


def _lstm(gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    entry, forget, candidate, exit_ = gates.chunk(4, -1)
    cell = forget.sigmoid() * cell + entry.sigmoid() * candidate.tanh()
    return exit_.sigmoid() * cell.tanh(), cell


def _gru(given: Tensor, carried: Tensor, hidden: Tensor) -> Tensor:
    (reset, update, candidate), (reset_c, update_c, candidate_c) = (
        given.chunk(3, -1),
        carried.chunk(3, -1),
    )
    mixed = (candidate + (reset + reset_c).sigmoid() * candidate_c).tanh()
    return torch.lerp(mixed, hidden, (update + update_c).sigmoid())

"""Trust region policy optimisation (TRPO) with generalised advantage estimation.

Schulman et al. 2015; Schulman et al. 2016.

The policy makes one step per rollout: the natural gradient by conjugate gradients on products with
the Fisher matrix (appendix C), then a line search. N transitions of a rollout, P parameters of the
policy.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from palestra.contract.agents import TrpoParameters
from workers.acceleration.update_runner import Gradient
from workers.core.errors import DefinitionError
from workers.core.types import AgentContext, Array
from workers.rl.agents.common.actor_critic import actor_critic
from workers.rl.agents.common.algorithm import UpdateResult
from workers.rl.agents.common.learning_state import Layouts
from workers.rl.agents.common.normalisers import Normalisers
from workers.rl.agents.common.on_policy import OnPolicyMath, RolloutBatch, standardise
from workers.rl.agents.common.optimizers import AdamState, adam, adam_start
from workers.rl.agents.shells.rollout_agent import RolloutAgent, RolloutParts
from workers.rl.networks.parameter_layout import Layout, Parameters

Product = Callable[[Tensor], Tensor]
"""Vector [P] -> matrix times vector [P]."""
_CONVERGED = 1e-10
"""Squared residual below which the conjugate gradient iterations no longer change the solution."""


class TrpoState(NamedTuple):
    """Learning state of TRPO; an update returns a new one."""

    parameters: Tensor
    """float32 [P]: theta, parameters of the policy."""
    values: Tensor
    """float32 [V]: parameters of the value network."""
    optimizer: AdamState
    """State of the value network's optimiser."""


def conjugate_gradients(product: Product, right: Tensor, steps: int) -> Tensor:
    """Returns x [P] with A x = `right` [P] after `steps` iterations (Hestenes & Stiefel 1952).

    A is symmetric and positive definite.
    """
    solution, residual, direction = torch.zeros_like(right), right, right
    squared = residual.dot(residual)
    for _ in range(steps):
        is_unconverged = squared > _CONVERGED
        image = product(direction)
        length = torch.where(is_unconverged, squared / direction.dot(image).clamp(min=1e-30), 0.0)
        solution = solution + length * direction
        residual = residual - length * image
        after = residual.dot(residual)
        direction = (
            residual
            + torch.where(is_unconverged, after / squared.clamp(min=1e-30), 0.0) * direction
        )
        squared = after
    return solution


def line_search(
    judge: Callable[[Tensor], tuple[Tensor, Tensor]],
    begin: Tensor,
    step: Tensor,
    max_kl: float,
    count: int,
) -> Tensor:
    """Returns the first of `begin` + step / 2^k, k < count, that improves within the trust region.

    Returns `begin` [P] if there is none.

    Args:
        judge: Parameters [P] -> improvement of the surrogate [] and KL divergence [].
        begin: Parameters before the step, float32 [P].
        step: The first and longest step that is tried, float32 [P].
        max_kl: Upper bound of the KL divergence.
        count: Number of step lengths that are tried.
    """
    lengths = 0.5 ** torch.arange(count, device=begin.device, dtype=begin.dtype)
    candidates = begin + lengths.unsqueeze(1) * step
    gain, divergence = torch.func.vmap(judge)(candidates)
    accepted = (gain > 0) & (divergence <= max_kl)
    first = accepted & (accepted.cumsum(0) == 1)
    return begin + (lengths * first).sum() * torch.where(accepted.any(), step, 0.0)


@dataclass(frozen=True)
class Trpo(OnPolicyMath[TrpoParameters]):
    """Policy step and value function fit of TRPO for one definition, as pure functions."""

    policy_layout: Layout = field(init=False)
    value_layout: Layout = field(init=False)
    report_names: ClassVar[tuple[str, ...]] = (
        "loss/policy",
        "loss/value",
        "policy/entropy",
        "policy/kl",
        "gradient/norm",
    )

    def __post_init__(self) -> None:
        model = self.model
        object.__setattr__(
            self, "policy_layout", Layout({**model.actor.shapes(), **model.policy.extra_shapes})
        )
        object.__setattr__(self, "value_layout", Layout(model.critic.shapes()))

    @property
    def layouts(self) -> Layouts:
        """Layouts of the parameter vectors of policy and value network."""
        return {"parameters": self.policy_layout, "values": self.value_layout}

    def parameters_by_name(self, state: TrpoState) -> Parameters:
        """Returns the parameters of policy and value network by name."""
        return {
            **self.policy_layout.split(state.parameters),
            **self.value_layout.split(state.values),
        }

    def start(self, generator: torch.Generator) -> TrpoState:
        """Returns the state before the first update."""
        initial = self.model.initial_parameters(generator)
        policy, value = (
            layout.join({name: initial[name] for name in layout.shapes})
            for layout in (self.policy_layout, self.value_layout)
        )
        return TrpoState(policy, value, adam_start(value, self.hyper.learning_rate))

    def noise(self, generator: np.random.Generator, count: int) -> tuple[Array, ...]:
        """Returns the order of the samples int64 [passes, N] in each pass of the value function."""
        return (np.stack([generator.permutation(count) for _ in range(self.hyper.value_passes)]),)

    def surrogate(self, vector: Tensor, batch: RolloutBatch) -> Tensor:
        """Returns the mean of ratio times advantage []: the objective of equation 14."""
        parameters = self.policy_layout.split(vector)
        outputs = self.model.outputs(parameters, batch.observation)
        ratio = (
            self.model.policy.log_probability(parameters, outputs, batch.action)
            - batch.log_probability
        ).exp()
        return (ratio * batch.advantage).mean()

    def divergence(self, old: Tensor, new: Tensor, observation: Tensor) -> Tensor:
        """Returns the mean KL divergence [] of the policies of parameters `old` and `new`."""
        before, after = self.policy_layout.split(old), self.policy_layout.split(new)
        outputs = self.model.outputs(before, observation), self.model.outputs(after, observation)
        return self.model.policy.kl((before, outputs[0]), (after, outputs[1])).mean()

    def fisher_product(self, parameters: Tensor, observation: Tensor) -> Product:
        """Returns the function v -> H v of the damped Hessian H [P, P] (appendix C.1).

        H is the Hessian of the mean KL divergence at `parameters` [P].
        """
        grad = torch.func.grad(lambda vector: self.divergence(parameters, vector, observation))
        # The Hessian is symmetric, so its product with a vector is the vector-Jacobian product.
        damping, pull = self.hyper.damping, torch.func.vjp(grad, parameters)[1]

        def product(vector: Tensor) -> Tensor:
            curved: Tensor = pull(vector)[0]
            return curved + damping * vector

        return product

    def policy_step(
        self, gradient: Gradient, parameters: Tensor, batch: RolloutBatch
    ) -> tuple[Tensor, Tensor]:
        """Returns the policy's parameters [P] after one step, and the norm of the gradient []."""
        hyper = self.hyper
        grad, before, _ = gradient(lambda vector: (self.surrogate(vector, batch), ()), parameters)
        product = self.fisher_product(parameters, batch.observation)
        direction = conjugate_gradients(product, grad, hyper.conjugate_gradient_steps)
        # Appendix C gives the longest step that the quadratic model allows.
        longest = (2 * hyper.max_kl / direction.dot(product(direction)).clamp(min=1e-30)).sqrt()

        def judge(vector: Tensor) -> tuple[Tensor, Tensor]:
            return self.surrogate(vector, batch) - before, self.divergence(
                parameters, vector, batch.observation
            )

        moved = line_search(
            judge, parameters, longest * direction, hyper.max_kl, hyper.line_search_steps
        )
        return moved, torch.linalg.vector_norm(grad)

    def value_loss(
        self, vector: Tensor, observation: Tensor, target: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Returns half the mean squared error of V []."""
        return 0.5 * (
            self.model.values(self.value_layout.split(vector), observation) - target
        ).square().mean(), ()

    def fit_values(
        self, gradient: Gradient, state: TrpoState, batch: RolloutBatch
    ) -> tuple[Tensor, AdamState, Tensor]:
        """Fits the value network; returns its parameters [V], optimiser state and mean loss []."""
        values, optimizer, losses = state.values, state.optimizer, list[Tensor]()
        count = -(-len(batch.advantage) // self.hyper.value_minibatch_size)
        for order in batch.noise[0].unbind(0):
            for rows in order.tensor_split(count):
                observation, target = batch.observation[rows], batch.value_target[rows]
                grad, loss, _ = gradient(
                    partial(self.value_loss, observation=observation, target=target), values
                )
                values, optimizer = adam(values, grad, optimizer)
                losses.append(loss)
        return values, optimizer, torch.stack(losses).mean()

    def update(
        self, gradient: Gradient, state: TrpoState, batch: RolloutBatch
    ) -> UpdateResult[TrpoState]:
        """Makes the policy's step on a rollout, then fits the value network to the rollout."""
        if self.hyper.normalize_advantages:
            batch = batch._replace(advantage=standardise(batch.advantage))
        parameters, norm = self.policy_step(gradient, state.parameters, batch)
        values, optimizer, value_loss = self.fit_values(gradient, state, batch)
        named = self.policy_layout.split(parameters)
        entropy = self.model.policy.entropy(
            named, self.model.outputs(named, batch.observation)
        ).mean()
        divergence = self.divergence(state.parameters, parameters, batch.observation)
        report = torch.stack(
            (-self.surrogate(parameters, batch), value_loss, entropy, divergence, norm)
        )
        return UpdateResult(TrpoState(parameters, values, optimizer), report, batch.advantage)


def build(parameters: TrpoParameters, context: AgentContext) -> RolloutAgent:
    """Builds the agent; raises DefinitionError if it does not support a space."""
    model = actor_critic(context, "trpo", parameters.hidden_sizes, parameters.activation)
    if model.trunk is not None:
        raise DefinitionError(
            "agent trpo reads no images: take ppo, or flatten them with a wrapper"
        )
    return RolloutAgent(
        RolloutParts(
            algorithm=Trpo(model, parameters, parameters.gamma, parameters.gae_lambda),
            learning_rate=parameters.learning_rate,
            vector_steps=parameters.rollout_steps,
            is_compiled=False,
            normalisers=Normalisers(parameters, context),
        ),
        context,
    )

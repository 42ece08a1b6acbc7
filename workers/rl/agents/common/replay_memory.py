"""Chooses an agent's replay memory by its hyperparameters and the spaces of its environment."""

from typing import Protocol

import numpy as np
from gymnasium import Space

from palestra.contract.agents.common import HindsightReplay, PrioritizedReplay
from workers.core.errors import DefinitionError
from workers.core.rng import derive_generator
from workers.core.types import AgentContext
from workers.rl.agents.common.action_encoding import Actions
from workers.rl.memory.frame_replay import FrameReplay
from workers.rl.memory.hindsight_replay import Goals, Hindsight
from workers.rl.memory.replay import Replay
from workers.rl.memory.sampling_rules import Priorities, PrioritizedRule, SamplingRule, UniformRule
from workers.rl.memory.transitions import ReplaySpec
from workers.rl.networks.nature_cnn import is_image
from workers.rl.networks.observation_encoding import encoding_of


class ReplayParameters(Protocol):
    """The hyperparameters that every agent with a replay memory has."""

    @property
    def buffer_size(self) -> int: ...
    @property
    def gamma(self) -> float: ...


def replay_memory(
    hyper: ReplayParameters,
    actions: Actions,
    context: AgentContext,
    *,
    n_step: int = 1,
    prioritized: PrioritizedReplay | None = None,
    hindsight: HindsightReplay | None = None,
) -> Replay:
    """Returns an empty memory with its own generator.

    Raises:
        DefinitionError: If `hindsight` is given and the environment's observations have no goals.
    """
    encoding = encoding_of(context.observation_space)
    spec = ReplaySpec(
        capacity=hyper.buffer_size,
        num_envs=context.num_envs,
        observation=(encoding.shape, encoding.dtype),
        action=(actions.raw_shape, actions.raw_dtype),
        n_step=n_step,
        gamma=hyper.gamma,
    )
    rule = _rule(prioritized, derive_generator(context.seed, "agent/sample"))
    if hindsight is not None:
        return Hindsight(spec, rule, _goals(hindsight, context))
    return (FrameReplay if _is_stack(context.observation_space) else Replay)(spec, rule)


def _rule(prioritized: PrioritizedReplay | None, generator: np.random.Generator) -> SamplingRule:
    if prioritized is None:
        return UniformRule(generator)
    constants = Priorities(
        alpha=prioritized.alpha, beta=prioritized.beta, anneal_updates=prioritized.anneal_updates
    )
    return PrioritizedRule(generator, constants)


def _goals(hindsight: HindsightReplay, context: AgentContext) -> Goals:
    goals = context.goals
    if goals is None:
        raise DefinitionError(
            "agent.hindsight: the environment has no goals. It needs observations that are a dict "
            "with achieved_goal and desired_goal, and "
            "a method compute_reward: leave hindsight out, or name such an environment"
        )
    return Goals(
        achieved=goals.achieved,
        desired=goals.desired,
        compute_reward=goals.judge,
        ratio=hindsight.ratio,
    )


def _is_stack(space: Space[object]) -> bool:
    """Returns whether observations are stacks [k, H, W], whose frames can be stored once each."""
    return is_image(space) and len(space.shape or ()) == 3 and space.shape[0] < space.shape[2]

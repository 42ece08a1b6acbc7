"""The parts of reinforcement learning, built from a definition."""

import functools
from collections.abc import Callable
from contextlib import ExitStack

import numpy as np
import torch

from palestra.contract.agents import A3cParameters, RegisteredAgent
from palestra.contract.builtin_agents import BuiltinParameters
from palestra.contract.definition import LearningRateSchedule, NanGuard, RlDefinition
from palestra.contract.job_options import Resources
from palestra.contract.names import CompileMode, EvaluationPolicy
from workers.assembly.actor_learners import build_actor_learners
from workers.assembly.compile_mode import choose_compile_mode, find_update_cost, max_updates
from workers.assembly.part_set import PartSet
from workers.assembly.registry import make_agent
from workers.core.errors import DefinitionError
from workers.core.protocols import AgentLoop, Collector, Hook, TrainableAgent
from workers.core.shared_counter import SharedCount
from workers.core.types import AgentContext, JsonObject, LearnSchedule, Unit
from workers.engine.budget import Budget
from workers.engine.parts import Cadence
from workers.hooks.guards import NanGuardHook, ParameterGuardHook, SuccessHook
from workers.hooks.learning_rate import LearningRateHook
from workers.recording.metric_windows import window_length
from workers.rl.agents.a3c_shared import SharedA3c
from workers.rl.agents.pfrl_adapter import ExternalAgent
from workers.rl.collect.agent_driven_collector import AgentDrivenCollector
from workers.rl.collect.vector_collector import VectorCollector
from workers.rl.envs.factory import find_cut, make_goal_rule, make_training_vector, make_vector
from workers.rl.envs.vector import EpisodeVector, array_layout
from workers.rl.evaluate.train_data_evaluator import TrainDataEvaluator
from workers.rl.evaluate.vector_evaluator import EvaluationBudget, SeedRule, VectorEvaluator
from workers.rl.networks.finite_parameters import find_non_finite

EVALUATION_ENVS = 8
"""Most copies of the evaluation environment that are stepped together."""


def build_set(  # noqa: PLR0913 - keyword only
    definition: RlDefinition,
    seed: int,
    device: str,
    stack: ExitStack,
    resources: Resources,
    *,
    runs: int = 1,
    scales_by_bounds: bool = True,
) -> PartSet:
    """Returns the parts of a training, one of `runs` in a pack.

    The close methods of the environments and processes are registered with `stack`.
    `scales_by_bounds` is that of the snapshot with which the training goes on.

    Raises:
        DefinitionError: If the definition cannot be executed, for example because the agent does
            not support the action space.
        PartNotFoundError: If a part is not installed here.
    """
    env = _close_with(stack, make_training_vector(definition.env, runs))
    build = functools.partial(
        build_agent, definition, env, seed, device, scales_by_bounds=scales_by_bounds
    )
    agent = build()
    is_registered = isinstance(definition.agent, RegisteredAgent)
    cost = find_update_cost(definition.agent.name, env.single_observation_space)
    updates = max_updates(definition, _update_schedule(definition, agent))
    mode = choose_compile_mode(resources.compile, device, updates, cost)
    if mode != "eager":
        agent = build(mode)
    if definition.export.formats and not getattr(agent, "exportable", True):
        raise DefinitionError(
            f"export.formats: the agent {definition.agent.name!r} cannot be exported: leave export "
            "out"
        )
    collector, own_loop = _collector(definition, env, agent, seed)
    if isinstance(agent, SharedA3c):
        collector = build_actor_learners(
            definition, agent, seed, device, mode, scales_by_bounds=scales_by_bounds
        )
        stack.callback(collector.close)
        collector.wait()
    return PartSet(
        agent=agent,
        collector=collector,
        hooks=build_hooks(definition, agent),
        cadence=cadence_of(definition),
        window_env_steps=window_length(definition.loop.env_steps),
        resume_exact=definition.snapshot.memory == "full" and getattr(agent, "exact", True),
        compile=mode if is_registered or cost is not None else None,
        own_loop=own_loop,
    )


def _update_schedule(definition: RlDefinition, agent: TrainableAgent) -> LearnSchedule:
    """Returns when updates are made; those of A3C are made by its processes."""
    if isinstance(definition.agent, A3cParameters):
        return LearnSchedule(every_env_steps=definition.agent.rollout_steps, updates=1)
    return agent.learn_schedule


def build_agent(
    definition: RlDefinition,
    env: EpisodeVector,
    seed: int,
    device: str,
    compile_: CompileMode = "eager",
    *,
    scales_by_bounds: bool = True,
) -> TrainableAgent:
    """Returns a fresh agent of the definition for an environment's spaces."""
    context = AgentContext(
        observation_space=env.single_observation_space,
        action_space=env.single_action_space,
        num_envs=definition.env.num_envs,
        seed=seed,
        device=device,
        compile=compile_,
        goals=make_goal_rule(definition.env, env),
    )
    return make_agent(definition.agent, context, scales_by_bounds=scales_by_bounds)


def fresh_agent(
    definition: RlDefinition, seed: int, device: str, *, scales_by_bounds: bool = True
) -> TrainableAgent:
    """Returns an untrained agent of the definition."""
    env = make_vector(definition.env, 1)
    try:
        return build_agent(definition, env, seed, device, scales_by_bounds=scales_by_bounds)
    finally:
        env.close()


def describe_acting(definition: RlDefinition) -> tuple[JsonObject, tuple[torch.Tensor, ...]]:
    """Returns the description of an agent's interface and two example observations.

    The description holds agent, environment and the layout of an observation as JSON.
    """
    env = make_vector(definition.env, 1)
    env.close()
    shape, dtype = array_layout(env.single_observation_space)
    description = {
        "agent": definition.agent.model_dump(mode="json"),
        "env": definition.env.model_dump(mode="json"),
        "observation": {"shape": list(shape), "dtype": str(dtype)},
    }
    return description, (torch.from_numpy(np.zeros((2, *shape), dtype)),)


def build_evaluator(
    definition: RlDefinition,
    agent: TrainableAgent,
    seeds: SeedRule,
    episodes: int | None = None,
    progress: SharedCount | None = None,
    *,
    policy: EvaluationPolicy | None = None,
) -> VectorEvaluator:
    """Returns an evaluator with an environment of its own.

    Args:
        definition: Defines the environment and the budget of an evaluation.
        agent: The agent to evaluate.
        seeds: Determines the seeds of the episodes.
        episodes: Number of whole episodes; `None` for the definition's budget.
        progress: Counts the vector steps.
        policy: The actions; `None` takes those of the definition.

    Raises:
        DefinitionError: If actions are to be drawn from a policy that is deterministic.
    """
    policy = policy or definition.evaluation.policy
    _check_policy(definition, agent, policy)
    limit = definition.evaluation.max_episode_steps
    budget = _evaluation_budget(definition, episodes, limit)
    on_step = getattr(agent, "observe_evaluation", None)
    count = min(budget.episodes or 1, _most_envs(definition, on_step))
    env = make_vector(definition.env, count, limit)
    return VectorEvaluator(env, agent, budget, seeds, on_step, progress=progress, policy=policy)


def build_train_data_evaluator(
    definition: RlDefinition,
    agent: TrainableAgent,
    seed: int,
    episodes: int | None = None,
    progress: SharedCount | None = None,
) -> TrainDataEvaluator:
    """Returns an evaluator on the first training episodes of the run with this seed.

    It has the training's time limit, and the actions that the definition scores.
    """
    policy = definition.evaluation.scored_policy
    _check_policy(definition, agent, policy)
    budget = _evaluation_budget(definition, episodes)
    on_step = getattr(agent, "observe_evaluation", None)
    env = make_vector(definition.env, min(budget.episodes or 1, _most_envs(definition, on_step)))
    training_envs = (
        definition.agent.processes
        if isinstance(definition.agent, A3cParameters)
        else definition.env.num_envs
    )
    return TrainDataEvaluator(
        env,
        agent,
        budget,
        seed=seed,
        num_envs=training_envs,
        on_step=on_step,
        progress=progress,
        policy=policy,
    )


def build_hooks(definition: RlDefinition, agent: TrainableAgent) -> tuple[Hook, ...]:
    """Returns the definition's hooks in its order, then the success score.

    Hooks that record videos are built by `workers.assembly.video_hooks` instead.
    """
    hooks: list[Hook] = []
    for spec in definition.hooks:
        match spec:
            case NanGuard():
                hooks.append(_nan_guard(agent, spec.updates))
            case LearningRateSchedule():
                hooks.append(
                    LearningRateHook(agent.learning_rate, spec.final_value, spec.env_steps)
                )
    if definition.stop.success_score is not None:
        hooks.append(
            SuccessHook(definition.stop.success_score, definition.stop.success_evaluations)
        )
    return tuple(hooks)


def _nan_guard(agent: TrainableAgent, updates: int) -> Hook:
    """Returns the hook that checks the agent's reports, or its parameters if it reports nothing."""
    if agent.report_names:
        return NanGuardHook(agent.report_names, updates)
    if isinstance(agent, ExternalAgent):
        return ParameterGuardHook(
            updates, agent.find_non_finite_parameter, agent.count_optimizer_steps
        )
    return ParameterGuardHook(
        updates, lambda: find_non_finite(agent.acting_module().state_dict().items())
    )


def cadence_of(definition: RlDefinition) -> Cadence:
    """Returns the budget and the intervals of epochs, evaluations and snapshots."""
    loop = definition.loop
    return Cadence(
        budget=Budget(
            {
                Unit.ENV_STEPS: loop.env_steps,
                Unit.UPDATES: loop.updates,
                Unit.EPISODES: loop.episodes,
            }
        ),
        epoch=loop.epoch_env_steps,
        evaluation=definition.evaluation.every_env_steps,
        evaluates_during_episode=definition.evaluation.during_episode,
        saves_before_final_evaluation=True,
        snapshot=definition.snapshot.every_env_steps,
        saves_best=definition.snapshot.keep_best,
        saves_memory=definition.snapshot.memory == "full",
    )


def _collector(
    definition: RlDefinition, env: EpisodeVector, agent: TrainableAgent, seed: int
) -> tuple[Collector, AgentLoop | None]:
    """Returns the training's collector, and the loop of an agent that trains by itself."""
    train = getattr(agent, "train_by_itself", None)
    if train is None:
        return VectorCollector(env, agent, seed), None
    collector = AgentDrivenCollector(env, seed)
    return collector, functools.partial(train, collector, definition.loop.env_steps)


def _check_policy(
    definition: RlDefinition, agent: TrainableAgent, policy: EvaluationPolicy
) -> None:
    described = definition.agent if isinstance(definition.agent, BuiltinParameters) else agent
    if policy != "greedy" and not getattr(described, "has_stochastic_policy", False):
        raise DefinitionError(
            f"evaluation.policy: the policy of {definition.agent.name} is deterministic, or the "
            "agent does not say that actions can be drawn from it: take greedy"
        )


def _evaluation_budget(
    definition: RlDefinition, episodes: int | None, max_episode_steps: int | None = None
) -> EvaluationBudget:
    spec, cut_at = definition.evaluation, find_cut(definition.env, max_episode_steps)
    return (
        EvaluationBudget(episodes=episodes, cut_at=cut_at)
        if episodes
        else EvaluationBudget(episodes=spec.episodes, steps=spec.steps, cut_at=cut_at)
    )


def _most_envs(definition: RlDefinition, on_step: Callable[..., None] | None) -> int:
    """Returns the largest number of environments that an evaluation steps at once.

    An agent that is notified of every step of an evaluation may keep a state for each environment,
    so it gets no more than in training.
    """
    is_asynchronous = definition.env.vectorization == "async"
    return definition.env.num_envs if is_asynchronous or on_step is not None else EVALUATION_ENVS


def _close_with(stack: ExitStack, env: EpisodeVector) -> EpisodeVector:
    stack.callback(env.close)
    return env

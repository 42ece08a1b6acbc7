"""The algorithms of Stable-Baselines3 as agents.

The algorithm trains in its own `learn()`, instead of in the engine's loop. Between two of its steps
the engine ends the iteration of the earlier step (`workers.rl.agents.sb3.environment`), so that
recorder, evaluations, hooks, snapshots and orders work as for other agents.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import stable_baselines3
import torch
from stable_baselines3.common.base_class import BaseAlgorithm

from palestra.contract.agents import Sb3Parameters
from workers.core.errors import DefinitionError, NumericalFailureError
from workers.core.null_parts import NoMemory
from workers.core.protocols import Advance, ExperienceMemory
from workers.core.rng import derive_seed, generator_state, load_generator_state, seed_global
from workers.core.types import (
    AgentContext,
    Array,
    CollectPlan,
    Experience,
    LearnReport,
    LearnSchedule,
    StateTree,
)
from workers.rl.agents.sb3.arguments import algorithm_class, arguments_for
from workers.rl.agents.sb3.environment import LoopCallback, LoopEnv, Stepper
from workers.rl.agents.sb3.export_module import GreedyModule
from workers.rl.agents.sb3.model_state import ReplayArrays, load_model_state, model_state
from workers.rl.agents.sb3.observations import Observations
from workers.rl.agents.sb3.reports import Reports
from workers.rl.envs.space_arrays import action_layout
from workers.rl.networks.finite_parameters import find_non_finite

_SEED_BITS: Final = 31
"""Number of bits of the seed; numpy's legacy generator accepts at most 32."""
_NEVER: Final[Any] = None
"""Value of `log_interval` that disables logging; the library's annotations omit `None`."""

_REFUSALS: Final = (AssertionError, AttributeError, KeyError, RuntimeError, TypeError, ValueError)


class Sb3Agent:
    """An algorithm of Stable-Baselines3.

    The library draws from the global generators, which are seeded from the run's seed.

    Args:
        parameters: Name of the algorithm, its policy and its constructor's arguments.
        context: Spaces, seed and device.

    Raises:
        DefinitionError: If the algorithm refuses its parameters or the spaces.
    """

    collect_plan = CollectPlan(vector_steps=1)
    learn_schedule = LearnSchedule(every_env_steps=1, updates=1)
    exact = False
    """A resume is not bit-exact: the position in the algorithm's own loop is not saved."""

    def __init__(self, parameters: Sb3Parameters, context: AgentContext) -> None:
        self._observations = Observations(
            context.observation_space, has_several_inputs=parameters.policy == "MultiInputPolicy"
        )
        self._env = LoopEnv(
            context.num_envs, self._observations, copy.deepcopy(context.action_space)
        )
        self._model = _make_model(parameters, self._env, context)
        self._is_sampling = False
        self._reports = Reports(parameters.algorithm, self._model)
        self._action_dtype = action_layout(context.action_space)[1]
        self.report_names = self._reports.names
        buffer = getattr(self._model, "replay_buffer", None)
        self.memory: ExperienceMemory = NoMemory() if buffer is None else ReplayArrays(buffer)

    # The algorithm's own loop

    def train_by_itself(self, stepper: Stepper, env_steps: int, advance: Advance) -> None:
        """Runs the algorithm's `learn` until it has made `env_steps` over all attempts.

        It ends earlier if `advance` returns false: the engine has ended training.

        Args:
            stepper: Steps the environments.
            env_steps: Number of env_steps of the whole run, at which the algorithm's schedules end,
                such as that of its exploration.
            advance: Called between two steps; returns whether training continues.

        Raises:
            NumericalFailureError: If the algorithm failed because its parameters are not finite.
        """
        model: BaseAlgorithm = self._model
        self._env.attach(stepper, advance)
        try:
            remaining = env_steps - model.num_timesteps
            model.learn(
                remaining, LoopCallback(self._env), log_interval=_NEVER, reset_num_timesteps=False
            )
        except ValueError as error:
            parameter = find_non_finite(model.policy.named_parameters())
            if parameter is None:
                raise
            raise NumericalFailureError(
                f"the policy's parameter {parameter}: check that rewards and observations are "
                "finite, or lower agent.parameters.learning_rate"
            ) from error

    # Acting and learning

    def act(self, observation: Array, *, explore: bool) -> Array:
        """Returns actions [B, ...] of the algorithm's `predict`."""
        actions, _ = self._model.predict(
            self._observations(observation), deterministic=not (explore or self._is_sampling)
        )
        return np.asarray(actions, self._action_dtype)

    @contextmanager
    def sample_actions(self, seed: int, rows: Sequence[np.random.Generator]) -> Iterator[None]:
        """Draws the actions of an evaluation from the policy; see `StochasticActor`."""
        del rows
        seed_global(seed)
        self._is_sampling = True
        try:
            yield
        finally:
            self._is_sampling = False

    def observe(self, experience: Experience) -> None:
        """Does nothing: the algorithm stored these steps in its own loop.

        Raises:
            DefinitionError: If `train_by_itself` was never called, so another loop made the steps.
        """
        if experience.env_steps and not self._env.has_learned:
            raise DefinitionError(
                "the agent 'sb3' trains in a loop of its own, which only jobs of a definition run: "
                "submit one"
            )

    def learn(self, updates: int) -> LearnReport:
        """Returns the report on the algorithm's updates since the last call, ignoring `updates`."""
        del updates
        return self._reports.take()

    @property
    def learning_rate(self) -> float:
        """Step size of the next update."""
        model = self._model
        # The algorithm's `train` calls its schedule with this argument.
        return float(model.lr_schedule(model._current_progress_remaining))  # noqa: SLF001

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        self._model.learning_rate = value
        self._model.lr_schedule = lambda _: value

    def metrics(self) -> Mapping[str, float]:
        """Returns the scalars that the algorithm logs, and the size of a replay buffer if any."""
        gauges = self._reports.gauges()
        if "sb3/exploration_rate" in gauges:
            gauges["explore/epsilon"] = gauges.pop("sb3/exploration_rate")
        return (
            gauges
            if isinstance(self.memory, NoMemory)
            else {**gauges, "memory/size": float(len(self.memory))}
        )

    @contextmanager
    def eval_mode(self) -> Iterator[None]:
        """Restores the training mode of the networks after the body, also after an error.

        Nothing is learnt in the body, because only the algorithm's own loop learns.
        """
        before = self._model.policy.training
        try:
            yield
        finally:
            self._model.policy.set_training_mode(before)

    def acting_module(self) -> torch.nn.Module:
        """Returns a module that acts greedily, on the CPU."""
        return GreedyModule(self._model, self._observations)

    # State

    def state_dict(self) -> StateTree:
        """Returns parameters, targets, optimisers, counters and the generator of random actions.

        The tensors are not copied: they are valid until the next update.
        """
        drawn = generator_state(self._model.action_space.np_random)
        return {
            **model_state(self._model),
            "learning_rate": self.learning_rate,
            "random_actions": drawn,
        }

    def load_state_dict(self, state: StateTree) -> None:
        """Restores `state` in a new agent; raises ValueError if it is of other networks."""
        load_model_state(self._model, state)
        self.learning_rate = float(state["learning_rate"])
        load_generator_state(self._model.action_space.np_random, state["random_actions"])


def _make_model(parameters: Sb3Parameters, env: LoopEnv, context: AgentContext) -> BaseAlgorithm:
    algorithm: Any = algorithm_class(parameters.algorithm)
    arguments = arguments_for(algorithm, parameters.parameters, context.action_space)
    seed = derive_seed(context.seed, "agent/sb3", bits=_SEED_BITS)
    try:
        model: BaseAlgorithm = algorithm(
            parameters.policy, env, seed=seed, device=context.device, **arguments
        )
    except torch.OutOfMemoryError:
        raise
    except _REFUSALS as error:
        which = f"{parameters.algorithm} of Stable-Baselines3 {stable_baselines3.__version__}"
        raise DefinitionError(f"agent: {which} refuses this definition: {error}") from error
    return model

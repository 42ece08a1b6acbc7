"""The built-in agents as an algorithm for the garage-style trainer."""

import random
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import gymnasium as gym
import numpy as np
from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from palestra.contract.agents import AgentParameters
from palestra.contract.wording import summarise_faults
from workers.assembly.registry import divides_bytes, make_agent
from workers.core.errors import SnapshotUnreadableError
from workers.core.protocols import TrainableAgent
from workers.core.recipes import follow_move, rebuildable
from workers.core.types import AgentContext, RestoreReport, StateTree
from workers.rl.collect.vector_collector import VectorCollector
from workers.rl.envs.env_recipe import env_from_recipe, env_recipe
from workers.rl.envs.env_types import Env
from workers.rl.envs.resumable_episode import EpisodeEnv
from workers.rl.envs.vector import SerialVector
from workers.rl.networks.observation_encoding import with_byte_bounds

if TYPE_CHECKING:
    from workers.entrypoints.trainer import Trainer

_PARAMETERS: Final[TypeAdapter[object]] = TypeAdapter(AgentParameters)


@rebuildable
class AgentAlgorithm:
    """Trains a built-in agent: each epoch is one batch of env_steps.

    The agent's own schedule decides when the agent updates its parameters within a batch.

    Args:
        agent: Name and parameters, for example `{"name": "dqn", "learning_rate": 1e-3}`; parameters
            that are left out have their defaults.
        env: Gymnasium ID, or an environment that `gymnasium.make` returned; only its recipe is
            used, from which new environments are made.
        num_envs: Number of environments that are stepped together.
        seed: Seed of all random generators; `None` draws one from Python's global generator. It is
            saved in snapshots.
        max_episode_length: Time limit in env_steps, in addition to the environment's own; `None`
            adds no limit.
        device: A torch device.
        scales_by_bounds: Whether uint8 observations are divided by the bounds of their space. If
            not, by 255, for snapshots that were written before format 4.

    Raises:
        ValueError: If a parameter is wrong; the message names it.
        DefinitionError: If the agent does not fit the environment's spaces.
    """

    def __init__(
        self,
        agent: Mapping[str, object],
        env: str | Env,
        *,
        num_envs: int = 1,
        seed: int | None = None,
        max_episode_length: int | None = None,
        device: str = "cpu",
        scales_by_bounds: bool = True,
    ) -> None:
        recipe = {"id": env} if isinstance(env, str) else env_recipe(env)
        self.max_episode_length = max_episode_length
        self._seed = random.getrandbits(53) if seed is None else seed
        self._vector = SerialVector(
            [partial(self._make_env, recipe, index) for index in range(num_envs)]
        )
        self._scales_by_bounds = scales_by_bounds
        context = AgentContext(
            observation_space=self._vector.single_observation_space,
            action_space=self._vector.single_action_space,
            num_envs=num_envs,
            seed=self._seed,
            device=device,
        )
        self._parameters = _parse_parameters(agent)
        self.agent: TrainableAgent = make_agent(
            self._parameters, context, scales_by_bounds=scales_by_bounds
        )
        self.collector = _SeededCollector(self._vector, self.agent, self._seed)
        self.policy = GreedyPolicy(self.agent)

    def train(self, trainer: "Trainer") -> None:
        """Trains one batch per epoch."""
        for _ in trainer.step_epochs():
            trainer.advance()
            trainer.step_itr += 1

    def state_dict(self) -> StateTree:
        """Returns how observations are scaled.

        The trainer saves the agent and the collector itself.
        """
        return {"scales_by_bounds": self._scales_by_bounds}

    def load_state_dict(self, state: StateTree) -> None:
        """Checks that observations have the scale of the snapshot.

        Raises:
            SnapshotUnreadableError: If they do not.
        """
        scales_by_bounds = state["scales_by_bounds"]
        space = self._vector.single_observation_space
        if (
            scales_by_bounds != self._scales_by_bounds
            and divides_bytes(self._parameters)
            and space != with_byte_bounds(space)
        ):
            raise SnapshotUnreadableError(
                "the snapshot's agent was trained with another scale of uint8 observations: give "
                f"AgentAlgorithm scales_by_bounds={scales_by_bounds}"
            )

    def _make_env(self, recipe: StateTree, index: int) -> EpisodeEnv:
        made = (
            gym.make(follow_move(recipe["id"]), disable_env_checker=True)
            if len(recipe) == 1
            else env_from_recipe(recipe)
        )
        return EpisodeEnv(made, index, self.max_episode_length)


class GreedyPolicy:
    """Wraps a built-in agent as a policy that acts without exploration.

    Args:
        agent: The agent whose `act` chooses the actions.
    """

    def __init__(self, agent: TrainableAgent) -> None:
        self._agent = agent

    def get_action(self, observation: object) -> tuple[Any, dict[str, Any]]:
        """Returns the greedy action for one unbatched observation, and an empty dictionary."""
        return self._agent.act(np.asarray(observation)[None], explore=False)[0], {}

    def __deepcopy__(self, memo: object) -> "GreedyPolicy":
        """Returns itself: a copy would duplicate the agent's replay memory without need."""
        return self


class _SeededCollector(VectorCollector):
    """A collector that saves its seed, so that a resumed run uses the seed of the snapshot."""

    def state_dict(self) -> StateTree:
        """Returns the seed and the episodes in progress."""
        return {"seed": self.origins[0][0], "collector": super().state_dict()}

    def restore(self, state: StateTree) -> RestoreReport:
        """Restores the seed and the episodes in progress from `state`."""
        self.origins = [(int(state["seed"]), index) for _, index in self.origins]
        return super().restore(state["collector"])


def _parse_parameters(parameters: Mapping[str, object]) -> Any:
    try:
        # As JSON a list is an array, as it is in definitions.
        return _PARAMETERS.validate_json(to_json(parameters, inf_nan_mode="constants"))
    except ValidationError as error:
        raise ValueError(f"agent: {summarise_faults(error, 'agent', skip=2)}") from error

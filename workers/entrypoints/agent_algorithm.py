"""The built-in agents as an algorithm for the garage-style trainer."""

import random
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import gymnasium as gym
import numpy as np
from pydantic import TypeAdapter, ValidationError

from palestra.contract.agents import AgentParameters
from palestra.contract.wording import summarise_faults
from workers.assembly.registry import make_agent
from workers.core.protocols import TrainableAgent
from workers.core.recipes import rebuildable
from workers.core.types import AgentContext, RestoreReport, StateTree
from workers.rl.collect.vector_collector import VectorCollector
from workers.rl.envs.env_recipe import env_from_recipe, env_recipe
from workers.rl.envs.env_types import Env
from workers.rl.envs.resumable_episode import EpisodeEnv
from workers.rl.envs.vector import SerialVector

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
    ) -> None:
        recipe = {"id": env} if isinstance(env, str) else env_recipe(env)
        self.max_episode_length = max_episode_length
        self._seed = random.getrandbits(53) if seed is None else seed
        self._vector = SerialVector(
            [partial(self._make_env, recipe, index) for index in range(num_envs)]
        )
        context = AgentContext(
            observation_space=self._vector.single_observation_space,
            action_space=self._vector.single_action_space,
            num_envs=num_envs,
            seed=self._seed,
            device=device,
        )
        self.agent: TrainableAgent = make_agent(_parse_parameters(agent), context)
        self.collector = _SeededCollector(self._vector, self.agent, self._seed)
        self.policy = GreedyPolicy(self.agent)

    def train(self, trainer: "Trainer") -> None:
        """Trains one batch per epoch."""
        for _ in trainer.step_epochs():
            trainer.advance()
            trainer.step_itr += 1

    def state_dict(self) -> StateTree:
        """Returns an empty dictionary: the trainer saves the agent and the collector itself."""
        return {}

    def load_state_dict(self, state: StateTree) -> None:
        """Does nothing; see `state_dict`."""

    def _make_env(self, recipe: StateTree, index: int) -> EpisodeEnv:
        made = (
            gym.make(recipe["id"], disable_env_checker=True)
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
        return _PARAMETERS.validate_python(dict(parameters))
    except ValidationError as error:
        raise ValueError(f"agent: {summarise_faults(error, 'agent', skip=2)}") from error

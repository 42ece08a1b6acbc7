"""One worker of a sampler: a policy and an environment.

An episode depends on the seed, its number and the parameters alone. Before each episode the
environment, its action space and the global generators are seeded from (seed, worker, episode). So
nothing random has to be kept between episodes, and the same episodes come out in this process and
in another one.
"""

import copy
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import gymnasium as gym
import numpy as np

from workers.core.object_state import has_state, load_state, pack, state_of, unpack
from workers.core.rng import ENV_SEED_BITS, derive_seed, preserved_global_state, seed_global
from workers.core.state_tree import with_tensors, without_tensors
from workers.core.types import StateTree
from workers.entrypoints.trainer_parts.episode import Episode
from workers.rl.envs.env_recipe import copy_env
from workers.rl.envs.env_types import Env

EnvUpdate = Callable[[Any], Any]
"""Gets a worker's environment and returns the one to go on with."""
_REMEDY: Final = (
    "give the policy get_param_values and set_param_values, or state_dict and load_state_dict"
)


class RolloutWorker:
    """Runs episodes one after the other.

    Args:
        agent: A policy: `get_action(observation)` returns an action and a dict of infos; `reset()`
            is called before each episode if it exists. The worker's own.
        env: The worker's own.
        index: Number of the worker.
        seed: The sampler's seed.
        max_episode_length: Time limit in env_steps; `None` for the environment's own alone.
    """

    def __init__(
        self,
        agent: Any,
        env: Env,
        *,
        index: int,
        seed: int,
        max_episode_length: int | None,
    ) -> None:
        self.agent = agent
        self.env = env
        self._index = index
        self._seed = seed
        self._limit = max_episode_length or 2**63
        self._episodes = 0

    def update(self, agent_update: object, env_update: object) -> None:
        """Takes new parameters or another policy, and another environment.

        `None` keeps what there is.
        """
        self.agent = updated_agent(self.agent, agent_update)
        if env_update is not None:
            self.env = updated_env(self.env, env_update)

    def rollout(self, at_most: int | None = None) -> Episode:
        """Runs one episode; it is cut after `at_most` env_steps, or at the time limit."""
        with self.seeded():
            return self._run(min(self._limit, at_most or self._limit))

    @contextmanager
    def seeded(self) -> Iterator[None]:
        """Seeds everything for the next episode, and puts the global generators back afterwards."""
        with preserved_global_state():
            seed_global(derive_seed(self._seed, "sampler/act", self._index, self._episodes))
            yield
        self.episode_over()

    def episode_over(self) -> None:
        """Counts an episode: the next one derives from other seeds."""
        self._episodes += 1

    def begin(self, episode: Episode) -> object:
        """Resets the environment and returns the first observation."""
        seed = derive_seed(
            self._seed, "sampler/env", self._index, self._episodes, bits=ENV_SEED_BITS
        )
        self.env.action_space.seed(seed)
        observation, episode.episode_info = self.env.reset(seed=seed)
        return observation

    def state_dict(self) -> StateTree:
        """Returns how many episodes were run, and the policy's state."""
        return {"episodes": self._episodes, "agent": state_of(self.agent, "sampler.agent")}

    def load_state_dict(self, state: StateTree) -> None:
        """Goes on after so many episodes."""
        self._episodes = int(state["episodes"])
        load_state(self.agent, state["agent"], "sampler.agent")

    def _run(self, limit: int) -> Episode:
        episode = Episode(self._index)
        observation = self.begin(episode)
        if callable(reset := getattr(self.agent, "reset", None)):
            reset()
        while True:
            action, agent_info = self.agent.get_action(observation)
            successor, reward, terminated, truncated, info = self.env.step(action)
            episode.add(kept(observation), action, float(reward), (info, agent_info))
            observation = successor
            if terminated or truncated or len(episode) >= limit:
                episode.last_observation, episode.terminated = kept(observation), bool(terminated)
                return episode


def kept(observation: object) -> object:
    """Returns a copy of an observation, which its environment cannot change."""
    return observation.copy() if isinstance(observation, np.ndarray) else observation


def parameters_of(policy: Any) -> object:
    """Returns the parameters that `updated_agent` sets, or the policy where it has none to read.

    Raises:
        ValueError: If it is no policy either.
    """
    if callable(get := getattr(policy, "get_param_values", None)):
        return get()
    if has_state(policy):
        return policy.state_dict()
    if callable(getattr(policy, "get_action", None)):
        return policy
    raise ValueError(
        f"{type(policy).__name__} has no get_action and does not say what its parameters are: "
        f"{_REMEDY}"
    )


def updated_agent(agent: Any, update: Any) -> object:
    """Returns the policy to go on with: another one, or `agent` with new parameters.

    `None` keeps it as it is.
    """
    if update is None:
        return agent
    if callable(getattr(update, "get_action", None)):
        return copy.deepcopy(update)
    if callable(put := getattr(agent, "set_param_values", None)):
        put(update)
    elif has_state(agent):
        agent.load_state_dict(update)
    else:
        raise ValueError(f"{type(agent).__name__} cannot take new parameters: {_REMEDY}")
    return agent


def updated_env(env: Env, update: object) -> Env:
    """Returns the next environment: a copy of `update`, or what `update` makes of the old one.

    Raises:
        TypeError: If the update is neither.
    """
    if isinstance(update, gym.Env):
        env.close()
        return copy_env(update)
    if not callable(update):
        raise TypeError(
            "env_update must be an environment or a function of the old one, "
            f"not {type(update).__name__}"
        )
    made: object = update(env)
    if not isinstance(made, gym.Env):
        raise TypeError(f"env_update returned {type(made).__name__} instead of an environment")
    return made


def reset_slots(agent: Any, mask: Any) -> None:
    """Resets a policy for those of several environments that begin an episode.

    A policy whose `reset` takes no mask is reset only if all do.
    """
    reset = getattr(agent, "reset", None)
    if not callable(reset):
        return
    if inspect.signature(reset).parameters:
        reset(mask)
    elif mask.all():
        reset()


def spread(update: object, n_workers: int, name: str) -> list[object]:
    """Returns an update for each worker: the members of a list, or the same for all.

    Raises:
        ValueError: If a list has another length.
    """
    if isinstance(update, list):
        if len(update) != n_workers:
            raise ValueError(
                f"{name} is a list of {len(update)}, but the sampler has {n_workers} workers: "
                "give one entry per worker"
            )
        return list(update)
    return [update] * n_workers


def arrays_of(parameters: object) -> object:
    """Returns parameters as arrays and plain data, to cross to another process."""
    return without_tensors(pack(parameters, "agent_update"))


def parameters_from(arrays: object) -> Any:
    """Returns the parameters that `arrays_of` packed."""
    return unpack(with_tensors(arrays))

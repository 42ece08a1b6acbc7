"""One worker of a sampler: a policy and an environment.

Before each episode the environment, its action space and the global random generators are seeded
from (seed, worker, episode). An episode therefore depends only on these numbers and on the
policy's parameters: no generator state is kept between episodes, and the episodes are the same in
this process and in another one.
"""

import copy
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import gymnasium as gym
import numpy as np

from workers.core.object_state import has_state, load_state, pack, state_of, unpack
from workers.core.rng import ENV_SEED_BITS, derive_seed, preserve_global_state, seed_global
from workers.core.state_tree import arrays_to_tensors, tensors_to_arrays
from workers.core.types import StateTree
from workers.entrypoints.trainer_parts.episode import Episode
from workers.rl.envs.env_recipe import copy_env
from workers.rl.envs.env_types import Env

EnvUpdate = Callable[[Any], Any]
"""A function that maps a worker's environment to its next environment."""
_REMEDY: Final = (
    "give the policy get_param_values and set_param_values, or state_dict and load_state_dict"
)


class RolloutWorker:
    """Runs episodes one after the other.

    Args:
        agent: A policy: `get_action(observation)` returns an action and a dict of infos; `reset()`,
            if it exists, is called before each episode. Must not be shared with other workers.
        env: The environment. Must not be shared with other workers.
        index: Index of the worker in its sampler.
        seed: Seed of the sampler.
        max_episode_length: Time limit in env_steps, in addition to the environment's own; `None`
            adds no limit.
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
        """Sets new parameters or another policy, and another environment.

        `None` keeps the current policy or environment.
        """
        self.agent = updated_agent(self.agent, agent_update)
        if env_update is not None:
            self.env = updated_env(self.env, env_update)

    def rollout(self, at_most: int | None = None) -> Episode:
        """Runs one episode, which is truncated after `at_most` env_steps or at the time limit."""
        with self.seed_episode():
            return self._run(min(self._limit, at_most or self._limit))

    @contextmanager
    def seed_episode(self) -> Iterator[None]:
        """Seeds the global generators for one episode; restores them and counts it afterwards."""
        with preserve_global_state():
            seed_global(derive_seed(self._seed, "sampler/act", self._index, self._episodes))
            yield
        self.count_episode()

    def count_episode(self) -> None:
        """Counts an episode, so that the next one has other seeds."""
        self._episodes += 1

    def begin(self, episode: Episode) -> object:
        """Seeds and resets the environment, and returns the first observation."""
        seed = derive_seed(
            self._seed, "sampler/env", self._index, self._episodes, bits=ENV_SEED_BITS
        )
        self.env.action_space.seed(seed)
        observation, episode.episode_info = self.env.reset(seed=seed)
        return observation

    def state_dict(self) -> StateTree:
        """Returns the number of episodes that were run, and the policy's state."""
        return {"episodes": self._episodes, "agent": state_of(self.agent, "sampler.agent")}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the number of episodes and the policy's state."""
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
            episode.add(copy_observation(observation), action, float(reward), (info, agent_info))
            observation = successor
            if terminated or truncated or len(episode) >= limit:
                episode.last_observation, episode.terminated = (
                    copy_observation(observation),
                    bool(terminated),
                )
                return episode


def copy_observation(observation: object) -> object:
    """Returns a copy of an array, because the environment may overwrite its observation."""
    return observation.copy() if isinstance(observation, np.ndarray) else observation


def parameters_of(policy: Any) -> object:
    """Returns a policy's parameters, which `updated_agent` sets.

    A policy without readable parameters is returned itself.

    Raises:
        ValueError: If the object has neither readable parameters nor `get_action`.
    """
    if callable(get := getattr(policy, "get_param_values", None)):
        return get()
    if has_state(policy):
        return policy.state_dict()
    if callable(getattr(policy, "get_action", None)):
        return policy
    raise ValueError(
        f"{type(policy).__name__} has neither get_action nor readable parameters: {_REMEDY}"
    )


def updated_agent(agent: Any, update: Any) -> object:
    """Returns the next policy: a copy of `update`, or `agent` with the parameters `update`.

    If `update` is `None`, returns `agent` unchanged.
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
    """Returns the next environment: a copy of `update`, or the result of `update(env)`.

    Raises:
        TypeError: If `update` is neither an environment nor callable, or returns no environment.
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
    """Resets a policy for the environments in which an episode begins.

    Calls `reset(mask)`, with `mask` bool [B]. A policy whose `reset` has no parameter is reset only
    if an episode begins in all environments.
    """
    reset = getattr(agent, "reset", None)
    if not callable(reset):
        return
    if inspect.signature(reset).parameters:
        reset(mask)
    elif mask.all():
        reset()


def updates_per_worker(update: object, n_workers: int, name: str) -> list[object]:
    """Returns one update per worker: the elements of a list, or the same update for all workers.

    Raises:
        ValueError: If the length of a list is not `n_workers`.
    """
    if isinstance(update, list):
        if len(update) != n_workers:
            raise ValueError(
                f"{name} is a list of {len(update)}, but the sampler has {n_workers} workers: "
                "give one entry per worker"
            )
        return list(update)
    return [update] * n_workers


def pack_parameters(parameters: object) -> object:
    """Converts parameters to arrays and plain data that can be sent to another process."""
    return tensors_to_arrays(pack(parameters, "agent_update"))


def unpack_parameters(arrays: object) -> Any:
    """Returns the parameters that `pack_parameters` packed."""
    return unpack(arrays_to_tensors(arrays))

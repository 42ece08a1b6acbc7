"""Samplers that run a policy in copies of an environment and return whole episodes.

A `RoundSampler` collects in rounds, with one episode per worker and round, and returns all
episodes, so that no env_step is discarded. `unit` defines the meaning of a batch's `num_samples`:

- `whole_episodes`: rounds are run until the episodes have at least `num_samples` env_steps
  together, as in garage;
- `exact_steps`: exactly `num_samples` env_steps, which are divided among the workers; a worker's
  episode is truncated where its share ends;
- `episodes`: exactly `num_samples` whole episodes.
"""

import copy
import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final, Literal, Self, get_args

import numpy as np

from workers.core.recipes import rebuildable
from workers.core.rng import derive_seed, preserve_global_state, seed_global
from workers.core.types import StateTree
from workers.entrypoints.trainer_parts.episode import Episode
from workers.entrypoints.trainer_parts.episode_batch import EnvSpec, EpisodeBatch
from workers.entrypoints.trainer_parts.rollout_worker import (
    RolloutWorker,
    copy_observation,
    reset_slots,
    updated_agent,
    updated_env,
    updates_per_worker,
)
from workers.rl.envs.env_recipe import copy_env
from workers.rl.envs.env_types import Env

BatchUnit = Literal["whole_episodes", "exact_steps", "episodes"]
_SEED_BITS: Final = 53


class RoundSampler(ABC):
    """Base class of samplers, which decides how many episodes each worker runs.

    Args:
        n_workers: Number of workers, each of which runs one episode per round.
        seed: Seed of all episodes; `None` draws one from Python's global generator. It is part of
            `state_dict`.
        unit: Meaning of `num_samples`; see the module.
    """

    def __init__(self, n_workers: int, seed: int | None, unit: BatchUnit) -> None:
        if n_workers < 1:
            raise ValueError(f"n_workers must be at least 1, not {n_workers}")
        if unit not in get_args(BatchUnit):
            raise ValueError(f"unit must be one of {', '.join(get_args(BatchUnit))}, not {unit!r}")
        self.n_workers = n_workers
        self.seed = fresh_seed() if seed is None else seed
        self._unit = unit
        self._saved: list[StateTree] = []
        """State of each worker, used while the workers are not started."""

    def obtain_samples(
        self, itr: int, num_samples: int, agent_update: object, env_update: object = None
    ) -> EpisodeBatch:
        """Returns a batch of episodes.

        Args:
            itr: Number of the iteration; not used.
            num_samples: Size of the batch, in the sampler's unit.
            agent_update: New parameters or another policy; a list has one entry per worker. `None`
                keeps the policies.
            env_update: Another environment, or a function that maps the old one to a new one; a
                list has one entry per worker. `None` keeps the environments.

        Raises:
            ValueError: If the length of a list is not the number of workers, or `num_samples` is
                less than 1.
        """
        del itr
        if num_samples < 1:
            raise ValueError(f"num_samples must be at least 1, not {num_samples}")
        if agent_update is not None or env_update is not None:
            agents = updates_per_worker(agent_update, self.n_workers, "agent_update")
            self.update(agents, updates_per_worker(env_update, self.n_workers, "env_update"))
        if self._unit == "episodes":
            return EpisodeBatch.from_episodes(self._collect_episodes(num_samples), self.env_spec)
        return EpisodeBatch.from_episodes(self._collect_steps(num_samples), self.env_spec)

    def obtain_exact_episodes(
        self, n_eps_per_worker: int, agent_update: object, env_update: object = None
    ) -> EpisodeBatch:
        """Returns `n_eps_per_worker` whole episodes of each worker; see `obtain_samples`."""
        self.update(
            updates_per_worker(agent_update, self.n_workers, "agent_update"),
            updates_per_worker(env_update, self.n_workers, "env_update"),
        )
        return EpisodeBatch.from_episodes(
            self._collect_episodes(n_eps_per_worker * self.n_workers), self.env_spec
        )

    @property
    @abstractmethod
    def env_spec(self) -> EnvSpec:
        """Spec of the environment, which batches refer to."""

    @abstractmethod
    def update(self, agents: Sequence[object], envs: Sequence[object]) -> None:
        """Updates the policy and the environment of each worker; `None` entries keep them."""

    @abstractmethod
    def run(self, limits: Sequence[int | None]) -> list[Episode]:
        """Runs one episode per element of `limits` on the first workers, in the workers' order.

        An element is the episode's limit in env_steps; `None` for no limit.
        """

    @abstractmethod
    def shutdown_worker(self) -> None:
        """Closes the workers' environments and ends their processes."""

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the state of a sampler with the same number of workers.

        Raises:
            ValueError: If the number of workers differs.
        """
        check_workers(state["workers"], self.n_workers)
        self.shutdown_worker()
        self.seed, self._saved = int(state["seed"]), state["workers"]

    def close(self) -> None:
        """Calls `shutdown_worker`."""
        self.shutdown_worker()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _collect_episodes(self, count: int) -> list[Episode]:
        episodes: list[Episode] = []
        while len(episodes) < count:
            episodes += self.run([None] * min(self.n_workers, count - len(episodes)))
        return episodes

    def _collect_steps(self, count: int) -> list[Episode]:
        episodes: list[Episode] = []
        missing = count
        while missing > 0:
            round_of = self.run(self._shares(missing))
            episodes += round_of
            missing -= sum(map(len, round_of))
        return episodes

    def _shares(self, missing: int) -> list[int | None]:
        if self._unit == "whole_episodes":
            return [None] * self.n_workers
        share, more = divmod(missing, self.n_workers)
        return [one for one in (share + (index < more) for index in range(self.n_workers)) if one]


@rebuildable
class LocalSampler(RoundSampler):
    """Runs its workers one after the other in this process.

    Args:
        agents: The policy, copied for each worker.
        envs: The environment, copied for each worker.
        max_episode_length: Time limit in env_steps, in addition to the environment's own; `None`
            adds no limit.
        n_workers: Number of workers.
        seed: See `RoundSampler`.
        unit: Meaning of `num_samples`; see the module.
    """

    def __init__(
        self,
        agents: object,
        envs: Env,
        max_episode_length: int | None = None,
        *,
        n_workers: int = 1,
        seed: int | None = None,
        unit: BatchUnit = "whole_episodes",
    ) -> None:
        super().__init__(n_workers, seed, unit)
        self._parts = (agents, envs, max_episode_length)
        self._workers: list[RolloutWorker] = []

    @property
    def env_spec(self) -> EnvSpec:
        """Spec of the first worker's environment."""
        _, env, limit = self._parts
        return EnvSpec.from_env(self._workers[0].env if self._workers else env, limit)

    def update(self, agents: Sequence[object], envs: Sequence[object]) -> None:
        """Updates the policy and the environment of each worker; `None` entries keep them."""
        for worker, agent, env in zip(self._running_workers(), agents, envs, strict=True):
            worker.update(agent, env)

    def run(self, limits: Sequence[int | None]) -> list[Episode]:
        """Runs one episode per element of `limits`, one after the other, on the first workers."""
        return [
            worker.rollout(limit)
            for worker, limit in zip(self._running_workers(), limits, strict=False)
        ]

    def shutdown_worker(self) -> None:
        """Saves the workers' states and closes their environments; the next call makes new ones."""
        self._saved = self.state_dict()["workers"]
        for worker in self._workers:
            worker.env.close()
        self._workers = []

    def state_dict(self) -> StateTree:
        """Returns the seed and the state of each worker."""
        return {
            "seed": self.seed,
            "workers": [worker.state_dict() for worker in self._workers] or self._saved,
        }

    def _running_workers(self) -> list[RolloutWorker]:
        if not self._workers:
            agent, env, limit = self._parts
            options = {"seed": self.seed, "max_episode_length": limit}
            self._workers = [
                RolloutWorker(copy.deepcopy(agent), copy_env(env), index=index, **options)  # type: ignore[arg-type]
                for index in range(self.n_workers)
            ]
            for worker, state in zip(self._workers, self._saved, strict=False):
                worker.load_state_dict(state)
        return self._workers


@rebuildable
class VecSampler:
    """Steps copies of an environment together in this process, with one batch of actions.

    A new episode begins only while the env_steps made so far are fewer than the batch size, and
    every episode that has begun is finished and returned. So short episodes are not
    over-represented.

    Args:
        agents: The policy: `get_actions(observations)` returns actions [B, ...] and infos by name
            [B, ...].
        envs: The environment, of which B copies are made.
        max_episode_length: Time limit in env_steps, in addition to the environment's own; `None`
            adds no limit.
        n_envs: Number B of environments.
        seed: See `RoundSampler`.
    """

    n_workers = 1

    def __init__(
        self,
        agents: Any,
        envs: Env,
        max_episode_length: int | None = None,
        *,
        n_envs: int = 8,
        seed: int | None = None,
    ) -> None:
        if n_envs < 1:
            raise ValueError(f"n_envs must be at least 1, not {n_envs}")
        self.seed = fresh_seed() if seed is None else seed
        self._agent = agents
        self._env = envs
        self._limit = max_episode_length
        self._count = n_envs
        self._calls = 0
        self._slots: list[RolloutWorker] = []
        self._saved: list[StateTree] = []

    def obtain_samples(
        self, itr: int, num_samples: int, agent_update: object, env_update: object = None
    ) -> EpisodeBatch:
        """Returns at least `num_samples` env_steps in whole episodes, in the order of their start.

        See `RoundSampler.obtain_samples`.
        """
        del itr
        if num_samples < 1:
            raise ValueError(f"num_samples must be at least 1, not {num_samples}")
        self._agent = updated_agent(
            self._agent, updates_per_worker(agent_update, 1, "agent_update")[0]
        )
        update = updates_per_worker(env_update, 1, "env_update")[0]
        for slot in self._running_workers():
            slot.env = slot.env if update is None else updated_env(slot.env, update)
        with preserve_global_state():
            seed_global(derive_seed(self.seed, "sampler/calls", self._calls))
            episodes = self._run(num_samples)
        self._calls += 1
        return EpisodeBatch.from_episodes(
            episodes, EnvSpec.from_env(self._slots[0].env, self._limit)
        )

    def shutdown_worker(self) -> None:
        """Saves the counters and closes the environments; the next call makes new ones."""
        self._saved = self.state_dict()["slots"]
        for slot in self._slots:
            slot.env.close()
        self._slots = []

    def state_dict(self) -> StateTree:
        """Returns the seed and the counters; the algorithm saves the policy."""
        return {
            "seed": self.seed,
            "calls": self._calls,
            "slots": [slot.state_dict() for slot in self._slots] or self._saved,
        }

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the state of a sampler with the same number of environments."""
        if state["slots"]:
            check_workers(state["slots"], self._count)
        self.shutdown_worker()
        self.seed, self._calls, self._saved = (
            int(state["seed"]),
            int(state["calls"]),
            state["slots"],
        )

    def _running_workers(self) -> list[RolloutWorker]:
        if not self._slots:
            self._slots = [
                RolloutWorker(
                    None,
                    copy_env(self._env),
                    index=index,
                    seed=self.seed,
                    max_episode_length=self._limit,
                )
                for index in range(self._count)
            ]
            for slot, state in zip(self._slots, self._saved, strict=False):
                slot.load_state_dict(state)
        return self._slots

    def _run(self, wanted: int) -> list[Episode]:
        slots, done, running = self._slots, list[Episode](), dict[int, Episode]()
        current: list[object] = [None] * len(slots)
        made = 0
        while True:
            fresh = np.zeros(len(slots), np.bool_)
            for index in (one for one in range(len(slots)) if one not in running):
                if made >= wanted:
                    break
                running[index] = Episode(index)
                done.append(running[index])
                current[index] = slots[index].begin(running[index])
                fresh[index] = True
            if not running:
                return done
            if fresh.any():
                reset_slots(self._agent, fresh)
            made += len(running)
            self._step(current, running)

    def _step(self, current: list[object], running: dict[int, Episode]) -> None:
        actions, infos = self._actions(current)
        for index, episode in list(running.items()):
            slot = self._slots[index]
            successor, reward, terminated, truncated, info = slot.env.step(actions[index])
            mine = {name: column[index] for name, column in infos.items()}
            episode.add(
                copy_observation(current[index]), actions[index], float(reward), (info, mine)
            )
            current[index] = successor
            if terminated or truncated or len(episode) >= (self._limit or 2**63):
                episode.last_observation, episode.terminated = (
                    copy_observation(successor),
                    bool(terminated),
                )
                slot.count_episode()
                del running[index]

    def _actions(self, current: list[Any]) -> tuple[Any, Any]:
        if callable(act := getattr(self._agent, "get_actions", None)):
            return act(np.stack(current))  # type: ignore[no-any-return]
        pairs = [self._agent.get_action(observation) for observation in current]
        names = dict.fromkeys(name for _, info in pairs for name in info)
        return [action for action, _ in pairs], {
            name: [info.get(name) for _, info in pairs] for name in names
        }


def fresh_seed() -> int:
    """Returns a seed drawn from the global generator of the standard library."""
    return random.getrandbits(_SEED_BITS)


def check_workers(states: Sequence[StateTree], n_workers: int) -> None:
    """Raises ValueError if the number of `states` is neither 0 nor `n_workers`."""
    if states and len(states) != n_workers:
        message = (
            f"the snapshot is of a sampler with {len(states)} workers, "
            f"this one has {n_workers}: build it with as many"
        )
        raise ValueError(message)

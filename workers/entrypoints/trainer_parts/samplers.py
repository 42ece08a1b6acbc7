"""Samplers that run a policy in copies of an environment and return whole episodes.

All of them collect in rounds, one episode per worker and round, and hand out everything that was
run, so every env_step counts. `unit` sets what the number of a batch means:

- `whole_episodes`: rounds until the lengths sum up to at least so many env_steps (garage's
  meaning);
- `exact_steps`: exactly so many env_steps; an episode is cut, as by a time limit, where its
  worker's share ends;
- `episodes`: exactly so many whole episodes.
"""

import copy
import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final, Literal, Self, get_args

import numpy as np

from workers.core.recipes import rebuildable
from workers.core.rng import derive_seed, preserved_global_state, seed_global
from workers.core.types import StateTree
from workers.entrypoints.trainer_parts.episode import Episode
from workers.entrypoints.trainer_parts.episode_batch import EnvSpec, EpisodeBatch
from workers.entrypoints.trainer_parts.rollout_worker import (
    RolloutWorker,
    kept,
    reset_slots,
    spread,
    updated_agent,
    updated_env,
)
from workers.rl.envs.env_recipe import copy_env
from workers.rl.envs.env_types import Env

BatchUnit = Literal["whole_episodes", "exact_steps", "episodes"]
_SEED_BITS: Final = 53


class RoundSampler(ABC):
    """Base of the samplers: how many episodes each worker runs.

    Args:
        n_workers: Episodes per round.
        seed: All episodes derive from it; `None` draws one from the global generator, which is
            saved.
        unit: What a number of samples means, see the module.
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
        """The state of each worker while none runs."""

    def obtain_samples(
        self, itr: int, num_samples: int, agent_update: object, env_update: object = None
    ) -> EpisodeBatch:
        """Returns a batch of episodes.

        Args:
            itr: Iteration; only forwarded.
            num_samples: How much, in the sampler's unit.
            agent_update: New parameters or another policy; a list has one entry per worker. `None`
                keeps what there is.
            env_update: Another environment, or a function of the old one; a list has one entry per
                worker. `None` keeps what there is.

        Raises:
            ValueError: If a list has a length other than the number of workers, or `num_samples` is
                below 1.
        """
        del itr
        if num_samples < 1:
            raise ValueError(f"a batch needs at least 1, not {num_samples}")
        if agent_update is not None or env_update is not None:
            agents = spread(agent_update, self.n_workers, "agent_update")
            self.update(agents, spread(env_update, self.n_workers, "env_update"))
        if self._unit == "episodes":
            return EpisodeBatch.of(self._exactly(num_samples), self.env_spec)
        return EpisodeBatch.of(self._steps(num_samples), self.env_spec)

    def obtain_exact_episodes(
        self, n_eps_per_worker: int, agent_update: object, env_update: object = None
    ) -> EpisodeBatch:
        """Returns so many whole episodes of each worker; see `obtain_samples`."""
        self.update(
            spread(agent_update, self.n_workers, "agent_update"),
            spread(env_update, self.n_workers, "env_update"),
        )
        return EpisodeBatch.of(self._exactly(n_eps_per_worker * self.n_workers), self.env_spec)

    @property
    @abstractmethod
    def env_spec(self) -> EnvSpec:
        """The spec of the environment, for batches."""

    @abstractmethod
    def update(self, agents: Sequence[object], envs: Sequence[object]) -> None:
        """Gives each worker its updates."""

    @abstractmethod
    def run(self, limits: Sequence[int | None]) -> list[Episode]:
        """Runs one episode on each of the first workers and returns them in the workers' order.

        A limit is the most env_steps of the episode; `None` for none.
        """

    @abstractmethod
    def shutdown_worker(self) -> None:
        """Ends what the sampler started."""

    def load_state_dict(self, state: StateTree) -> None:
        """Restores a captured state; the number of workers must be the same.

        Raises:
            ValueError: If it is not.
        """
        check_workers(state["workers"], self.n_workers)
        self.shutdown_worker()
        self.seed, self._saved = int(state["seed"]), state["workers"]

    def close(self) -> None:
        """Ends what the sampler started."""
        self.shutdown_worker()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _exactly(self, count: int) -> list[Episode]:
        episodes: list[Episode] = []
        while len(episodes) < count:
            episodes += self.run([None] * min(self.n_workers, count - len(episodes)))
        return episodes

    def _steps(self, count: int) -> list[Episode]:
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
        agents: The policy; each worker gets a copy.
        envs: The environment; each worker gets a copy.
        max_episode_length: Time limit in env_steps; `None` for the environment's own alone.
        n_workers: Workers.
        seed: See `RoundSampler`.
        unit: See the module.
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
        """The spec of the first worker's environment."""
        _, env, limit = self._parts
        return EnvSpec.of(self._workers[0].env if self._workers else env, limit)

    def update(self, agents: Sequence[object], envs: Sequence[object]) -> None:
        """Gives each worker its updates."""
        for worker, agent, env in zip(self._started(), agents, envs, strict=True):
            worker.update(agent, env)

    def run(self, limits: Sequence[int | None]) -> list[Episode]:
        """Runs one episode on each of the first workers."""
        return [
            worker.rollout(limit) for worker, limit in zip(self._started(), limits, strict=False)
        ]

    def shutdown_worker(self) -> None:
        """Closes the environments.

        The next call makes new ones and goes on with the next episodes.
        """
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

    def _started(self) -> list[RolloutWorker]:
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

    Episodes count by their start: another one begins only while those begun do not yet suffice, and
    each that began is finished. So short episodes are not over-represented.

    Args:
        agents: The policy: `get_actions(observations)` returns actions [B, ...] and infos by name
            [B, ...].
        envs: The environment; copied.
        max_episode_length: Time limit in env_steps; `None` for the environment's own alone.
        n_envs: B.
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
            raise ValueError(f"a batch needs at least 1, not {num_samples}")
        self._agent = updated_agent(self._agent, spread(agent_update, 1, "agent_update")[0])
        update = spread(env_update, 1, "env_update")[0]
        for slot in self._started():
            slot.env = slot.env if update is None else updated_env(slot.env, update)
        with preserved_global_state():
            seed_global(derive_seed(self.seed, "sampler/calls", self._calls))
            episodes = self._run(num_samples)
        self._calls += 1
        return EpisodeBatch.of(episodes, EnvSpec.of(self._slots[0].env, self._limit))

    def shutdown_worker(self) -> None:
        """Closes the environments; the next call makes new ones."""
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
        """Restores a captured state."""
        if state["slots"]:
            check_workers(state["slots"], self._count)
        self.shutdown_worker()
        self.seed, self._calls, self._saved = (
            int(state["seed"]),
            int(state["calls"]),
            state["slots"],
        )

    def _started(self) -> list[RolloutWorker]:
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
            episode.add(kept(current[index]), actions[index], float(reward), (info, mine))
            current[index] = successor
            if terminated or truncated or len(episode) >= (self._limit or 2**63):
                episode.last_observation, episode.terminated = kept(successor), bool(terminated)
                slot.episode_over()
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
    """Raises ValueError where a state is of another number of workers."""
    if states and len(states) != n_workers:
        message = (
            f"the snapshot is of a sampler with {len(states)} workers, "
            f"this one has {n_workers}: build it with as many"
        )
        raise ValueError(message)

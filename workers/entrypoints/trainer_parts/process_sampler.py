"""A sampler whose workers are processes.

The processes are spawned and receive import paths with arguments (recipes) and parameters as
arrays, never closures. A worker process is killed when its parent ends, also in the middle of an
episode. If a worker process dies, `SamplerWorkerError` is raised with the cause.
"""

import functools
import os
from collections.abc import Sequence
from typing import Any

import gymnasium as gym

from workers.core.errors import WorkerError
from workers.core.recipes import RecipeError, rebuild, rebuildable, recipes_of
from workers.core.state_tree import arrays_to_tensors, tensors_to_arrays
from workers.core.subprocess_pool import Command, Handler, SubprocessPool
from workers.core.types import StateTree
from workers.entrypoints.trainer_parts.episode import Episode
from workers.entrypoints.trainer_parts.episode_batch import EnvSpec
from workers.entrypoints.trainer_parts.rollout_worker import (
    RolloutWorker,
    pack_parameters,
    parameters_of,
    unpack_parameters,
)
from workers.entrypoints.trainer_parts.samplers import BatchUnit, RoundSampler
from workers.rl.envs.env_types import Env


class SamplerWorkerError(WorkerError):
    """A worker process of a sampler raised, or died."""


@rebuildable
class ProcessSampler(RoundSampler):
    """Runs each worker in a process of its own.

    Args:
        agents: The policy; its class must be marked with `workers.core.recipes.rebuildable`. Its
            parameters can be replaced with each call.
        envs: The environment, made by `gymnasium.make` or of a class that is marked likewise.
        max_episode_length: Time limit in env_steps, in addition to the environment's own; `None`
            adds no limit.
        n_workers: Number of processes; `None` starts one per processor that this process may use.
        seed: See `RoundSampler`.
        unit: See `workers.entrypoints.trainer_parts.samplers`.

    Raises:
        RecipeError: If policy or environment cannot be built again in another process; the message
            names the object and the remedy.
    """

    def __init__(
        self,
        agents: object,
        envs: Env,
        max_episode_length: int | None = None,
        *,
        n_workers: int | None = None,
        seed: int | None = None,
        unit: BatchUnit = "whole_episodes",
    ) -> None:
        super().__init__(n_workers or len(os.sched_getaffinity(0)), seed, unit)
        self._recipes = tensors_to_arrays(recipes_of({"agent": agents, "env": envs}))
        parameters = parameters_of(agents)
        self._parameters = None if parameters is agents else pack_parameters(parameters)
        self._limit = max_episode_length
        self._env_spec = EnvSpec.from_env(envs, max_episode_length)
        self._workers: SubprocessPool | None = None

    @property
    def env_spec(self) -> EnvSpec:
        """Spec of the last environment that was passed to the constructor or to `update`."""
        return self._env_spec

    def update(self, agents: Sequence[object], envs: Sequence[object]) -> None:
        """Sends each worker its new parameters or policy, and its new environment."""
        if isinstance(envs[0], gym.Env):
            self._env_spec = EnvSpec.from_env(envs[0], self._limit)
        orders = [
            ("update", _agent_order(agent), _env_order(env))
            for agent, env in zip(agents, envs, strict=True)
        ]
        self._running_pool().execute(orders)

    def run(self, limits: Sequence[int | None]) -> list[Episode]:
        """Runs one episode per element of `limits`, in parallel, on the first workers."""
        return self._running_pool().execute([("rollout", limit) for limit in limits])

    def shutdown_worker(self) -> None:
        """Saves the workers' states and ends the processes; the next call starts them again."""
        self._saved = self.state_dict()["workers"]
        workers, self._workers = self._workers, None
        if workers is not None:
            workers.close()

    def state_dict(self) -> StateTree:
        """Returns the seed and the state of each worker.

        If the processes are not running or a result is pending, these are the last known states.
        """
        if self._workers is not None and self._workers.is_idle:
            self._saved = [
                unpack_parameters(state)
                for state in self._workers.execute([("state",)] * self.n_workers)
            ]
        return {"seed": self.seed, "workers": self._saved}

    @property
    def pids(self) -> tuple[int, ...]:
        """Process IDs of the running workers."""
        return () if self._workers is None else self._workers.pids

    def _running_pool(self) -> SubprocessPool:
        if self._workers is not None and self._workers.has_pending_results:
            self.shutdown_worker()
        if self._workers is None:
            options = {"seed": self.seed, "max_episode_length": self._limit}
            makers = [
                functools.partial(
                    _make_handler, self._recipes, self._parameters, {"index": i, **options}
                )
                for i in range(self.n_workers)
            ]
            self._workers = SubprocessPool("sampler worker", SamplerWorkerError, makers)
            if self._saved:
                self._workers.execute([("load", pack_parameters(state)) for state in self._saved])
        return self._workers


MultiprocessingSampler = ProcessSampler


def _agent_order(update: object) -> object:
    if update is None:
        return None
    if callable(getattr(update, "get_action", None)):
        parameters = parameters_of(update)
        recipe = tensors_to_arrays(recipes_of({"agent": update}))
        return {
            "recipe": recipe,
            "parameters": None if parameters is update else pack_parameters(parameters),
        }
    return {"parameters": pack_parameters(update)}


def _env_order(update: object) -> object:
    if update is None:
        return None
    try:
        return tensors_to_arrays(recipes_of({"env": update}))
    except RecipeError as error:
        raise RecipeError(
            f"env_update must be built again in the worker's process: {error}"
        ) from error


def _make_handler(recipes: StateTree, parameters: object, options: dict[str, Any]) -> Handler:
    """Builds policy and environment in the worker's process; returns the handler of commands."""
    parts = rebuild(arrays_to_tensors(recipes))
    worker = RolloutWorker(parts["agent"], parts["env"], **options)
    worker.update(None if parameters is None else unpack_parameters(parameters), None)
    return functools.partial(_execute, worker)


def _execute(worker: RolloutWorker, order: Command) -> object:
    match order:
        case ("rollout", limit):
            return worker.rollout(limit)
        case ("update", agent, env):
            _update(worker, agent, env)
        case ("state",):
            return pack_parameters(worker.state_dict())
        case ("load", state):
            worker.load_state_dict(unpack_parameters(state))
        case _:
            raise ValueError(f"unknown command {order[0]!r}")
    return None


def _update(worker: RolloutWorker, agent: Any, env: Any) -> None:
    if agent is not None and "recipe" in agent:
        worker.agent = rebuild(arrays_to_tensors(agent["recipe"]))["agent"]
    parameters = None if agent is None else unpack_parameters(agent["parameters"])
    worker.update(parameters, None if env is None else rebuild(arrays_to_tensors(env))["env"])

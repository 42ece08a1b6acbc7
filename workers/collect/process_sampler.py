"""A sampler whose workers are processes.

They are spawned, so what crosses is import paths with arguments (recipes) and parameters as arrays, never closures. A worker ends with its
parent, also in the middle of an episode; one that dies is an error that says how.
"""

import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Final, NamedTuple

import gymnasium as gym

from workers.collect.episodes import Episode
from workers.collect.rollouts import RolloutWorker, arrays_of, parameters_from, parameters_of, with_tensors, without_tensors
from workers.collect.samplers import BatchUnit, RoundSampler, check_workers
from workers.core.errors import WorkerError
from workers.core.recipes import RecipeError, rebuild, recipes_of
from workers.core.types import StateTree

_ENOUGH_SECONDS: Final = 5.0


class SamplerWorkerError(WorkerError):
    """A worker process of a sampler raised, or died."""


class _Running(NamedTuple):
    process: BaseProcess
    pipe: Connection


class ProcessSampler(RoundSampler):
    """Runs each worker in a process of its own.

    Args:
        agents: The policy: its class is marked with `workers.core.recipes.rebuildable`, its parameters come with each call.
        envs: The environment: made by `gymnasium.make`, or of a marked class.
        max_episode_length: Time limit in env_steps; `None` for the environment's own alone.
        n_workers: Processes; `None` takes one per processor of this machine that this process may use.
        seed: See `RoundSampler`.
        unit: See `workers.collect.samplers`.

    Raises:
        RecipeError: If policy or environment cannot be built again in another process; it names the part and the remedy.
    """

    def __init__(
        self,
        agents: Any,
        envs: gym.Env[Any, Any],
        max_episode_length: int | None = None,
        *,
        n_workers: int | None = None,
        seed: int | None = None,
        unit: BatchUnit = "whole_episodes",
    ) -> None:
        super().__init__(n_workers or len(os.sched_getaffinity(0)), seed, unit)
        self._recipes = without_tensors(recipes_of({"agent": agents, "env": envs}))
        parameters = parameters_of(agents)
        self._parameters = None if parameters is agents else arrays_of(parameters)
        self._limit = max_episode_length
        self._running: list[_Running] = []
        self._saved: list[StateTree] = []
        self._waiting = False
        """Whether answers are still under way: a call was left by an exception."""

    def update(self, agents: Sequence[Any], envs: Sequence[Any]) -> None:
        """Sends each worker its updates."""
        orders = [("update", _agent_order(agent), _env_order(env)) for agent, env in zip(agents, envs, strict=True)]
        self._ask(orders)

    def run(self, limits: Sequence[int | None]) -> list[Episode]:
        """Runs one episode on each of the first workers, at the same time."""
        return self._ask([("rollout", limit) for limit in limits])

    def shutdown_worker(self) -> None:
        """Ends the processes; the next call starts new ones and goes on with the next episodes."""
        self._saved = self.state_dict()["workers"]
        running, self._running = self._running, []
        for one in running:
            one.pipe.close()
            if self._waiting:
                one.process.kill()
        self._waiting = False
        for one in running:
            one.process.join(_ENOUGH_SECONDS)
            if one.process.is_alive():
                one.process.kill()
                one.process.join()

    def state_dict(self) -> StateTree:
        """Returns the seed and the state of each worker: the last one known where workers died, or were left in the middle of a call."""
        if self._running and not self._waiting and all(one.process.is_alive() for one in self._running):
            self._saved = [parameters_from(state) for state in self._ask([("state",)] * self.n_workers)]
        return {"seed": self.seed, "workers": self._saved}

    def load_state_dict(self, state: StateTree) -> None:
        """Goes on from a captured state; the number of workers must be the same.

        Raises:
            ValueError: If it is not.
        """
        check_workers(state["workers"], self.n_workers)
        self.shutdown_worker()
        self.seed, self._saved = int(state["seed"]), state["workers"]

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of the workers that run."""
        return tuple(one.process.pid or 0 for one in self._running)

    def _started(self) -> list[_Running]:
        if self._waiting:
            self.shutdown_worker()
        if not self._running:
            self._running = [self._start(index) for index in range(self.n_workers)]
            if self._saved:
                self._ask([("load", arrays_of(state)) for state in self._saved])
        return self._running

    def _start(self, index: int) -> _Running:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        arguments = (theirs, self._recipes, self._parameters, {"index": index, "seed": self.seed, "max_episode_length": self._limit})
        process = context.Process(target=_serve, args=arguments, name=f"sampler-{index}", daemon=True)
        process.start()
        theirs.close()
        return _Running(process, ours)

    def _ask(self, orders: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Sends an order to each of the first workers and waits for all answers.

        Raises:
            SamplerWorkerError: If a worker raised, or is dead.
        """
        asked = list(zip(self._started(), orders, strict=False))
        self._waiting = True
        for index, (one, order) in enumerate(asked):
            try:
                one.pipe.send(order)
            except OSError as error:
                raise self._dead(index) from error
        answers = [self._answer(index) for index in range(len(asked))]
        self._waiting = False
        for index, (done, answer) in enumerate(answers):
            if not done:
                raise SamplerWorkerError(f"sampler worker {index} raised:\n{answer}")
        return [answer for _, answer in answers]

    def _answer(self, index: int) -> tuple[bool, Any]:
        one = self._running[index]
        wait([one.pipe, one.process.sentinel])
        try:
            answer: tuple[bool, Any] = one.pipe.recv()
        except (EOFError, OSError) as error:
            raise self._dead(index) from error
        return answer

    def _dead(self, index: int) -> SamplerWorkerError:
        process = self._running[index].process
        process.join(_ENOUGH_SECONDS)
        code = process.exitcode or 0
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit status {code}"
        return SamplerWorkerError(f"sampler worker {index} (process {process.pid}) {how}: its memory or its environment may be the cause")


MultiprocessingSampler = ProcessSampler


def _agent_order(update: Any) -> Any:
    if update is None:
        return None
    if callable(getattr(update, "get_action", None)):
        parameters = parameters_of(update)
        recipe = without_tensors(recipes_of({"agent": update}))
        return {"recipe": recipe, "parameters": None if parameters is update else arrays_of(parameters)}
    return {"parameters": arrays_of(update)}


def _env_order(update: Any) -> Any:
    if update is None:
        return None
    try:
        return without_tensors(recipes_of({"env": update}))
    except RecipeError as error:
        raise RecipeError(f"env_update must be built again in the worker's process: {error}") from error


def _serve(pipe: Connection, recipes: StateTree, parameters: Any, options: dict[str, Any]) -> None:
    """The worker's process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
    worker: RolloutWorker | None = None
    while True:
        try:
            order = pipe.recv()
        except EOFError:
            return
        try:
            if worker is None:
                worker = _build(recipes, parameters, options)
            answer = (True, _carry_out(worker, order))
        except Exception:  # noqa: BLE001 - whatever the policy or the environment raises goes to the parent
            answer = (False, traceback.format_exc())
        pipe.send(answer)


def _build(recipes: StateTree, parameters: Any, options: dict[str, Any]) -> RolloutWorker:
    parts = rebuild(with_tensors(recipes))
    worker = RolloutWorker(parts["agent"], parts["env"], **options)
    worker.update(None if parameters is None else parameters_from(parameters), None)
    return worker


def _carry_out(worker: RolloutWorker, order: tuple[Any, ...]) -> Any:
    match order:
        case ("rollout", limit):
            return worker.rollout(limit)
        case ("update", agent, env):
            _update(worker, agent, env)
        case ("state",):
            return arrays_of(worker.state_dict())
        case ("load", state):
            worker.load_state_dict(parameters_from(state))
        case _:
            raise ValueError(f"unknown order {order[0]!r}")
    return None


def _update(worker: RolloutWorker, agent: Any, env: Any) -> None:
    if agent is not None and "recipe" in agent:
        worker.agent = rebuild(with_tensors(agent["recipe"]))["agent"]
    parameters = None if agent is None else parameters_from(agent["parameters"])
    worker.update(parameters, None if env is None else rebuild(with_tensors(env))["env"])


def _end_with_parent() -> None:
    """Ends this process with its parent, even if an episode is running."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)

"""One process of an asynchronous training: an engine whose clock all processes share.

Owns the process's environments, agent and engine. Episodes and evaluations are sent to the parent,
which writes all record files.
"""

import cProfile
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from workers.core.rng import derive_seed, global_state, seed_global
from workers.engine.engine import Engine
from workers.engine.parts import Cadence, Parts
from workers.entrypoints.async_training import process_main
from workers.entrypoints.async_training.messages import AsyncSettings, ProcessTask, UserParts
from workers.entrypoints.async_training.process_group import wait_for_start
from workers.entrypoints.async_training.process_parts import (
    FollowRunHook,
    LinkRecorder,
    ProcessControl,
    ProcessSnapshots,
    RunAbortedError,
)
from workers.entrypoints.async_training.shared_block import StopCause
from workers.entrypoints.async_training.shared_parts import (
    EndOfRun,
    SharedBestScore,
    SharedBudget,
    SharedClock,
    SharedIntervalTrigger,
)
from workers.entrypoints.functional_parts.evaluator import (
    EvaluationEnvironments,
    EvaluationSettings,
    ExternalAgentEvaluator,
)
from workers.hooks.step_hooks import StepHooks
from workers.rl.agents.pfrl_adapter import ExternalAgent
from workers.rl.agents.shared_tensors import adopt
from workers.rl.collect.vector_collector import VectorCollector
from workers.rl.envs.caller_envs import as_vector
from workers.rl.envs.vector import EpisodeVector
from workers.rl.evaluate.vector_evaluator import new_seed_rule
from workers.snapshot.snapshot_directory import read_snapshot

_WAIT_SECONDS = 0.002


def enter(parent: int, index: int, link: Connection, order: ProcessTask) -> None:
    """Main function of each process; see `ProcessGroup`."""
    process_main.run(parent, index, link, lambda index, link: _train(index, link, order))


def _train(index: int, link: Connection, order: ProcessTask) -> None:
    with ExitStack() as stack:
        member = _Member(index, link, order, stack)
        if not wait_for_start(link):
            return
        with _profile(order.settings, index):
            member.drive()


class _Member:
    """One process of the run: its environments, its agent and its engine."""

    def __init__(self, index: int, link: Connection, order: ProcessTask, stack: ExitStack) -> None:
        settings, user, block = order.settings, order.user.unpack(), order.block.reopen()
        _prepare(order.seed)
        self._index = index
        self._order = order
        self._end = EndOfRun(block, index)
        self._clock = SharedClock(time.monotonic, block, settings.steps)
        self._best = SharedBestScore(block)
        env = _close_with(stack, user.make_env(index, test=False))
        environments = (
            None
            if settings.evaluation is None
            else _close_with(stack, user.make_env(index, test=True))
        )
        own = (
            _set_process_idx(user.agent, index)
            if user.make_agent is None
            else user.make_agent(index)
        )
        self._agent = ExternalAgent(
            own, num_envs=1, is_batch=False, save_memory=settings.save_memory
        )
        self._engine = self._build_engine(
            link,
            user,
            SharedBudget(settings.steps, self._clock, block, self._end),
            env,
            environments,
        )
        if order.resume is not None:
            self._resume(order.resume)
        adopt(own, user.tensors)

    def drive(self) -> None:
        """Trains until the run is over.

        The process that ends the run waits for all others to stop before it saves.
        """
        self._clock.begin()
        try:
            for _ in self._engine.ticks():
                if self._end.writes_last_snapshot:
                    self._wait_for_others()
        except RunAbortedError:
            return
        finally:
            self._end.mark_stopped()

    def _build_engine(
        self,
        link: Connection,
        user: UserParts,
        budget: SharedBudget,
        env: object,
        environments: object,
    ) -> Engine:
        settings, seed = self._order.settings, self._collect_seed()
        evaluator = (
            None
            if settings.evaluation is None
            else self._evaluator(environments, settings.evaluation, seed)
        )
        parts = Parts(
            agent=self._agent,
            collector=VectorCollector(
                _single_vector(env, settings.max_episode_len), self._agent, seed
            ),
            recorder=LinkRecorder(
                link,
                self._agent,
                evaluator,
                user.evaluation_hooks,
                sends_statistics=self._index == 0,
            ),
            snapshotter=ProcessSnapshots(self._order, self._clock, self._best, self._end, link),
            control=ProcessControl(self._end, budget, self._clock, user.stop_event),
            evaluator=evaluator,
            hooks=(
                FollowRunHook(self._end, budget, settings.successful_score),
                StepHooks(env, self._agent.wrapped, user.step_hooks, 1),
            ),
            best=self._best,
            clock=self._clock,
        )
        interval = (
            None
            if settings.evaluation is None
            else SharedIntervalTrigger(settings.evaluation.interval, self._clock, settings.steps)
        )
        cadence = Cadence(
            budget=budget,
            evaluation=interval,
            saves_best=settings.saves_best,
            saves_best_separately=True,
        )
        return Engine(parts, cadence, time.monotonic)

    def _evaluator(
        self, environments: Any, settings: EvaluationSettings, seed: int
    ) -> ExternalAgentEvaluator:
        place = EvaluationEnvironments(
            environments, _single_vector(environments, settings.max_episode_len)
        )
        return ExternalAgentEvaluator(
            self._agent, place, settings, new_seed_rule(seed), self._best, self._check_interrupts
        )

    def _collect_seed(self) -> int:
        """Returns the seed of the episodes.

        After a resume, all processes but the first derive a new seed from the env_step, so that
        they do not repeat the episodes of the earlier run.
        """
        at = self._clock.env_steps
        is_resumed = self._order.resume is not None and self._index > 0
        return derive_seed(self._order.seed, "resumed", at) if is_resumed else self._order.seed

    def _resume(self, snapshot: Path) -> None:
        """Restores a snapshot.

        The first process restores all parts; the others keep their own collector, recorder, hooks
        and global random generators, because these parts belong to the process that saved them.
        """
        state = read_snapshot(snapshot).state
        if self._index > 0:
            fresh = self._engine.state_dict()
            state = {
                **state,
                **{part: fresh[part] for part in ("collector", "recorder", "hooks")},
                "rng": global_state(),
            }
        self._engine.restore(state)

    def _check_interrupts(self) -> None:
        if self._end.is_aborted:
            raise RunAbortedError("the run was ended from outside this process")

    def _wait_for_others(self) -> None:
        self._end.mark_stopped()
        while not self._end.have_others_stopped():
            try:
                self._check_interrupts()
            except RunAbortedError as error:
                self._engine.save_after(error)
                raise
            time.sleep(_WAIT_SECONDS)
        if self._end.ending is not StopCause.SUCCESS:
            self._clock.catch_up()


def _prepare(seed: int) -> None:
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)
    seed_global(seed)


def _single_vector(env: Any, max_episode_len: int | None) -> EpisodeVector:
    vector = as_vector(env, "make_env", max_episode_len)
    if vector.num_envs != 1:
        raise ValueError(
            f"make_env: it made {vector.num_envs} environments, but a process steps one: "
            "raise processes instead"
        )
    return vector


def _set_process_idx(agent: object, index: int) -> Any:
    """Sets the attribute `process_idx` of an agent that has one, and returns the agent."""
    if hasattr(agent, "process_idx"):
        agent.process_idx = index
    return agent


def _close_with(stack: ExitStack, env: Any) -> Any:
    stack.callback(env.close)
    return env


@contextmanager
def _profile(settings: AsyncSettings, index: int) -> Iterator[None]:
    """Profiles the body and writes `profile_<index>.prof`, if `settings.profile` is set."""
    if not settings.profile:
        yield
        return
    profiler = cProfile.Profile()
    profiler.enable()
    try:
        yield
    finally:
        profiler.disable()
        profiler.dump_stats(settings.outdir / f"profile_{index}.prof")

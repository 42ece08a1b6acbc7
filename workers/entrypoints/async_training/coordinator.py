"""The caller's side of one asynchronous training: checks the call, starts the processes, listens,
and says how it ended. Holds no loop.
"""

import json
import logging
import multiprocessing
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing import synchronize
from pathlib import Path
from types import FrameType
from typing import Any, Final, Self

import numpy as np

from palestra.contract.documents import sha256_of
from workers.core.rng import preserved_global_state, seed_global
from workers.entrypoints.async_training.async_records import AsyncRecords, RecordSettings
from workers.entrypoints.async_training.process_group import ProcessGroup
from workers.entrypoints.async_training.shared_block import SharedBlock, Slot, StopCause
from workers.entrypoints.async_training.shared_parts import EndOfRun
from workers.entrypoints.async_training.spawn_pickling import Parcel, check_crosses, crosses
from workers.entrypoints.async_training.training_process import (
    SUCCESSFUL,
    AsyncSettings,
    ProcessTask,
    UserParts,
    enter,
)
from workers.entrypoints.functional_parts.evaluator import EvaluationSettings
from workers.entrypoints.functional_parts.interrupts import TerminatedError
from workers.entrypoints.functional_parts.named_snapshots import find_snapshot, settle_named
from workers.hooks.evaluation_hooks import check_support
from workers.rl.agents.pfrl_adapter import ForeignAgent
from workers.rl.agents.shared_tensors import SharedTensors, share
from workers.snapshot.owner import snapshot_owner
from workers.snapshot.snapshot_directory import LoadedSnapshot, SnapshotOwner, read_snapshot, settle

OUTCOME_FILE: Final = "outcome.json"
_FUNCTION: Final = "train_agent_async"
_GRACE_SECONDS: Final = 60.0
"""For the processes to save and end once something went wrong."""
_TICK_SECONDS: Final = 0.02
_REASONS: Final = {
    StopCause.BUDGET: "budget",
    StopCause.SUCCESS: "success_score",
    StopCause.REQUESTED: "requested",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AsyncCall:
    """The arguments of a call."""

    outdir: Path
    processes: int
    make_env: Callable[..., Any]
    profile: bool
    steps: int
    evaluation: EvaluationSettings | None
    success_threshold: float
    max_episode_len: int | None
    step_offset: int
    successful_score: float | None
    agent: Any
    make_agent: Callable[[int], Any] | None
    step_hooks: tuple[Any, ...]
    evaluation_hooks: tuple[Any, ...]
    save_best: bool
    tensorboard: bool
    logger: logging.Logger
    random_seeds: Sequence[int] | None
    stop_event: Any
    exception_event: Any
    share: bool
    resume: str | None
    start_method: str
    save_memory: bool


def run_async(call: AsyncCall) -> Any:
    """Trains, and returns the agent.

    Raises:
        Exception: What a process raised, after a snapshot `<t>_except`.
    """
    _check(call)
    run = _Run(call)
    run.start_over()
    try:
        with _Signals() as signals:
            run.train(signals)
    finally:
        if call.stop_event is not None:
            call.stop_event.set()
    return run.agent


class _Run:
    """One call, as the caller's process sees it."""

    def __init__(self, call: AsyncCall) -> None:
        self._call = call
        self._seeds = _seeds(call)
        self._block = SharedBlock(call.processes)
        self._end = EndOfRun(self._block.opened(), 0)
        self._direct_stop = call.stop_event if _crosses(call, call.stop_event) else None
        self.agent = self._host()
        self._wrapped = ForeignAgent(
            self.agent, num_envs=1, batch=False, save_memory=call.save_memory
        )
        self._found: Path | None = None
        self._snapshot: LoadedSnapshot | None = None

    def start_over(self) -> None:
        """Finds where training begins, and brings the agent there."""
        call, count = self._call, self._block.env_steps
        count.value = call.step_offset
        self._found = None if call.resume is None else find_snapshot(call.outdir, call.resume)
        if self._found is None:
            return
        self._snapshot = snapshot = read_snapshot(self._found)
        if snapshot.manifest.definition_hash != self._identity():
            raise ValueError(
                "resume: the snapshot is of another agent class, or none of train_agent_async"
            )
        self._wrapped.load_state_dict(snapshot.state["agent"])
        count.value = snapshot.state["clock"]["env_steps"]

    def train(self, signals: "_Signals") -> None:
        """Starts the processes, and listens until all have ended."""
        call = self._call
        tensors = share(self.agent) if call.share else {}
        user = self._user_parts(tensors)
        _check_user_parts(call, user)
        call.outdir.mkdir(parents=True, exist_ok=True)
        settle_named(call.outdir)
        settle(call.outdir, SUCCESSFUL)
        with ExitStack() as stack:
            records = AsyncRecords(self._record_settings(), stack)
            if records.best is not None:
                self._block.reals[Slot.BEST] = records.best
            group = stack.enter_context(
                ProcessGroup(multiprocessing.get_context(call.start_method), enter)
            )
            watch = _Watch(call, self._end, group, records, signals)
            shared = (self._block, SharedBlock(0), Parcel(user))
            group.start([ProcessTask(self._settings(), seed, *shared) for seed in self._seeds])
            group.serve(watch, _TICK_SECONDS)
            settle_named(call.outdir)
            settle(call.outdir, SUCCESSFUL)
            self._conclude(watch, records)

    def _host(self) -> Any:
        """Returns the agent of the caller's process, which the shared memory belongs to and which
        is returned.
        """
        if self._call.agent is not None or self._call.make_agent is None:
            return self._call.agent
        with preserved_global_state():
            seed_global(self._seeds[0])
            return self._call.make_agent(0)

    def _user_parts(self, tensors: SharedTensors) -> UserParts:
        call = self._call
        own = None if call.make_agent is not None else self.agent
        return UserParts(
            call.make_env,
            call.make_agent,
            own,
            tensors,
            call.step_hooks,
            call.evaluation_hooks,
            self._direct_stop,
        )

    def _settings(self) -> AsyncSettings:
        call = self._call
        return AsyncSettings(
            outdir=call.outdir,
            owner=self._owner(),
            steps=call.steps,
            evaluation=call.evaluation,
            max_episode_len=call.max_episode_len,
            successful_score=call.successful_score,
            save_best=call.save_best,
            profile=call.profile,
            resume=self._found,
            save_memory=call.save_memory,
        )

    def _owner(self) -> SnapshotOwner:
        before = self._snapshot.manifest if self._snapshot else None
        return snapshot_owner(
            run_id=before.run_id if before else None,
            experiment_id=_FUNCTION,
            definition_hash=self._identity(),
            seed=self._seeds[0],
            parent=before.snapshot_id if before else None,
            device="cpu",
            exact=self._wrapped.exact and self._call.processes == 1,
        )

    def _identity(self) -> str:
        return sha256_of({"agent": type(self.agent).__qualname__, "function": _FUNCTION})

    def _record_settings(self) -> RecordSettings:
        call, start = self._call, self._block.env_steps.value
        return RecordSettings(
            outdir=call.outdir,
            logger=call.logger,
            agent_statistics=tuple(self.agent.get_statistics()),
            evaluates=call.evaluation is not None,
            tensorboard=call.tensorboard,
            threshold=call.success_threshold,
            start=start,
            fresh=self._snapshot is None and start == 0,
        )

    def _conclude(self, watch: "_Watch", records: AsyncRecords) -> None:
        """Says how the run ended, and raises what ended it."""
        env_steps, ending = self._block.env_steps.value, self._end.ending
        overshoot = max(0, env_steps - int(self._call.steps))
        outcome = {
            "reason": _REASONS.get(ending, "exception"),
            "steps": int(self._call.steps),
            "env_steps": env_steps,
            "overshoot": overshoot,
            "episodes": self._block.episodes.value,
            "processes": int(self._call.processes),
            "snapshot": records.snapshot,
        }
        (self._call.outdir / OUTCOME_FILE).write_text(json.dumps(outcome, indent=1) + "\n", "utf-8")
        self._call.logger.info(
            "training ended: %s at step %s, %s beyond steps",
            outcome["reason"],
            outcome["env_steps"],
            overshoot,
        )
        saved = (
            "nothing could be saved"
            if records.snapshot is None
            else f"the agent was saved to {self._call.outdir / records.snapshot}"
        )
        watch.signals.raise_heard()
        if watch.error is not None:
            watch.error.add_note(saved)
            raise watch.error
        if ending is StopCause.ABORTED:
            self._call.logger.warning("exception_event was set: training ended early, %s", saved)
        if records.snapshot is not None:
            self._wrapped.load_state_dict(
                read_snapshot(self._call.outdir / records.snapshot).state["agent"]
            )


class _Watch:
    """What the caller does about its processes while they train."""

    def __init__(
        self,
        call: AsyncCall,
        end: EndOfRun,
        group: ProcessGroup,
        records: AsyncRecords,
        signals: "_Signals",
    ) -> None:
        self.error: BaseException | None = None
        self.signals = signals
        self._stop_event = call.stop_event
        self._exception_event = call.exception_event
        self._end = end
        self._group = group
        self._records = records

    def heard(self, index: int, message: object) -> None:
        """Writes what a process tells."""
        self._records.heard(index, message)

    def failed(self, index: int, error: BaseException, *, alive: Sequence[int]) -> None:
        """Stops the others; the first error is the one that is raised."""
        del index
        self.error = self.error or error
        self._abort(alive)

    def look(self) -> None:
        """Obeys events and signals."""
        end = self._end
        if not end.over and self._stop_event is not None and self._stop_event.is_set():
            end.claim(StopCause.REQUESTED)
        if not end.aborted and (
            self.signals.heard is not None
            or (self._exception_event is not None and self._exception_event.is_set())
        ):
            self._abort(self._group.alive)

    def _abort(self, alive: Sequence[int]) -> None:
        if self._group.begun:
            self._end.abort(min(alive, default=None))
            self._group.expect_end(_GRACE_SECONDS)
        else:
            self._end.abort(None)
            self._group.kill()


class _Signals:
    """Hears SIGINT and SIGTERM in the main thread.

    The second one raises at once, and nothing is saved then.
    """

    def __init__(self) -> None:
        self.heard: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._hear)
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, signal.SIG_DFL if before is None else before)

    def raise_heard(self) -> None:
        """Raises what the signal that came stands for, if one came."""
        if self.heard == signal.SIGTERM:
            raise TerminatedError("SIGTERM")
        if self.heard is not None:
            raise KeyboardInterrupt

    def _hear(self, number: int, frame: FrameType | None) -> None:
        del frame
        again, self.heard = self.heard is not None, number
        if again:
            self.raise_heard()


def _check(call: AsyncCall) -> None:
    """Refuses what could only go wrong later, before anything is made."""
    if call.agent is None and call.make_agent is None:
        raise ValueError("give agent or make_agent: there is nothing to train")
    for name, value, least in (
        ("processes", call.processes, 1),
        ("steps", call.steps, 0),
        ("step_offset", call.step_offset, 0),
        ("max_episode_len", call.max_episode_len, 1),
    ):
        if value is not None and (not isinstance(value, int | np.integer) or value < least):
            raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}")
    if call.start_method not in multiprocessing.get_all_start_methods():
        raise ValueError(
            f"start_method must be one of {multiprocessing.get_all_start_methods()}, not {call.start_method!r}"
        )
    for name, function in (("make_env", call.make_env), ("make_agent", call.make_agent)):
        if function is not None and not callable(function):
            raise TypeError(f"{name}: a {type(function).__name__} cannot be called")
    for hook in call.step_hooks:
        if not callable(hook):
            raise TypeError(
                f"global_step_hooks: a {type(hook).__name__} cannot be called as hook(env, agent, step)"
            )
    check_support(call.evaluation_hooks, "train_agent_async", _FUNCTION)


def _seeds(call: AsyncCall) -> list[int]:
    seeds = (
        list(range(call.processes))
        if call.random_seeds is None
        else [int(seed) for seed in call.random_seeds]
    )
    if len(seeds) != call.processes:
        raise ValueError(
            f"random_seeds holds {len(seeds)} seeds for {call.processes} processes: give one for each"
        )
    if min(seeds) < 0:
        raise ValueError(f"random_seeds must be at least 0, not {min(seeds)}")
    return seeds


def _crosses(call: AsyncCall, event: object) -> bool:
    """Returns whether the processes can look at an event themselves.

    The caller looks at any other one for them.
    """
    return isinstance(event, synchronize.Event) and (
        call.start_method == "fork" or crosses(event) is None
    )


def _check_user_parts(call: AsyncCall, user: UserParts) -> None:
    if call.start_method == "fork":
        return
    check_crosses("make_env", user.make_env)
    check_crosses("make_agent", user.make_agent)
    check_crosses(
        "agent", user.agent, "give make_agent, a function of a module, instead of or beside agent"
    )
    for name, hooks in (
        ("global_step_hooks", user.step_hooks),
        ("evaluation_hooks", user.evaluation_hooks),
    ):
        for hook in hooks:
            check_crosses(name, hook)
    check_crosses("the agent's shared tensors", user.tensors)

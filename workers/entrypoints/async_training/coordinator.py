"""The part of an asynchronous training that runs in the caller's process.

Starts the training processes, receives their messages and reports how the training ended. The
training loop itself runs in the started processes.
"""

import json
import multiprocessing
import signal
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Final

from palestra.contract.documents import hash_document
from workers.core.rng import preserve_global_state, seed_global
from workers.entrypoints.async_training.async_call import (
    FUNCTION,
    AsyncCall,
    can_send_stop_event,
    check_call,
    check_user_parts,
    seeds_of,
)
from workers.entrypoints.async_training.async_records import AsyncRecords
from workers.entrypoints.async_training.messages import ProcessTask
from workers.entrypoints.async_training.process_group import ProcessGroup
from workers.entrypoints.async_training.shared_block import SharedBlock, Slot, StopCause
from workers.entrypoints.async_training.shared_parts import EndOfRun
from workers.entrypoints.async_training.spawn_pickling import PickledValue
from workers.entrypoints.async_training.training_process import enter
from workers.entrypoints.functional_parts.interrupts import TerminatedError
from workers.entrypoints.functional_parts.named_snapshots import (
    find_snapshot,
    repair_named_snapshots,
)
from workers.entrypoints.signal_handlers import handle_signals
from workers.rl.agents.pfrl_adapter import ExternalAgent
from workers.rl.agents.shared_tensors import share
from workers.snapshot.owner import snapshot_owner
from workers.snapshot.snapshot_directory import LoadedSnapshot, SnapshotOwner, read_snapshot

OUTCOME_FILE: Final = "outcome.json"
_GRACE_SECONDS: Final = 60.0
"""Time in which the processes must save and end after a failure, before they are killed."""
_TICK_SECONDS: Final = 0.02
_REASONS: Final = {
    StopCause.BUDGET: "budget",
    StopCause.SUCCESS: "success_score",
    StopCause.REQUESTED: "requested",
}


def run_async(call: AsyncCall) -> Any:
    """Trains and returns the agent of the caller's process.

    Raises:
        Exception: The first exception of a process, after a snapshot `<t>_except` was written.
    """
    check_call(call)
    run, signals = _Run(call), _Signals()
    run.restore_start()
    try:
        with signals.handle_signals():
            run.train(signals)
    finally:
        if call.user.stop_event is not None:
            call.user.stop_event.set()
    return run.agent


class _Run:
    """State of one `train_agent_async` call in the caller's process."""

    def __init__(self, call: AsyncCall) -> None:
        self._call = call
        self._seeds = seeds_of(call)
        self._block = SharedBlock(call.processes)
        self._end = EndOfRun(self._block.reopen(), 0)
        self.agent = self._caller_agent()
        self._wrapped = ExternalAgent(
            self.agent, num_envs=1, is_batch=False, save_memory=call.settings.save_memory
        )
        self._found: Path | None = None
        self._snapshot: LoadedSnapshot | None = None

    def restore_start(self) -> None:
        """Sets the initial env_step and, for a resume, restores agent and counts."""
        call, count = self._call, self._block.env_steps
        count.value = call.step_offset
        self._found = (
            None if call.resume is None else find_snapshot(call.settings.outdir, call.resume)
        )
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
        """Starts the processes and receives their messages until all have ended."""
        call, outdir, start = self._call, self._call.settings.outdir, self._block.env_steps.value
        user = call.user._replace(
            agent=None if call.user.make_agent is not None else self.agent,
            tensors=share(self.agent) if call.shares_tensors else {},
            stop_event=call.user.stop_event if can_send_stop_event(call) else None,
        )
        check_user_parts(call, user)
        outdir.mkdir(parents=True, exist_ok=True)
        repair_named_snapshots(outdir)
        with ExitStack() as stack:
            is_new_training = self._snapshot is None and start == 0
            statistics = self.agent.get_statistics()
            records = AsyncRecords(call, statistics, start, stack, is_new_training=is_new_training)
            if records.best is not None:
                self._block.reals[Slot.BEST] = records.best
            group = stack.enter_context(
                ProcessGroup(multiprocessing.get_context(call.start_method), enter)
            )
            watch = _Watch(call, self._end, group, records, signals)
            task = partial(ProcessTask, call.settings, self._owner(), self._found)
            shared = (self._block, SharedBlock(0), PickledValue(user))
            group.start([task(seed, *shared) for seed in self._seeds])
            group.receive_messages(watch, _TICK_SECONDS)
            repair_named_snapshots(outdir)
            self._conclude(watch, records)

    def _caller_agent(self) -> Any:
        """Returns the agent of the caller's process, which owns the shared tensors."""
        if self._call.user.agent is not None or self._call.user.make_agent is None:
            return self._call.user.agent
        with preserve_global_state():
            seed_global(self._seeds[0])
            return self._call.user.make_agent(0)

    def _owner(self) -> SnapshotOwner:
        before = self._snapshot.manifest if self._snapshot else None
        return snapshot_owner(
            run_id=before.run_id if before else None,
            experiment_id=FUNCTION,
            definition_hash=self._identity(),
            seed=self._seeds[0],
            parent=before.snapshot_id if before else None,
            device="cpu",
            is_exact=self._wrapped.exact and self._call.processes == 1,
        )

    def _identity(self) -> str:
        return hash_document({"agent": type(self.agent).__qualname__, "function": FUNCTION})

    def _conclude(self, watch: "_Watch", records: AsyncRecords) -> None:
        """Writes `outcome.json`, then raises the run's error or loads its last snapshot."""
        env_steps, ending = self._block.env_steps.value, self._end.ending
        settings, logger = self._call.settings, self._call.logger
        overshoot = max(0, env_steps - int(settings.steps))
        outcome = {
            "reason": _REASONS.get(ending, "exception"),
            "steps": int(settings.steps),
            "env_steps": env_steps,
            "overshoot": overshoot,
            "episodes": self._block.episodes.value,
            "processes": int(self._call.processes),
            "snapshot": records.snapshot,
        }
        (settings.outdir / OUTCOME_FILE).write_text(json.dumps(outcome, indent=1) + "\n", "utf-8")
        logger.info(
            "training ended: %s at step %s, %s beyond steps",
            outcome["reason"],
            outcome["env_steps"],
            overshoot,
        )
        saved = (
            "nothing could be saved"
            if records.snapshot is None
            else f"the agent was saved to {settings.outdir / records.snapshot}"
        )
        watch.signals.raise_received()
        if watch.error is not None:
            watch.error.add_note(saved)
            raise watch.error
        if ending is StopCause.ABORTED:
            logger.warning("exception_event was set: training ended early, %s", saved)
        if records.snapshot is not None:
            self._wrapped.load_state_dict(
                read_snapshot(settings.outdir / records.snapshot).state["agent"]
            )


class _Watch:
    """Handles messages and failures of the processes, the caller's events, and signals."""

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
        self._stop_event = call.user.stop_event
        self._exception_event = call.exception_event
        self._end = end
        self._group = group
        self._records = records

    def receive(self, index: int, message: object) -> None:
        """Passes a message of a process to the records."""
        self._records.receive(index, message)

    def on_failure(self, index: int, error: BaseException, *, alive: Sequence[int]) -> None:
        """Stops the other processes and stores the error; only the first error is raised."""
        del index
        self.error = self.error or error
        self._abort(alive)

    def on_tick(self) -> None:
        """Ends the training if an event is set or a signal was received."""
        end, group = self._end, self._group
        if not end.is_over and self._stop_event is not None and self._stop_event.is_set():
            end.claim(StopCause.REQUESTED)
        if self.signals.received is not None and not end.is_aborted:
            self._abort(group.alive)
        if self._exception_event is not None and self._exception_event.is_set():
            # Processes that have not begun save their state before their first env_step.
            if alive := group.alive:
                end.abort(min(alive))
            if group.has_begun:
                group.expect_end(_GRACE_SECONDS)

    def _abort(self, alive: Sequence[int]) -> None:
        if self._group.has_begun:
            self._end.abort(min(alive, default=None))
            self._group.expect_end(_GRACE_SECONDS)
        else:
            self._end.abort(None)
            self._group.kill()


class _Signals:
    """Handles SIGINT and SIGTERM.

    The first signal is stored, so that the training can be saved; the second one raises at once,
    and nothing is saved.
    """

    def __init__(self) -> None:
        self.received: int | None = None

    def handle_signals(self) -> AbstractContextManager[None]:
        """Returns a context that handles both signals, except a signal that is set to `SIG_IGN`."""
        both = (signal.SIGINT, signal.SIGTERM)
        numbers = [one for one in both if signal.getsignal(one) is not signal.SIG_IGN]
        return handle_signals(numbers, self._receive)

    def raise_received(self) -> None:
        """Raises TerminatedError after SIGTERM and KeyboardInterrupt after SIGINT."""
        if self.received == signal.SIGTERM:
            raise TerminatedError("SIGTERM")
        if self.received is not None:
            raise KeyboardInterrupt

    def _receive(self, number: int, frame: FrameType | None) -> None:
        del frame
        again, self.received = self.received is not None, number
        if again:
            self.raise_received()

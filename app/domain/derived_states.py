"""Derives the states of runs, experiments and workers. Pure."""

from collections.abc import Mapping
from typing import Final

from palestra.contract.states import JobState, Outcome, RunState, WorkerState

_RUN_STATES: Final[Mapping[JobState, RunState]] = {
    JobState.QUEUED: RunState.QUEUED,
    JobState.LOST: RunState.QUEUED,
    JobState.STARTING: RunState.RUNNING,
    JobState.RUNNING: RunState.RUNNING,
    JobState.PAUSING: RunState.RUNNING,
    JobState.CANCELLING: RunState.RUNNING,
    JobState.PREEMPTING: RunState.RUNNING,
    JobState.PAUSED: RunState.PAUSED,
    JobState.SUCCEEDED: RunState.SUCCEEDED,
    JobState.FAILED: RunState.FAILED,
    JobState.CANCELLED: RunState.CANCELLED,
}

EXPERIMENT_ORDER: Final = (
    RunState.RUNNING,
    RunState.QUEUED,
    RunState.PAUSED,
    RunState.FAILED,
    RunState.CANCELLED,
    RunState.SUCCEEDED,
)
"""The experiment's state is the first of these that one of its runs has."""

OFFLINE_AFTER: Final = 10
"""Multiple of the silence limit after which a worker is offline rather than unreachable."""


def run_state(latest_training_job: JobState) -> RunState:
    """Returns a run's state, mapped from the state of its latest training job.

    A run without a training job is queued.
    """
    return _RUN_STATES[latest_training_job]


def derive_ended_run_state(outcome: Outcome) -> RunState:
    """Returns the state of a run that ended within a pack, independent of the job's state."""
    return RunState.SUCCEEDED if outcome is Outcome.SUCCEEDED else RunState.FAILED


def derive_experiment_state(runs: Mapping[RunState, int]) -> RunState:
    """Returns an experiment's state from the number of its runs in each state."""
    return next((state for state in EXPERIMENT_ORDER if runs.get(state)), RunState.QUEUED)


def derive_worker_state(
    silent_seconds: float, limit_seconds: float, *, draining: bool
) -> WorkerState:
    """Returns a worker's state from the time since its last heartbeat."""
    if silent_seconds > limit_seconds * OFFLINE_AFTER:
        return WorkerState.OFFLINE
    if silent_seconds > limit_seconds:
        return WorkerState.UNREACHABLE
    return WorkerState.DRAINING if draining else WorkerState.ONLINE

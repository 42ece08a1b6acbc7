import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain import transitions
from app.domain.attempt_end import describe_cause, list_states
from app.domain.derived_states import (
    EXPERIMENT_ORDER,
    derive_experiment_state,
    derive_worker_state,
    run_state,
)
from app.domain.errors import ConflictError
from app.domain.transitions import ALLOWED
from palestra.contract.states import (
    FINAL_JOB_STATES,
    INFRASTRUCTURE_CAUSES,
    LIVE_JOB_STATES,
    Cause,
    JobState,
    Outcome,
    RunState,
    WorkerState,
)


def test_every_state_has_its_row_in_the_table() -> None:
    assert set(ALLOWED) == set(JobState)


@given(st.lists(st.sampled_from(JobState), min_size=1, max_size=30))
def test_no_path_leaves_a_final_state(wishes: list[JobState]) -> None:
    state, ended = JobState.QUEUED, False
    for wish in wishes:
        if wish in ALLOWED[state]:
            assert not ended, f"{state} was final and became {wish}"
            transitions.check(state, wish)
            state = wish
            ended = state in FINAL_JOB_STATES
        else:
            with pytest.raises(ConflictError):
                transitions.check(state, wish)


@given(st.sampled_from(JobState))
def test_every_state_reaches_a_final_one(start: JobState) -> None:
    reached, frontier = {start}, [start]
    while frontier:
        new = ALLOWED[frontier.pop()] - reached
        reached |= new
        frontier += new
    assert reached & FINAL_JOB_STATES


def test_every_state_is_reached_from_queued() -> None:
    reached: set[JobState] = {JobState.QUEUED}
    while new := {after for state in reached for after in ALLOWED[state]} - reached:
        reached |= new
    assert reached == set(JobState)


@pytest.mark.parametrize("state", sorted(FINAL_JOB_STATES))
def test_a_finished_job_says_that_it_is_finished(state: JobState) -> None:
    with pytest.raises(ConflictError) as refused:
        transitions.check(state, JobState.CANCELLED)
    assert refused.value.code == "already_final"


@given(
    st.sampled_from(sorted(LIVE_JOB_STATES)),
    st.sampled_from(Outcome),
    st.sampled_from(Cause),
    st.booleans(),
)
def test_the_end_of_an_attempt_is_a_transition_of_the_table(
    state: JobState, outcome: Outcome, cause: Cause, is_requeued: bool
) -> None:
    steps = list_states(state, outcome, cause, is_requeued=is_requeued)
    for step in steps:
        transitions.check(state, step)
        state = step
    assert state not in LIVE_JOB_STATES | {JobState.LOST}


@given(st.sampled_from(Outcome), st.sampled_from(Cause), st.booleans())
def test_a_cancelled_job_is_never_queued_again(
    outcome: Outcome, cause: Cause, is_requeued: bool
) -> None:
    end = list_states(JobState.CANCELLING, outcome, cause, is_requeued=is_requeued)[-1]
    assert end == (JobState.SUCCEEDED if outcome is Outcome.SUCCEEDED else JobState.CANCELLED)


@pytest.mark.parametrize("cause", sorted(Cause))
def test_every_cause_has_a_message(cause: Cause) -> None:
    assert describe_cause(cause).endswith(".")


@pytest.mark.parametrize("cause", sorted(INFRASTRUCTURE_CAUSES))
def test_infrastructure_failures_have_a_remedy(cause: Cause) -> None:
    assert re.search(r"\. (Check|Read) ", describe_cause(cause))


def test_every_job_state_maps_to_a_run_state() -> None:
    assert {run_state(state) for state in JobState} == set(RunState)
    assert all(run_state(state) == RunState.RUNNING for state in LIVE_JOB_STATES)


@given(st.dictionaries(st.sampled_from(RunState), st.integers(0, 3)))
def test_an_experiment_is_succeeded_only_if_all_its_runs_are(counts: dict[RunState, int]) -> None:
    present = {state for state, count in counts.items() if count}
    derived = derive_experiment_state(counts)
    assert derived in (present or {RunState.QUEUED})
    if derived is RunState.SUCCEEDED:
        assert present == {RunState.SUCCEEDED}
    assert set(EXPERIMENT_ORDER) == set(RunState)


def test_a_silent_worker_is_unreachable_before_it_is_offline() -> None:
    states = [derive_worker_state(seconds, 30, draining=False) for seconds in (0, 30, 31, 300, 301)]
    assert states == [
        WorkerState.ONLINE,
        WorkerState.ONLINE,
        WorkerState.UNREACHABLE,
        WorkerState.UNREACHABLE,
        WorkerState.OFFLINE,
    ]
    assert derive_worker_state(0, 30, draining=True) is WorkerState.DRAINING

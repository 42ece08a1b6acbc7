import numpy as np
import pytest

from workers.rl.agents.shells.recurrent import RecurrentState


def make_rows(*values: float) -> np.ndarray:
    return np.array([[value, value] for value in values], np.float32)


def test_training_states_continue_and_are_reset_at_episode_ends() -> None:
    state = RecurrentState(2, 3)
    assert np.array_equal(state.read(3, explore=True), make_rows(0, 0, 0))
    state.store(make_rows(1, 2, 3), explore=True)
    state.reset_ended(np.array([False, True, False]))
    assert np.array_equal(state.read(3, explore=True), make_rows(1, 0, 3))


def test_states_of_another_count_are_no_states_of_training() -> None:
    state = RecurrentState(2, 2)
    state.store(make_rows(1, 2), explore=True)
    assert np.array_equal(state.read(5, explore=True), make_rows(0, 0, 0, 0, 0))
    state.store(make_rows(1, 2, 3, 4, 5), explore=True)
    assert np.array_equal(state.read(2, explore=True), make_rows(1, 2))


def test_a_greedy_action_counts_once_its_step_was_made() -> None:
    state = RecurrentState(2, 2)
    state.store(make_rows(7, 8), explore=True)
    for _ in range(2):
        assert np.array_equal(state.read(3, explore=False), make_rows(0, 0, 0))
        state.store(make_rows(1, 2, 3), explore=False)
    state.commit_evaluation_step(np.array([False, True, False]))
    assert np.array_equal(state.read(3, explore=False), make_rows(1, 0, 3))
    assert np.array_equal(state.read(2, explore=True), make_rows(7, 8))
    state.discard_evaluation()
    assert np.array_equal(state.read(3, explore=False), make_rows(0, 0, 0))


def test_returned_states_are_never_modified() -> None:
    state = RecurrentState(2, 2)
    given = make_rows(1, 2)
    state.store(given, explore=True)
    held = state.read(2, explore=True)
    state.reset_ended(np.array([True, True]))
    assert np.array_equal(held, make_rows(1, 2))
    assert np.array_equal(given, make_rows(1, 2))


def test_a_state_dict_is_restored_or_refused_if_it_does_not_fit() -> None:
    first, second = RecurrentState(2, 2), RecurrentState(2, 2)
    first.store(make_rows(1, 2), explore=True)
    second.load_state_dict(first.state_dict())
    assert np.array_equal(second.read(2, explore=True), make_rows(1, 2))
    with pytest.raises(ValueError, match="do not fit"):
        RecurrentState(2, 3).load_state_dict(first.state_dict())

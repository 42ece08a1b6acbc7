import numpy as np
import pytest

from workers.rl.memory.rollout import Rollout

FIELDS = {"number": ((), np.int64), "pair": ((2,), np.float32)}


def make_rows(begin: int, steps: int) -> list[np.ndarray]:
    numbers = np.arange(begin * 3, (begin + steps) * 3).reshape(steps, 3)
    return [numbers, np.stack([numbers, -numbers], 2)]


@pytest.mark.parametrize("pieces", [(4,), (1, 3), (2, 1, 1), (3, 4, 9)])
def test_pieces_add_up_in_order_whatever_their_lengths(pieces) -> None:
    rollout, begin = Rollout(4, 3, FIELDS), 0
    for steps in pieces:
        rollout.extend(make_rows(begin, steps))
        begin += steps
    expected = make_rows(0, begin)
    assert len(rollout) == begin * 3
    assert rollout.capacity >= len(rollout)
    assert all(
        np.array_equal(got, wanted)
        for got, wanted in zip(rollout.contents().values(), expected, strict=True)
    )


def test_clear_removes_the_rows_and_a_load_restores_them() -> None:
    rollout, other = Rollout(4, 3, FIELDS), Rollout(4, 3, FIELDS)
    rollout.extend(make_rows(0, 3))
    other.extend(make_rows(7, 2))
    other.load_state_dict(rollout.state_dict())
    assert all(
        np.array_equal(a, b)
        for a, b in zip(other.contents().values(), rollout.contents().values(), strict=True)
    )
    rollout.clear()
    assert len(rollout) == 0
    assert len(other) == 9


def test_a_rollout_refuses_the_state_of_another() -> None:
    rollout = Rollout(4, 3, FIELDS)
    with pytest.raises(ValueError, match="does not fit"):
        Rollout(4, 2, FIELDS).load_state_dict(rollout.state_dict())

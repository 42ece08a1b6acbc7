"""The memory of a pack stores and samples for each member as a single memory does."""

from typing import Any

import numpy as np
import pytest

from workers.core.rng import derive_generator
from workers.rl.memory.frame_replay import FrameReplay
from workers.rl.memory.pack_memory import SeparateReplays, SharedReplay, pack_memory
from workers.rl.memory.replay import Replay
from workers.rl.memory.sampling_rules import PrioritizedRule, UniformRule
from workers.rl.memory.transitions import ReplaySpec

MEMBERS, ENVS = 3, 2
CASES = {
    "uniform": (Replay, UniformRule, 1, (3,)),
    "n-step": (Replay, UniformRule, 3, (3,)),
    "prioritized": (Replay, PrioritizedRule, 2, (3,)),
    "frames": (FrameReplay, UniformRule, 1, (2, 4, 4)),
}


@pytest.fixture(params=CASES)
def case(request) -> Any:
    return CASES[request.param]


def make_memories(case: Any) -> list[Replay]:
    kind, rule, n_step, shape = case
    spec = ReplaySpec(
        capacity=40,
        num_envs=ENVS,
        observation=(shape, np.float32),
        action=((), np.int64),
        n_step=n_step,
    )
    return [kind(spec, rule(derive_generator(seed, "agent/sample"))) for seed in range(MEMBERS)]


def draw_columns(case: Any, steps: int, members: int, rng: np.random.Generator) -> tuple[Any, ...]:
    lead, shape = (steps, members * ENVS), case[3]
    seen, successor = rng.random((2, *lead, *shape), np.float32)
    ends = rng.random((2, *lead)) < 0.1
    return (
        seen,
        rng.integers(0, 4, lead),
        rng.random(lead, np.float32),
        successor,
        ends[0],
        ends[1] & ~ends[0],
    )


def extend(
    shared: SeparateReplays | SharedReplay, alone: list[Replay], rows: tuple[Any, ...]
) -> None:
    shared.extend(rows)
    for index, memory in enumerate(alone):
        memory.extend(*(column[:, index * ENVS : (index + 1) * ENVS] for column in rows))


def assert_same_draws(shared: SeparateReplays | SharedReplay, alone: list[Replay]) -> None:
    drawn = shared.sample(2, 8)
    errors = np.random.default_rng(5).random((len(alone), 8))
    for index, memory in enumerate(alone):
        own = memory.sample(2, 8)
        for column, expected in zip(drawn[:6], own[:6], strict=True):
            np.testing.assert_array_equal(column[:, index], expected)
        memory.update_errors(own.places[0], errors[index])
    shared.update_errors(drawn.places[0], errors)


def assert_same_state(one: Any, other: Any) -> None:
    assert one.keys() == other.keys()
    for key, value in one.items():
        if isinstance(value, dict):
            assert_same_state(value, other[key])
        else:
            np.testing.assert_array_equal(value, other[key])


def test_each_member_draws_what_it_draws_alone_and_saves_the_same(case) -> None:
    shared, alone, rng = (
        pack_memory(make_memories(case)),
        make_memories(case),
        np.random.default_rng(0),
    )
    assert isinstance(shared, SeparateReplays if case[0] is FrameReplay else SharedReplay)
    for steps in (5, 1, 7, 12, 1):
        extend(shared, alone, draw_columns(case, steps, MEMBERS, rng))
        assert len(shared) == len(shared.lanes[1]) == len(alone[1])
        assert_same_draws(shared, alone)
    assert [lane.capacity for lane in shared.lanes] == [memory.capacity for memory in alone]
    for lane, memory in zip(shared.lanes, alone, strict=True):
        assert_same_state(lane.state_dict(), memory.state_dict())


def test_members_go_on_from_their_own_states_and_those_that_leave_keep_theirs(case) -> None:
    shared, alone, rng = (
        pack_memory(make_memories(case)),
        make_memories(case),
        np.random.default_rng(0),
    )
    for index, memory in enumerate(alone):
        memory.extend(*draw_columns(case, 9, 1, rng))
        shared.lanes[index].load_state_dict(memory.state_dict())
    assert_same_draws(shared, alone)
    gone = alone.pop(1)
    shared.keep([0, 2])
    for steps in (3, 30):
        extend(shared, alone, draw_columns(case, steps, 2, rng))
        assert_same_draws(shared, alone)
    for lane, memory in zip(shared.lanes, (alone[0], gone, alone[1]), strict=True):
        assert_same_state(lane.state_dict(), memory.state_dict())


def test_fewer_members_may_draw_as_many_rows_as_all_did(case) -> None:
    shared, alone = pack_memory(make_memories(case)), make_memories(case)
    extend(shared, alone, draw_columns(case, 20, MEMBERS, np.random.default_rng(0)))
    assert shared.sample(1, 4).reward.shape == (1, MEMBERS, 4)
    shared.keep([0, 2])
    drawn = shared.sample(1, 6)
    for index, memory in enumerate((alone[0], alone[2])):
        memory.sample(1, 4)
        np.testing.assert_array_equal(drawn.reward[:, index], memory.sample(1, 6).reward)


def test_a_separated_members_newest_rows_count_as_truncated() -> None:
    case = CASES["n-step"]
    shared, alone, rng = (
        pack_memory(make_memories(case)),
        make_memories(case),
        np.random.default_rng(0),
    )
    extend(shared, alone, draw_columns(case, 4, MEMBERS, rng))
    alone[1].cut()
    shared.lanes[1].cut()
    extend(shared, alone, draw_columns(case, 4, MEMBERS, rng))
    assert_same_draws(shared, alone)


def test_members_at_different_rows_do_not_share_a_memory() -> None:
    case, rng = CASES["uniform"], np.random.default_rng(0)
    shared, alone = pack_memory(make_memories(case)), make_memories(case)
    for steps, memory in zip((4, 5), alone, strict=False):
        memory.extend(*draw_columns(case, steps, 1, rng))
    shared.lanes[0].load_state_dict(alone[0].state_dict())
    with pytest.raises(ValueError, match="5 rows were written to the stored memory, 4 to others"):
        shared.lanes[1].load_state_dict(alone[1].state_dict())

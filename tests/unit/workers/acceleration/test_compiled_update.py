"""Compiled functions: a compiled version is reused only for arguments of the same kind.

A kind is the sizes, dtypes and step counts that a trace holds as constants. Most tests run the
traced graph without generating machine code, which is faster and equally specialised.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pytest
import structlog
import torch
from gymnasium import spaces
from torch import Tensor

from palestra.contract.agents import A2cParameters, DqnParameters, SacParameters, Td3Parameters
from tests.unit.workers.rl.agents.agent_kit import (
    BOX,
    assert_same_state,
    make_context,
    make_experience,
)
from workers.acceleration import compiled_update
from workers.acceleration.compiled_update import MAX_SIGNATURES, CompiledFunction, StateBuffers
from workers.acceleration.nested_tensors import map_tensors
from workers.acceleration.update_runner import make_runner, make_stacked_runner
from workers.rl.agents import a2c, dqn, sac, td3
from workers.rl.agents.common.algorithm import ReplayBatch


class State(NamedTuple):
    weight: Tensor
    inner: tuple[Tensor, ...]


def update_by_mean(state: State, rows: Tensor) -> tuple[State, Tensor]:
    """An update whose result depends on the number of rows, which a trace holds as a constant."""
    mean = rows.sum(0) / len(rows)
    return State(
        state.weight - mean * state.inner[0], tuple(one + 1 for one in state.inner)
    ), mean.sum() * len(state.inner)


def update_by_batch(state: State, batch: tuple[Tensor]) -> tuple[State, Tensor]:
    """An update that takes its rows in a tuple."""
    return update_by_mean(state, *batch)


def update_partially(state: State, rows: Tensor) -> tuple[State, Tensor]:
    """An update that returns one part of the state unchanged."""
    return State(state.weight, (state.inner[0] + rows.sum(),)), rows.mean()


def make_state(width: int = 3, dtype: torch.dtype = torch.float32, extra: int = 1) -> State:
    return State(
        torch.arange(width, dtype=dtype),
        tuple(torch.tensor(0.5 + i, dtype=dtype) for i in range(extra)),
    )


def raise_if_called(*arguments):
    raise AssertionError("ran as it stands")


def compile_function(mean_update, fallback=raise_if_called) -> CompiledFunction:
    """Compiles a function with the given fallback."""
    return CompiledFunction(mean_update, fallback=fallback, like=mean_update, identity=None)


def make_rows(count: int, width: int = 3, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.arange(count * width, dtype=dtype).reshape(count, width).sin()


def assert_equal(found: object, expected: object) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


def assert_right(quick: CompiledFunction, state: State, rows: Tensor) -> None:
    (found, value), (expected, wanted) = quick(state, rows), update_by_mean(state, rows)
    assert isinstance(found, State)
    assert_equal(found, expected)
    assert_equal(value, wanted)
    assert found.weight.dtype is state.weight.dtype


@pytest.mark.parametrize(
    ("state", "rows"),
    [
        pytest.param(make_state(), make_rows(7), id="another batch size"),
        pytest.param(
            make_state(dtype=torch.float64), make_rows(4, dtype=torch.float64), id="float64"
        ),
        pytest.param(make_state(5), make_rows(4, 5), id="other parameters"),
        pytest.param(make_state(extra=2), make_rows(4), id="another structure"),
        pytest.param(make_state(), make_rows(3, 4).T, id="other steps"),
        pytest.param(make_state(), make_rows(8)[::2], id="rows apart"),
    ],
)
def test_arguments_of_another_kind_are_compiled_separately(
    traced_examples, state: State, rows: Tensor
) -> None:
    quick = compile_function(update_by_mean)
    for _ in range(2):
        assert_right(quick, make_state(), make_rows(4))
        assert_right(quick, state, rows)
    assert len(traced_examples) == 2


def test_other_values_of_the_same_kind_reuse_the_compiled_function(traced_examples) -> None:
    quick, state = compile_function(update_by_mean), make_state()
    for step in range(4):
        assert_right(quick, state, make_rows(4) * step)
        state, _ = quick(state, make_rows(4))
    assert len(traced_examples) == 1


def test_an_in_place_update_equals_the_pure_function(traced_examples) -> None:
    first, held = make_state(), StateBuffers()
    quick = CompiledFunction(
        update_by_mean, fallback=raise_if_called, like=update_by_mean, identity=None, buffers=held
    )
    found, expected = first, first
    for step in range(8):
        rows = make_rows(4) * step
        (found, value), (expected, wanted) = quick(found, rows), update_by_mean(expected, rows)
        assert_equal(found, expected)
        assert_equal(value, wanted)
        assert found is held.flat.tree
        # A target network is replaced between updates by a tensor at another address.
        if step == 3:
            found, expected = (
                State(one.inner[0] * torch.ones(3), one.inner) for one in (found, expected)
            )
        if step == 5:
            found, expected = (one._replace(inner=(one.weight.sum(),)) for one in (found, expected))
    assert_equal(first, make_state())
    assert len(traced_examples) == 1


def test_a_refilled_batch_is_inspected_once_and_read_at_every_call(
    traced_examples, monkeypatch
) -> None:
    looked, flat = [], compiled_update._flatten_tree
    monkeypatch.setattr(
        compiled_update, "_flatten_tree", lambda tree: looked.append(tree) or flat(tree)
    )
    quick = CompiledFunction(
        update_by_batch,
        fallback=raise_if_called,
        like=update_by_batch,
        identity=None,
        buffers=StateBuffers(),
    )
    batch, expected, threads = (make_rows(4).clone(),), make_state(), torch.get_num_threads()
    found: State = expected
    for step in range(12):
        monkeypatch.setattr(
            torch, "get_num_threads", lambda threads=threads, step=step: threads + (step >= 8)
        )
        batch[0].copy_(make_rows(4) * step)
        (found, value), (expected, wanted) = quick(found, batch), update_by_batch(expected, batch)
        assert_equal(found, expected)
        assert_equal(value, wanted)
        if step == 6:
            # From here on the state is not the one that the last call returned.
            found = expected = make_state()
    assert len(traced_examples) == 2, "code belongs to a setting"
    assert sum(tree is batch for tree in looked) < 8


def test_only_the_held_state_is_updated_in_place(traced_examples) -> None:
    held = StateBuffers()
    one, other = (
        CompiledFunction(update, fallback=raise_if_called, like=update, identity=None, buffers=held)
        for update in (update_by_mean, update_partially)
    )
    state, _ = one(State(torch.ones(3), (torch.tensor(2.0),)), make_rows(4))
    before = map_tensors(torch.clone, state)
    copy = map_tensors(torch.clone, state)
    replaced = state._replace(weight=copy.weight)
    after, _ = other(replaced, make_rows(4))
    assert_equal(copy, before)
    assert_equal(after, update_partially(before, make_rows(4))[0])
    assert len(traced_examples) == 2


def test_a_state_is_copied_only_if_the_update_writes_in_place(monkeypatch) -> None:
    def raise_without_compiler(*_: object) -> None:
        raise RuntimeError("no C++ compiler")

    monkeypatch.setattr(compiled_update, "machine_code", raise_without_compiler)
    held, given = StateBuffers(), list[State]()

    def update_eagerly(state: State, rows: Tensor) -> tuple[State, Tensor]:
        given.append(state)
        return update_by_mean(state, rows)

    quick, state = (
        CompiledFunction(
            update_by_mean,
            fallback=update_eagerly,
            like=update_by_mean,
            identity=None,
            buffers=held,
        ),
        make_state(),
    )
    for _ in range(3):
        asked = state
        state, _ = quick(state, make_rows(4))
        assert given[-1] is asked
        assert not held.flat.leaves


def test_a_copy_has_the_steps_that_code_was_made_for(traced_examples) -> None:
    held = StateBuffers()
    quick, apart = (
        CompiledFunction(
            update_by_mean,
            fallback=raise_if_called,
            like=update_by_mean,
            identity=None,
            buffers=held,
        ),
        torch.arange(6.0)[::2],
    )
    found, _ = quick(State(apart, (torch.tensor(0.5),)), make_rows(4))
    assert found.weight.stride() == apart.stride()
    assert_equal(found, update_by_mean(State(apart, (torch.tensor(0.5),)), make_rows(4))[0])
    assert_equal(apart, torch.tensor([0.0, 2.0, 4.0]))


def test_tensors_that_change_places_do_not_overwrite_one_another(traced_examples) -> None:
    def rotate_tensors(
        state: tuple[Tensor, ...], rows: Tensor
    ) -> tuple[tuple[Tensor, ...], Tensor]:
        first, second, third = state
        return (second, third, first), rows.sum()

    quick = CompiledFunction(
        rotate_tensors,
        fallback=raise_if_called,
        like=rotate_tensors,
        identity=None,
        buffers=StateBuffers(),
    )
    state, _ = quick((torch.tensor(1.0), torch.tensor(2.0), torch.tensor(3.0)), make_rows(4))
    assert [float(one) for one in state] == [2.0, 3.0, 1.0]
    assert [float(one) for one in quick(state, make_rows(4))[0]] == [3.0, 1.0, 2.0]
    assert len(traced_examples) == 1


def test_code_belongs_to_a_setting_of_determinism_and_a_number_of_threads(traced_examples) -> None:
    quick, before, threads = (
        compile_function(update_by_mean),
        torch.are_deterministic_algorithms_enabled(),
        torch.get_num_threads(),
    )
    try:
        for wanted in (True, False, True):
            torch.use_deterministic_algorithms(wanted)
            assert_right(quick, make_state(), make_rows(4))
        assert len(traced_examples) == 2
        torch.set_num_threads(threads + 1)
        assert_right(quick, make_state(), make_rows(4))
        assert len(traced_examples) == 3
    finally:
        torch.use_deterministic_algorithms(before)
        torch.set_num_threads(threads)


def test_one_tensor_in_two_places_is_two_tensors_the_next_time(traced_examples) -> None:
    quick = compile_function(lambda one, other: (one - other * 2,))
    same = torch.ones(3)
    assert torch.equal(quick(same, same)[0], -same)
    assert torch.equal(quick(same, torch.zeros(3))[0], same)
    assert len(traced_examples) == 1


def test_beyond_the_limit_of_kinds_functions_run_eagerly(traced_examples) -> None:
    calls = []

    def update_eagerly(*arguments):
        calls.append(arguments)
        return update_by_mean(*arguments)

    quick = compile_function(update_by_mean, update_eagerly)
    for count in range(1, MAX_SIGNATURES + 4):
        assert_right(quick, make_state(), make_rows(count))
    assert len(traced_examples) == MAX_SIGNATURES
    assert len(calls) == 3
    assert_right(quick, make_state(), make_rows(1))
    assert len(calls) == 3


def test_functions_that_cannot_be_compiled_run_eagerly_with_one_warning(monkeypatch) -> None:
    def raise_without_compiler(*arguments, **options):
        raise RuntimeError("no C++ compiler")

    monkeypatch.setattr("torch._inductor.aot_compile", raise_without_compiler)
    quick = compile_function(update_by_mean, update_by_mean)
    with structlog.testing.capture_logs() as logs:
        for _ in range(3):
            assert_right(quick, make_state(), make_rows(4))
    assert [(one["event"], one["error"]) for one in logs] == [
        ("agent.compile_failed", "RuntimeError: no C++ compiler")
    ]


TWO_ACTIONS = spaces.Box(-2, 2, (2,), np.float32)
BUILDS = {
    "dqn": (
        dqn.build,
        DqnParameters(batch_size=16, hidden_sizes=(16,), target_update_every=2),
        spaces.Discrete(4),
        1,
    ),
    "a2c": (a2c.build, A2cParameters(rollout_steps=20, hidden_sizes=(16,)), spaces.Discrete(4), 1),
    "sac": (
        sac.build,
        SacParameters(batch_size=16, hidden_sizes=(16,), learning_starts=8),
        TWO_ACTIONS,
        1,
    ),
    "td3": (
        td3.build,
        Td3Parameters(batch_size=16, hidden_sizes=(16,), learning_starts=8),
        TWO_ACTIONS,
        2,
    ),
}
"""Factory, parameters, action space and number of updates that alternate."""


@pytest.mark.parametrize("name", BUILDS)
def test_a_new_learning_rate_and_a_resume_reuse_the_compiled_update(
    traced_examples, name: str
) -> None:
    build, hyper, space, updates = BUILDS[name]

    def train_agent(agent, seeds):
        for seed in seeds:
            agent.observe(make_experience(agent, 20, 2, np.random.default_rng(seed)))
            agent.learn(3)
        return agent

    whole = train_agent(build(hyper, make_context(space, compile="compiled")), range(2))
    state, memory = whole.state_dict(), map_copy(whole.memory.state_dict())
    train_agent(whole, range(2, 4))
    again = build(hyper, make_context(space, compile="compiled"))
    again.load_state_dict(state)
    again.memory.load_state_dict(memory)
    assert_same_state(train_agent(again, range(2, 4)).state_dict(), whole.state_dict())
    kinds = len(traced_examples)
    whole.learning_rate = 0.0
    before = getattr(whole.learning_state, whole.algorithm.actor).clone()
    train_agent(whole, [4])
    assert torch.equal(getattr(whole.learning_state, whole.algorithm.actor), before)
    with whole.eval_mode():
        whole.act(np.stack([BOX.sample()]), explore=False)
    train_agent(whole, [5])
    # Each of the two agents traces its updates once.
    assert len(traced_examples) == kinds == 2 * updates


def map_copy(tree):
    if isinstance(tree, Mapping):
        return {name: map_copy(part) for name, part in tree.items()}
    return (
        tree.clone()
        if isinstance(tree, Tensor)
        else np.array(tree)
        if isinstance(tree, np.ndarray)
        else tree
    )


def make_batch(size: int) -> ReplayBatch:
    generator = torch.Generator().manual_seed(size)
    seen, successor = (torch.rand(size, 3, generator=generator) for _ in range(2))
    action, reward = (
        torch.randint(4, (size,), generator=generator),
        torch.rand(size, generator=generator),
    )
    return ReplayBatch(
        seen, action, reward, successor, torch.full((size,), 0.9), torch.ones(size), ()
    )


def assert_close_states(found, expected) -> None:
    torch.testing.assert_close(found.state, expected.state, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(found.report, expected.report, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_compiled_functions_of_several_kinds_are_used_in_turn() -> None:
    quick, same = compile_function(update_by_mean), torch.ones(3)
    doubled, rows = make_state(dtype=torch.float64), make_rows(4, dtype=torch.float64)
    for _ in range(2):
        for state, seen in (
            (make_state(), make_rows(4)),
            (doubled, rows),
            (make_state(), make_rows(8)[::2]),
            (make_state(), make_rows(3, 4).T),
        ):
            (found, value), (expected, wanted) = quick(state, seen), update_by_mean(state, seen)
            torch.testing.assert_close(found, expected)
            torch.testing.assert_close(value, wanted)
    both = compile_function(lambda one, other: (one - other * 2, other))
    assert torch.equal(both(same, same)[0], -same)
    left, kept = both(same, torch.zeros(3))
    assert torch.equal(left, same)
    assert torch.equal(kept, torch.zeros(3))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_machine_code_of_two_batch_sizes_equals_the_eager_update() -> None:
    agent = dqn.build(BUILDS["dqn"][1], make_context(spaces.Discrete(4)))
    quick, plain = (
        make_runner(agent.algorithm.update, mode=mode) for mode in ("compiled", "eager")
    )
    kinds = [(agent.learning_state, make_batch(size)) for size in (16, 9)]
    with structlog.testing.capture_logs() as logs:
        for _ in range(3):
            kinds = [(quick(own, batch).state, batch) for own, batch in kinds]
            for own, batch in kinds:
                assert_close_states(quick(own, batch), plain(own, batch))
    assert not logs


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_smaller_stack_is_compiled_separately() -> None:
    agents = [
        dqn.build(BUILDS["dqn"][1], make_context(spaces.Discrete(4), seed=seed))
        for seed in range(4)
    ]
    quick, plain = (
        make_stacked_runner(agents[0].algorithm.update, mode=mode) for mode in ("compiled", "eager")
    )
    stack = map_tensors(
        lambda *rows: torch.stack(rows), *(agent.learning_state for agent in agents)
    )
    batch = map_tensors(lambda *rows: torch.stack(rows), *(make_batch(16) for _ in agents))
    with structlog.testing.capture_logs() as logs:
        for kept in ([0, 1, 2, 3], [1, 3], [1]):
            part, own = (map_tensors(lambda leaf: leaf[: len(kept)], one) for one in (stack, batch))  # noqa: B023
            for _ in range(2):
                assert_close_states(quick(part, own), plain(part, own))
                part = quick(part, own).state
    assert not logs

"""Derived seeds and captured generators."""

import json
import random

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from workers.core.rng import (
    derive_generator,
    derive_seed,
    generator_state,
    global_state,
    load_generator_state,
    load_global_state,
    preserve_global_state,
    seed_global,
)


def draw() -> tuple[float, float, float]:
    return random.random(), float(np.random.rand()), float(torch.rand(1))  # noqa: NPY002


def test_derived_seeds_have_fixed_values() -> None:
    assert derive_seed(0, "env", 0, 0) == 7700031625376544601
    assert derive_seed(0, "env", 0, 0, bits=31) == 1792803319


@given(
    seed=st.integers(0, 2**32 - 1),
    a=st.integers(0, 1_000),
    b=st.integers(0, 1_000),
    bits=st.integers(1, 64),
)
def test_derived_seeds_fit_their_bits_and_differ_between_streams(
    seed: int, a: int, b: int, bits: int
) -> None:
    assert 0 <= derive_seed(seed, "env", a, b, bits=bits) < 2**bits
    others = {
        derive_seed(seed, "env", a, b + 1),
        derive_seed(seed, "env", a + 1, b),
        derive_seed(seed + 1, "env", a, b),
    }
    assert derive_seed(seed, "env", a, b) not in others | {derive_seed(seed, "evaluation", a, b)}


def test_a_generator_restored_from_json_continues_its_stream() -> None:
    first, second = derive_generator(3, "explore"), derive_generator(4, "explore")
    first.integers(5, size=3)
    load_generator_state(second, json.loads(json.dumps(generator_state(first))))
    assert first.random(4).tolist() == second.random(4).tolist()


def test_global_generators_are_restored() -> None:
    seed_global(5)
    first = draw()
    state = global_state()
    second = draw()
    load_global_state(state)
    assert draw() == second
    seed_global(5)
    with preserve_global_state():
        draw()
    assert draw() == first

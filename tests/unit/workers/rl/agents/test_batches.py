"""Batches are views of a sample's arrays.

Each array is wrapped once, and the batch has the values drawn last.
"""

import numpy as np
import torch

from tests.support.replay_streams import VectorStream
from workers.core.rng import derive_generator
from workers.rl.agents.shells.replay_agent import Batches
from workers.rl.memory.replay import Replay
from workers.rl.memory.sampling_rules import PrioritizedRule, SamplingRule, UniformRule
from workers.rl.memory.transitions import ReplaySpec, Sample


def make_replay(rule: type[UniformRule] | type[PrioritizedRule], n_step: int = 1) -> Replay:
    spec = ReplaySpec(
        capacity=64, observation=((3,), np.float32), action=((), np.int64), n_step=n_step
    )
    own: SamplingRule = rule(derive_generator(0, "memory"))
    filled = Replay(spec, own)
    filled.extend(*VectorStream(0, 1).draw_chunk(64).columns)
    return filled


def assert_shows(batches: list, sample: Sample) -> None:
    assert len(batches) == len(sample.places)
    for index, batch in enumerate(batches):
        for tensor, array in zip(batch[:6], sample[:6], strict=True):
            assert np.array_equal(tensor.numpy(), array[index])


def test_a_batch_with_refilled_arrays_is_the_same_object() -> None:
    memory, made = make_replay(UniformRule), Batches(torch.device("cpu"))
    first = made.convert(memory.sample(2, 8), ())
    sample = memory.sample(2, 8)
    again = made.convert(sample, ())
    assert [one is other for one, other in zip(first, again, strict=True)] == [True, True]
    assert_shows(again, sample)
    smaller = memory.sample(1, 4)
    assert_shows(made.convert(smaller, ()), smaller)


def test_batches_show_the_new_values_of_a_sample() -> None:
    for memory in (make_replay(PrioritizedRule), make_replay(UniformRule, n_step=3)):
        made = Batches(torch.device("cpu"))
        for _ in range(3):
            sample = memory.sample(1, 8)
            (batch,) = made.convert(sample, ())
            assert_shows([batch], sample)
            memory.update_errors(sample.places, np.arange(8.0))


def test_each_update_has_its_own_noise() -> None:
    memory, made = make_replay(UniformRule), Batches(torch.device("cpu"))
    for seed in range(2):
        noise = np.random.default_rng(seed).random((2, 8, 5), np.float32)
        sample = memory.sample(2, 8)
        batches = made.convert(sample, (noise,))
        assert_shows(batches, sample)
        assert all(
            np.array_equal(batch.noise[0].numpy(), own)
            for batch, own in zip(batches, noise, strict=True)
        )
    assert made.convert(memory.sample(2, 8), ())[0].noise == ()


def test_on_another_device_every_sample_is_copied() -> None:
    memory, made = make_replay(UniformRule), Batches(torch.device("meta"))
    first, second = (made.convert(memory.sample(1, 8), ()) for _ in range(2))
    assert first[0] is not second[0]
    assert first[0].observation is not second[0].observation

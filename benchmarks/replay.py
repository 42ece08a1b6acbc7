"""Microseconds per `sample`, `feedback` and `extend` of the replay memories.

    python -m benchmarks.replay [--batch 64] [--capacity 100000] [--frames 20000] [--calls 20]
        [--repeat 100]

Memories of one kind run interleaved in one process, one row per extend and one batch per sample.
Rows with a bound print whether it is met, which requires a machine without other load.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks._report import describe_machine, show
from workers.core.rng import derive_generator
from workers.rl.memory.frame_replay import FrameReplay
from workers.rl.memory.replay import Replay
from workers.rl.memory.sampling_rules import PrioritizedRule, SamplingRule, UniformRule
from workers.rl.memory.transitions import ReplaySpec

BOUNDS = {"uniform, sample": 20.0, "uniform, extend": 6.0}


def rule(kind: type[UniformRule | PrioritizedRule]) -> SamplingRule:
    return kind(derive_generator(0, "memory"))


def create_vector_memories(capacity: int) -> dict[str, Replay]:
    """Returns memories whose observations are vectors of 4 numbers."""
    fields: dict[str, Any] = {
        "capacity": capacity,
        "observation": ((4,), np.float32),
        "action": ((), np.int64),
    }
    kinds: dict[str, type[UniformRule | PrioritizedRule]] = {
        "uniform": UniformRule,
        "prioritized": PrioritizedRule,
    }
    named = (
        (f"{name}{ending}", kind, n_step)
        for name, kind in kinds.items()
        for ending, n_step in (("", 1), (", 3 steps", 3))
    )
    return {
        name: Replay(ReplaySpec(**fields, n_step=n_step), rule(kind))
        for name, kind, n_step in named
    }


def create_image_memories(capacity: int) -> dict[str, Replay]:
    """Returns memories whose observations are stacks of 4 frames of 84 x 84 bytes."""
    spec = ReplaySpec(capacity=capacity, observation=((4, 84, 84), np.uint8), action=((), np.int64))
    return {
        "frames": FrameReplay(spec, rule(UniformRule)),
        "frames, whole stacks": Replay(spec, rule(UniformRule)),
    }


def build_transitions(memory: Replay, count: int) -> list[tuple[Any, ...]]:
    """Returns the arguments of `extend` for `count` transitions of an endless episode."""
    generator = np.random.default_rng(0)
    shape, dtype = memory.spec.observation
    moving = len(shape) == 3
    frames = (
        generator.integers(256, size=(count + 5, *shape[1:]))
        if moving
        else generator.normal(size=(count + 1, *shape))
    )
    frames = frames.astype(dtype)
    stacks = [frames[i : i + shape[0]] if moving else frames[i] for i in range(count + 1)]
    flag, zero = np.zeros((1, 1), np.bool_), np.zeros((1, 1), np.int64)
    return [
        (stacks[i][None, None], zero, np.ones((1, 1)), stacks[i + 1][None, None], flag, flag)
        for i in range(count)
    ]


def prepare_calls(memory: Replay, batch: int) -> dict[str, Callable[[], object]]:
    """Fills a memory and returns the calls to measure."""
    rows = build_transitions(memory, 256)
    for i in range(memory.capacity):
        memory.extend(*rows[i % len(rows)])
    turn = iter(range(10**12))
    calls: dict[str, Callable[[], object]] = {
        "extend": lambda: memory.extend(*rows[next(turn) % len(rows)]),
        "sample": lambda: memory.sample(1, batch),
    }
    if isinstance(memory.rule, PrioritizedRule):
        places, errors = memory.sample(1, batch).places, np.linspace(0, 1, batch, dtype=np.float32)
        calls["feedback"] = lambda: memory.rule.update_errors(places.reshape(-1), errors)
    return calls


def microseconds(call: Callable[[], object], calls: int) -> float:
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - begin) / calls * 1e6


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--capacity", type=int, default=100_000)
    parser.add_argument(
        "--frames", type=int, default=20_000, help="capacity of the memories of images"
    )
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--repeat", type=int, default=100)
    options = parser.parse_args()
    print(describe_machine())
    good = True
    for kept in (create_vector_memories(options.capacity), create_image_memories(options.frames)):
        calls = {
            f"{name}, {verb}": call
            for name, memory in kept.items()
            for verb, call in prepare_calls(memory, options.batch).items()
        }
        rounds = [
            {name: microseconds(call, options.calls) for name, call in calls.items()}
            for _ in range(options.repeat)
        ]
        for name in calls:
            good = show(name, [one[name] for one in rounds], "µs", bound=BOUNDS.get(name)) and good
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())

"""Microseconds per sample, feedback and extend of the replay memories: uniform, prioritized, n-step, shared frames.

    python -m benchmarks.replay [--batch 64] [--capacity 100000] [--frames 20000] [--calls 200] [--repeat 25]

Everything runs interleaved in one process, one row per extend and one batch per sample. The rows that a bound is for print a verdict.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks._report import machine, show
from workers.core.rng import derive_generator
from workers.memory.frames import FrameReplay
from workers.memory.replay import Replay
from workers.memory.rules import Prioritized, Rule, Uniform
from workers.memory.transitions import ReplaySpec

BOUNDS = {"uniform, sample": 20.0, "uniform, extend": 6.0}


def rule(kind: type[Uniform] | type[Prioritized]) -> Rule:
    return kind(derive_generator(0, "memory"))


def memories(vectors: int, images: int) -> dict[str, Replay]:
    """Returns the memories to be measured: of vectors of 4 numbers, and of stacks of 4 frames of 84 x 84 bytes."""
    vector: dict[str, Any] = {"capacity": vectors, "observation": ((4,), np.float32), "action": ((), np.int64)}
    image: dict[str, Any] = {"capacity": images, "observation": ((4, 84, 84), np.uint8), "action": ((), np.int64)}
    return {
        "uniform": Replay(ReplaySpec(**vector), rule(Uniform)),
        "uniform, 3 steps": Replay(ReplaySpec(**vector, n_step=3), rule(Uniform)),
        "prioritized": Replay(ReplaySpec(**vector), rule(Prioritized)),
        "prioritized, 3 steps": Replay(ReplaySpec(**vector, n_step=3), rule(Prioritized)),
        "frames": FrameReplay(ReplaySpec(**image), rule(Uniform)),
        "frames, whole stacks": Replay(ReplaySpec(**image), rule(Uniform)),
    }


def transitions(memory: Replay, count: int) -> list[tuple[Any, ...]]:
    """Returns single rows of an endless episode, in the order of `extend`."""
    generator = np.random.default_rng(0)
    shape, dtype = memory.spec.observation
    moving = len(shape) == 3
    frames = generator.integers(256, size=(count + 5, *shape[1:])) if moving else generator.normal(size=(count + 1, *shape))
    frames = frames.astype(dtype)
    stacks = [frames[i : i + shape[0]] if moving else frames[i] for i in range(count + 1)]
    flag, zero = np.zeros((1, 1), np.bool_), np.zeros((1, 1), np.int64)
    return [(stacks[i][None, None], zero, np.ones((1, 1)), stacks[i + 1][None, None], flag, flag) for i in range(count)]


def calls_of(memory: Replay, batch: int) -> dict[str, Callable[[], object]]:
    """Returns what is measured of a memory, after filling it."""
    rows = transitions(memory, 256)
    for i in range(memory.capacity):
        memory.extend(*rows[i % len(rows)])
    turn = iter(range(10**12))
    calls: dict[str, Callable[[], object]] = {
        "extend": lambda: memory.extend(*rows[next(turn) % len(rows)]),
        "sample": lambda: memory.sample(1, batch),
    }
    if isinstance(memory.rule, Prioritized):
        places, errors = memory.sample(1, batch).places, np.linspace(0, 1, batch, dtype=np.float32)
        calls["feedback"] = lambda: memory.rule.feedback(places.reshape(-1), errors)
    return calls


def microseconds(call: Callable[[], object], calls: int) -> float:
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - begin) / calls * 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--capacity", type=int, default=100_000)
    parser.add_argument("--frames", type=int, default=20_000, help="capacity of the memories of images")
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--repeat", type=int, default=25)
    options = parser.parse_args()
    print(machine())
    kept = memories(options.capacity, options.frames)
    calls = {f"{name}, {verb}": call for name, memory in kept.items() for verb, call in calls_of(memory, options.batch).items()}
    rounds = [{name: microseconds(call, options.calls) for name, call in calls.items()} for _ in range(options.repeat)]
    verdicts = [show(name, [one[name] for one in rounds], "µs", bound=BOUNDS.get(name)) for name in calls]
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    raise SystemExit(main())

"""The interface of each library's training loop, and the measurement of its result."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import psutil

EVALUATION_EPISODES = 20
_FIRST_EVALUATION_SEED = 10_000


class UnsupportedAlgorithmError(Exception):
    """The library has no such algorithm; the message names it."""


class Measurements(NamedTuple):
    """The measurements of a training."""

    env_steps: int
    warm_up_seconds: float = 0.0
    """Time of the first learn beyond that of the second, where known: compiling or loading code."""
    warm_up_processor_seconds: float = 0.0
    """The same in processor time."""
    children_mib: float = 0.0
    """Peak memory of the other processes of the training."""


class Loop(NamedTuple):
    """A training that is ready to start."""

    train: Callable[[], Measurements]
    act: Callable[[np.ndarray], Any]
    """Returns the greedy action, for the environment's `step`, on one observation.

    Called after the training.
    """
    close: Callable[[], None] = lambda: None
    others: tuple[Callable[[np.ndarray], Any], ...] = ()
    """The same for the other seeds of a pack."""


def measure_greedy_return(env_id: str, act: Callable[[np.ndarray], Any]) -> float:
    """Returns the mean undiscounted return of 20 episodes, which are the same in every call."""
    env, total = gym.make(env_id), 0.0
    for seed in range(_FIRST_EVALUATION_SEED, _FIRST_EVALUATION_SEED + EVALUATION_EPISODES):
        (observation, _), over = env.reset(seed=seed), False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(act(observation))
            total += float(reward)
            over = terminated or truncated
    env.close()
    return total / EVALUATION_EPISODES


def measure_processor_seconds() -> float:
    """Returns the processor time of this process and of its ended subprocesses."""
    return time.process_time() + sum(os.times()[2:4])


def measure_children_seconds() -> float:
    """Returns the processor time of the running subprocesses of this process.

    A call takes half a millisecond.
    """
    return sum(sum(child.cpu_times()[:2]) for child in psutil.Process().children())


def measure_children_mib() -> float:
    """Returns the sum of the peak resident memory of the running subprocesses, in MiB."""
    return sum(read_peak_mib(child.pid) for child in psutil.Process().children())


def read_peak_mib(pid: int | str = "self") -> float:
    """Returns the peak resident memory of a process in MiB.

    Unlike `getrusage`, it excludes the memory of the process that started it.
    """
    with Path(f"/proc/{pid}/status").open() as lines:
        kib = next(line.split()[1] for line in lines if line.startswith("VmHWM"))
    return int(kib) / 1024

"""What a peer hands to the measurement, and what all of them are judged by."""

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


class NotTrainedHereError(Exception):
    """The peer has no such algorithm; the message says which."""


class Done(NamedTuple):
    """What a training came to."""

    env_steps: int
    warm_up_seconds: float = 0.0
    """What the first learn took beyond the second, where it is known: compilation, or loading what
    was compiled.
    """
    warm_up_processor_seconds: float = 0.0
    """The same by the time that the processor worked for it."""
    children_mib: float = 0.0
    """Memory of processes beside this one, at their peak."""


class Loop(NamedTuple):
    """A training that is ready to begin."""

    train: Callable[[], Done]
    act: Callable[[np.ndarray], Any]
    """Returns the greedy action, for the environment's `step`, on one observation.

    Called after the training.
    """
    close: Callable[[], None] = lambda: None
    others: tuple[Callable[[np.ndarray], Any], ...] = ()
    """The same for the other seeds of a pack."""


def greedy_return(env_id: str, act: Callable[[np.ndarray], Any]) -> float:
    """Returns the mean undiscounted return of 20 episodes, the same ones for everybody."""
    env, total = gym.make(env_id), 0.0
    for seed in range(_FIRST_EVALUATION_SEED, _FIRST_EVALUATION_SEED + EVALUATION_EPISODES):
        (observation, _), over = env.reset(seed=seed), False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(act(observation))
            total += float(reward)
            over = terminated or truncated
    env.close()
    return total / EVALUATION_EPISODES


def processor_seconds() -> float:
    """Returns the processor time of this process and of those that it started and that are over."""
    return time.process_time() + sum(os.times()[2:4])


def children_seconds() -> float:
    """Returns the processor time of the processes that this one started and that still run.

    Takes half a millisecond.
    """
    return sum(sum(child.cpu_times()[:2]) for child in psutil.Process().children())


def children_mib() -> float:
    """Returns the greatest resident memory so far of each process that this one started and that
    still runs, summed up.
    """
    return sum(peak_mib(child.pid) for child in psutil.Process().children())


def peak_mib(pid: int | str = "self") -> float:
    """Returns the greatest resident memory of a process so far: that of who started it does not
    count, as it would in `getrusage`.
    """
    with Path(f"/proc/{pid}/status").open() as lines:
        kib = next(line.split()[1] for line in lines if line.startswith("VmHWM"))
    return int(kib) / 1024

"""Streams of transitions, and a reference replay memory made of plain lists."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Chunk:
    """Transitions of shape [T, B, ...] with the fields of `Replay.extend`."""

    observation: Any
    action: Any
    reward: Any
    next_observation: Any
    terminated: Any
    truncated: Any

    @property
    def columns(self) -> tuple[Any, ...]:
        return (
            self.observation,
            self.action,
            self.reward,
            self.next_observation,
            self.terminated,
            self.truncated,
        )


class VectorStream:
    """Vector environments with observations (environment, episode, step of the episode).

    Their rewards are random.
    """

    def __init__(self, seed: int, num_envs: int, end: float = 0.2) -> None:
        self.generator = np.random.default_rng(seed)
        self.num_envs, self.end = num_envs, end
        self.state = np.zeros((num_envs, 3), np.float32)
        self.state[:, 0] = np.arange(num_envs)

    def draw_chunk(self, steps: int) -> Chunk:
        lead = (steps, self.num_envs)
        observation, successor = np.zeros((*lead, 3), np.float32), np.zeros((*lead, 3), np.float32)
        ends = self.generator.random(lead) < self.end
        terminated = ends & (self.generator.random(lead) < 0.5)
        for t in range(steps):
            observation[t] = self.state
            self.state[:, 2] += 1
            successor[t] = self.state
            self.state[ends[t], 1] += 1
            self.state[ends[t], 2] = 0
        action, reward = self.generator.integers(5, size=lead), self.generator.normal(size=lead)
        return Chunk(observation, action, reward, successor, terminated, ends & ~terminated)


class FrameStream:
    """Environments that return stacks of k random frames of 2 x 3 pixels.

    Stacks at the start of an episode are padded with the first frame or with black frames, or are
    not padded.
    """

    def __init__(self, seed: int, num_envs: int, k: int, end: float = 0.1) -> None:
        self.generator = np.random.default_rng(seed)
        self.num_envs, self.k, self.end = num_envs, k, end
        self.stack = np.stack([self.draw_first_stack() for _ in range(num_envs)])

    def draw_frame(self) -> Any:
        return self.generator.integers(2, size=(2, 3)).astype(np.uint8)

    def draw_first_stack(self) -> Any:
        frame, kind = self.draw_frame(), self.generator.integers(3)
        if kind == 0:
            return np.stack([frame] * self.k)
        padding = np.zeros_like(frame) if kind == 1 else self.draw_frame()
        return np.stack([padding] * (self.k - 1) + [frame])

    def draw_chunk(self, steps: int) -> Chunk:
        lead, shape = (steps, self.num_envs), self.stack.shape[1:]
        observation, successor = (
            np.zeros((*lead, *shape), np.uint8),
            np.zeros((*lead, *shape), np.uint8),
        )
        ends = self.generator.random(lead) < self.end
        for t in range(steps):
            observation[t] = self.stack
            for b in range(self.num_envs):
                successor[t, b] = np.concatenate((self.stack[b, 1:], self.draw_frame()[np.newaxis]))
                self.stack[b] = self.draw_first_stack() if ends[t, b] else successor[t, b]
        terminated = ends & (self.generator.random(lead) < 0.5)
        action, reward = self.generator.integers(5, size=lead), self.generator.normal(size=lead)
        return Chunk(observation, action, reward, successor, terminated, ends & ~terminated)


@dataclass
class NaiveReplay:
    """Stores every row of each environment in a list and computes samples with loops."""

    steps: int
    num_envs: int
    n_step: int = 1
    gamma: float = 0.9
    rows: list[list[tuple[Any, ...]]] = field(default_factory=list)

    def extend(self, chunk: Chunk, active: Any = None) -> None:
        for t in range(len(chunk.reward)):
            flags = np.ones(self.num_envs, bool) if active is None else active[t]
            self.rows.append(
                [
                    (*(column[t, b] for column in chunk.columns), bool(flags[b]))
                    for b in range(self.num_envs)
                ]
            )

    @property
    def stored_steps(self) -> list[int]:
        """Returns the numbers of the vector steps that are stored."""
        return list(range(max(0, len(self.rows) - self.steps), len(self.rows)))

    def get_place(self, step: int, b: int) -> int:
        return step % self.steps * self.num_envs + b

    def get_transition(self, step: int, b: int) -> tuple[Any, ...]:
        """Returns observation, action, reward, next observation and discount."""
        observation, action, *_ = self.rows[step][b]
        total, discount = 0.0, 1.0
        for row in self.rows[step : step + self.n_step]:
            _, _, reward, successor, terminated, truncated, _ = row[b]
            total += discount * reward
            discount *= self.gamma
            if terminated or truncated:
                break
        return observation, action, total, successor, 0.0 if terminated else discount

    def list_expected_samples(self) -> dict[int, tuple[Any, ...]]:
        """Returns the expected sample of each place."""
        return {
            self.get_place(step, b): self.get_transition(step, b)
            for step in self.stored_steps
            for b in range(self.num_envs)
            if self.rows[step][b][-1]
        }

"""Runs whole episodes with exploration off and computes statistics of their returns and lengths.

Episodes are numbered when they start, and only the first ones by start order count, so that short
episodes are not over-represented: several environments give the same result as one, unless the
agent draws its actions by global generators. An evaluation changes neither the agent nor any random
generator that training uses.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from palestra.contract.names import EvaluationPolicy
from workers.core.protocols import ClockView, StochasticActor, TrainableAgent
from workers.core.rng import (
    ENV_SEED_BITS,
    derive_generator,
    derive_seed,
    preserve_global_state,
)
from workers.core.shared_counter import SharedCount
from workers.core.types import Array, EvaluationResult
from workers.rl.envs.vector import EpisodeVector


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationBudget:
    """Length of one evaluation; either `episodes` or `steps` is set."""

    episodes: int | None = None
    """Number of whole episodes."""
    steps: int | None = None
    """Number of env_steps, counted as if the episodes ran one after the other.

    The last episode is dropped if it is unfinished.
    """
    cut_at: int | None = None
    """Length at which the environment cuts episodes because nothing else limits them."""

    def __post_init__(self) -> None:
        if (self.episodes is None) == (self.steps is None):
            raise ValueError("set exactly one of episodes and steps")


SeedRule = Callable[[ClockView], int]
"""Returns the seed of an evaluation, from which the seeds of its episodes are derived."""


def new_seed_rule(run_seed: int) -> SeedRule:
    """Returns the rule for evaluations during training, with a new seed for each evaluation.

    The seed is derived from the run's seed and the counters, so a resumed run repeats it.
    """
    return lambda clock: derive_seed(
        run_seed, "evaluation", clock.env_steps, clock.updates, bits=53
    )


def fixed_seed_rule(seed: int) -> SeedRule:
    """Returns the rule for evaluate jobs: always `seed`."""
    return lambda _: seed


EvaluationObserver = Callable[
    [Array, npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_]], None
]
"""Is called after each vector step with the next observation [B, ...], reward [B], terminated [B]
and reset [B], which is true where the episode is over and in all slots when the evaluation is
complete. The arrays are valid during the call only.
"""


def episode_seed(evaluation_seed: int, episode: int) -> int:
    """Returns the seed of episode number `episode` of an evaluation, in start order from 0."""
    return derive_seed(evaluation_seed, "episode", episode, bits=ENV_SEED_BITS)


def derive_action_generator(seed: int) -> np.random.Generator:
    """Returns the generator of the drawn actions of the episode with this seed."""
    return derive_generator(seed, "actions")


def draw_actions(
    agent: TrainableAgent, seed: int, rows: Sequence[np.random.Generator] | None
) -> AbstractContextManager[None]:
    """Returns the context of `StochasticActor.sample_actions`; one without effect without rows."""
    if rows is None:
        return nullcontext()
    return cast("StochasticActor", agent).sample_actions(seed, rows)


class VectorEvaluator:
    """Evaluates an agent on a vector environment.

    Args:
        env: The vector environment; nothing else may use it, and it is closed with the evaluator.
        agent: Acts without exploration.
        budget: Number of episodes or env_steps of an evaluation.
        seeds: Returns the seed of each evaluation.
        on_step: Called after each vector step, for agents that observe the results of their actions
            in evaluations too.
        progress: Counts the vector steps.
        policy: Whether actions are greedy, drawn from the policy, which the agent must be able to
            (`StochasticActor`), or both in turn on the same seeds.
    """

    def __init__(  # noqa: PLR0913 - keyword only
        self,
        env: EpisodeVector,
        agent: TrainableAgent,
        budget: EvaluationBudget,
        seeds: SeedRule,
        on_step: EvaluationObserver | None = None,
        *,
        progress: SharedCount | None = None,
        policy: EvaluationPolicy = "greedy",
    ) -> None:
        self._env = env
        self._agent = agent
        self._budget = budget
        self._seeds = seeds
        self._on_step = on_step
        self._progress = progress
        self._policy = policy

    def evaluate(self, clock: ClockView) -> EvaluationResult:
        """Runs one evaluation."""
        seed = self._seeds(clock)
        if self._policy != "both":
            return self._evaluate(seed, draws_actions=self._policy == "stochastic")
        greedy = self._evaluate(seed, draws_actions=False)
        return replace(greedy, drawn=self._evaluate(seed, draws_actions=True))

    def close(self) -> None:
        """Closes the environment."""
        self._env.close()

    def _evaluate(self, seed: int, *, draws_actions: bool) -> EvaluationResult:
        # Each episode begins with a generator of its own.
        rows = None
        if draws_actions:
            rows = [derive_action_generator(slot) for slot in range(self._env.num_envs)]
        draw = draw_actions(self._agent, derive_seed(seed, "actions"), rows)
        with preserve_global_state(), self._agent.eval_mode(), draw:
            counted = self._run(seed, rows).counted_episodes()
        return replace(
            summarise(counted.returns, counted.lengths, seed, is_partial=counted.is_partial),
            success_rate=success_rate(counted.successes),
            cut_episodes=None if self._budget.cut_at is None else sum(counted.cut),
        )

    def _run(self, seed: int, rows: list[np.random.Generator] | None) -> "_EpisodeAccounts":
        env, accounts = self._env, _EpisodeAccounts(self._budget)
        slots: list[int | None] = [None] * env.num_envs
        while not accounts.is_complete:
            actions = self._agent.act(
                self._begin_episodes(seed, slots, accounts, rows), explore=False
            )
            successor, reward, terminated, truncated = env.advance(actions)
            if self._progress is not None:
                self._progress.add(1)
            for slot, episode in enumerate(slots):
                if episode is None:
                    continue
                over = bool(terminated[slot] or truncated[slot])
                accounts.add_step(episode, float(reward[slot]), is_over=over)
                if over:
                    success, is_terminated = env.successes()[slot], bool(terminated[slot])
                    accounts.note_end(episode, success, is_terminated=is_terminated)
                    slots[slot] = None
            if self._on_step is not None:
                self._on_step(
                    successor, reward, terminated, terminated | truncated | accounts.is_complete
                )
        return accounts

    def _begin_episodes(
        self,
        seed: int,
        slots: list[int | None],
        accounts: "_EpisodeAccounts",
        rows: list[np.random.Generator] | None,
    ) -> Array:
        mask = np.zeros(len(slots), np.bool_)
        seeds = [0] * len(slots)
        for slot, episode in enumerate(slots):
            if episode is None and (begun := accounts.begin()) is not None:
                slots[slot] = begun
                mask[slot] = True
                seeds[slot] = episode_seed(seed, begun)
                if rows is not None:
                    rows[slot] = derive_action_generator(seeds[slot])
        return self._env.begin(mask, seeds)


class _CountedEpisodes(NamedTuple):
    """The episodes of an evaluation that count, in start order."""

    returns: list[float]
    lengths: list[int]
    successes: list[bool | None]
    cut: list[bool]
    is_partial: bool
    """Whether no episode was finished, so that the first one counts although it is not."""


class _EpisodeAccounts:
    """Records the episodes of one evaluation in start order, and whether the budget is used up."""

    def __init__(self, budget: EvaluationBudget) -> None:
        self._budget = budget
        self._returns: list[float] = []
        self._lengths: list[int] = []
        self._over: list[bool] = []
        self._successes: list[bool | None] = []
        self._cut: list[bool] = []
        self._finished = 0
        """All episodes with a lower number are over."""
        self._finished_steps = 0
        """env_steps of these episodes."""

    def begin(self) -> int | None:
        """Returns the number of a new episode, or `None` if the budget needs no more episodes."""
        number = len(self._returns)
        if number == self._budget.episodes:
            return None
        self._returns.append(0.0)
        self._lengths.append(0)
        self._over.append(False)
        self._successes.append(None)
        self._cut.append(False)
        return number

    def add_step(self, episode: int, reward: float, *, is_over: bool) -> None:
        """Adds the reward of one env_step to an episode; `is_over`: whether the episode ended."""
        self._returns[episode] += reward
        self._lengths[episode] += 1
        self._over[episode] = is_over
        while self._finished < len(self._over) and self._over[self._finished]:
            self._finished_steps += self._lengths[self._finished]
            self._finished += 1

    def note_end(self, episode: int, success: bool | None, *, is_terminated: bool) -> None:
        """Records whether an episode that ended was cut, and succeeded, if that is known."""
        self._successes[episode] = success
        self._cut[episode] = not is_terminated and self._lengths[episode] == self._budget.cut_at

    @property
    def is_complete(self) -> bool:
        """Whether the budget is used up, counted as if the episodes ran one after the other."""
        if self._budget.steps is None:
            return self._finished == self._budget.episodes
        running = self._lengths[self._finished] if self._finished < len(self._lengths) else 0
        return self._finished_steps + running >= self._budget.steps

    def counted_episodes(self) -> _CountedEpisodes:
        """Returns the episodes that count."""
        limit = self._budget.steps
        count, steps = 0, 0
        while count < self._finished and (limit is None or steps + self._lengths[count] <= limit):
            steps += self._lengths[count]
            count += 1
        shown = slice(count or 1)
        return _CountedEpisodes(
            self._returns[shown],
            self._lengths[shown],
            self._successes[shown],
            self._cut[shown],
            is_partial=count == 0,
        )


def summarise(
    returns: list[float], lengths: list[int], seed: int, *, is_partial: bool = False
) -> EvaluationResult:
    """Returns mean, median, sample standard deviation, least and greatest of returns and lengths.

    Non-finite returns stay non-finite.
    """
    with np.errstate(all="ignore"):
        mean, median, stdev, least, greatest = _statistics(np.asarray(returns, np.float64))
        length_mean, length_median, length_stdev, length_least, length_greatest = _statistics(
            np.asarray(lengths, np.float64)
        )
    return EvaluationResult(
        returns=tuple(returns),
        lengths=tuple(lengths),
        seed=seed,
        mean=mean,
        median=median,
        stdev=stdev,
        min=least,
        max=greatest,
        length_mean=length_mean,
        length_median=length_median,
        length_stdev=length_stdev,
        length_min=length_least,
        length_max=length_greatest,
        is_partial=is_partial,
    )


def success_rate(successes: Sequence[bool | None]) -> float | None:
    """Returns the share of successes.

    Returns `None` if the success of no episode is known; unknown episodes else count as failures.
    """
    if all(one is None for one in successes):
        return None
    return sum(one is True for one in successes) / len(successes)


def success_share(result: EvaluationResult, threshold: float) -> float:
    """Returns the share of episodes whose return is at least `threshold`, in [0, 1]."""
    return sum(one >= threshold for one in result.returns) / len(result.returns)


def _statistics(values: npt.NDArray[np.float64]) -> tuple[float, float, float, float, float]:
    stdev = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return (
        float(values.mean()),
        float(np.median(values)),
        stdev,
        float(values.min()),
        float(values.max()),
    )

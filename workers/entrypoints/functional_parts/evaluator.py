"""Evaluations of an external agent, on a separate environment or on the training environment."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from workers.core.counts import check_count
from workers.core.protocols import ClockView
from workers.core.types import Array, EvaluationResult
from workers.engine.parts import BestScore
from workers.rl.agents.pfrl_adapter import ExternalAgent
from workers.rl.envs.caller_envs import CallerEnvs, clear_statistics, statistics_of
from workers.rl.envs.vector import EpisodeVector
from workers.rl.evaluate.vector_evaluator import EvaluationBudget, SeedRule, VectorEvaluator


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationSettings:
    """Settings of evaluations, with the names of PFRL's parameters."""

    interval: int
    n_steps: int | None
    n_episodes: int | None
    max_episode_len: int | None
    outdir: str

    def __post_init__(self) -> None:
        if (self.n_steps is None) == (self.n_episodes is None):
            raise ValueError(
                "set exactly one of eval_n_steps and eval_n_episodes, and give None for the other"
            )
        budget = (
            ("eval_n_steps", self.n_steps)
            if self.n_episodes is None
            else ("eval_n_episodes", self.n_episodes)
        )
        for name, value in (("eval_interval", self.interval), budget):
            check_count(value, name, 1)


@dataclass(frozen=True, slots=True)
class EvaluationEnvironments:
    """The evaluation environments, and the training environments if both are the same."""

    env: CallerEnvs
    """The environment that the caller passed. It may have `clear_statistics` and
    `get_statistics`.
    """
    vector: EpisodeVector
    """`env` as a vector environment."""
    training: EpisodeVector | None = None
    """The training environments, if `env` is one of them: their episodes in progress are restored
    after the evaluation. `None` if `env` is a separate environment.
    """


class ExternalAgentEvaluator:
    """Evaluates an external agent; passed to evaluation hooks as `evaluator`.

    Args:
        agent: The agent to evaluate.
        environments: Environments of the evaluations.
        settings: Length and interval of the evaluations.
        seeds: Rule for the seeds of the episodes.
        best: Best score, read by `max_score`.
        check_interrupts: Called at each step; an exception that it raises ends the evaluation.
    """

    def __init__(
        self,
        agent: ExternalAgent,
        environments: EvaluationEnvironments,
        settings: EvaluationSettings,
        seeds: SeedRule,
        best: BestScore,
        check_interrupts: Callable[[], None] = lambda: None,
    ) -> None:
        self.agent = agent.wrapped
        self.env = environments.env
        self.n_steps, self.n_episodes = settings.n_steps, settings.n_episodes
        self.eval_interval, self.max_episode_len, self.outdir = (
            settings.interval,
            settings.max_episode_len,
            settings.outdir,
        )
        self._observe_evaluation = agent.observe_evaluation
        self._check_interrupts = check_interrupts
        self._best = best
        self._training = environments.training
        budget = EvaluationBudget(episodes=settings.n_episodes, steps=settings.n_steps)
        self._evaluator = VectorEvaluator(
            environments.vector, agent, budget, seeds, self._observe_step
        )

    @property
    def max_score(self) -> float:
        """Best mean return so far; minus infinity before the first evaluation."""
        return -np.inf if self._best.score is None else self._best.score

    def evaluate(self, clock: ClockView) -> EvaluationResult:
        """Runs one evaluation and restores the training episodes, if it used their environment."""
        clear_statistics(self.env)
        if self._training is None:
            return self._evaluator.evaluate(clock)
        running = self._training.save_episodes()
        result = self._evaluator.evaluate(clock)
        self._training.restore_episodes(running)
        return result

    def statistics(self) -> list[tuple[str, object]]:
        """Returns the environment's statistics of the last evaluation as (name, value) pairs."""
        return statistics_of(self.env)

    def _observe_step(
        self,
        observation: Array,
        reward: npt.NDArray[np.float64],
        terminated: npt.NDArray[np.bool_],
        reset: npt.NDArray[np.bool_],
    ) -> None:
        self._observe_evaluation(observation, reward, terminated, reset)
        self._check_interrupts()


def eval_stats_of(result: EvaluationResult) -> dict[str, float]:
    """Returns the statistics of an evaluation under PFRL's names."""
    names = (
        "mean",
        "median",
        "stdev",
        "max",
        "min",
        "length_mean",
        "length_median",
        "length_stdev",
        "length_max",
        "length_min",
    )
    return {"episodes": len(result.returns), **{name: getattr(result, name) for name in names}}


def call_evaluation_hooks(
    hooks: Sequence[Callable[..., None]],
    evaluator: ExternalAgentEvaluator,
    *,
    step: int,
    eval_stats: Mapping[str, float],
    agent_stats: Sequence[tuple[str, object]],
    env_stats: Sequence[tuple[str, object]],
) -> None:
    """Calls each hook with the keywords of `workers.hooks.EvaluationHook.__call__`."""
    for hook in hooks:
        hook(
            env=evaluator.env,
            agent=evaluator.agent,
            evaluator=evaluator,
            step=step,
            eval_stats=eval_stats,
            agent_stats=agent_stats,
            env_stats=env_stats,
        )

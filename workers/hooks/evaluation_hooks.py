"""Evaluation hooks: called by keyword after each evaluation, before a best agent is saved.

Names and order of their parameters are those of PFRL.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from workers.core.protocols import EngineView
from workers.core.types import EvaluationResult, StopReason

Trainer = Literal["train_agent", "train_agent_batch", "train_agent_async"]
"""Stands for `train_agent_with_evaluation`, `train_agent_batch_with_evaluation` and
`train_agent_async`.
"""


class EvaluationHook(ABC):
    """Base of evaluation hooks; its flags name the training functions that it supports."""

    support_train_agent: bool = False
    support_train_agent_batch: bool = False
    support_train_agent_async: bool = False

    @abstractmethod
    def __call__(  # noqa: PLR0913, PLR0917 - names and order are those of PFRL
        self,
        env: object,
        agent: object,
        evaluator: object,
        step: int,
        eval_stats: Mapping[str, float],
        agent_stats: Sequence[tuple[str, object]],
        env_stats: Sequence[tuple[str, object]],
    ) -> None:
        """Called after an evaluation; what it raises ends training and is saved as `<step>_except`.

        Args:
            env: The evaluation environment.
            agent: The agent.
            evaluator: Has `max_score`, the best mean before this evaluation, and the evaluation's
                settings.
            step: Env_steps so far.
            eval_stats: `episodes`, and mean, median, stdev, max and min of returns and, as
                `length_...`, of lengths.
            agent_stats: Pairs of the agent's `get_statistics`.
            env_stats: Pairs of the environment's `get_statistics`.
        """


class OptunaPrunerHook(EvaluationHook):
    """Reports each mean return to a trial of Optuna, which may prune the training.

    Raises `optuna.TrialPruned` then.

    Args:
        trial: Has `report(score, step)` and `should_prune()`.

    Raises:
        RuntimeError: If Optuna is missing.
    """

    support_train_agent = True
    support_train_agent_batch = True

    def __init__(self, trial: Any) -> None:
        try:
            from optuna import TrialPruned  # noqa: PLC0415 - an optional dependency
        except ImportError as error:
            raise RuntimeError(
                "OptunaPrunerHook needs the package optuna: pip install optuna"
            ) from error
        self.trial = trial
        self._pruned: type[Exception] = TrialPruned

    def __call__(  # noqa: PLR0913, PLR0917 - as above
        self,
        env: object,
        agent: object,
        evaluator: object,
        step: int,
        eval_stats: Mapping[str, float],
        agent_stats: Sequence[tuple[str, object]] = (),
        env_stats: Sequence[tuple[str, object]] = (),
    ) -> None:
        """Reports the mean return, and raises where the trial is to be pruned."""
        del env, agent, evaluator, agent_stats, env_stats
        self.trial.report(eval_stats["mean"], step)
        if self.trial.should_prune():
            raise self._pruned(f"pruned at step {step} with a mean return of {eval_stats['mean']}")


def reaches(score: float | None, value: float) -> bool:
    """Returns whether a mean return, or a best one, is at least the score that ends a training.

    Without a score, and of NaN, it is not.
    """
    return score is not None and value >= score


class SuccessScoreHook:
    """Ends the run once the mean return of an evaluation is at least a score.

    The engine's own kind of hook.

    Args:
        score: Undiscounted return; `None` never ends it.
    """

    def __init__(self, score: float | None) -> None:
        self._score = score

    def on_evaluation(self, view: EngineView, result: EvaluationResult) -> None:
        """Requests a stop where the score is reached."""
        if reaches(self._score, result.mean):
            view.request_stop(StopReason.SUCCESS_SCORE)


def check_support(hooks: Sequence[object], trainer: Trainer, function: str) -> None:
    """Checks that hooks work in a training function.

    Raises:
        ValueError: If one does not say by its flag that it does; the message names it.
        TypeError: If one cannot be called.
    """
    for hook in hooks:
        if not callable(hook):
            raise TypeError(f"evaluation_hooks: a {type(hook).__name__} cannot be called")
        if not getattr(hook, f"support_{trainer}", False):
            raise ValueError(
                f"evaluation_hooks: {type(hook).__name__} does not support {function}; "
                f"it has not set support_{trainer}"
            )

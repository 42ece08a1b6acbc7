"""Evaluation hooks: called by keyword after each evaluation, before a best agent is saved.

Names and order of their parameters are those of PFRL.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from workers.core.protocols import EngineView
from workers.core.types import EvaluationResult, StopReason

Trainer = Literal["train_agent", "train_agent_batch", "train_agent_async"]
"""Short names of the training functions `train_agent_with_evaluation`,
`train_agent_batch_with_evaluation` and `train_agent_async`.
"""


class EvaluationHook(ABC):
    """Base class of evaluation hooks; its flags state which training functions it supports."""

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
        """Called after an evaluation; an exception ends training with a `<step>_except` snapshot.

        Args:
            env: The evaluation environment.
            agent: The agent.
            evaluator: Object with `max_score`, the best mean return before this evaluation, and the
                settings of the evaluation.
            step: env_steps so far.
            eval_stats: `episodes`; `mean`, `median`, `stdev`, `max` and `min` of the returns; and
                the same of the lengths, with the prefix `length_`.
            agent_stats: (name, value) pairs of the agent's `get_statistics`.
            env_stats: (name, value) pairs of the environment's `get_statistics`.
        """


class OptunaPrunerHook(EvaluationHook):
    """Reports each mean return to a trial of Optuna, and ends training if the trial is pruned.

    Args:
        trial: Optuna's trial, or an object with `report(score, step)` and `should_prune()`.

    Raises:
        RuntimeError: If Optuna is not installed.
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
        """Reports the mean return.

        Raises:
            optuna.TrialPruned: If the trial should be pruned.
        """
        del env, agent, evaluator, agent_stats, env_stats
        self.trial.report(eval_stats["mean"], step)
        if self.trial.should_prune():
            raise self._pruned(f"pruned at step {step} with a mean return of {eval_stats['mean']}")


def is_reached(score: float | None, value: float) -> bool:
    """Returns whether `value`, a mean return, is at least `score`.

    Returns false if `score` is `None` or `value` is NaN.
    """
    return score is not None and value >= score


class SuccessScoreHook:
    """Ends the run once the mean return of an evaluation is at least `score`.

    It is a hook of the engine, not an `EvaluationHook`.

    Args:
        score: Mean undiscounted return; `None` never ends the run.
    """

    def __init__(self, score: float | None) -> None:
        self._score = score

    def on_evaluation(self, view: EngineView, result: EvaluationResult) -> None:
        """Requests a stop if the score is reached."""
        if is_reached(self._score, result.mean):
            view.request_stop(StopReason.SUCCESS_SCORE)


def check_support(hooks: Sequence[object], trainer: Trainer, function: str) -> None:
    """Checks that all hooks support a training function.

    Args:
        hooks: Evaluation hooks.
        trainer: Short name of the training function, which is part of the name of the flag.
        function: Full name of the training function, for the error message.

    Raises:
        ValueError: If a hook's flag `support_<trainer>` is not set; the message names the hook.
        TypeError: If a hook is not callable.
    """
    for hook in hooks:
        if not callable(hook):
            raise TypeError(f"evaluation_hooks: a {type(hook).__name__} cannot be called")
        if not getattr(hook, f"support_{trainer}", False):
            raise ValueError(
                f"evaluation_hooks: {type(hook).__name__} does not support {function}; "
                f"it has not set support_{trainer}"
            )

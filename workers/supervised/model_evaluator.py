"""Evaluates a model on the batches of an input, during training or from a snapshot."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from workers.core.errors import DefinitionError
from workers.core.protocols import ClockView
from workers.core.rng import preserve_global_state, seed_global
from workers.core.shared_counter import SharedCount
from workers.core.types import EvaluationResult
from workers.rl.evaluate.vector_evaluator import SeedRule, summarise
from workers.supervised.batches import InputFn, as_batches, is_one_batch
from workers.supervised.learner import evaluate_batch, mean_values
from workers.supervised.model_function import ModelFunction
from workers.supervised.variables import Variables


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """Selects the metric of a model that is the score of an evaluation."""

    metric: str = "loss"
    is_minimized: bool = True
    """Whether a lower metric is better: the score is then minus the metric."""

    def score(self, metrics: Mapping[str, float]) -> float:
        """Returns the score, of which higher is better.

        Raises:
            DefinitionError: If `metrics` lacks the metric of the score.
        """
        if self.metric not in metrics:
            raise DefinitionError(
                f"evaluation.metric: the model has no {self.metric!r}; "
                f"it has {', '.join(sorted(metrics))}"
            )
        return -metrics[self.metric] if self.is_minimized else metrics[self.metric]


class ModelEvaluator:
    """Computes means of loss and metrics over the examples of an input.

    An evaluation has one episode: its return is the score, its length the number of batches.

    Args:
        model: The model function, called with mode EVAL.
        variables: The variables of the model, with their values at the time of each evaluation.
        input_fn: Input function, called for each evaluation.
        steps: Number of batches; `None` for all batches of the input.
        scoring: Selects the metric that is the score.
        seeds: Returns the seed of each evaluation, for models that draw random numbers.
        progress: Counts the batches.
    """

    def __init__(  # noqa: PLR0913 - keyword only
        self,
        model: ModelFunction,
        variables: Variables,
        input_fn: InputFn,
        steps: int | None,
        scoring: Scoring,
        seeds: SeedRule,
        *,
        progress: SharedCount | None = None,
    ) -> None:
        self._model = model
        self._variables = variables
        self._input_fn = input_fn
        self._steps = steps
        self._scoring = scoring
        self._seeds = seeds
        self._progress = progress

    def evaluate(self, clock: ClockView) -> EvaluationResult:
        """Runs one evaluation."""
        seed = self._seeds(clock)
        with preserve_global_state():
            seed_global(seed)
            given = self._input_fn()
            batches = [given] if self._steps is None and is_one_batch(given) else as_batches(given)
            metrics, count = mean_values(
                islice(batches, self._steps),
                self._evaluate_batch,
            )
        result = summarise([self._scoring.score(metrics)], [count], seed)
        return replace(result, metrics=metrics)

    def _evaluate_batch(self, batch: tuple[object, object]) -> Mapping[str, Any]:
        if self._progress is not None:
            self._progress.add(1)
        return evaluate_batch(self._model, self._variables, batch).scalars

    def close(self) -> None:
        """Does nothing: no resource is held between evaluations."""

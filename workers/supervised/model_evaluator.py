"""Evaluates a model on the batches of an input, between its updates or of a snapshot."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice

from workers.core.errors import DefinitionError
from workers.core.protocols import ClockView
from workers.core.rng import preserved_global_state, seed_global
from workers.core.types import EvaluationResult
from workers.rl.evaluate.vector_evaluator import SeedRule, summarise
from workers.supervised.batches import InputFn, as_batches, is_one_batch
from workers.supervised.learner import evaluation_of, mean_values
from workers.supervised.model_function import ModelFunction
from workers.supervised.variables import Variables


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """Which metric of a model is the score."""

    metric: str = "loss"
    minimize: bool = True
    """Take minus the metric, so that a higher score is better."""

    def score(self, metrics: Mapping[str, float]) -> float:
        """Returns the score.

        Raises:
            DefinitionError: If the model has no such metric.
        """
        if self.metric not in metrics:
            raise DefinitionError(
                f"evaluation.metric: the model has no {self.metric!r}; "
                f"it has {', '.join(sorted(metrics))}"
            )
        return -metrics[self.metric] if self.minimize else metrics[self.metric]


class ModelEvaluator:
    """Takes loss and metrics as means over the examples of an input.

    A pass counts as one episode, its return is the score.

    Args:
        model: The model function, called with mode EVAL.
        variables: What the model keeps; evaluated as they are at each evaluation.
        input_fn: Returns batches, afresh for each evaluation.
        steps: Batches; `None` for all that the input has.
        scoring: What the score is.
        seeds: For models that draw random numbers.
    """

    def __init__(
        self,
        model: ModelFunction,
        variables: Variables,
        input_fn: InputFn,
        steps: int | None,
        scoring: Scoring,
        seeds: SeedRule,
    ) -> None:
        self._model = model
        self._variables = variables
        self._input_fn = input_fn
        self._steps = steps
        self._scoring = scoring
        self._seeds = seeds

    def evaluate(self, clock: ClockView) -> EvaluationResult:
        """Runs one evaluation."""
        seed = self._seeds(clock)
        with preserved_global_state():
            seed_global(seed)
            given = self._input_fn()
            batches = [given] if self._steps is None and is_one_batch(given) else as_batches(given)
            metrics, count = mean_values(
                islice(batches, self._steps),
                lambda batch: evaluation_of(self._model, self._variables, batch).scalars,
            )
        result = summarise([self._scoring.score(metrics)], [count], seed)
        return replace(result, metrics=metrics)

    def close(self) -> None:
        """Does nothing: an evaluation keeps no input open."""

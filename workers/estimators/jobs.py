"""A registered supervised model as parts of the engine: for whoever brings a recorder, a snapshotter and a control of his own."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import torch

from workers.core.protocols import ClockView, Hook
from workers.core.rng import derive_seed, preserved_global_state, seed_global
from workers.core.types import EvaluationResult
from workers.estimators.basic_hooks import NanTensorHook
from workers.estimators.batches import BatchCollector, InputFn, as_batches, is_one_batch, tensors
from workers.estimators.inputs import bound_input
from workers.estimators.learning import SessionBridge, SupervisedLearner, mean_values, values_of
from workers.estimators.model_function import ModelFunction
from workers.estimators.models import model_function
from workers.estimators.modes import Modes
from workers.estimators.run_config import RunConfig
from workers.estimators.session import Session
from workers.estimators.variables import Variables
from workers.evaluate.evaluator import summarise

SCORE: Final = "accuracy"
"""The metric that is an evaluation's score; a model without it is scored by minus its loss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisedSpec:
    """A supervised model as data."""

    model: str
    """Name of a model function."""
    params: Mapping[str, Any]
    train_input: tuple[str, Mapping[str, Any]]
    """Name and params of an input function."""
    eval_input: tuple[str, Mapping[str, Any]]
    eval_steps: int | None
    """Batches of one evaluation; `None` for all."""


@dataclass(frozen=True, slots=True)
class SupervisedParts:
    """Parts of an engine that belong together. One update takes one batch, which counts as one env_step."""

    agent: SupervisedLearner
    collector: BatchCollector
    evaluator: "SupervisedEvaluator"
    hooks: tuple[Hook, ...]


def supervised_parts(spec: SupervisedSpec, seed: int, device: str) -> SupervisedParts:
    """Returns the parts of a training, all of whose randomness derives from a seed.

    Args:
        spec: The model.
        seed: The run's seed.
        device: A torch device.

    Raises:
        PartNotFoundError: If a name is not registered.
        ValueError: If the model function does not accept params.
    """
    config = RunConfig(seed=seed, device=device)
    model = ModelFunction(model_function(spec.model), spec.params, config, "")
    variables = Variables(seed, device)
    session = Session(variables, [NanTensorHook()], "")
    return SupervisedParts(
        SupervisedLearner(model, variables, session),
        BatchCollector(bound_input(spec.train_input[0], Modes.TRAIN, spec.train_input[1])),
        SupervisedEvaluator(model, variables, bound_input(spec.eval_input[0], Modes.EVAL, spec.eval_input[1]), spec.eval_steps, seed),
        (SessionBridge(session),),
    )


class SupervisedEvaluator:
    """Evaluates a model on batches. A result has one return, the score, whose length is the number of examples.

    Args:
        model: The model function.
        variables: What the model keeps.
        input_fn: Returns the batches.
        steps: So many of them, or all.
        seed: The run's seed.
    """

    def __init__(self, model: ModelFunction, variables: Variables, input_fn: InputFn, steps: int | None, seed: int) -> None:
        self.metrics: dict[str, float] = {}
        """Loss and metrics of the last evaluation, means over its examples."""
        self._model = model
        self._variables = variables
        self._input_fn = input_fn
        self._steps = steps
        self._seed = seed

    def evaluate(self, clock: ClockView) -> EvaluationResult:
        """Runs one evaluation; a model that draws random numbers draws the same again at the same place of the training."""
        seed = derive_seed(self._seed, "evaluation", clock.env_steps, clock.updates, bits=53)
        with preserved_global_state():
            seed_global(seed)
            given = self._input_fn()
            batches = [given] if self._steps is None and is_one_batch(given) else as_batches(given)
            self.metrics, examples = mean_values(islice(batches, self._steps), self._values)
        score = self.metrics[SCORE] if SCORE in self.metrics else -self.metrics["loss"]
        return summarise([score], [examples], seed)

    def close(self) -> None:
        """Does nothing: there is nothing to close."""

    def _values(self, batch: tuple[Any, Any]) -> Mapping[str, Any]:
        device: torch.device = self._variables.device
        features, labels = (tensors(one, device) for one in batch)
        spec = self._model(self._variables, features, labels, Modes.EVAL)
        return values_of(spec).scalars

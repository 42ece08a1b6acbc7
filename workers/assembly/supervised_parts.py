"""The parts of supervised training, built from a definition.

The engine counts each batch as one env_step; one batch is drawn per update.
"""

from functools import partial

import torch

from palestra.contract.definition import SupervisedDefinition
from workers.assembly.part_set import PartSet
from workers.assembly.supervised_functions import named_input, named_model
from workers.core.protocols import Hook, TrainableAgent
from workers.core.shared_counter import SharedCount
from workers.core.types import JsonObject, Unit
from workers.engine.budget import Budget
from workers.engine.parts import Cadence
from workers.engine.triggers import IntervalTrigger
from workers.hooks.guards import NanGuardHook, SuccessHook
from workers.recording.metric_windows import window_length
from workers.rl.evaluate.vector_evaluator import SeedRule, fixed_seed_rule
from workers.supervised.batches import BatchCollector, InputFn
from workers.supervised.learner import SupervisedLearner, example_of
from workers.supervised.model_evaluator import ModelEvaluator, Scoring
from workers.supervised.model_function import ModelFunction
from workers.supervised.modes import Modes
from workers.supervised.run_session import RunSession
from workers.supervised.variables import Variables


class Model(SupervisedLearner):
    """The learner of a definition, with the model function and variables that evaluators use.

    Args:
        definition: Names the model function.
        seed: The run's seed.
        device: A torch device.
    """

    def __init__(self, definition: SupervisedDefinition, seed: int, device: str) -> None:
        self.function = ModelFunction(
            named_model(definition.estimator.name), definition.estimator.params, None, ""
        )
        self.variables = Variables(seed, device)
        super().__init__(self.function, self.variables, RunSession(self.variables, (), ""))


def build_set(definition: SupervisedDefinition, seed: int, device: str) -> PartSet:
    """Returns the parts of a training.

    Raises:
        PartNotFoundError: If a part is not installed here.
    """
    model = Model(definition, seed, device)
    return PartSet(
        agent=model,
        collector=BatchCollector(input_of(definition, Modes.TRAIN)),
        hooks=build_hooks(definition, model),
        cadence=cadence_of(definition),
        window_env_steps=window_length(definition.loop.updates),
        resume_exact=True,
    )


def build_evaluator(
    definition: SupervisedDefinition,
    model: TrainableAgent,
    seeds: SeedRule,
    batches: int | None = None,
    progress: SharedCount | None = None,
) -> ModelEvaluator:
    """Returns an evaluator on the evaluation input.

    Args:
        definition: Defines the input, the number of batches and the score of an evaluation.
        model: The `Model` to evaluate.
        seeds: Seeds of the evaluation, for models that draw random numbers.
        batches: Number of batches; `None` for the definition's.
        progress: Counts the batches.
    """
    return _evaluator(
        definition,
        model,
        input_of(definition, Modes.EVAL),
        batches or definition.evaluation.steps,
        seeds,
        progress=progress,
    )


def build_train_data_evaluator(
    definition: SupervisedDefinition,
    model: TrainableAgent,
    seed: int,
    batches: int | None = None,
    progress: SharedCount | None = None,
) -> ModelEvaluator:
    """Returns an evaluator on the first batches of the training input.

    Their number is that of an evaluation, else that of an epoch.
    """
    steps = batches or definition.evaluation.steps or definition.loop.epoch_updates
    input_fn, seeds = input_of(definition, Modes.TRAIN), fixed_seed_rule(seed)
    return _evaluator(definition, model, input_fn, steps, seeds, progress=progress)


def build_hooks(definition: SupervisedDefinition, model: TrainableAgent) -> tuple[Hook, ...]:
    """Returns the definition's hooks in its order, then the success score."""
    hooks: list[Hook] = [
        NanGuardHook(model.report_names, spec.updates) for spec in definition.hooks
    ]
    if definition.stop.success_score is not None:
        hooks.append(
            SuccessHook(definition.stop.success_score, definition.stop.success_evaluations)
        )
    return tuple(hooks)


def cadence_of(definition: SupervisedDefinition) -> Cadence:
    """Returns the budget and the intervals of epochs, evaluations and snapshots."""
    return Cadence(
        budget=Budget({Unit.UPDATES: definition.loop.updates}),
        epoch=IntervalTrigger(definition.loop.epoch_updates, Unit.UPDATES),
        evaluation=_every(definition.evaluation.every_updates),
        saves_before_final_evaluation=True,
        snapshot=_every(definition.snapshot.every_updates),
        saves_best=definition.snapshot.keep_best,
    )


def input_of(definition: SupervisedDefinition, mode: Modes) -> InputFn:
    """Returns the input of training or of evaluation as an estimator takes it."""
    spec = definition.train_input if mode is Modes.TRAIN else definition.evaluation_input
    return partial(named_input(spec.name), mode, dict(spec.params))


def describe_acting(
    definition: SupervisedDefinition, model: TrainableAgent
) -> tuple[JsonObject, tuple[torch.Tensor, ...]]:
    """Returns estimator and layout of the features as JSON, and example features of two rows."""
    features = model.state_dict()["features"] or {}
    return {
        "estimator": definition.estimator.model_dump(mode="json"),
        "features": features,
    }, example_of(features)


def _evaluator(
    definition: SupervisedDefinition,
    model: TrainableAgent,
    input_fn: InputFn,
    steps: int | None,
    seeds: SeedRule,
    *,
    progress: SharedCount | None,
) -> ModelEvaluator:
    if not isinstance(model, Model):
        raise TypeError("a supervised definition is evaluated on the model that it was built for")
    spec = definition.evaluation
    scoring = Scoring(metric=spec.metric, is_minimized=spec.goal == "minimize")
    return ModelEvaluator(
        model.function, model.variables, input_fn, steps, scoring, seeds, progress=progress
    )


def _every(updates: int | None) -> IntervalTrigger | None:
    return None if updates is None else IntervalTrigger(updates, Unit.UPDATES)

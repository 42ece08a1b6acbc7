"""The update, evaluation and learner of model functions, and the engine hook for their session."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import torch

from workers.core.null_parts import NoMemory
from workers.core.protocols import EngineView
from workers.core.types import (
    Array,
    CollectPlan,
    Experience,
    LearnReport,
    LearnSchedule,
    StateTree,
    StopReason,
)
from workers.supervised.batches import SupervisedBatch, rows_in, to_tensors
from workers.supervised.model_function import ModelFunction
from workers.supervised.modes import Modes
from workers.supervised.predict_module import PredictModule
from workers.supervised.run_session import RunSession, RunValues
from workers.supervised.spec import EstimatorSpec
from workers.supervised.variables import Variables

REPORT_NAMES: Final = ("loss/train",)


def update(variables: Variables, make_spec: Callable[[], EstimatorSpec]) -> RunValues:
    """Makes one update, which counts as one global_step, and returns the values it computed.

    Raises:
        ValueError: If the spec has no `train_op` or no `loss`.
    """
    spec = make_spec()
    if spec.train_op is None or spec.loss is None:
        raise ValueError(
            "model_fn was called with mode train and returned a spec of mode "
            f"{spec.mode.value}: pass its mode on"
        )
    with torch.enable_grad():
        spec.train_op()
    variables.global_step += 1
    return values_of(spec, has_learned=True)


def values_of(spec: EstimatorSpec, *, has_learned: bool = False) -> RunValues:
    """Returns the values of a spec that hooks may read; calls its callable extra ops."""
    loss = None if spec.loss is None else spec.loss.detach()
    extra = {name: op() if callable(op) else op for name, op in spec.extra_ops.items()}
    scalars = {**spec.metrics, **({} if loss is None else {"loss": loss})}
    return RunValues(
        {**spec.predictions, **extra, **scalars}, scalars, loss, has_learned=has_learned
    )


def evaluate_batch(
    model: ModelFunction, variables: Variables, batch: tuple[object, object]
) -> RunValues:
    """Returns the values that a model computes in mode EVAL on one batch (features, labels)."""
    features, labels = (to_tensors(one, variables.device) for one in batch)
    return values_of(model(variables, features, labels, Modes.EVAL))


def mean_values(
    batches: Iterable[tuple[object, object]],
    evaluate: Callable[[tuple[Any, Any]], Mapping[str, Any]],
) -> tuple[dict[str, float], int]:
    """Returns means over all examples of the batches by name, and the number of batches.

    Args:
        batches: Pairs (features, labels).
        evaluate: Returns the means over one batch by name.

    Raises:
        ValueError: If the batches contain no example.
    """
    sums: dict[str, float] = {}
    rows, number = 0, 0
    for number, batch in enumerate(batches, 1):  # noqa: B007 - read after the loop
        count = rows_in(batch[0])
        for name, value in evaluate(batch).items():
            sums[name] = sums.get(name, 0.0) + count * float(value)
        rows += count
    if not rows:
        raise ValueError("the evaluation's input holds no batch: let it return at least one")
    return {name: value / rows for name, value in sums.items()}, number


def learn_report(values: RunValues) -> LearnReport:
    """Returns the report of a run for the engine: its loss, or no updates if it made none."""
    return (
        LearnReport(1, values.loss.reshape(1))
        if values.has_learned and values.loss is not None
        else LearnReport(0)
    )


class ModelLearner:
    """Base class of learners that run a model function.

    Args:
        model: The model function.
        variables: The modules, optimisers, explorations and counters of the model.
    """

    report_names = REPORT_NAMES
    collect_plan = CollectPlan(vector_steps=1)

    def __init__(self, model: ModelFunction, variables: Variables) -> None:
        self._model = model
        self._variables = variables
        self._features: StateTree | None = None
        """Names, shapes and dtypes of the features; `None` before the first batch."""

    @property
    def learning_rate(self) -> float:
        """Learning rate of the next update; 0 before the first update."""
        return self._variables.learning_rate() or 0.0

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        self._variables.set_learning_rate(value)

    def eval_mode(self) -> AbstractContextManager[None]:
        """Returns a context without effect: the mode is an argument of each call of the model."""
        return nullcontext()

    def acting_module(self) -> PredictModule:
        """Returns a module that computes the model's predictions without exploration."""
        return predict_module(self._model, self.state_dict())

    def state_dict(self) -> StateTree:
        """Returns the state of the variables, and names, shapes and dtypes of the features."""
        return {"variables": self._variables.state_dict(), "features": self._features}

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the variables and the description of the features from `state`."""
        self._variables.load_state_dict(state["variables"])
        self._features = state["features"]


class SupervisedLearner(ModelLearner):
    """An agent of the engine that observes one batch and makes one update with it.

    Args:
        model: The model function.
        variables: The modules, optimisers, explorations and counters of the model.
        session: Calls its hooks around each update.
    """

    learn_schedule = LearnSchedule(every_env_steps=1, updates=1)

    def __init__(self, model: ModelFunction, variables: Variables, session: RunSession) -> None:
        super().__init__(model, variables)
        self.memory = NoMemory()
        self._session = session
        self._batch: SupervisedBatch | None = None

    def act(self, observation: Array, *, explore: bool) -> Array:
        """Is not supported: a supervised model takes no actions.

        Raises:
            TypeError: Always.
        """
        del observation, explore
        raise TypeError("a supervised model takes no actions: use an Agent for an environment")

    def observe(self, experience: Experience) -> None:
        """Keeps the batch for the next update."""
        if not isinstance(experience, SupervisedBatch):
            raise TypeError(
                "a supervised model learns from batches: collect them with a BatchCollector"
            )
        self._batch = experience
        if self._features is None:
            self._features = describe(experience.features)

    def learn(self, updates: int) -> LearnReport:
        """Makes one update with the batch of the last `observe`, unless `updates` is 0.

        Each batch is used once: without a new batch, no update is made.
        """
        batch, self._batch = self._batch, None
        if updates < 1 or batch is None:
            return LearnReport(0)
        device = self._variables.device
        features, labels = to_tensors(batch.features, device), to_tensors(batch.labels, device)
        make = lambda: self._model(self._variables, features, labels, Modes.TRAIN)  # noqa: E731
        return learn_report(self._session.run(lambda: update(self._variables, make)))

    def metrics(self) -> dict[str, float]:
        """Returns the learning rate as `learning_rate`."""
        return {"learning_rate": self.learning_rate}


class SessionHook:
    """A hook of the engine that calls a session's hooks and passes their requests to the engine.

    Args:
        session: The session with the hooks.
        close_episode: Called at each boundary; makes the run that closes an episode if that run is
            still missing.
    """

    def __init__(
        self, session: RunSession, close_episode: Callable[[], None] = lambda: None
    ) -> None:
        self._session = session
        self._close_episode = close_episode

    def on_start(self, view: EngineView) -> None:
        """Calls the hooks once counters and variables are restored."""
        self._session.start()
        self._pass_on(view)

    def on_tick(self, view: EngineView, reports: Sequence[LearnReport]) -> None:
        """Closes an ended episode and passes the hooks' requests to the engine."""
        del reports
        self._close_episode()
        self._pass_on(view)

    def on_finish(self, view: EngineView, reason: StopReason) -> None:
        """Calls the hooks at the end of the training."""
        del view, reason
        self._session.end()

    def state_dict(self) -> StateTree:
        """Returns the state of the hooks that have one."""
        return self._session.state_dict()

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the state of the hooks."""
        self._session.load_state_dict(state)

    def _pass_on(self, view: EngineView) -> None:
        session = self._session
        if session.is_checkpoint_requested:
            session.is_checkpoint_requested = False
            view.request_snapshot()
        if session.stop_reason is not None:
            view.request_stop(session.stop_reason)


def describe(features: Any) -> StateTree:
    """Returns the shapes (without N) and dtypes of features by name, for `example_of`.

    Features that are a single tensor have the name "".
    """
    named = features if isinstance(features, dict) else {"": features}
    return {
        name: {"shape": list(one.shape[1:]), "dtype": str(one.dtype).removeprefix("torch.")}
        for name, one in named.items()
    }


def example_of(description: StateTree, rows: int = 2) -> tuple[torch.Tensor, ...]:
    """Returns features of zeros, [rows, ...] each, in the order of their names."""
    return tuple(
        torch.zeros((rows, *one["shape"]), dtype=getattr(torch, one["dtype"]))
        for one in description.values()
    )


def predict_module(model: ModelFunction, state: StateTree) -> PredictModule:
    """Returns a module, on the CPU, that computes predictions with a learner's state.

    Raises:
        ValueError: If the learner has not observed any features.
    """
    if not state["features"]:
        raise ValueError(
            "nothing was learnt yet, so the features are not known: train before exporting"
        )
    names = tuple(state["features"])
    return PredictModule(
        model, state["variables"], None if names == ("",) else names, example_of(state["features"])
    )

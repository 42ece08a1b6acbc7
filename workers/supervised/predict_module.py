"""A module that computes a model's predictions, without what only training needs."""

from copy import deepcopy

from torch import Tensor, nn

from workers.core.types import StateTree
from workers.supervised.model_function import ModelFunction
from workers.supervised.modes import Modes
from workers.supervised.spec import RESULTS
from workers.supervised.variables import Variables


class PredictModule(nn.Module):
    """Maps features [N, ...] to predictions [N, ...].

    Returns the prediction `results` if the model has one, else its only prediction.

    Args:
        model: The model function; called with mode PREDICT, without exploration.
        state: State of the model's variables; copied.
        names: Keys of the features, in the order of the module's arguments; `None` if the features
            are a single tensor.
        example: Features with which the model is called once, so that it requests the modules that
            predictions need.
    """

    def __init__(
        self,
        model: ModelFunction,
        state: StateTree,
        names: tuple[str, ...] | None,
        example: tuple[Tensor, ...],
    ) -> None:
        super().__init__()
        self._model = model
        self._variables = Variables()
        self._variables.load_state_dict(deepcopy({**state, "optimizers": {}}))
        self._names = names
        self(*example)
        for name, module in self._variables.modules().items():
            self.add_module(f"model_{name.replace('.', '_')}", module)
        self.eval()
        self.requires_grad_(requires_grad=False)

    def forward(self, *inputs: Tensor) -> Tensor:
        features = inputs[0] if self._names is None else dict(zip(self._names, inputs, strict=True))
        predictions = self._model(self._variables, features, None, Modes.PREDICT).predictions
        if RESULTS in predictions:
            return predictions[RESULTS]
        if len(predictions) > 1:
            raise ValueError(
                f"the model predicts {', '.join(predictions)} and none is called "
                f"{RESULTS!r}: give one of them this name to export it"
            )
        return next(iter(predictions.values()))

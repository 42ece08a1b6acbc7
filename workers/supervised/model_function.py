"""Checks the signature of a model function once, and calls the function."""

import inspect
import warnings
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Final

import torch

from workers.supervised.modes import Modes
from workers.supervised.spec import EstimatorSpec
from workers.supervised.variables import Variables

ModelFn = Callable[..., EstimatorSpec]
"""`model_fn(features, labels[, mode[, params[, config[, model_dir]]]])`.

See `workers.supervised.variables` for an example.
"""

_REQUIRED: Final = ("features", "labels")
_OPTIONAL: Final = ("mode", "params", "config", "model_dir")


class ModelFunction:
    """Calls a user's model function with the arguments that its signature accepts.

    The function gets a copy of `config`, and in each call a new copy of `params`.

    Args:
        function: The user's model function.
        params: Hyperparameters; `None` for none.
        config: Configuration of the run.
        model_dir: Directory of the model's checkpoints.

    Raises:
        ValueError: If the function lacks the parameter `features` or `labels`, has an unknown
            parameter, or does not accept `params` although they are given.
    """

    def __init__(
        self, function: ModelFn, params: Mapping[str, object] | None, config: object, model_dir: str
    ) -> None:
        accepted = _names_of(function)
        if params is not None and "params" not in accepted:
            raise ValueError(
                "params are given, but model_fn does not accept them: add a parameter params to it"
            )
        if params is None and "params" in accepted:
            warnings.warn(
                "model_fn accepts params, but none are given: it gets an empty dict",
                UserWarning,
                stacklevel=3,
            )
        self._function = function
        self._params = dict(params or {})
        self._fixed: dict[str, object] = {}
        if "config" in accepted:
            self._fixed["config"] = deepcopy(config)
        if "model_dir" in accepted:
            self._fixed["model_dir"] = model_dir
        self._accepted = accepted

    def __call__(
        self,
        variables: Variables,
        features: object,
        labels: object,
        mode: Modes,
        *,
        exploring: bool = False,
    ) -> EstimatorSpec:
        """Calls the function with one batch and returns its spec.

        Args:
            variables: The modules, optimisers, explorations and counters of the model.
            features: A tensor [N, ...], or a dict of tensors.
            labels: A tensor [N, ...], or a dict of tensors; `None` in modes without labels.
            mode: Purpose of the call; gradients are enabled in TRAIN only.
            exploring: Whether an agent acts to collect training data.

        Raises:
            ValueError: If the function returns anything but an `EstimatorSpec`.
        """
        arguments = dict(self._fixed)
        if "mode" in self._accepted:
            arguments["mode"] = mode
        if "params" in self._accepted:
            arguments["params"] = deepcopy(self._params)
        with (
            variables.activate(mode, exploring=exploring),
            torch.set_grad_enabled(mode is Modes.TRAIN),
        ):
            spec = self._function(features=features, labels=labels, **arguments)
        if not isinstance(spec, EstimatorSpec):
            # The documented API of model functions promises a ValueError.
            raise ValueError(f"model_fn must return an EstimatorSpec, not {type(spec).__name__}")  # noqa: TRY004
        return spec


def _names_of(function: ModelFn) -> frozenset[str]:
    """Returns the parameter names that the function accepts.

    Names that `functools.partial` has bound are excluded.
    """
    bound = getattr(function, "keywords", {})
    given = {
        name: one
        for name, one in inspect.signature(function).parameters.items()
        if name not in bound
    }
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in given.values()):
        return frozenset((*_REQUIRED, *_OPTIONAL))
    for name in _REQUIRED:
        if name not in given:
            raise ValueError(
                f"model_fn must accept {name}: its signature is (features, labels[, mode[, "
                "params[, config[, model_dir]]]])"
            )
    unknown = sorted(set(given) - {*_REQUIRED, *_OPTIONAL})
    if unknown:
        raise ValueError(
            f"model_fn accepts {', '.join(unknown)}, which are not passed to it; "
            f"known are {', '.join((*_REQUIRED, *_OPTIONAL))}"
        )
    return frozenset(given)

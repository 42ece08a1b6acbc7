"""Calls of a model function.

The signature is checked once; each call receives copies of params and config.
"""

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
    """A checked model function.

    Args:
        function: The user's.
        params: Hyperparameters; `None` for none.
        config: Configuration of the run.
        model_dir: Where its checkpoints lie.

    Raises:
        ValueError: If it lacks `features` or `labels`, accepts a name that nobody passes, or does
            not accept the params that are given.
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
        """Returns the spec of one batch.

        Args:
            variables: What the model keeps.
            features: Tensors [N, ...], one or a dict.
            labels: The same, or `None`.
            mode: What for.
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
            variables.running(mode, exploring=exploring),
            torch.set_grad_enabled(mode is Modes.TRAIN),
        ):
            spec = self._function(features=features, labels=labels, **arguments)
        if not isinstance(spec, EstimatorSpec):
            # The API says ValueError.
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
            f"model_fn accepts {', '.join(unknown)}, which nobody passes; "
            f"known are {', '.join((*_REQUIRED, *_OPTIONAL))}"
        )
    return frozenset(given)

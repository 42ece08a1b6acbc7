"""Converts JSON parameters of a definition to arguments of an algorithm's constructor.

Some arguments are objects or classes of torch and Stable-Baselines3.
"""

import difflib
import inspect
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import stable_baselines3
import torch
from gymnasium import Space
from stable_baselines3.common import noise, torch_layers
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.sb2_compat.rmsprop_tf_like import RMSpropTFLike

from workers.core.errors import DefinitionError
from workers.core.types import JsonObject

_OURS: Final = {
    "env": "see env",
    "policy": "see agent.policy",
    "seed": "it derives from the run's",
    "device": "the worker chooses it",
    "verbose": "the worker's log has no room for it",
    "tensorboard_log": "curves go to the server",
    "stats_window_size": "curves go to the server",
    "monitor_wrapper": "episodes are counted by Palestra",
    "replay_buffer_class": "a snapshot could not hold it",
    "rollout_buffer_class": "a snapshot could not hold it",
    "_init_setup_model": "an agent without a model cannot train",
}
"""Arguments that a definition must not contain, and the reason for the message."""

_ACTIVATIONS: Final = (
    "ELU",
    "GELU",
    "Hardtanh",
    "Identity",
    "LeakyReLU",
    "Mish",
    "PReLU",
    "ReLU",
    "SELU",
    "SiLU",
    "Sigmoid",
    "Softplus",
    "Tanh",
)
_OPTIMIZERS: Final = (
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "NAdam",
    "RAdam",
    "RMSprop",
    "SGD",
)
_EXTRACTORS: Final = ("CombinedExtractor", "FlattenExtractor", "NatureCNN")
_CLASSES: Final[Mapping[str, Mapping[str, type]]] = {
    "activation_fn": {name: getattr(torch.nn, name) for name in _ACTIVATIONS},
    "optimizer_class": {
        **{name: getattr(torch.optim, name) for name in _OPTIMIZERS},
        "RMSpropTFLike": RMSpropTFLike,
    },
    "features_extractor_class": {name: getattr(torch_layers, name) for name in _EXTRACTORS},
}
"""Classes that `policy_kwargs` may name."""

_NOISES: Final[Mapping[str, Any]] = {
    "normal": noise.NormalActionNoise,
    "ornstein_uhlenbeck": noise.OrnsteinUhlenbeckActionNoise,
}
_NOISE_NUMBERS: Final = ("mean", "sigma", "theta", "dt")


def algorithm_class(name: str) -> type[BaseAlgorithm]:
    """Returns the class of an algorithm by its name.

    Raises:
        DefinitionError: If this version of Stable-Baselines3 has no algorithm of this name.
    """
    found = getattr(stable_baselines3, name, None)
    if not (isinstance(found, type) and issubclass(found, BaseAlgorithm)):
        raise DefinitionError(
            f"agent.algorithm: Stable-Baselines3 {stable_baselines3.__version__} has no algorithm "
            f"{name!r}"
        )
    return found


def arguments_for(
    algorithm: type[BaseAlgorithm], parameters: Mapping[str, object], action_space: Space[object]
) -> JsonObject:
    """Converts JSON parameters to keyword arguments of an algorithm's constructor.

    Args:
        algorithm: The algorithm's class; its constructor defines the known parameters.
        parameters: From the definition. `action_noise` is an object with `name` and `sigma`;
            `policy_kwargs` refers to classes by their names; pairs, as in `train_freq`, are arrays.
        action_space: Action space of one environment.

    Raises:
        DefinitionError: If a parameter is unknown, or must not be in a definition; the message
            names it, and for an unknown one the known parameter with the most similar name.
    """
    known = [name for name in inspect.signature(algorithm).parameters if name not in _OURS]
    for name in parameters:
        _check_name(
            f"agent.parameters.{name}", name, known, f"{algorithm.__name__} of Stable-Baselines3"
        )
    return {name: _argument(name, value, action_space) for name, value in parameters.items()}


def _check_name(where: str, name: str, known: list[str], owner: str) -> None:
    if name in _OURS:
        raise DefinitionError(
            f"{where}: not a parameter of a definition, {_OURS[name]}: leave it out"
        )
    if name not in known:
        near = difflib.get_close_matches(name, known, 1)
        hint = f", did you mean {near[0]!r}?" if near else f"; there are {', '.join(known)}"
        raise DefinitionError(f"{where}: {owner} has no parameter of this name{hint}")


def _argument(name: str, value: object, action_space: Space[object]) -> object:
    if name == "policy_kwargs" and isinstance(value, dict):
        return {key: _policy_argument(key, one) for key, one in value.items()}
    if name == "action_noise" and value is not None:
        return _noise(value, action_space)
    return tuple(value) if isinstance(value, list) else value


def _policy_argument(name: str, value: object) -> object:
    classes = _CLASSES.get(name)
    if classes is None:
        return value
    if not isinstance(value, str) or value not in classes:
        raise DefinitionError(
            f"agent.parameters.policy_kwargs.{name}: {value!r} is none of {', '.join(classes)}"
        )
    return classes[value]


def _noise(value: Any, action_space: Space[object]) -> noise.ActionNoise:
    where = "agent.parameters.action_noise"
    kind = str(value.get("name")) if isinstance(value, dict) else ""
    if kind not in _NOISES:
        raise DefinitionError(
            f"{where} is an object with name, one of {', '.join(_NOISES)}, and sigma"
        )
    numbers = {
        "mean": 0.0,
        "sigma": 0.1,
        **{key: one for key, one in value.items() if key != "name"},
    }
    for key in numbers:
        _check_name(
            f"{where}.{key}",
            key,
            list(_NOISE_NUMBERS[: 2 if kind == "normal" else 4]),
            f"{kind} noise",
        )
    try:
        spread = {
            key: np.full(action_space.shape or (), numbers.pop(key), np.float64)
            for key in ("mean", "sigma")
        }
        made: noise.ActionNoise = _NOISES[kind](
            **spread, **{key: float(one) for key, one in numbers.items()}
        )
    except (TypeError, ValueError) as error:
        raise DefinitionError(f"{where}: {error}") from error
    return made

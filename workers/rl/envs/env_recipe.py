"""Describes how a Gymnasium environment was made, as plain data, and makes it again from that.

The data come from `env.spec`: the id, the arguments and the wrappers. Classes named in the data are
not trusted: the id must be registered in this process, and a wrapper must be one of Gymnasium's or
marked as rebuildable.
"""

import copy
import importlib
import json
from typing import Any, Final

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from workers.core.recipes import Kind, RecipeError, marked_class, register_kind
from workers.core.types import JsonObject, StateTree
from workers.rl.envs.env_types import Env

_OWN_WRAPPERS: Final = "gymnasium.wrappers"
_BY_MAKE: Final = ("max_episode_steps", "order_enforce", "disable_env_checker")


def registered_spec(env: Env) -> EnvSpec | None:
    """Returns the spec with which `gymnasium.make` made `env`.

    `None` if it was made otherwise, also if its attribute `spec` is of another library.
    """
    spec = getattr(env, "spec", None)
    return spec if isinstance(spec, EnvSpec) else None


def env_recipe(env: Env) -> StateTree:
    """Returns the id, arguments and wrappers from which `env_from_recipe` makes `env` again.

    Raises:
        RecipeError: If `env` was not made by `gymnasium.make`, or an argument cannot be written as
            JSON.
    """
    spec = registered_spec(env)
    if spec is None:
        raise RecipeError(
            f"{type(env.unwrapped).__name__} was not made by gymnasium.make and its class is not "
            "marked with rebuildable"
        )
    registered = gym.registry.get(spec.id)
    by_make = len(registered.additional_wrappers) if registered else 0
    wrappers = [
        {"entry_point": one.entry_point, "kwargs": _to_json(one.kwargs, one.name)}
        for one in spec.additional_wrappers[by_make:]
    ]
    return {
        "id": spec.id,
        "kwargs": _to_json(
            {key: value for key, value in spec.kwargs.items() if key not in _BY_MAKE}, spec.id
        ),
        **{name: getattr(spec, name) for name in _BY_MAKE},
        "wrappers": wrappers,
    }


def env_from_recipe(recipe: StateTree, **changes: object) -> Env:
    """Makes an environment from a recipe.

    Args:
        recipe: Result of `env_recipe`.
        changes: Arguments that replace recorded arguments, for example `render_mode`.

    Raises:
        RecipeError: If the id is not registered here, or a wrapper is not allowed.
    """
    name = str(recipe["id"])
    registered = gym.registry.get(name)
    if registered is None:
        raise RecipeError(
            f"{name} is not a registered environment here: import what registers it, or call setup "
            "before restore"
        )
    spec = copy.deepcopy(registered)
    spec.kwargs = {**spec.kwargs, **recipe["kwargs"], **changes}
    spec.order_enforce, spec.disable_env_checker = (
        bool(recipe["order_enforce"]),
        bool(recipe["disable_env_checker"]),
    )
    limit = recipe["max_episode_steps"]
    env: Env = gym.make(spec, max_episode_steps=-1 if limit is None else int(limit))
    for wrapper in recipe["wrappers"]:
        env = _wrapper_class(str(wrapper["entry_point"]))(env, **wrapper["kwargs"])
    return env


def copy_env(env: Env) -> Env:
    """Returns an independent copy of an environment.

    It is a deep copy, or is made from the recipe if the environment holds an object that cannot be
    copied, such as a window.

    Raises:
        RecipeError: If neither is possible.
    """
    try:
        return copy.deepcopy(env)
    except Exception as error:  # noqa: BLE001 - copying a third-party object may raise anything
        try:
            return env_from_recipe(env_recipe(env))
        except RecipeError as second:
            raise RecipeError(
                f"the environment cannot be copied ({error}), nor made anew: {second}"
            ) from error


def _wrapper_class(entry_point: str) -> Any:
    module_name, _, name = entry_point.partition(":")
    if module_name == _OWN_WRAPPERS or module_name.startswith(f"{_OWN_WRAPPERS}."):
        found = getattr(importlib.import_module(module_name), name, None)
        if isinstance(found, type) and issubclass(found, gym.Wrapper):
            return found
        raise RecipeError(f"{entry_point} is not a wrapper of Gymnasium")
    found = marked_class(entry_point)
    if not issubclass(found, gym.Wrapper):
        raise RecipeError(f"{entry_point} is not a wrapper")
    return found


def _to_json(arguments: object, owner: str) -> JsonObject:
    if arguments is None:
        raise RecipeError(
            f"the wrapper {owner} does not record its arguments: let it inherit "
            "gymnasium.utils.RecordConstructorArgs"
        )
    try:
        read: JsonObject = json.loads(json.dumps(arguments, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise RecipeError(f"an argument of {owner} is no plain data ({error})") from error
    return read


register_kind(
    Kind("gymnasium", lambda value: isinstance(value, gym.Env), env_recipe, env_from_recipe)
)

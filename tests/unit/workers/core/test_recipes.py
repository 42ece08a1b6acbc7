"""Recipes of objects: their content, and that a malicious recipe cannot call arbitrary code."""

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from tests.support.garage_kit import ConstantPolicy, CountingAlgo, CountingEnv, GarageEnv
from tests.support.torch_garage_kit import Reinforce
from workers.core.recipes import RecipeError, rebuild, rebuildable, recipes_of
from workers.rl.envs.env_recipe import copy_env
from workers.snapshot.state_files import read_tree, write_tree


@rebuildable
class Holder:
    """An object that keeps its argument."""

    def __init__(self, *parts: Any, **named: Any) -> None:
        self.parts, self.named = parts, named


def rebuild_from_disk(recipes: dict[str, Any], path: Path) -> Any:
    path.mkdir()
    write_tree(path, {"recipe": recipes})
    return rebuild(read_tree(path)["recipe"])


def test_nested_objects_are_built_again_and_shared_ones_once(tmp_path: Path) -> None:
    policy, array = ConstantPolicy(3.0), np.arange(3.0)
    holder = Holder(
        policy,
        array,
        (1, "x"),
        named={"again": [policy], "tensor": torch.ones(2)},
        kind=ConstantPolicy,
        env=CountingEnv(7),
    )
    array[:] = 9
    built = rebuild_from_disk(recipes_of({"one": holder, "two": policy}), tmp_path / "recipe")
    one, two = built["one"], built["two"]
    assert isinstance(one, Holder)
    assert one.parts[0] is two
    assert one.named["named"]["again"][0] is two
    assert one.parts[1].tolist() == [0, 1, 2]
    assert one.parts[2] == (1, "x")
    assert one.named["kind"] is ConstantPolicy
    assert one.named["env"].length == 7


def test_environments_of_gymnasium_keep_arguments_limits_and_wrappers(tmp_path: Path) -> None:
    env = gym.wrappers.ClipReward(
        gym.make("CartPole-v1", max_episode_steps=13, sutton_barto_reward=True), -0.5, 0.5
    )
    made = rebuild_from_disk(recipes_of({"env": env}), tmp_path / "recipe")["env"]
    assert made.spec.max_episode_steps == 13
    assert made.unwrapped._sutton_barto_reward
    assert isinstance(made, gym.wrappers.ClipReward)
    made.reset(seed=0)
    steps = 0
    while not any(made.step(steps % 2)[2:4]):
        steps += 1
    assert steps <= 13


def test_an_object_without_a_recipe_is_named() -> None:
    class ClassWithoutRecipe:
        pass

    @rebuildable
    class LocalClass:
        pass

    class ChildPolicy(ConstantPolicy):
        pass

    for part, message in (
        (Holder(ClassWithoutRecipe()), r"part\.0: .*ClassWithoutRecipe has no recipe"),
        (Holder(loss=torch.tanh), r"part\.loss"),
        (LocalClass(), "defined within a function"),
        (ChildPolicy(), "ChildPolicy has no recipe"),
        (Holder({"$build": 1}), "must be strings that do not begin"),
        (Holder(kind=ClassWithoutRecipe), "ClassWithoutRecipe has no recipe"),
    ):
        with pytest.raises(RecipeError, match=message):
            recipes_of({"part": part})
    with pytest.raises(TypeError, match="__slots__"):
        rebuildable(type("Slotted", (), {"__slots__": ()}))


@pytest.mark.parametrize(
    "path",
    [
        "os:system",
        "subprocess:Popen",
        "builtins:eval",
        "workers.core.recipes:importlib.import_module",
        "tests.support.garage_kit:list_snapshot_names",
        "tests.support.garage_kit:nn.Linear",
        "tests.support.garage_kit:np.save",
        "torch.nn:Linear",
        "gymnasium:make",
        "no.such.module:Thing",
        "tests.support.garage_kit:ConstantPolicy.__init__",
        "tests.support.garage_kit:",
        "..:x",
    ],
)
def test_only_marked_classes_are_ever_called(path: str) -> None:
    for recipe in ({"$build": path, "args": ["touch /tmp/owned"], "kwargs": {}}, {"$type": path}):
        with pytest.raises(RecipeError):
            rebuild({"part": recipe})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": "os:system"}, "not a registered environment"),
        ({"wrappers": [{"entry_point": "os:system", "kwargs": {}}]}, "cannot be the path"),
        (
            {"wrappers": [{"entry_point": "gymnasium.wrappers.common:gym", "kwargs": {}}]},
            "not a wrapper",
        ),
        (
            {"wrappers": [{"entry_point": "tests.support.garage_kit:CountingEnv", "kwargs": {}}]},
            "not a wrapper",
        ),
    ],
)
def test_only_registered_environments_and_known_wrappers_are_made(
    change: dict[str, Any], message: str
) -> None:
    recipe = recipes_of({"env": gym.make("CartPole-v1")})["env"]
    with pytest.raises(RecipeError, match=message):
        rebuild({"env": {**recipe, "how": {**recipe["how"], **change}}})
    with pytest.raises(RecipeError, match="no kind of recipe"):
        rebuild({"env": {"$kind": "pickle", "how": {}}})


def test_algorithms_with_their_samplers_parts() -> None:
    env = gym.make("CartPole-v1")
    built = rebuild(recipes_of({"algo": Reinforce(env, learning_rate=0.25), "env": env}))
    assert built["algo"].optimizer.param_groups[0]["lr"] == 0.25
    assert built["env"].spec.id == "CartPole-v1"
    assert isinstance(
        rebuild(recipes_of({"algo": CountingAlgo(CountingEnv(4), n_workers=2)}))["algo"],
        CountingAlgo,
    )


def test_a_copy_of_an_environment_that_cannot_be_copied_is_made_anew() -> None:
    env = gym.make("CartPole-v1")
    env.unwrapped.window = (one for one in ())  # type: ignore[attr-defined]
    assert copy_env(env).unwrapped is not env.unwrapped
    odd = CountingEnv()
    odd.window = (one for one in ())  # type: ignore[attr-defined]
    with pytest.raises(RecipeError, match="cannot be copied"):
        copy_env(odd)


class UnmarkedGarageEnv(GarageEnv):
    """Not marked with `rebuildable`, since a subclass does not inherit the mark."""


def test_a_spec_of_another_library_is_no_recipe() -> None:
    with pytest.raises(RecipeError, match="UnmarkedGarageEnv was not made by gymnasium"):
        recipes_of({"env": UnmarkedGarageEnv()})

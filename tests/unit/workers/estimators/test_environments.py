"""Environments of estimators and agents of model functions."""

import threading

import gymnasium as gym
import pytest

from tests.support.garage_kit import GarageEnv
from workers.estimators.environments import copy_of


def test_an_environment_that_cannot_be_copied_is_made_again_from_gymnasiums_spec_only() -> None:
    made = gym.make("CartPole-v1")
    made.unwrapped.lock = threading.Lock()  # type: ignore[attr-defined]
    assert copy_of(made).spec == made.spec
    other = GarageEnv()
    other.lock = threading.Lock()  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="pass a function that makes it"):
        copy_of(other)

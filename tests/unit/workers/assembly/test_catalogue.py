"""The description of spaces and environments for the server."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from palestra.contract.catalogue import SpaceDescription
from workers.assembly.catalogue import _describe, _describe_game, _describe_space
from workers.rl.envs.env_sources import register_games
from workers.rl.envs.factory import is_game


@pytest.mark.parametrize(
    ("space", "described"),
    [
        (spaces.Discrete(3), SpaceDescription(kind="discrete", n=3, dtype="int64")),
        (
            spaces.Box(-1, 1, (2, 3), np.float32),
            SpaceDescription(kind="box", shape=(2, 3), dtype="float32"),
        ),
        (
            spaces.MultiDiscrete([2, 3]),
            SpaceDescription(kind="multi_discrete", shape=(2,), dtype="int64"),
        ),
        (spaces.MultiBinary(4), SpaceDescription(kind="multi_binary", shape=(4,), dtype="int8")),
        (spaces.Dict({"a": spaces.Discrete(2)}), SpaceDescription(kind="dict")),
        (spaces.Tuple((spaces.Discrete(2),)), SpaceDescription(kind="tuple")),
        (spaces.Text(2), SpaceDescription(kind="other")),
    ],
)
def test_spaces_are_described_as_documents(space: Any, described: SpaceDescription) -> None:
    assert _describe_space(space) == described


def test_atari_games_are_listed_by_id_without_loading_them() -> None:
    register_games()
    games = {name: _describe_game(spec) for name, spec in gym.registry.items() if is_game(spec)}
    offered = {name for name, described in games.items() if described is not None}
    assert {"ALE/Pong-v5", "PongNoFrameskip-v4"} <= offered
    assert not {"Pong-v0", "Pong-v4", "PongNoFrameskip-v0"} & offered
    assert len({name for name in offered if name.startswith("ALE/")}) > 100


def test_palestras_own_environments_are_listed() -> None:
    described = _describe(gym.spec("palestra/BitFlip-v0"))
    assert described is not None
    assert (described.observation_space, described.action_space) == (
        SpaceDescription(kind="dict"),
        SpaceDescription(kind="discrete", n=8, dtype="int64"),
    )

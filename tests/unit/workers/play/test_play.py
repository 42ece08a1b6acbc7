"""The player on snapshots of real trainings."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import av
import pytest

from palestra.contract.play import PlayOrder
from palestra.contract.states import Outcome
from tests.support.trainings import make_definition, make_work_order
from tests.support.waiting import PATIENCE_SECONDS
from tests.unit.workers.trainer_process.test_attempt import execute, read_records
from workers.core.errors import DefinitionError
from workers.play.__main__ import play
from workers.rl.evaluate.episode_player import Player

DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")

SMALL = {"hidden_sizes": [16]}
PENDULUM = {
    "env": {"id": "Pendulum-v1"},
    "evaluation": {"every_env_steps": None, "episodes": 1, "max_episode_steps": 20},
}
SHORT = {"loop": {"env_steps": 128}, "snapshot": {"every_env_steps": 64}}
SAC = {"name": "sac", "batch_size": 8, "learning_starts": 32, "buffer_size": 200, **SMALL}
DRQN = {"name": "drqn", "batch_size": 4, "learning_starts": 40, "buffer_size": 500, **SMALL}
SB3 = {
    "name": "sb3",
    "algorithm": "PPO",
    "policy": "MlpPolicy",
    "parameters": {"n_steps": 64, "batch_size": 32, "n_epochs": 1},
}
TRAININGS: dict[str, dict[str, Any]] = {
    "dqn": make_definition(**SHORT),
    "ppo": make_definition("ppo", num_envs=2, **SHORT),
    "sac": {**make_definition(**PENDULUM, **SHORT), "agent": SAC},
    "drqn": {**make_definition(**SHORT), "agent": DRQN},
    "sb3": {**make_definition(**SHORT), "agent": SB3},
}


def train_and_order(root: Path, document: dict[str, Any]) -> PlayOrder:
    """Trains and returns the order to play the last snapshot."""
    order = make_work_order(document)
    directory, report = execute(root, order)
    assert report.outcome is Outcome.SUCCEEDED, report.failure
    snapshot = directory.snapshots / read_records(directory, "snapshot")[-1]["snapshot_id"]
    return PlayOrder(
        definition=order.definition, code=order.code, snapshot=str(snapshot), episodes=2, seed=5
    )


def play_here(order: PlayOrder, **changes: Any) -> list[dict[str, Any]]:
    """Plays the order in this process and returns what a process reports."""
    played: list[dict[str, Any]] = []

    def on_episode(episode: int, seed: int, player: Player) -> None:
        played.append(
            {
                "episode": episode + 1,
                "seed": seed,
                "return": player.episode_return,
                "length": player.episode_length,
            }
        )

    play(order.model_copy(update=changes), on_episode)
    return played


def run_player(
    root: Path, order: PlayOrder, **environment: str
) -> tuple[int, list[dict[str, Any]], str]:
    """Runs the player in a process.

    Returns its exit code, the episodes that it reported and its other output.
    """
    (root / "play.json").write_text(order.model_dump_json())
    headless = {name: value for name, value in os.environ.items() if name not in DISPLAYS}
    command = [sys.executable, "-m", "workers.play", str(root / "play.json")]
    done = subprocess.run(
        command,
        env={**headless, **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


@pytest.fixture(scope="module")
def order(tmp_path_factory: pytest.TempPathFactory) -> PlayOrder:
    return train_and_order(tmp_path_factory.mktemp("dqn"), TRAININGS["dqn"])


@pytest.mark.parametrize("agent", TRAININGS)
def test_a_snapshot_can_be_played_into_a_video(tmp_path: Path, agent: str) -> None:
    """Covers built-in agents, recurrent agents and those of Stable-Baselines3."""
    order = train_and_order(tmp_path, TRAININGS[agent])
    played = play_here(order, video=str(tmp_path / "film.mp4"))
    assert [one["episode"] for one in played] == [1, 2]
    assert all(1 <= one["length"] <= 50 for one in played)
    with av.open(str(tmp_path / "film.mp4")) as film:
        frames = sum(1 for _ in film.decode(video=0))
    assert frames == sum(one["length"] + 1 for one in played)


def test_without_a_video_the_process_opens_a_window(tmp_path: Path, order: PlayOrder) -> None:
    code, shown, said = run_player(tmp_path, order, SDL_VIDEODRIVER="dummy")
    assert code == 0, said
    filmed = play_here(order, video=str(tmp_path / "film.mp4"))
    assert filmed == shown, "the same seed gives the same episodes"


def test_without_a_display_the_error_names_the_remedy(
    order: PlayOrder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in DISPLAYS:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(
        DefinitionError, match=r"no display to show it on: write a video with --video FILE\.mp4"
    ):
        play_here(order)


def test_unplayable_snapshots_are_refused_with_a_reason(tmp_path: Path, order: PlayOrder) -> None:
    other = order.definition.model_copy(
        update={"name": "other", "agent": order.definition.agent.model_copy(update={"gamma": 0.5})}
    )
    code, played, said = run_player(tmp_path, order.model_copy(update={"definition": other}))
    assert (code, played) == (1, [])
    assert said.splitlines()[-1].startswith("palestra play: ")
    assert "made by another definition" in said
    assert "Traceback" not in said

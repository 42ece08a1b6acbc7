"""Plays a snapshot of a run: on the screen, or into a video.

    python -m workers.play FILE

`FILE` is a `PlayOrder` as JSON. Writes one line of JSON per episode to the standard output it was
started with, `{episode, seed, return, length}`; whatever else is printed goes to the error stream.
Does not train and does not contact a server.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, TextIO

import gymnasium as gym

from palestra.contract.definition import Definition, RlDefinition
from palestra.contract.identity import hash_definition
from palestra.contract.play import PlayOrder
from workers.assembly.registry import check_code
from workers.assembly.training import load_agent
from workers.core.errors import DefinitionError, WorkerError
from workers.core.protocols import TrainableAgent
from workers.core.types import Array
from workers.recording.video_file import write_video
from workers.rl.envs.factory import make_rendered
from workers.rl.evaluate.episode_film import Film
from workers.rl.evaluate.episode_player import Player
from workers.rl.evaluate.vector_evaluator import episode_seed
from workers.snapshot.attempt_store import load_snapshot

_FAILED: Final = 1
_DISPLAYS: Final = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")
_NO_DISPLAY: Final = "there is no display to show it on: write a video with --video FILE.mp4"

EpisodeCallback = Callable[[int, int, Player], None]
"""Called at the end of an episode with its number from 0, its seed and its player."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Plays the snapshot of the order file; returns the exit code."""
    (path,) = sys.argv[1:] if arguments is None else arguments
    order = PlayOrder.model_validate_json(Path(path).read_bytes())
    with _standard_output() as answers:

        def on_episode(episode: int, seed: int, player: Player) -> None:
            line = {
                "episode": episode + 1,
                "seed": seed,
                "return": player.episode_return,
                "length": player.episode_length,
            }
            answers.write(json.dumps(line) + "\n")
            answers.flush()

        try:
            play(order, on_episode)
        except (WorkerError, gym.error.Error, OSError, ValueError) as error:
            sys.stderr.write(f"palestra play: {error}\n")
            return _FAILED
        except KeyboardInterrupt:
            return 130
    return 0


def play(order: PlayOrder, on_episode: EpisodeCallback) -> None:
    """Loads the snapshot and plays its episodes.

    Raises:
        DefinitionError: If the definition cannot be played, or the environment cannot be rendered.
        WorkerError: If a part is not installed here, or the snapshot cannot be read.
    """
    definition: Definition = order.definition
    if not isinstance(definition, RlDefinition):
        raise DefinitionError(
            "a supervised run has no episodes to play: use `palestra evaluate` instead"
        )
    _check_code(order)
    snapshot = load_snapshot(
        Path(order.snapshot), run_id=None, definition_hash=hash_definition(definition)
    )
    agent = load_agent(definition, snapshot.manifest.seed, snapshot, order.device)
    if order.video is not None:
        _film(definition, agent, order, on_episode)
    else:
        _show(definition, agent, order, on_episode)


def _check_code(order: PlayOrder) -> None:
    try:
        check_code(order.definition, order.code)
    except DefinitionError as error:
        sys.stderr.write(f"warning: {error}\n")


def _film(
    definition: RlDefinition, agent: TrainableAgent, order: PlayOrder, on_episode: EpisodeCallback
) -> None:
    film = Film(make_rendered(definition.env, definition.evaluation.max_episode_steps), agent)

    def frames() -> Iterator[Array]:
        for episode in range(order.episodes):
            seed = episode_seed(order.seed, episode)
            yield from film.frames(seed, None)
            on_episode(episode, seed, film.player)

    try:
        write_video(Path(str(order.video)), frames(), film.fps)
    finally:
        film.close()


def _show(
    definition: RlDefinition, agent: TrainableAgent, order: PlayOrder, on_episode: EpisodeCallback
) -> None:
    if sys.platform == "linux" and not any(os.environ.get(name) for name in _DISPLAYS):
        raise DefinitionError(_NO_DISPLAY)
    player = Player(
        make_rendered(definition.env, definition.evaluation.max_episode_steps, "human"), agent
    )
    try:
        if player.env.render_mode != "human":
            raise DefinitionError(
                f"{definition.env.id} cannot be shown in a window: write a video with --video "
                "FILE.mp4"
            )
        for episode in range(order.episodes):
            seed = episode_seed(order.seed, episode)
            for _ in player.play_episode(seed):
                player.env.render()
            on_episode(episode, seed, player)
    finally:
        player.close()


def _standard_output() -> TextIO:
    """Returns the standard output, and sends what libraries print there to the error stream."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


if __name__ == "__main__":
    sys.exit(main())

"""The hooks that record videos of evaluations, built from a definition."""

from contextlib import ExitStack
from pathlib import Path

from palestra.contract.definition import RlDefinition, Video
from workers.core.protocols import Hook, TrainableAgent
from workers.hooks.video import VideoHook
from workers.recording.video_file import write_video
from workers.rl.envs.factory import make_rendered
from workers.rl.evaluate.episode_film import Film
from workers.rl.evaluate.vector_evaluator import episode_seed


def build_video_hooks(
    definition: RlDefinition, agent: TrainableAgent, directory: Path, stack: ExitStack
) -> tuple[Hook, ...]:
    """Returns a hook for each `video` of the definition.

    Args:
        definition: Defines the environment and the `video` hooks.
        agent: Chooses the actions in the recorded episodes.
        directory: Output directory of the videos.
        stack: Stack that closes the environments.

    Raises:
        DefinitionError: If the environment does not render images.
    """
    return tuple(
        _video_hook(definition, spec, agent, directory, stack)
        for spec in definition.hooks
        if isinstance(spec, Video)
    )


def _video_hook(
    definition: RlDefinition, spec: Video, agent: TrainableAgent, directory: Path, stack: ExitStack
) -> VideoHook:
    film = Film(make_rendered(definition.env, definition.evaluation.max_episode_steps), agent)
    stack.callback(film.close)

    def record(evaluation_seed: int, episode: int, path: Path) -> None:
        frames = film.frames(episode_seed(evaluation_seed, episode), spec.max_frames)
        write_video(path, frames, film.fps)

    return VideoHook(record, directory, every=spec.every_evaluations, choice=spec.episode)

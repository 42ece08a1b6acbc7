"""The hooks that record videos of evaluations, built from a definition."""

from contextlib import ExitStack
from pathlib import Path

from palestra.contract.agents import Sb3Parameters
from palestra.contract.builtin_agents import BuiltinParameters
from palestra.contract.definition import RlDefinition, Video
from workers.core.errors import DefinitionError
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
        DefinitionError: If the environment does not render images, or the evaluated episodes cannot
            be repeated.
    """
    return tuple(
        _video_hook(definition, spec, agent, directory, stack)
        for spec in definition.hooks
        if isinstance(spec, Video)
    )


def _repeats_drawn_actions(definition: RlDefinition) -> bool:
    """Whether the agent draws the actions of each episode by a generator of that episode."""
    agent = definition.agent
    return isinstance(agent, BuiltinParameters) and not isinstance(agent, Sb3Parameters)


def _video_hook(
    definition: RlDefinition, spec: Video, agent: TrainableAgent, directory: Path, stack: ExitStack
) -> VideoHook:
    draws_actions = definition.evaluation.scored_policy == "stochastic"
    if draws_actions and not _repeats_drawn_actions(definition):
        raise DefinitionError(
            f"hooks.video: evaluation.policy is stochastic, and {definition.agent.name} draws by "
            "generators that cannot repeat an episode of the evaluation: leave the hook out"
        )
    film = Film(
        make_rendered(definition.env, definition.evaluation.max_episode_steps),
        agent,
        draws_actions=draws_actions,
    )
    stack.callback(film.close)

    def record(evaluation_seed: int, episode: int, path: Path) -> None:
        frames = film.frames(episode_seed(evaluation_seed, episode), spec.max_frames)
        write_video(path, frames, film.fps)

    return VideoHook(record, directory, every=spec.every_evaluations, choice=spec.episode)

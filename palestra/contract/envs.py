"""Parameters of environments."""

from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from palestra.contract.documents import Document, JsonScalar


class AtariPreprocessing(Document):
    """The usual preprocessing of Atari games (Mnih et al. 2015; Machado et al. 2018).

    It is for an environment `ALE/...-v5` without wrappers.

    Observations become the newest frames, uint8 [frame_stack, screen_size, screen_size]. Episode
    returns are those of whole games, without clipping, in training and in evaluations:
    `clip_rewards` and `terminal_on_life_loss` change only the transitions that the agent learns
    from. Sticky actions are an argument of the environment:
    `env.kwargs.repeat_action_probability`, 0.25 by default.
    """

    name: Literal["atari"] = "atari"
    """Kind of preprocessing."""

    frame_skip: Annotated[int, Field(ge=1, le=64)] = 4
    """Frames for which an action is repeated; the greater of the last two screens is seen.

    One env_step.
    """

    screen_size: Annotated[int, Field(ge=16, le=512)] = 84
    """Height and width of a frame in pixels."""

    grayscale: bool = True
    """Shades of grey; with `false` a last dimension of 3 holds the colours."""

    frame_stack: Annotated[int, Field(ge=1, le=64)] = 4
    """Frames in an observation, the newest last."""

    noop_max: Annotated[int, Field(ge=0, le=1_000)] = 30
    """Most frames without an action at the start of a game.

    The number is drawn from the episode's seed.
    """

    terminal_on_life_loss: bool = False
    """The agent learns as if the game ended where a life is lost; the game goes on."""

    clip_rewards: bool = True
    """The agent learns from rewards clipped to [-1, 1]."""


DEFAULT_EPISODE_STEPS: Final = 10_000
"""Length in env_steps at which episodes are cut if neither the definition nor the environment's
registration limits them.
"""


class EnvDefinition(Document):
    """A Gymnasium environment and how many copies of it are stepped together."""

    id: Annotated[
        str,
        Field(
            min_length=1,
            max_length=128,
            pattern=r"^[A-Za-z0-9_][A-Za-z0-9_./:-]*$",
            examples=["CartPole-v1"],
        ),
    ]
    """Gymnasium environment id.

    The catalogue of a pool lists the ids that its workers know. `module:id` names one of a module
    that the pool's workers were started to import, and is the same as `id`.
    """

    kwargs: dict[Annotated[str, Field(min_length=1, max_length=64)], JsonScalar] = Field(
        default_factory=dict, max_length=64
    )
    """Keyword arguments of the environment's constructor.

    Paths are refused, but for those below a directory of the worker's option `--allow-path`.
    """

    num_envs: Annotated[int, Field(ge=1, le=4096)] = 1
    """Copies stepped together as one vector environment."""

    max_episode_steps: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    """Time limit in env_steps; reaching it truncates the episode.

    `null` keeps the environment's own limit. Where there is none, episodes are cut after 10,000
    env_steps.
    """

    vectorization: Literal["sync", "async", "native"] = "sync"
    """`sync` steps the copies in the trainer.

    `async` gives each its own process, for environments slower than about 1 ms; `native` takes the
    vector that the environment brings along, whose threads step several copies at once: Atari games
    with `preprocessing` have one.
    """

    preprocessing: Annotated[
        AtariPreprocessing | None, Field(exclude_if=lambda value: value is None)
    ] = None
    """Preprocessing of Atari games.

    `null`, which is left out of the canonical form, takes observations and rewards as they are.
    """

    @model_validator(mode="after")
    def _native_is_preprocessed(self) -> Self:
        if self.vectorization == "native" and self.preprocessing is None:
            raise ValueError(
                "vectorization native needs preprocessing, for example {}: only Atari games have a "
                "vector of their own"
            )
        return self

"""Parameters of environments, declared here and nowhere else."""

from typing import Annotated, Literal

from pydantic import Field

from palestra.contract.documents import Document, JsonScalar


class EnvSpec(Document):
    """A Gymnasium environment and how many copies of it are stepped together."""

    id: Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_][A-Za-z0-9_./:-]*$", examples=["CartPole-v1"])]
    """Gymnasium environment id. The catalogue of a pool lists the ids that its workers know."""

    kwargs: dict[Annotated[str, Field(min_length=1, max_length=64)], JsonScalar] = Field(default_factory=dict, max_length=64)
    """Keyword arguments of the environment's constructor."""

    num_envs: Annotated[int, Field(ge=1, le=4096)] = 1
    """Copies stepped together as one vector environment."""

    max_episode_steps: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    """Time limit in env_steps; reaching it truncates the episode. `null` keeps the environment's own limit."""

    vectorization: Literal["sync", "async"] = "sync"
    """`sync` steps the copies in the trainer; `async` gives each its own process, for environments slower than about 1 ms."""

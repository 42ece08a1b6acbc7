"""The catalogue of a worker: agents, functions and environments with code and schemas."""

from typing import Annotated, Literal

from pydantic import Field

from palestra.contract.agents.actions import ActionKind
from palestra.contract.code import EntrypointCode, EnvironmentCode
from palestra.contract.documents import Document
from palestra.contract.free_parameters import ParametersSchema
from palestra.contract.names import ExportFormat, Name, Schedule


class SpaceDescription(Document):
    """An observation or action space."""

    kind: ActionKind | Literal["dict", "tuple", "other"]
    shape: tuple[int, ...] = ()
    n: int | None = None
    """Number of actions of a discrete space.

    `null` where it is known only once the environment is made.
    """
    dtype: str = ""


class EnvironmentDescription(Document):
    """An environment that a worker can make."""

    id: str
    observation_space: SpaceDescription | None = None
    action_space: SpaceDescription | None = None
    max_episode_steps: int | None = None
    code: EnvironmentCode | None = None
    """Who registered it; `null` for environments of Gymnasium, ale-py and Palestra."""


class PartDescription(Document):
    """A registered part of a worker, with the schema of its parameters."""

    name: Name
    parameters_schema: ParametersSchema = Field(default_factory=dict)
    """JSON Schema of the parameters.

    Empty if all parameters are accepted, and for built-in agents, whose schema is part of the
    definition's.
    """
    code: EntrypointCode | None = None
    """The distribution that registered it; `null` for built-in parts."""


class AgentDescription(PartDescription):
    """An agent that a worker can train."""

    action_spaces: tuple[ActionKind, ...]


class Catalogue(Document):
    """The agents, functions and environments that a worker can use."""

    agents: Annotated[tuple[AgentDescription, ...], Field(max_length=1_000)] = ()
    model_functions: Annotated[tuple[PartDescription, ...], Field(max_length=1_000)] = ()
    input_functions: Annotated[tuple[PartDescription, ...], Field(max_length=1_000)] = ()
    environments: Annotated[tuple[EnvironmentDescription, ...], Field(max_length=20_000)] = ()
    schedules: tuple[Schedule, ...] = ()
    imports: Annotated[tuple[str, ...], Field(max_length=1_000)] = ()
    """Modules that a worker's administrator has it import: those that `env.id: module:id` may name.
    """
    export_formats: Annotated[tuple[ExportFormat, ...], Field(max_length=16)] = (
        "weights",
        "program",
    )
    """Formats that it can write; those of workers that do not say so by default."""

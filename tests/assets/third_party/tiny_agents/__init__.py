"""A third-party distribution: an agent with PFRL's methods, which imports nothing of Palestra."""

from pydantic import BaseModel, ConfigDict, Field

from tiny_agents.climber import HillClimber


class Parameters(BaseModel):
    """Parameters of `make_climber`."""

    model_config = ConfigDict(extra="forbid")

    noise: float = Field(
        default=0.5, gt=0, le=10, description="Standard deviation of a change of the weights."
    )
    patience: int = Field(
        default=1, ge=1, description="Episodes in which changed weights are tried."
    )


def make_climber(parameters: Parameters, context):
    """Returns an agent for discrete actions."""
    size = context.observation_space.shape[0]
    return HillClimber(
        size, int(context.action_space.n), parameters.noise, parameters.patience, context.seed
    )


make_climber.Parameters = Parameters
make_climber.action_spaces = ("discrete",)


def make_agent_with_broken_schema(parameters, context):
    """Returns an object; its parameter schema has a reference that cannot be resolved."""
    return object()


make_agent_with_broken_schema.parameters_schema = {
    "type": "object",
    "properties": {"table": {"$ref": "https://example.org/table.json"}},
}


def make_object_without_methods(parameters, context):
    """Returns an object without the methods of an agent."""
    return object()

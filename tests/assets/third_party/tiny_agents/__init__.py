"""A third-party distribution: an agent with PFRL's methods, which imports nothing of Palestra."""

from pydantic import BaseModel, ConfigDict, Field

from tiny_agents.climber import HillClimber


class Parameters(BaseModel):
    """Parameters of `climber`."""

    model_config = ConfigDict(extra="forbid")

    noise: float = Field(
        default=0.5, gt=0, le=10, description="Standard deviation of a change of the weights."
    )
    patience: int = Field(
        default=1, ge=1, description="Episodes in which changed weights are tried."
    )


def climber(parameters: Parameters, context):
    """Returns an agent for discrete actions."""
    size = context.observation_space.shape[0]
    return HillClimber(
        size, int(context.action_space.n), parameters.noise, parameters.patience, context.seed
    )


climber.Parameters = Parameters
climber.action_spaces = ("discrete",)


def fragile(parameters, context):
    """Returns an object; its parameter schema has a reference that cannot be resolved."""
    return object()


fragile.parameters_schema = {
    "type": "object",
    "properties": {"table": {"$ref": "https://example.org/table.json"}},
}


def odd(parameters, context):
    """Returns an object without the methods of an agent."""
    return object()

"""Hyperparameters of agents that optimise a policy by episode returns, without gradients."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from palestra.contract.agents.common import Activation, HiddenSizes
from palestra.contract.builtin_agents import ActionKind, BuiltinParameters


class CemParameters(BuiltinParameters):
    """The cross-entropy method over the parameters of a policy (Szita & Lorincz 2006).

    The noise that is added decreases over time. Discrete or box actions.
    """

    action_spaces: ClassVar[tuple[ActionKind, ...]] = ("discrete", "box")
    needs_bounds: ClassVar[bool] = True

    name: Literal["cem"] = "cem"
    """Name of the agent."""

    population_size: Annotated[int, Field(ge=2, le=100_000)] = 100
    """Candidates per generation, which is one update.

    Each of the `env.num_envs` environments plays one of them at a time.
    """

    elite_fraction: Annotated[float, Field(gt=0, le=1)] = 0.1
    """Share of the candidates, those with the best returns, that the next generation is drawn
    around; at least one.
    """

    episodes_per_candidate: Annotated[int, Field(ge=1, le=1_000)] = 1
    """Episodes whose mean return ranks a candidate."""

    learning_rate: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Share of the way that mean and variance go to those of the best candidates at each
    generation.
    """

    initial_std: Annotated[float, Field(gt=0, le=1_000)] = 10.0
    """Standard deviation of each parameter in the first generation, around 0."""

    noise: Annotated[float, Field(ge=0, le=1_000)] = 5.0
    """Variance that is added after the first generation, so that the search does not come to rest
    too early.
    """

    noise_generations: Annotated[int, Field(ge=1, le=1_000_000)] = 50
    """Generations over which that variance falls linearly to 0."""

    hidden_sizes: HiddenSizes = ()
    """Units of each hidden layer of the policy; none make it linear."""

    activation: Activation = "tanh"
    """Non-linearity between layers."""

    @model_validator(mode="after")
    def _has_elites(self) -> Self:
        if self.elite_fraction * self.population_size < 1:
            raise ValueError(
                f"elite_fraction {self.elite_fraction} of a population_size of "
                f"{self.population_size} is less than one candidate: raise one"
            )
        return self

"""Bounds of hyperparameters that several agents have."""

from typing import Annotated, Literal

from pydantic import Field

from palestra.contract.documents import Document

LearningRate = Annotated[float, Field(gt=0, le=1)]
Discount = Annotated[float, Field(ge=0, le=1)]
Probability = Annotated[float, Field(ge=0, le=1)]
HiddenSizes = Annotated[tuple[Annotated[int, Field(ge=1, le=8192)], ...], Field(max_length=16)]
Activation = Literal["relu", "tanh"]


class PrioritizedReplay(Document):
    """Sampling in proportion to errors (Schaul et al. 2016, proportional variant)."""

    alpha: Probability = 0.6
    """Exponent of the errors in the sampling probabilities; 0 samples uniformly."""

    beta: Probability = 0.4
    """Exponent of the importance weights at the first update; 1 corrects the whole bias."""

    anneal_updates: Annotated[int, Field(ge=1, le=1_000_000_000)] = 100_000
    """Updates over which `beta` rises linearly to 1."""


class HindsightReplay(Document):
    """Hindsight experience replay (Andrychowicz et al. 2017), where the environment has goals.

    Transitions are relabelled with goals that were reached later in their episode.
    """

    ratio: Annotated[float, Field(ge=0, le=1_000)] = 4.0
    """Virtual goals per real one: 4 relabels four sampled transitions of five."""


Hindsight = Annotated[HindsightReplay | None, Field(exclude_if=lambda value: value is None)]
"""Left out of the canonical form where it is `null`: definitions that were written before it was
there keep their identity.
"""

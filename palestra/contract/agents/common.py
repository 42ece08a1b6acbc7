"""Bounds of hyperparameters that several agents have."""

from typing import Annotated, Literal

from pydantic import Field

LearningRate = Annotated[float, Field(gt=0, le=1)]
Discount = Annotated[float, Field(ge=0, le=1)]
Probability = Annotated[float, Field(ge=0, le=1)]
HiddenSizes = Annotated[tuple[Annotated[int, Field(ge=1, le=8192)], ...], Field(max_length=16)]
Activation = Literal["relu", "tanh"]

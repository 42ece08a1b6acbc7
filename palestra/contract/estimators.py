"""Parameters of the built-in model and input functions of supervised definitions, as JSON Schemas.

They are schemas and not models, since the server gets them in the workers' catalogues, like those
of registered parts. Parameters whose default depends on the use, such as the passes over an input,
have no default here.
"""

from collections.abc import Mapping
from typing import Any, Final


def _parameters(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


_BATCHED: Final[dict[str, dict[str, Any]]] = {
    "seed": {
        "type": "integer",
        "minimum": 0,
        "maximum": 2**32 - 1,
        "default": 0,
        "description": "Seed of the data and of their order.",
    },
    "batch_size": {
        "type": "integer",
        "minimum": 1,
        "maximum": 1_000_000,
        "default": 64,
        "description": "Examples per batch.",
    },
    "epochs": {
        "type": "integer",
        "minimum": 1,
        "description": "Passes; without it endless in training, one in evaluation.",
    },
    "shuffle": {
        "type": "boolean",
        "description": "Anew in each pass; by default in training only.",
    },
}

MODEL_FUNCTIONS: Final[Mapping[str, dict[str, Any]]] = {
    "classifier": _parameters(
        classes={
            "type": "integer",
            "minimum": 2,
            "maximum": 1_000_000,
            "description": "Number of classes.",
        },
        hidden_sizes={
            "type": "array",
            "items": {"type": "integer", "minimum": 1, "maximum": 8_192},
            "maxItems": 16,
            "default": [64],
            "description": "Units of each hidden layer.",
        },
        learning_rate={
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": 1,
            "default": 0.001,
            "description": "Adam step size.",
        },
        decay={
            "type": "object",
            "description": (
                "How the learning rate falls with the updates: `kind`, `steps`, `rate` and others."
            ),
        },
    )
    | {"required": ["classes"]},
}
"""Schemas by name."""

INPUT_FUNCTIONS: Final[Mapping[str, dict[str, Any]]] = {
    "spirals": _parameters(
        arms={
            "type": "integer",
            "minimum": 2,
            "maximum": 100,
            "default": 3,
            "description": "Spirals, each a class.",
        },
        points={
            "type": "integer",
            "minimum": 1,
            "maximum": 1_000_000,
            "default": 200,
            "description": "Points per spiral.",
        },
        noise={
            "type": "number",
            "minimum": 0,
            "maximum": 10,
            "default": 0.1,
            "description": "Standard deviation of the angle.",
        },
        **_BATCHED,
    ),
    "digits": _parameters(
        images={
            "type": "integer",
            "minimum": 1,
            "maximum": 1_000_000,
            "default": 2_000,
            "description": "Images.",
        },
        noise={
            "type": "number",
            "minimum": 0,
            "maximum": 10,
            "default": 0.15,
            "description": "Standard deviation of each pixel.",
        },
        missing={
            "type": "number",
            "minimum": 0,
            "maximum": 1,
            "default": 0.05,
            "description": "Probability that a dot is missing.",
        },
        **_BATCHED,
    ),
}
"""Schemas by name."""

"""What a model function returns."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from workers.supervised.modes import Modes

Params = Mapping[str, Any]
"""Parameters of a model function, by name."""

TrainOp = Callable[[], None]
"""Makes one update.

It is run once by the trainer, after the hooks' `before_run`; see
`workers.supervised.variables.minimize`.
"""

RESULTS = "results"
"""The prediction that agents act on."""

RESERVED_METRICS = frozenset({"loss", "global_step", "global_timestep", "global_episode", "wall"})
"""Entries of a result, or of a row of summaries, that are not the model's."""


@dataclass(frozen=True, slots=True)
class EstimatorSpec:
    """One run of a model: what was computed on one batch, and what remains to be done with it.

    Raises:
        ValueError: If something that the mode needs is missing: TRAIN needs `loss` and `train_op`,
            EVAL `loss`, the others `predictions`; or if a metric has a name of `RESERVED_METRICS`.
    """

    mode: Modes
    predictions: Mapping[str, Tensor] = field(default_factory=dict)
    """Tensors [N, ...] by name. An agent acts on `results`: one action per row."""
    loss: Tensor | None = None
    """[], the mean over the batch."""
    train_op: TrainOp | None = None
    """Makes the update that counts as one global_step."""
    metrics: Mapping[str, Tensor | float] = field(default_factory=dict)
    """Means over the batch by name, such as `accuracy`; an evaluation reports them."""
    extra_ops: Mapping[str, object] = field(default_factory=dict)
    """Values that hooks may read by name; those that can be called are called after `train_op`."""

    def __post_init__(self) -> None:
        for name in _NEEDED.get(self.mode, ("predictions",)):
            if (value := getattr(self, name)) is None or (name == "predictions" and not value):
                raise ValueError(
                    f"EstimatorSpec: {name} is missing, mode {self.mode.value} needs it"
                )
        if self.loss is not None and self.loss.numel() != 1:
            raise ValueError(
                "EstimatorSpec: loss must be one number, "
                f"not a tensor of shape {list(self.loss.shape)}: take its mean"
            )
        if taken := sorted(RESERVED_METRICS & self.metrics.keys()):
            raise ValueError(
                f"EstimatorSpec: a result has an entry {taken[0]!r} of its own: "
                "give that metric another name"
            )


_NEEDED = {Modes.TRAIN: ("loss", "train_op"), Modes.EVAL: ("loss",)}

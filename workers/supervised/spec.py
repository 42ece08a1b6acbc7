"""The result of a model function."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from workers.supervised.modes import Modes

Params = Mapping[str, Any]
"""Parameters of a model function, by name."""

TrainOp = Callable[[], None]
"""Makes one update; see `workers.supervised.variables.minimize`.

The trainer calls it once, after the hooks' `before_run`.
"""

RESULTS = "results"
"""Name of the prediction that contains an agent's actions."""

RESERVED_METRICS = frozenset({"loss", "global_step", "global_timestep", "global_episode", "wall"})
"""Names in results and summaries that a model's metrics must not have."""


@dataclass(frozen=True, slots=True)
class EstimatorSpec:
    """The values that a model computed on one batch, and the update to make with them.

    Raises:
        ValueError: If a value that the mode requires is missing (TRAIN: `loss` and `train_op`;
            EVAL: `loss`; other modes: `predictions`), the loss is not one number, or a metric has
            a name of `RESERVED_METRICS`.
    """

    mode: Modes
    predictions: Mapping[str, Tensor] = field(default_factory=dict)
    """Tensors [N, ...] by name. An agent acts on `results`: one action per row."""
    loss: Tensor | None = None
    """Mean loss of the batch, a tensor of one number."""
    train_op: TrainOp | None = None
    """Makes the update that counts as one global_step."""
    metrics: Mapping[str, Tensor | float] = field(default_factory=dict)
    """Means over the batch by name, such as `accuracy`; an evaluation reports them."""
    extra_ops: Mapping[str, object] = field(default_factory=dict)
    """Values that hooks may read by name; callables among them are called after `train_op`."""

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

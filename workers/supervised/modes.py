"""What a model function is called for."""

from enum import StrEnum


class Modes(StrEnum):
    """What a model function is called for; `labels` is `None` in the last three."""

    TRAIN = "train"
    EVAL = "eval"
    PREDICT = "predict"
    GENERATE = "generate"
    ENCODE = "encode"

    @property
    def has_labels(self) -> bool:
        """Whether the model function is given labels."""
        return self in {Modes.TRAIN, Modes.EVAL}

"""The modes of a model function."""

from enum import StrEnum


class Modes(StrEnum):
    """Purpose of a call of a model function; `labels` is `None` except in TRAIN and EVAL."""

    TRAIN = "train"
    EVAL = "eval"
    PREDICT = "predict"
    GENERATE = "generate"
    ENCODE = "encode"

    @property
    def has_labels(self) -> bool:
        """Whether the model function gets labels."""
        return self in {Modes.TRAIN, Modes.EVAL}

"""The documented path of the shipped model functions; see `workers.supervised.models`."""

from workers.supervised.models import classifier, dqn, model_function, vpg

__all__ = ["classifier", "dqn", "model_function", "vpg"]

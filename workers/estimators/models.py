"""Re-exports the model functions of `workers.supervised.models` under their documented path."""

from workers.supervised.models import classifier, dqn, model_function, vpg

__all__ = ["classifier", "dqn", "model_function", "vpg"]

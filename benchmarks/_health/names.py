"""IDs of the environments of `benchmarks._health.environments`, without importing Gymnasium."""

from typing import Final

SCALED: Final = "palestra-health/ScaledCartPole-v1"
"""CartPole whose reward per step is the argument `reward`."""
ENDLESS: Final = "palestra-health/Endless-v0"
"""Pendulum without a time limit: no episode ever ends."""

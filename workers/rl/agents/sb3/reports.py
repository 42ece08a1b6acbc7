"""Reports on the updates of an algorithm of Stable-Baselines3: their number and logged scalars."""

from collections.abc import Mapping
from typing import Final

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.logger import Logger

from workers.core.types import LearnReport

_ACTOR_CRITIC: Final = {"loss/actor": "train/actor_loss", "loss/critic": "train/critic_loss"}
_POLICY: Final = {
    "loss/value": "train/value_loss",
    "policy/negative_entropy": "train/entropy_loss",
    "value/explained_variance": "train/explained_variance",
}
REPORTS: Final[Mapping[str, Mapping[str, str]]] = {
    "A2C": {"loss/policy": "train/policy_loss", **_POLICY},
    "DDPG": _ACTOR_CRITIC,
    "DQN": {"loss/td": "train/loss"},
    "PPO": {
        "loss/total": "train/loss",
        "loss/policy": "train/policy_gradient_loss",
        **_POLICY,
        "policy/kl": "train/approx_kl",
        "policy/clip_fraction": "train/clip_fraction",
    },
    "SAC": {**_ACTOR_CRITIC, "policy/temperature": "train/ent_coef"},
    "TD3": _ACTOR_CRITIC,
}
"""For each algorithm the names of Palestra's series, and the algorithm's names of these scalars."""


class ReportLogger(Logger):
    """Stores the newest value of each scalar that an algorithm logs, and writes no output."""

    def __init__(self) -> None:
        super().__init__(folder=None, output_formats=[])
        self.scalars: dict[str, float] = {}
        """Newest value of each scalar, by the algorithm's name for it."""

    def record(self, key: str, value: object, exclude: object = None) -> None:
        """Stores the value of a numeric scalar; other values are ignored."""
        del exclude
        if isinstance(value, float | int | np.number):
            self.scalars[key] = float(value)

    def dump(self, step: int = 0) -> None:
        """Writes no output."""


class Reports:
    """Counts the optimiser steps of an algorithm and reports what it logged about them.

    An update is one step of the critic's optimiser, or of the policy's if there is no critic. The
    algorithm's own count is not used, because PPO counts passes.

    Args:
        name: Name of the algorithm.
        model: The algorithm; its logger is replaced.
    """

    def __init__(self, name: str, model: BaseAlgorithm) -> None:
        self._series = REPORTS[name]
        self.names: Final = tuple(self._series)
        self._logger = ReportLogger()
        self._made = 0
        model.set_logger(self._logger)
        critic = getattr(model, "critic", None)
        optimizer: torch.optim.Optimizer = (model.policy if critic is None else critic).optimizer
        optimizer.register_step_post_hook(self._count)

    def take(self) -> LearnReport:
        """Returns the number of updates since the last call, and the newest logged values.

        A value that was not logged since the last call is the one logged before, or 0.
        """
        made, self._made = self._made, 0
        if not made:
            return LearnReport(0)
        scalars = self._logger.scalars
        return LearnReport(
            made, tuple(scalars.get(source, 0.0) for source in self._series.values())
        )

    def gauges(self) -> dict[str, float]:
        """Returns the other scalars that the algorithm logs, as `sb3/<name>`."""
        shown = set(self._series.values())
        return {
            f"sb3/{key.rpartition('/')[2]}": value
            for key, value in self._logger.scalars.items()
            if key not in shown
        }

    def _count(self, *_: object) -> None:
        self._made += 1

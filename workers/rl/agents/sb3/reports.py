"""What an algorithm of Stable-Baselines3 says about its updates, and how many it makes."""

from collections.abc import Mapping
from typing import Final

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.logger import Logger

from workers.core.types import LearnReport

_ACTOR_CRITIC: Final = {"loss/actor": "train/actor_loss", "loss/critic": "train/critic_loss"}
_POLICY: Final = {"loss/value": "train/value_loss", "policy/negative_entropy": "train/entropy_loss"}
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
"""Per algorithm: our series, and what the algorithm's logger calls it."""


class ReportLogger(Logger):
    """Keeps the newest scalars that an algorithm logs, and writes none."""

    def __init__(self) -> None:
        super().__init__(folder=None, output_formats=[])
        self.scalars: dict[str, float] = {}
        """By the algorithm's own names."""

    def record(self, key: str, value: object, exclude: object = None) -> None:
        """Keeps a number."""
        del exclude
        if isinstance(value, float | int | np.number):
            self.scalars[key] = float(value)

    def dump(self, step: int = 0) -> None:
        """Does nothing."""


class Reports:
    """Counts the optimiser steps of an algorithm and reports what it logged about them.

    An update is one step of the optimiser of the critic, where there is one, else of the policy.
    (PPO's own count is of passes.)

    Args:
        name: Of the algorithm.
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
        """Returns what was learnt since the last call.

        A value that the algorithm did not log this time is the last that it did, or 0.
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

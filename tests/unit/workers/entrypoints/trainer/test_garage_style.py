"""An algorithm written for garage's Trainer and dowel's tabular logger trains here."""

import csv
from pathlib import Path
from typing import Any

import dowel
import gymnasium as gym
import numpy as np
import pytest
import torch

from tests.support.garage_kit import CountingAlgo, CountingEnv
from tests.support.torch_garage_kit import TorchPolicy
from workers.entrypoints.trainer import EnvSpec, EpisodeBatch, StepType, Trainer
from workers.entrypoints.trainer_parts.samplers import LocalSampler
from workers.snapshot import SnapshotConfig


class PolicyGradient:
    """REINFORCE with a mean baseline over padded arrays, in garage's style.

    All its parts are arguments, and it logs to dowel's `tabular`.
    """

    def __init__(
        self, env_spec: EnvSpec, policy: TorchPolicy, sampler: Any, discount: float = 0.99
    ) -> None:
        self.policy = policy
        self.max_episode_length = env_spec.max_episode_length
        self._sampler = sampler
        self._discount = discount
        self._optimizer = torch.optim.Adam(policy.parameters(), lr=0.02)

    def train(self, trainer: Any) -> float:
        last_return = float("nan")
        for _ in trainer.step_epochs():
            episodes = trainer.obtain_episodes(trainer.step_itr)
            last_return = self._train_once(trainer.step_itr, episodes)
            trainer.step_itr += 1
        return last_return

    def _train_once(self, itr: int, episodes: EpisodeBatch) -> float:
        returns = np.stack([self._compute_returns(rewards) for rewards in episodes.padded_rewards])
        valid = episodes.valids.astype(bool)
        advantages = torch.as_tensor(
            (returns - returns[valid].mean()) / returns[valid].std(), dtype=torch.float32
        )
        observations = torch.as_tensor(episodes.padded_observations, dtype=torch.float32)
        log_probs = self.policy(observations).log_prob(torch.as_tensor(episodes.padded_actions))
        loss = -(log_probs * advantages)[torch.as_tensor(valid)].mean()
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()
        with dowel.tabular.prefix("Policy"):
            dowel.tabular.record("/Loss", loss.item())
        undiscounted = [part.rewards.sum() for part in episodes.split()]
        ended = [bool((part.step_types == StepType.TERMINAL).any()) for part in episodes.split()]
        with dowel.tabular.prefix("Average/"):
            dowel.tabular.record("Iteration", itr)
            dowel.tabular.record("NumEpisodes", len(undiscounted))
            dowel.tabular.record("AverageReturn", np.mean(undiscounted))
            dowel.tabular.record("TerminationRate", np.mean(ended))
        return float(np.mean(undiscounted))

    def _compute_returns(self, rewards: Any) -> Any:
        sums = np.zeros(len(rewards))
        for step in reversed(range(len(rewards))):
            sums[step] = rewards[step] + self._discount * (
                sums[step + 1] if step + 1 < len(rewards) else 0.0
            )
        return sums


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def test_an_algorithm_of_garages_style_learns_and_its_table_is_the_epochs_row(
    tmp_path: Path,
) -> None:
    env = gym.make("CartPole-v1")
    trainer = Trainer(SnapshotConfig(tmp_path), seed=2)
    policy = TorchPolicy(4, 2)
    algo = PolicyGradient(EnvSpec.from_env(env), policy, LocalSampler(policy, env, seed=1))
    trainer.setup(algo, env)
    dowel.logger.add_output(dowel.CsvOutput(str(tmp_path / "dowel.csv")))
    try:
        last = trainer.train(25, 400)
    finally:
        dowel.logger.remove_all()
    rows = read_rows(tmp_path / "progress.csv")
    assert len(rows) == 25
    assert [int(row["Average/Iteration"]) for row in rows] == list(range(25))
    returns = [float(row["Average/AverageReturn"]) for row in rows]
    assert last == pytest.approx(returns[-1])
    assert np.mean(returns[-5:]) > 2 * np.mean(returns[:5])
    assert {"Policy/Loss", "Average/TerminationRate", "TotalEnvSteps"} <= set(rows[0])
    assert [
        float(row["Average/AverageReturn"]) for row in read_rows(tmp_path / "dowel.csv")
    ] == pytest.approx(returns)
    assert dowel.tabular.as_dict == {}


def test_values_that_are_not_numbers_are_left_to_dowels_warning(tmp_path: Path) -> None:
    trainer, algo = Trainer(SnapshotConfig(tmp_path)), CountingAlgo(CountingEnv())

    def body(_: Any, epoch: int) -> None:
        dowel.tabular.record("Weights", dowel.Histogram(np.ones(3)))
        dowel.tabular.record("Kept", torch.tensor(float(epoch)))

    algo.body = body
    trainer.setup(algo, None)
    with pytest.warns(dowel.tabular_input.TabularInputWarning, match="Weights"):
        trainer.train(2, 5)
    rows = read_rows(tmp_path / "progress.csv")
    assert [row["Kept"] for row in rows] == ["0.0", "1.0"]
    assert "Weights" not in rows[0]

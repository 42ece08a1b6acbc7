import json
from contextlib import contextmanager
from pathlib import Path

import numpy as np


class HillClimber:
    """Hill climbing on the weights of a linear policy.

    Keeps the weights with the highest return so far and perturbs them for the next episode.
    """

    def __init__(self, inputs, actions, noise, patience, seed):
        self.rng = np.random.default_rng(seed)
        self.best = np.zeros((actions, inputs))
        self.best_return = -np.inf
        self.noise, self.patience = noise, patience
        self.tried = self.best
        self.returns = [0.0]
        self.t = 0
        self.climbs = 0
        self.training = True

    def act(self, obs):
        weights = self.tried if self.training else self.best
        return int(np.argmax(weights @ obs))

    def observe(self, obs, reward, done, reset):
        if not self.training:
            return
        self.t += 1
        self.returns[-1] += reward
        if done or reset:
            self.returns.append(0.0)
            if len(self.returns) > self.patience:
                self._judge()

    def _judge(self):
        mean = float(np.mean(self.returns[:-1]))
        if mean >= self.best_return:
            self.best, self.best_return = self.tried, mean
            self.climbs += 1
        self.tried = self.best + self.noise * self.rng.standard_normal(self.best.shape)
        self.returns = [0.0]

    def get_statistics(self):
        return [("best return", self.best_return), ("climbs", self.climbs)]

    def save(self, dirname):
        folder = Path(dirname) / "policy"
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / "weights.npy", self.best)
        (Path(dirname) / "climber.json").write_text(
            json.dumps({"best_return": self.best_return, "climbs": self.climbs})
        )

    def load(self, dirname):
        self.best = self.tried = np.load(Path(dirname) / "policy" / "weights.npy")
        told = json.loads((Path(dirname) / "climber.json").read_text())
        self.best_return, self.climbs = told["best_return"], told["climbs"]

    @contextmanager
    def eval_mode(self):
        before, self.training = self.training, False
        try:
            yield
        finally:
            self.training = before

"""Runs greedy episodes of an agent and summarises them."""

from typing import Any

from workers.core.protocols import TrainableAgent
from workers.core.rng import ENV_SEED_BITS, derive_seed
from workers.core.types import JsonObject
from workers.estimators.environments import vector_of
from workers.estimators.run_config import RunConfig
from workers.rl.envs.env_types import Env
from workers.rl.evaluate.vector_evaluator import EvaluationBudget, VectorEvaluator, summarise
from workers.supervised.variables import Variables


class GreedyEpisodes:
    """Runs evaluation episodes without exploration.

    The seed of an episode derives from the run's seed, the counters and the episode's number.

    Args:
        env: The environment; not closed.
        agent: The agent to evaluate.
        config: Configuration with seed and time limit.
        training_seeds: Whether the episodes have the seeds of the first training episodes.
    """

    def __init__(
        self,
        env: Env,
        agent: TrainableAgent,
        config: RunConfig,
        *,
        training_seeds: bool,
    ) -> None:
        self.returns: list[float] = []
        self.lengths: list[int] = []
        self._seed = config.seed
        self._training_seeds = training_seeds
        self._counters: tuple[int, int] = (0, 0)
        vector = vector_of(env, config.max_episode_steps, self._episode_seed)
        self._evaluator = VectorEvaluator(vector, agent, EvaluationBudget(episodes=1), lambda _: 0)

    def run(self, variables: Variables) -> dict[str, float]:
        """Runs one episode; returns `episode_return` and `episode_length`."""
        self._counters = (variables.global_step, variables.global_timestep)
        clock: Any = None
        result = self._evaluator.evaluate(clock)
        self.returns.append(result.returns[0])
        self.lengths.append(result.lengths[0])
        return {"episode_return": self.returns[-1], "episode_length": float(self.lengths[-1])}

    def _episode_seed(self) -> int:
        number = len(self.returns)
        if self._training_seeds:
            return derive_seed(self._seed, "env", 0, number, bits=ENV_SEED_BITS)
        seed = derive_seed(self._seed, "evaluation", *self._counters, bits=53)
        return derive_seed(seed, "episode", number, bits=ENV_SEED_BITS)


def summary_of(episodes: GreedyEpisodes, variables: Variables) -> JsonObject:
    """Returns the result of an evaluation; see `Agent.evaluate`."""
    result = summarise(episodes.returns, episodes.lengths, 0)
    return {
        "mean_return": result.mean,
        "std_return": result.stdev,
        "min_return": result.min,
        "max_return": result.max,
        "mean_length": result.length_mean,
        "episodes": len(result.returns),
        "global_step": variables.global_step,
        "global_timestep": variables.global_timestep,
        "global_episode": variables.global_episode,
    }

"""Evaluates on the first episodes of the training.

The gap to an evaluation on other episodes shows how much the agent has memorised.

The training's episode e of environment i has the seed `derive_seed(run seed, "env", i, e)`. The
evaluation's episodes are episode 0 of each of the B training environments, then episode 1 of each,
and so on.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from palestra.contract.names import EvaluationPolicy
from workers.core.protocols import ClockView, TrainableAgent
from workers.core.rng import ENV_SEED_BITS, derive_seed
from workers.core.shared_counter import SharedCount
from workers.core.types import Array, EvaluationResult
from workers.rl.envs.vector import EpisodeVector, VectorWrapper
from workers.rl.evaluate.vector_evaluator import (
    EvaluationBudget,
    EvaluationObserver,
    VectorEvaluator,
    fixed_seed_rule,
)


class TrainDataEvaluator(VectorEvaluator):
    """Evaluates an agent on the first training episodes of its run.

    Args:
        env: Environment of the same definition and time limit as the training's, with any number of
            copies; nothing else may use it, and it is closed with the evaluator.
        agent: Acts without exploration.
        budget: Number of episodes or env_steps of an evaluation.
        seed: The run's seed, which is also the seed of the results.
        num_envs: Number of environments of the training, B.
        on_step: See `VectorEvaluator`.
        progress: See `VectorEvaluator`.
        policy: `greedy` or `stochastic`; see `VectorEvaluator`.
    """

    def __init__(  # noqa: PLR0913 - keyword only
        self,
        env: EpisodeVector,
        agent: TrainableAgent,
        budget: EvaluationBudget,
        *,
        seed: int,
        num_envs: int,
        on_step: EvaluationObserver | None = None,
        progress: SharedCount | None = None,
        policy: EvaluationPolicy = "greedy",
    ) -> None:
        self._episodes = _TrainingEpisodes(env, seed, num_envs)
        seeds = fixed_seed_rule(seed)
        super().__init__(
            self._episodes, agent, budget, seeds, on_step, progress=progress, policy=policy
        )

    def evaluate(self, clock: ClockView) -> EvaluationResult:
        """Runs one evaluation.

        An unchanged agent gets the same result each time if the environment is deterministic.
        """
        self._episodes.begun = 0
        return super().evaluate(clock)


class _TrainingEpisodes(VectorWrapper):
    """A vector environment whose n-th episode is the training's n-th; ignores given seeds."""

    def __init__(self, env: EpisodeVector, seed: int, num_envs: int) -> None:
        super().__init__(env)
        self._seed = seed
        self._training_envs = num_envs
        self.begun = 0
        """Episodes begun so far."""

    def begin(self, mask: npt.NDArray[np.bool_], seeds: Sequence[int]) -> Array:
        """Begins the next training episodes where `mask` [B] is true, in the order of the slots.

        Returns the observations [B, ...].
        """
        own = list(seeds)
        for slot in np.flatnonzero(mask).tolist():
            episode, env = divmod(self.begun, self._training_envs)
            own[slot] = derive_seed(self._seed, "env", env, episode, bits=ENV_SEED_BITS)
            self.begun += 1
        return super().begin(mask, own)

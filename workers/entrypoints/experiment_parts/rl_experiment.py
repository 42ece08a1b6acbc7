"""`RLExperiment`: an agent, its environment, and the schedules that train and evaluate it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import gymnasium as gym

from workers.core.types import JsonObject
from workers.entrypoints.experiment_parts.continuous_evaluation import Result
from workers.entrypoints.experiment_parts.experiment_base import ModelLike, ScheduleOptions
from workers.entrypoints.experiment_parts.schedules import Schedules
from workers.estimators.environments import check_env, copy_of
from workers.rl.envs.env_types import Env
from workers.supervised.run_session import SessionRunHook

Environment = Env | Callable[[], Env]
"""An environment, which the caller closes, or a function that makes one; the schedule that called
the function closes the environment.
"""


@runtime_checkable
class AgentLike(ModelLike, Protocol):
    """Attributes of an agent that an `RLExperiment` uses.

    `Agent` and `PGAgent` of `workers.estimators.agents` have them.
    """

    @property
    def memory(self) -> Any:
        """The memory that stores the transitions."""

    def train(self, env: Any, *args: Any, **options: Any) -> Any:
        """Trains and returns the agent."""

    def run_episode(self, env: Any, *args: Any) -> Any:
        """Trains for one episode."""

    def evaluate(self, env: Any, *args: Any, **options: Any) -> Any:
        """Returns a dictionary of results with `global_step`."""


class RLExperiment(Schedules):
    """An agent, its environment, and schedules. The constructor calls none of its arguments.

    Evaluations run greedy episodes in a separate environment: a copy of `env`, or another one made
    by the function `env`.

    Args:
        agent: The agent to train; see `AgentLike`.
        env: The environment, or a function that makes it.
        train_steps: Total updates of the model, at which training ends; `None` for no bound.
        train_episodes: Total training episodes of the model; `None` for no bound.
        first_update: Number of timesteps (actions taken) before the first update.
        update_frequency: After `first_update` timesteps, an update is made at each multiple of this
            number of timesteps and at the end of each episode.
        eval_steps: Episodes of one evaluation.
        train_hooks: Called around the updates and at the ends of episodes; the list is copied.
        eval_hooks: Called around the episodes of evaluations; the list is copied.
        eval_delay_secs: Seconds before the first evaluation.
        continuous_eval_throttle_secs: Least number of seconds between the starts of two
            evaluations.
        eval_every_n_steps: Least number of updates between two evaluations of
            `train_and_evaluate`; 0 or `None` evaluates only at the end.
        delay_workers_by_global_step: Whether the workers of a cluster wait for a value of the
            shared global step before they begin, in place of a number of seconds.
        export_strategies: One `ExportStrategy`, several or none.
        train_steps_per_iteration: Updates of a round of `continuous_train_and_evaluate`; `None` for
            a tenth of `train_steps`, or for 1,000 if `train_steps` is `None` too.

    Raises:
        ValueError: If `agent` is not an agent, or an option has the wrong type or range.
    """

    def __init__(  # noqa: PLR0917 - the documented signature
        self,
        agent: AgentLike,
        env: Environment,
        train_steps: int | None = None,
        train_episodes: int | None = None,
        first_update: int = 5000,
        update_frequency: int = 15,
        eval_steps: int | None = 10,
        train_hooks: Iterable[SessionRunHook] | None = None,
        eval_hooks: Iterable[SessionRunHook] | None = None,
        eval_delay_secs: float = 0,
        continuous_eval_throttle_secs: float = 60,
        eval_every_n_steps: int | None = 1,
        delay_workers_by_global_step: bool = False,
        export_strategies: object = None,
        train_steps_per_iteration: int | None = 100,
    ) -> None:
        if not isinstance(agent, AgentLike):
            raise ValueError(  # noqa: TRY004 - as the seed does
                f"agent must be an Agent of any kind, not {type(agent).__name__}; "
                "pass an estimator to Experiment instead"
            )
        if update_frequency < 1:
            raise ValueError(f"update_frequency must be at least 1, is {update_frequency}")
        options = ScheduleOptions(
            train_steps=train_steps,
            eval_steps=eval_steps,
            train_hooks=train_hooks,
            eval_hooks=eval_hooks,
            eval_delay_secs=eval_delay_secs,
            continuous_eval_throttle_secs=continuous_eval_throttle_secs,
            eval_every_n_steps=eval_every_n_steps,
            delay_workers_by_global_step=delay_workers_by_global_step,
            export_strategies=export_strategies,
            train_steps_per_iteration=train_steps_per_iteration,
        )
        super().__init__(agent, options)
        self._env = env
        self._train_episodes = train_episodes
        self._first_update = first_update
        self._update_frequency = update_frequency

    @property
    def agent(self) -> Any:
        """The agent that the schedules train and evaluate."""
        return self._model

    @property
    def estimator(self) -> Any:
        """The agent, under the name that an `Experiment` has for its model."""
        return self._model

    @property
    def env(self) -> Environment:
        """The environment, or the function that makes it."""
        return self._env

    @property
    def train_episodes(self) -> int | None:
        """Total training episodes of the model; `None` for no bound."""
        return self._train_episodes

    @property
    def first_update(self) -> int:
        """Number of timesteps before the first update."""
        return self._first_update

    @property
    def update_frequency(self) -> int:
        """Timesteps between two updates."""
        return self._update_frequency

    def _train(self, hooks: Sequence[SessionRunHook], **bound: int | None) -> object:
        with self._open_env(is_copied=False) as env:
            return self._model.train(
                env,
                first_update=self._first_update,
                update_frequency=self._update_frequency,
                max_episodes=self._train_episodes,
                hooks=list(hooks),
                **bound,
            )

    def _evaluate(
        self,
        name: str | None,
        hooks: Sequence[SessionRunHook],
        *,
        steps: int | None = None,
        checkpoint: Path | None = None,
        uses_train_data: bool = False,
    ) -> JsonObject:
        wanted = self.eval_steps if steps is None else steps
        if wanted is None:
            raise ValueError(
                "eval_steps must be a number of episodes: an environment has no end of input"
            )
        options = {"checkpoint_path": checkpoint, "name": name, "training_seeds": uses_train_data}
        with self._open_env(is_copied=True) as env:
            result: JsonObject = self._model.evaluate(
                env, steps=wanted, hooks=list(hooks), **options
            )
        return result

    def _copy_with_directory(self, directory: str) -> "RLExperiment":
        agent = self._copy_model_with_directory(directory)
        batch = getattr(agent.memory, "batch_size", 0)
        return RLExperiment(
            agent,
            self._env,
            first_update=min(self._first_update, batch),
            update_frequency=1,
            export_strategies=self.export_strategies,
        )

    def _has_finished(self, step: int, result: Result | None) -> bool:
        episodes = None if result is None else result.get("global_episode")
        has_enough_episodes = (
            self._train_episodes is not None
            and episodes is not None
            and episodes >= self._train_episodes
        )
        return has_enough_episodes or super()._has_finished(step, result)

    @contextmanager
    def _open_env(self, *, is_copied: bool) -> Iterator[Env]:
        """Yields an environment; closes it afterwards if it was copied or made by the function."""
        if isinstance(self._env, gym.Env) or not callable(self._env):
            check_env(self._env)
            env = copy_of(self._env) if is_copied else self._env
            owned = is_copied
        else:
            env, owned = self._env(), True
        try:
            yield env
        finally:
            if owned:
                env.close()

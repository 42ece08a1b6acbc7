"""Agents made of a model function and a memory, trained in one environment by the engine.

Checkpoints hold three counters: `global_step` counts updates and determines learning rates,
`global_timestep` counts actions and determines exploration, `global_episode` counts finished
episodes.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Self

from torch import Tensor

from workers.core.rng import derive_seed, preserve_global_state, seed_global
from workers.core.types import JsonObject, LearnSchedule
from workers.estimators.agent_evaluation import GreedyEpisodes, summary_of
from workers.estimators.agent_learner import AgentLearner, EpisodeOptions
from workers.estimators.agent_session import AgentSession
from workers.estimators.basic_hooks import StopAfterNEvalsHook
from workers.estimators.counter_hooks import (
    EpisodeCheckpointSaverHook,
    EpisodeCounterHook,
    EpisodeLoggingTensorHook,
    EpisodeSummarySaverHook,
    StepCheckpointSaverHook,
    StopAtEpisodeHook,
    StopAtStepHook,
)
from workers.estimators.environments import check_env
from workers.estimators.evaluation_results import write_result
from workers.estimators.memories import BatchMemory, Memory
from workers.estimators.model_owner import ModelOwner, check_bounds, log
from workers.estimators.run_config import RunConfig
from workers.estimators.training_services import ModelBudget
from workers.rl.envs.env_types import Env
from workers.supervised.model_function import ModelFn
from workers.supervised.run_session import (
    EpisodeRecord,
    RunSession,
    RunValues,
    SessionRunHook,
    check_hooks,
)
from workers.supervised.spec import EstimatorSpec
from workers.supervised.variables import Variables

NEVER = 2**62
"""A number of env_steps that no training reaches."""


class Agent(ModelOwner):
    """A model that acts, stores transitions and learns; its state is saved in `model_dir`.

    Args:
        model_fn: `model_fn(features, labels[, mode[, params[, config[, model_dir]]]])`, see
            `workers.supervised.variables`. Features are `state`; labels are `action`, `reward`,
            `done` (terminal states only), `truncated`, `next_state`, and `max_reward`,
            `min_reward`, `avg_reward` and `total_reward` of the current episode. The actions are
            `predictions["results"]`.
        memory: Stores the transitions.
        model_dir: Directory of the checkpoints; `None` uses `config.model_dir` or, if that is
            `None` too, a new temporary directory.
        config: Configuration; `None` for the defaults.
        params: Hyperparameters of the model function.

    Raises:
        ValueError: If the model function does not accept the arguments it is called with, or
            `model_dir` and `config.model_dir` differ.
        TypeError: If `memory` is not a `Memory`.
    """

    episodes_between_logs = 1
    """Episodes between two log lines, summary rows and, by default, checkpoints."""
    memory_type: type[Memory] = Memory

    def __init__(
        self,
        model_fn: ModelFn,
        memory: Memory,
        model_dir: str | Path | None = None,
        config: RunConfig | None = None,
        params: Mapping[str, object] | None = None,
    ) -> None:
        if not isinstance(memory, self.memory_type):
            raise TypeError(
                f"memory of a {type(self).__name__} must be a {self.memory_type.__name__} "
                f"of workers.estimators.memories, not {type(memory).__name__}"
            )
        super().__init__(model_fn, model_dir, config, params)
        self.memory = memory
        self.memory.seed(derive_seed(self._config.seed, "agent/memory"))

    def train(  # noqa: PLR0913, PLR0917 - the documented signature
        self,
        env: Env,
        first_update: int = 35,
        update_frequency: int = 10,
        episodes: int | None = None,
        steps: int | None = None,
        hooks: Sequence[SessionRunHook] | None = None,
        max_steps: int | None = None,
        max_episodes: int | None = None,
    ) -> "Agent":
        """Trains until a bound is reached or a hook requests a stop.

        Args:
            env: The environment; not closed.
            first_update: Number of timesteps before the first update; at least the memory's batch
                size.
            update_frequency: After `first_update` timesteps, an update is made at each multiple of
                this number of timesteps and at the end of each episode.
            episodes: Number of further episodes, after which the training is saved as paused.
            steps: Number of further updates, after which the training is saved as paused; two calls
                with 10 make 20 updates.
            hooks: Called around each update and at the end of each episode.
            max_steps: Total updates of the model; two calls with 10 make 10 updates.
            max_episodes: Total episodes of the model.

        Returns:
            The agent.

        Raises:
            TypeError: If `env` is not an environment, or a hook is not a `SessionRunHook`.
            ValueError: If a number is out of range, or both `steps` and `max_steps`, or both
                `episodes` and `max_episodes`, are set.
        """
        check_env(env)
        check_bounds(steps=steps, max_steps=max_steps, episodes=episodes, max_episodes=max_episodes)
        self._schedule(first_update, update_frequency)
        if self._is_reached(max_steps, max_episodes):
            return self
        session = self.session(
            env, hooks, ModelBudget(max_steps, max_episodes), steps=steps, episodes=episodes
        )
        default = session.default_options
        with session:
            while not session.has_ended:
                self.run_episode(
                    env,
                    session,
                    default.features,
                    default.labels,
                    default.no_run_hooks,
                    default.global_step,
                    default.update_episode_op,
                    default.update_timestep_op,
                    first_update,
                    update_frequency,
                    default.estimator_spec,
                )
        log.info(
            "agent.trained", global_step=session.session.global_step, reason=session.reason.value
        )
        return self

    def run_episode(  # noqa: PLR0913, PLR0917 - the documented signature
        self,
        env: Env,
        sess: AgentSession,
        features: Callable[[Tensor], object],
        labels: Callable[[Mapping[str, object], Mapping[str, float]], object],
        no_run_hooks: bool,
        global_step: Callable[[], int],
        update_episode_op: Callable[[], object],
        update_timestep_op: Callable[[], object],
        first_update: int,
        update_frequency: int,
        estimator_spec: Callable[..., EstimatorSpec],
    ) -> EpisodeRecord | None:
        """Runs the engine to the end of the current episode, or of a new one.

        The order of a step: the agent acts (and calls `update_timestep_op`), the environment is
        stepped, the transition is stored; at the end of the episode `update_episode_op` is called;
        the update is made, if one is due; the hooks are called. `sess.default_options` holds the
        arguments that `train` uses.

        Args:
            env: The environment of the session.
            sess: A session returned by `session`, whose context has been entered.
            features: Maps states [N, ...] to the model's features.
            labels: Maps a sampled batch (arrays by key of the memory's rows) and the reward
                statistics of the current episode to the model's labels.
            no_run_hooks: Whether the hooks are not called at steps without an update; if false,
                they are called at every step.
            global_step: Returns the number of updates made.
            update_episode_op: Counts an episode; called once at its end.
            update_timestep_op: Counts an action; called after the model chose the action, so that
                exploration uses the count before it.
            first_update: See `train`; must be the same in all episodes of a session.
            update_frequency: See `train`; must be the same in all episodes of a session.
            estimator_spec: Makes the spec of one run; called with features, labels (`None` to act)
                and mode, and with `exploring=True` when the agent collects training data.

        Returns:
            Statistics of the episode; `None` if the training ended before the episode did.

        Raises:
            ValueError: If the session has another environment, or began with another `first_update`
                or `update_frequency`.
        """
        if env is not sess.env:
            raise ValueError(
                "run_episode: env is not the environment that the session was made for"
            )
        ops = (global_step, update_episode_op, update_timestep_op)
        options = EpisodeOptions(features, labels, no_run_hooks, *ops, estimator_spec)
        return sess.run_episode(options, self._schedule(first_update, update_frequency))

    def session(
        self,
        env: Env,
        hooks: Sequence[SessionRunHook] | None = None,
        bound: ModelBudget | None = None,
        *,
        steps: int | None = None,
        episodes: int | None = None,
    ) -> AgentSession:
        """Returns a training that `run_episode` continues by one episode per call.

        It is a context manager, which saves the last checkpoint on exit.

        Args:
            env: The environment; not closed.
            hooks: See `train`.
            bound: Total updates and episodes of the model; `None` for no bound.
            steps: Number of further updates.
            episodes: Number of further episodes.
        """
        extra = check_hooks(hooks)
        relative: list[SessionRunHook] = [] if steps is None else [StopAtStepHook(num_steps=steps)]
        relative += [] if episodes is None else [StopAtEpisodeHook(num_episodes=episodes)]
        variables = Variables(self._config.seed, self._config.device)
        session = RunSession(
            variables,
            [*self._default_hooks(extra), *extra, *relative],
            self.model_dir,
            self.services.time,
        )

        def learner(schedule: LearnSchedule) -> AgentLearner:
            return AgentLearner(
                self._model, variables, self.memory, session, env.action_space, schedule
            )

        return AgentSession(env, session, learner, bound or ModelBudget(), self)

    def evaluate(
        self,
        env: Env,
        steps: int | None = 10,
        hooks: Sequence[SessionRunHook] | None = None,
        checkpoint_path: str | Path | None = None,
        name: str | None = None,
        *,
        training_seeds: bool = False,
    ) -> JsonObject:
        """Runs greedy episodes with a checkpoint, and appends the result to a series.

        Args:
            env: The environment; it must not be used elsewhere during the call, and is not closed.
            steps: Number of episodes.
            hooks: Called around each episode.
            checkpoint_path: Path of the checkpoint; `None` for the newest.
            name: Name of the series, which is written to `eval_<name>` in `model_dir`; `None`
                writes to `eval`.
            training_seeds: Whether to use the seeds of the first training episodes in place of
                evaluation seeds.

        Returns:
            `mean_return`, `std_return` (of the sample), `min_return`, `max_return`, `mean_length`,
            `episodes`, `global_step`, `global_timestep` and `global_episode`.

        Raises:
            ValueError: If `steps` is `None` or below 1: an environment has no end of input.
            EstimatorNotTrainedError: If there is no checkpoint.
        """
        if steps is None:
            raise ValueError(
                "eval_steps must be a number of episodes: an environment has no end of input"
            )
        check_env(env)
        check_bounds(eval_steps=steps)
        loaded = self._load(checkpoint_path)
        variables = self._variables(loaded)
        learner = AgentLearner(
            self._model, variables, self.memory, None, env.action_space, self._schedule(NEVER, 1)
        )
        session = RunSession(
            variables,
            [*check_hooks(hooks), StopAfterNEvalsHook(steps)],
            self.model_dir,
            self.services.time,
        )
        episodes = GreedyEpisodes(env, learner, self._config, training_seeds=training_seeds)
        with preserve_global_state():
            seed_global(
                derive_seed(
                    self._config.seed,
                    "evaluation",
                    variables.global_step,
                    variables.global_timestep,
                    bits=53,
                )
            )
            session.start()
            while not session.should_stop():
                session.run(lambda: RunValues(scalars=episodes.run(variables)))
            session.end()
        result = summary_of(episodes, variables)
        write_result(self.model_dir, name, result, writes_events=self._config.tensorboard)
        log.info("agent.evaluated", series=name or "", **result)
        return result

    def copy_with_directory(self, model_dir: str | Path) -> Self:
        """Returns a copy of the agent that has another directory and a copy of the memory."""
        other = super().copy_with_directory(model_dir)
        other.memory = deepcopy(self.memory)
        return other

    def _schedule(self, first_update: int, update_frequency: int) -> LearnSchedule:
        """Returns when the engine calls `learn`."""
        if first_update < 0 or first_update < self.memory.batch_size:
            raise ValueError(
                "first_update must be at least the memory's batch_size, "
                f"{self.memory.batch_size}, is {first_update}"
            )
        if update_frequency < 1:
            raise ValueError(f"update_frequency must be at least 1, is {update_frequency}")
        return LearnSchedule(
            every_env_steps=update_frequency,
            updates=1,
            warmup_env_steps=first_update + 1,
            learns_at_episode_end=True,
        )

    def _is_reached(self, max_steps: int | None, max_episodes: int | None) -> bool:
        newest = self.newest_snapshot()
        if newest is None:
            return False
        reached = ModelBudget(max_steps, max_episodes).is_reached(
            newest.manifest.update, newest.manifest.episode
        )
        if reached:
            log.info(
                "agent.already_trained",
                global_step=newest.manifest.update,
                global_episode=newest.manifest.episode,
            )
        return reached

    def _default_hooks(self, given: Sequence[SessionRunHook]) -> list[SessionRunHook]:
        config, hooks, every = (
            self._config,
            super()._default_hooks(given),
            self.episodes_between_logs,
        )
        if config.log_step_count_steps:
            hooks.append(EpisodeLoggingTensorHook(every))
        if config.save_summary_steps:
            writer = self._summaries()
            hooks += [
                EpisodeSummarySaverHook(every, writer=writer),
                EpisodeCounterHook(every, writer=writer),
            ]
        return hooks

    def _checkpoint_hook(self) -> SessionRunHook:
        config, every = self._config, self.episodes_between_logs
        if config.save_checkpoints_steps:
            return StepCheckpointSaverHook(save_steps=config.save_checkpoints_steps)
        if config.save_checkpoints_secs:
            return StepCheckpointSaverHook(save_secs=config.save_checkpoints_secs)
        return EpisodeCheckpointSaverHook(save_episodes=config.save_checkpoints_episodes or every)


class PGAgent(Agent):
    """An on-policy agent that learns at the ends of episodes.

    At the end of an episode at which its memory holds at least `batch_size` rows, it makes one
    update from all rows. `first_update` and `update_frequency` have no effect.

    Raises:
        TypeError: If `memory` is not a `BatchMemory`.
    """

    episodes_between_logs = 100
    memory_type = BatchMemory

    def _schedule(self, first_update: int, update_frequency: int) -> LearnSchedule:
        del first_update, update_frequency
        return LearnSchedule(every_env_steps=NEVER, updates=1, learns_at_episode_end=True)

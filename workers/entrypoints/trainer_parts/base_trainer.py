"""The garage-style trainer, with which an algorithm runs its own loop over epochs."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workers.core.counts import check_count
from workers.core.null_parts import NoOrders
from workers.core.protocols import Control
from workers.core.rng import seed_global
from workers.core.types import LearnReport, RestoreReport, SnapshotReason
from workers.engine.budget import UNLIMITED
from workers.entrypoints.trainer_parts.engine_parts import SamplerCollector
from workers.entrypoints.trainer_parts.episode_batch import EpisodeBatch
from workers.entrypoints.trainer_parts.episode_plots import wait_for_enter
from workers.entrypoints.trainer_parts.epoch_records import (
    ExperimentStats,
    TrainArgs,
)
from workers.entrypoints.trainer_parts.epoch_snapshots import open_directory
from workers.entrypoints.trainer_parts.rollout_worker import parameters_of
from workers.entrypoints.trainer_parts.tabular import Tabular, performance_statistics
from workers.entrypoints.trainer_parts.trainer_session import TrainerSession
from workers.rl.envs.env_recipe import copy_env
from workers.snapshot.config import SnapshotConfig

_log = logging.getLogger(__name__)


class Trainer:
    """Trains an algorithm, saves and resumes it.

    Args:
        snapshot_config: Directory of snapshots and which epochs are kept; any object with
            `snapshot_dir`, `snapshot_mode` and `snapshot_gap`. `None` uses the defaults or, after
            `restore`, the directory and mode of the restored snapshot.
        seed: Seed with which the global random generators are seeded at once; saved in snapshots.
            `None` does not seed them.
        control: Source of requests to stop the training.
        rebuildable: Whether `save` raises RecipeError for an algorithm or environment that
            `restore` could not build without `setup`.

    Raises:
        ValueError: If `snapshot_mode` or `snapshot_gap` is invalid.
    """

    def __init__(
        self,
        snapshot_config: object = None,
        *,
        seed: int | None = None,
        control: Control | None = None,
        rebuildable: bool = False,
    ) -> None:
        self.enable_logging = True
        """Whether a row is written at the end of each epoch.

        While it is false, logged values are kept for the next row that is written.
        """
        self.step_itr = 0
        """Number of the next iteration, incremented by the algorithm's loop."""
        self.step_episode: object = None
        """The last episodes, set by the algorithm's loop."""
        self.tabular = Tabular()
        """The row of the current epoch."""
        self.restore_report = RestoreReport()
        """Whether the last `restore` is bit-exact, and the reasons if it is not."""
        config = SnapshotConfig.from_object(snapshot_config)
        if snapshot_config is not None:
            open_directory(config.directory)
        if seed is not None:
            seed_global(seed)
        self._session = TrainerSession(
            trainer=self,
            config=config,
            is_configured=snapshot_config is not None,
            control=control or NoOrders(),
            rebuildable=rebuildable,
            seed=seed,
        )

    # Set-up

    def setup(self, algo: object, env: object) -> None:
        """Sets the algorithm and its environment; counters of an earlier set-up are kept.

        Args:
            algo: An object with `train(trainer)` and, to collect with `obtain_episodes`, a sampler
                as attribute `_sampler`. `workers.core.object_state` defines which of its attributes
                are saved.
            env: Environment of the algorithm; `None` if the algorithm makes its own.
        """
        self._session.set_up(algo, env)

    # What an algorithm calls

    def step_epochs(self) -> Iterator[int]:
        """Yields the index of each epoch.

        After each pass of the loop's body the epoch is closed: statistics, row, telemetry and
        snapshot are written.

        The body sets `step_episode` and increments `step_itr`. If the loop is left by `break`,
        `train` or `resume` closes and saves the epoch; if it is left by an exception, they save the
        snapshot `exception`.

        Raises:
            NotSetupError: If neither `train` nor `resume` was called.
        """
        session = self._session
        engine, args = session.engine("step_epochs"), session.arguments("step_epochs")
        session.close_left_epoch()
        self.step_itr, self.step_episode = session.stats.total_itr, None
        if session.clock.epochs < args.n_epochs:
            session.begin_epoch()
            yield from engine.epochs(args.n_epochs)

    def obtain_episodes(
        self,
        itr: int,
        batch_size: int | None = None,
        agent_update: object = None,
        env_update: object = None,
    ) -> EpisodeBatch:
        """Collects one batch with the algorithm's sampler.

        Args:
            itr: Number of the iteration; passed on to the sampler.
            batch_size: Number of env_steps or, depending on the sampler's unit, of episodes;
                `None` uses the `batch_size` of `train`.
            agent_update: Parameters or a policy for the workers, or a list with one entry per
                worker; `None` uses the parameters of the algorithm's `exploration_policy` or, if it
                has none, of its `policy`.
            env_update: An environment for the workers, a function that maps the old environment to
                a new one, or a list with one of these per worker; `None` keeps the environments.

        Raises:
            NotSetupError: If `setup` has not been called.
            ValueError: If there is no sampler or no batch size, or if the length of a list is not
                the number of workers.
        """
        session = self._session
        engine, collector = session.engine("obtain_episodes"), session.collector
        if not isinstance(collector, SamplerCollector) or collector.sampler is None:
            raise ValueError(
                f"{type(session.algo).__name__} has no sampler: "
                "set its attribute _sampler before trainer.setup"
            )
        size = self._batch_size(batch_size)
        update = _policy_parameters(session.algo) if agent_update is None else agent_update
        batch = collector.obtain(itr, size, update, env_update, collect=engine.collect)
        session.stats.total_env_steps = session.clock.env_steps
        return batch

    def obtain_samples(
        self,
        itr: int,
        batch_size: int | None = None,
        agent_update: object = None,
        env_update: object = None,
    ) -> list[dict[str, Any]]:
        """Collects one batch and returns one dict per episode; see `obtain_episodes`.

        Raises:
            NotSetupError: If `setup` has not been called.
            ValueError: As `obtain_episodes`.
        """
        return self.obtain_episodes(itr, batch_size, agent_update, env_update).to_list()

    def advance(self, env_steps: int | None = None) -> None:
        """Collects env_steps with the algorithm's built-in `agent`, which learns by its schedule.

        Args:
            env_steps: Number of env_steps; `None` uses the `batch_size` of `train`. With B
                environments, up to B - 1 more may be made.

        Raises:
            NotSetupError: If `setup` has not been called.
            ValueError: If there is no number of env_steps.
        """
        session = self._session
        engine, size = session.engine("advance"), self._batch_size(env_steps)
        session.bounds.env_steps = session.clock.env_steps + size
        try:
            engine.advance(size)
        finally:
            session.bounds.env_steps = UNLIMITED
        session.stats.total_env_steps = session.clock.env_steps

    def learn(self, updates: int | None = None) -> LearnReport:
        """Makes at most `updates` updates of the algorithm's built-in `agent`.

        `None` makes as many as the agent's schedule defines.

        Raises:
            NotSetupError: If `setup` has not been called.
        """
        return self._session.engine("learn").learn(updates)

    def log(self, key: str, value: object) -> None:
        """Records a value in the row of the current epoch."""
        self.tabular.record(key, value)

    def log_performance(
        self, itr: int, batch: EpisodeBatch, discount: float, prefix: str = "Evaluation"
    ) -> list[float]:
        """Records garage's statistics of a batch in the row, such as `<prefix>/AverageReturn`.

        Returns the undiscounted return of each episode.
        """
        row, returns = performance_statistics(itr, batch, discount)
        with self.tabular.prefix(f"{prefix}/"):
            self.tabular.record_row(row)
        return returns

    def log_diagnostics(self, pause_for_plot: bool = False) -> None:
        """Records the counts of epochs and env_steps and the times in the row.

        With `pause_for_plot`, waits for Enter if the process is attached to a terminal.

        Raises:
            NotSetupError: If `setup` has not been called.
        """
        session = self._session
        session.engine("log_diagnostics")
        (began, steps), now = session.epoch_start, session.clock.wall_seconds
        row = {
            "Epoch": session.stats.total_epoch,
            "TotalEnvSteps": self.total_env_steps,
            "TotalTime": now,
            "EpochTime": now - began,
            "StepsPerSecond": (self.total_env_steps - steps) / max(now - began, 1e-9),
        }
        self.tabular.record_row(row)
        _log.info(
            "epoch %d: %d env_steps, %.1f s",
            session.stats.total_epoch,
            self.total_env_steps,
            now - began,
        )
        if pause_for_plot:
            wait_for_enter()

    # Training

    def train(
        self,
        n_epochs: int,
        batch_size: int | None = None,
        plot: bool = False,
        store_episodes: bool = False,
        pause_for_plot: bool = False,
    ) -> Any:
        """Trains from epoch 0 on.

        Args:
            n_epochs: Number of epochs.
            batch_size: Number of env_steps of a batch.
            plot: Whether to record a video of one episode of the policy after each epoch, as
                `plots/epoch_<e>.mp4` in the directory of the snapshots.
            store_episodes: Whether to save the last `step_episode` in the snapshot.
            pause_for_plot: Whether to wait for Enter after each epoch, if the process is attached
                to a terminal.

        Returns:
            The return value of `algo.train` or, if that is `None`, the mean undiscounted return of
                the episodes of the last epoch: NaN if no episode ended, `None` if there was no
                epoch.

        Raises:
            NotSetupError: If `setup` has not been called.
            ValueError: If a number is out of range, or if `plot` is set and the environment cannot
                render images.
        """
        session = self._session
        session.engine("train")
        session.args = TrainArgs(n_epochs, batch_size, plot, store_episodes, pause_for_plot, 0)
        session.restart_epochs()
        return session.run()

    def resume(
        self,
        n_epochs: int | None = None,
        batch_size: int | None = None,
        plot: bool | None = None,
        store_episodes: bool | None = None,
        pause_for_plot: bool | None = None,
    ) -> Any:
        """Continues the training after the last finished epoch.

        An argument that is `None` keeps the value of the last `train`.

        Args:
            n_epochs: Total number of epochs at which the training ends, earlier epochs included; if
                it is reached already, no epoch is run.
            batch_size: See `train`.
            plot: See `train`.
            store_episodes: See `train`.
            pause_for_plot: See `train`.

        Returns:
            See `train`.

        Raises:
            NotSetupError: If neither `restore` nor `train` was called.
        """
        session = self._session
        args = session.arguments("resume")
        changes = {
            "n_epochs": n_epochs,
            "batch_size": batch_size,
            "plot": plot,
            "store_episodes": store_episodes,
        }
        session.args = args.replace(
            **changes, pause_for_plot=pause_for_plot, start_epoch=session.clock.epochs
        )
        return session.run()

    # Snapshots

    def save(self, epoch: int) -> None:
        """Saves the current state as the snapshot of an epoch, if the snapshot mode keeps it.

        Args:
            epoch: Index of the epoch; a resume continues with the next one.

        Raises:
            NotSetupError: If `setup` has not been called.
            RecipeError: If `rebuildable` is set, and algorithm or environment has no recipe.
        """
        state = self._session.engine("save").state_dict()
        epoch = check_count(epoch, "epoch", 0)
        self._session.write(
            {**state, "clock": {**state["clock"], "epochs": epoch + 1}},
            SnapshotReason.PERIODIC,
            epoch,
        )

    def restore(self, from_dir: Any, from_epoch: int | str = "last") -> TrainArgs:
        """Restores algorithm, environment, trainer and random generators from a snapshot.

        After `setup`, the state is loaded into the algorithm and environment that were passed to
        it; without `setup`, both are built from their recipes.

        Args:
            from_dir: Directory of the snapshots.
            from_epoch: `last`, `first`, `exception`, or the index of an epoch.

        Returns:
            A copy of the arguments of the saved training.

        Raises:
            FileNotFoundError: If there is no such snapshot.
            ValueError: If `from_epoch` has another value.
            RecipeError: If `setup` was not called, and algorithm or environment has no recipe or a
                class that is not marked as rebuildable.
            SnapshotUnreadableError: If the snapshot is damaged or was not written by a trainer.
        """
        self.restore_report, args = self._session.restore(Path(from_dir), from_epoch)
        return args

    def get_env_copy(self) -> Any:
        """Returns an independent copy of the environment; `None` if there is no environment."""
        env = self._session.env
        return None if env is None else copy_env(env)

    @property
    def total_env_steps(self) -> int:
        """env_steps collected for training; set by an algorithm that collects by itself."""
        return self._session.clock.env_steps

    @total_env_steps.setter
    def total_env_steps(self, value: int) -> None:
        value = check_count(value, "total_env_steps", 0)
        clock = self._session.clock
        clock.count(value - clock.env_steps, 0)
        self._session.stats.total_env_steps = value

    @property
    def stats(self) -> ExperimentStats:
        """Statistics up to the last finished epoch."""
        return self._session.stats

    @property
    def train_args(self) -> TrainArgs | None:
        """Arguments of the current or last training; `None` before the first."""
        return self._session.args

    def _batch_size(self, given: int | None) -> int:
        size = (
            given
            if given is not None or self._session.args is None
            else self._session.args.batch_size
        )
        if size is None:
            raise ValueError("no batch_size: give it here, or to train")
        return check_count(size, "batch_size", 1)


def _policy_parameters(algo: object) -> object:
    for name in ("exploration_policy", "policy"):
        if (policy := getattr(algo, name, None)) is not None:
            return parameters_of(policy)
    raise ValueError(
        f"{type(algo).__name__} has neither exploration_policy nor policy: give agent_update"
    )

"""The trainer that an algorithm's own loop pulls epoch by epoch."""

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
from workers.entrypoints.trainer_parts.tabular import Tabular, performance
from workers.entrypoints.trainer_parts.trainer_session import TrainerSession
from workers.rl.envs.env_recipe import copy_env
from workers.snapshot.config import SnapshotConfig

_log = logging.getLogger(__name__)


class Trainer:
    """Trains an algorithm, saves and resumes it.

    Args:
        snapshot_config: Where snapshots go and which epochs are kept; any object with
            `snapshot_dir`, `snapshot_mode` and `snapshot_gap`. `None` takes the defaults, or, once
            something was restored, the directory and mode that it was restored from.
        seed: Seeds the global generators at once and goes into the snapshots; `None` leaves them
            alone.
        control: The wish from outside to stop.
        rebuildable: Whether `save` refuses an algorithm or environment that `restore` could not
            build without `setup`.

    Raises:
        ValueError: If mode or gap of the config are wrong.
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
        """Whether an epoch ends with a row.

        While it does not, what was logged waits for the first row.
        """
        self.step_itr = 0
        """Number of the next iteration; the algorithm's own loop counts it up."""
        self.step_episode: object = None
        """The last episodes, left here by the algorithm's own loop."""
        self.tabular = Tabular()
        """The row of the running epoch."""
        self.restore_report = RestoreReport()
        """Whether the last `restore` can be continued exactly, and what stands in the way."""
        config = SnapshotConfig.of(snapshot_config)
        if snapshot_config is not None:
            open_directory(config.directory)
        if seed is not None:
            seed_global(seed)
        self._session = TrainerSession(
            trainer=self,
            config=config,
            configured=snapshot_config is not None,
            control=control or NoOrders(),
            rebuildable=rebuildable,
            seed=seed,
        )

    # Set-up

    def setup(self, algo: object, env: object) -> None:
        """Takes an algorithm and its environment; statistics of an earlier set-up go on.

        Args:
            algo: Has `train(trainer)`. If it wants to collect through the trainer, it has a sampler
                as `_sampler`. See `workers.core.object_state` for what of it is saved.
            env: Its environment; `None` where the algorithm has its own.
        """
        self._session.set_up(algo, env)

    # What an algorithm calls

    def step_epochs(self) -> Iterator[int]:
        """Yields the index of each epoch.

        After the body the epoch ends: statistics, row, telemetry, snapshot.

        The body sets `step_episode` and counts `step_itr` up. Leaving it by `break` saves the
        epoch, leaving it by an exception saves the directory `exception`; `train` and `resume` see
        to both.

        Raises:
            NotSetupError: If neither `train` nor `resume` was called.
        """
        session = self._session
        engine, args = session.engine("step_epochs"), session.arguments("step_epochs")
        session.leave()
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
        """Collects one batch by the algorithm's sampler.

        Args:
            itr: Iteration; only forwarded.
            batch_size: env_steps wanted, or what else the sampler counts; `None` takes that of
                `train`.
            agent_update: Parameters or a policy for the workers, or a list with one per worker;
                `None` takes the parameters of the algorithm's `exploration_policy`, or else of its
                `policy`.
            env_update: An environment or a function of the old one for the workers, or a list with
                one per worker.

        Raises:
            NotSetupError: If the trainer is not set up.
            ValueError: If there is no sampler or no batch size, or a list has another length than
                there are workers.
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
        """Collects one batch and returns one dict per episode; see `obtain_episodes`."""
        return self.obtain_episodes(itr, batch_size, agent_update, env_update).to_list()

    def advance(self, env_steps: int | None = None) -> None:
        """Lets the algorithm's built-in `agent` collect env_steps and learn by its own schedule.

        Args:
            env_steps: `None` takes the batch size of `train`. Several environments may overshoot by
                less than their number.
        """
        session, size = self._session, self._batch_size(env_steps)
        engine = session.engine("advance")
        session.bounds.env_steps = session.clock.env_steps + size
        try:
            engine.advance(size)
        finally:
            session.bounds.env_steps = UNLIMITED
        session.stats.total_env_steps = session.clock.env_steps

    def learn(self, updates: int | None = None) -> LearnReport:
        """Lets the algorithm's `agent`, one of ours, make at most so many updates.

        `None` takes those of its schedule.
        """
        return self._session.engine("learn").learn(updates)

    def log(self, key: str, value: object) -> None:
        """Puts a value into the row of the running epoch."""
        self.tabular.record(key, value)

    def log_performance(
        self, itr: int, batch: EpisodeBatch, discount: float, prefix: str = "Evaluation"
    ) -> list[float]:
        """Puts the usual numbers about a batch into the row, as `<prefix>/AverageReturn` and so on.

        Returns the undiscounted returns.
        """
        row, returns = performance(itr, batch, discount)
        with self.tabular.prefix(f"{prefix}/"):
            self.tabular.record_row(row)
        return returns

    def log_diagnostics(self, pause_for_plot: bool = False) -> None:
        """Puts env_steps and times into the row.

        With `pause_for_plot` waits for Enter where a person can press it.

        Raises:
            NotSetupError: If the trainer is not set up.
        """
        session = self._session
        session.engine("log_diagnostics")
        (began, steps), now = session.epoch_began, session.clock.wall_seconds
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
            n_epochs: Epochs.
            batch_size: env_steps of a batch.
            plot: Film an episode of the policy after each epoch, as `plots/epoch_<e>.mp4` beside
                the snapshots.
            store_episodes: Save the last `step_episode` in the snapshot.
            pause_for_plot: Wait for Enter after each epoch, where somebody can press it.

        Returns:
            What `algo.train` returned, or where that is `None` the mean undiscounted return of the
                episodes of the last epoch: NaN where
            none ended, `None` where no epoch ran.

        Raises:
            NotSetupError: If the trainer is not set up.
            ValueError: If a number is out of range, or `plot` asks for an environment that renders
                nothing.
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
        """Goes on after the last finished epoch.

        An argument that is `None` keeps the value of the last `train`.

        Args:
            n_epochs: Index at which the training ends, counted from its very beginning; no epoch
                runs where it is reached already.
            batch_size: As in `train`.
            plot: As in `train`.
            store_episodes: As in `train`.
            pause_for_plot: As in `train`.

        Returns:
            As `train`.

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
        session.args = args.changed(
            **changes, pause_for_plot=pause_for_plot, start_epoch=session.clock.epochs
        )
        return session.run()

    # Snapshots

    def save(self, epoch: int) -> None:
        """Saves the state as that after an epoch, if the snapshot mode keeps it.

        Args:
            epoch: Its index; a resume goes on with the next one.

        Raises:
            NotSetupError: If the trainer is not set up.
            RecipeError: If the trainer is to be rebuildable, and a part has no recipe.
        """
        state = self._session.engine("save").state_dict()
        epoch = check_count(epoch, "epoch", 0)
        self._session.write(
            {**state, "clock": {**state["clock"], "epochs": epoch + 1}},
            SnapshotReason.PERIODIC,
            epoch,
        )

    def restore(self, from_dir: Any, from_epoch: int | str = "last") -> TrainArgs:
        """Brings algorithm, environment and trainer to a snapshot.

        Generators of random numbers go on from where they were.

        After `setup` the state is loaded into what was set up; without it, algorithm and
        environment are built from their recipes.

        Args:
            from_dir: Directory of the snapshots.
            from_epoch: `last`, `first`, `exception`, or the index of an epoch.

        Returns:
            The arguments of the last training; a copy.

        Raises:
            FileNotFoundError: If there is no such snapshot.
            ValueError: If `from_epoch` is none of these.
            RecipeError: If the trainer is not set up, and a part has no recipe or its class may not
                be built here.
            SnapshotUnreadableError: If the snapshot is damaged, or none of a trainer.
        """
        self.restore_report, args = self._session.restore(Path(from_dir), from_epoch)
        return args

    def get_env_copy(self) -> Any:
        """Returns an independent copy of the environment, `None` where there is none."""
        env = self._session.env
        return None if env is None else copy_env(env)

    @property
    def total_env_steps(self) -> int:
        """env_steps collected for training; an algorithm that collects by itself sets it."""
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
        """Arguments of the running or last training."""
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

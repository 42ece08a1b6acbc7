"""The state of a trainer: its engine, the end of an epoch, writing and restoring of snapshots.

Owns the files in the directory of the snapshots: the snapshots themselves, `progress.csv`,
`experiment.json`, the telemetry and the videos. At the end of an epoch its row is written before
its snapshot, so that a kill between the two loses no row.
"""

import json
import logging
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import torch

from palestra.contract.names import MAX_STEP, new_id
from workers.core.errors import SnapshotUnreadableError
from workers.core.protocols import ClockView, Control
from workers.core.recipes import RecipeError, rebuild, recipes_of
from workers.core.types import RestoreReport, SnapshotReason, StateTree
from workers.engine.clock import Clock, StillClock
from workers.engine.engine import Engine
from workers.engine.parts import Cadence, Parts
from workers.entrypoints.trainer_parts.dowel_table import copy_dowel_values
from workers.entrypoints.trainer_parts.engine_parts import (
    AlgorithmAgent,
    EpochBounds,
    KeptEpochTrigger,
    LeavingHook,
    collector_of,
    exit_at_sigterm,
)
from workers.entrypoints.trainer_parts.episode_plots import DIRECTORY, EpisodePlots
from workers.entrypoints.trainer_parts.epoch_records import (
    EpochRecorder,
    ExperimentStats,
    LazySpool,
    NotSetupError,
    TrainArgs,
)
from workers.entrypoints.trainer_parts.epoch_snapshots import (
    find_snapshot,
    open_directory,
    write_epoch,
)
from workers.entrypoints.trainer_parts.progress_csv import FILE_NAME, ProgressCsv, read_rows
from workers.recording.recorder import RecordedRun
from workers.snapshot.config import SnapshotConfig
from workers.snapshot.owner import snapshot_owner
from workers.snapshot.snapshot_directory import Moment, read_snapshot

if TYPE_CHECKING:
    from workers.entrypoints.trainer_parts.base_trainer import Trainer

EXPERIMENT: Final = "experiment.json"
_log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class TrainerSession:
    """The state of one trainer."""

    trainer: "Trainer"
    config: SnapshotConfig
    is_configured: bool
    """Whether the caller passed the directory of snapshots; if not, a restore sets it."""
    control: Control
    rebuildable: bool
    seed: int | None
    run_id: str = field(default_factory=lambda: new_id("run"))
    attempt_id: str = field(default_factory=lambda: new_id("att"))
    stats: ExperimentStats = field(default_factory=lambda: ExperimentStats(0, 0, 0, None))
    args: TrainArgs | None = None
    clock: Clock = field(default_factory=lambda: Clock(time.monotonic))
    bounds: EpochBounds = field(default_factory=EpochBounds)
    algo: Any = None
    env: Any = None
    collector: Any = None
    average_return: float | None = None
    epoch_start: tuple[float, int] = (0.0, 0)
    """Wall seconds and env_steps at the start of the current epoch."""
    _leaving: LeavingHook = field(default_factory=LeavingHook)
    _engine: Engine | None = None
    _recorder: EpochRecorder | None = None
    _has_saved_exception: bool = False
    _spool: LazySpool | None = None
    _progress: ProgressCsv | None = None
    _rows: tuple[list[str], list[list[str]]] = ((), ())  # type: ignore[assignment]
    """Columns and rows of `progress.csv` at the time of the restored snapshot."""
    _plots: EpisodePlots | None = None
    _kept: KeptEpochTrigger = field(init=False)

    def __post_init__(self) -> None:
        self._kept = KeptEpochTrigger(lambda epoch: bool(self.config.names(epoch)))

    # Set-up

    def set_up(self, algo: object, env: object) -> None:
        """Builds an engine for an algorithm, with the clock of this session."""
        self.algo, self.env, self.collector = algo, env, collector_of(algo)
        agent = AlgorithmAgent(
            algo, (self, self.trainer, env, getattr(algo, "_sampler", None), self.collector)
        )
        self._spool = LazySpool(lambda: self.config.directory)
        recorded = RecordedRun(self.run_id, agent.report_names, agent.metrics, 1)
        self._recorder = EpochRecorder(recorded, self._spool, self._close_epoch)
        self._kept.skip(self.clock)
        parts = Parts(
            agent=agent,
            collector=self.collector,
            recorder=self._recorder,
            snapshotter=self,
            control=self.control,
            hooks=(self._leaving,),
            clock=self.clock,
        )
        self._engine = Engine(
            parts,
            Cadence(budget=self.bounds, snapshot=self._kept, saves_best=False),
            time.monotonic,
        )

    def engine(self, caller: str) -> Engine:
        """Returns the engine.

        Raises:
            NotSetupError: If `set_up` has not been called; the message names `caller`.
        """
        if self._engine is None:
            raise NotSetupError(f"call setup(algo, env) or restore(from_dir) before {caller}")
        return self._engine

    def arguments(self, caller: str) -> TrainArgs:
        """Returns the arguments of the training.

        Raises:
            NotSetupError: If there has been no training or restore; the message names `caller`.
        """
        if self.args is None:
            before = (
                "restore(from_dir) or train(n_epochs)"
                if caller == "resume"
                else "train(n_epochs) or resume()"
            )
            raise NotSetupError(f"call {before} before {caller}")
        return self.args

    # Training

    def restart_epochs(self) -> None:
        """Sets the count of epochs to 0; everything else continues."""
        self.clock.load_state_dict({**self.clock.state_dict(), "epochs": 0})
        self._kept.skip(self.clock)

    def run(self) -> Any:
        """Calls the algorithm's `train`; saves the last epoch, or a snapshot after an exception.

        Returns the algorithm's return value or, if it is `None`, the average return.
        """
        engine, args = self.engine("train"), self.arguments("train")
        self.bounds.epochs, self.average_return = args.n_epochs, None
        self._open(args)
        try:
            with exit_at_sigterm():
                returned = self.algo.train(self.trainer)
                self.close_left_epoch()
        except BaseException as error:
            if not self._has_saved_exception:
                engine.save_after(error)
            raise
        finally:
            self._close()
        return self.average_return if returned is None else returned

    def close_left_epoch(self) -> None:
        """Closes the epoch whose body was left by `break`."""
        self._leaving.is_leaving = True
        try:
            self.engine("train").leave_epochs()
        finally:
            self._leaving.is_leaving = False

    def begin_epoch(self) -> None:
        """Stores the time and the env_steps at which an epoch begins."""
        self.epoch_start = (self.clock.wall_seconds, self.clock.env_steps)

    # Snapshots

    def save(
        self, state: StateTree, clock: ClockView, reason: SnapshotReason, score: float | None
    ) -> str:
        """Writes a snapshot of the epoch that ended last; see `Snapshotter.save`."""
        del score
        self._has_saved_exception = self._has_saved_exception or reason is SnapshotReason.EXCEPTION
        return self.write(state, reason, max(0, clock.epochs - 1))

    def write(self, state: StateTree, reason: SnapshotReason, epoch: int) -> str:
        """Adds the trainer's state and recipe to the engine's state, and writes the snapshot.

        Returns the snapshot's ID; empty text if the snapshot mode does not keep this epoch.
        """
        progress = (
            {"columns": [], "rows": 0} if self._progress is None else self._progress.state_dict()
        )
        own = {
            "run_id": self.run_id,
            "seed": self.seed,
            "args": None if self.args is None else asdict(self.args),
            "stats": self.stats.state_dict(),
            "config": {
                "snapshot_mode": self.config.snapshot_mode,
                "snapshot_gap": self.config.snapshot_gap,
            },
            "enable_logging": self.trainer.enable_logging,
            "tabular": self.trainer.tabular.state_dict(),
            "progress": progress,
        }
        full = {**state, "trainer": own, "recipe": self._recipe()}
        moment = Moment(clock=StillClock.from_state(state), reason=reason)
        owner = snapshot_owner(
            run_id=self.run_id,
            attempt_id=self.attempt_id,
            definition_hash="",
            seed=self.seed if self.seed is not None and 0 <= self.seed <= MAX_STEP else 0,
            device=torch.get_default_device().type,
        )
        return write_epoch(self.config, owner, full, epoch, moment)

    def restore(self, from_dir: Path, from_epoch: int | str) -> tuple[RestoreReport, TrainArgs]:
        """Restores a snapshot; see `Trainer.restore`."""
        directory = find_snapshot(from_dir, from_epoch)
        state = read_snapshot(directory).state
        if "trainer" not in state:
            raise SnapshotUnreadableError(
                f"{directory} was not written by a Trainer: resume it with its own program"
            )
        if self._engine is None:
            self.trainer.setup(*_rebuild(state["recipe"], directory))
        report = self.engine("restore").restore(state)
        return report, self._take_over(state["trainer"], directory)

    def _take_over(self, own: StateTree, directory: Path) -> TrainArgs:
        trainer = self.trainer
        self.run_id, self.seed = own["run_id"], own["seed"]
        self.stats.load_state_dict(own["stats"])
        trainer.step_itr, trainer.enable_logging = self.stats.total_itr, bool(own["enable_logging"])
        trainer.tabular.load_state_dict(own["tabular"])
        self._progress, self._rows = None, read_rows(directory.parent / FILE_NAME, own["progress"])
        if not self.is_configured:
            self.config = SnapshotConfig(directory.parent, **own["config"])
        saved = {
            "n_epochs": 0,
            "batch_size": None,
            "plot": False,
            "store_episodes": False,
            "pause_for_plot": False,
            **(own["args"] or {}),
        }
        self.args = TrainArgs(**{**saved, "start_epoch": self.clock.epochs})
        return self.args.replace()

    def _recipe(self) -> StateTree:
        try:
            return {"parts": recipes_of({"algo": self.algo, "env": self.env})}
        except RecipeError as error:
            if self.rebuildable:
                raise RecipeError(
                    f"{error}; or take rebuildable=True away, and call setup before restore"
                ) from error
            return {"missing": str(error)}

    # Around an epoch and around a training

    def _close_epoch(self, clock: ClockView) -> None:
        trainer, stats, args, recorder = (
            self.trainer,
            self.stats,
            self.arguments("step_epochs"),
            self._recorder,
        )
        stats.total_epoch, stats.total_itr, stats.total_env_steps = (
            clock.epochs - 1,
            int(trainer.step_itr),
            clock.env_steps,
        )
        stats.last_episode = _as_list(trainer.step_episode) if args.store_episodes else None
        if recorder is None:
            return
        self.average_return = recorder.average_return
        if self._plots is not None:
            self._plots.write(stats.total_epoch)
        row: dict[str, Any] = {}
        if trainer.enable_logging and self._progress is not None:
            copy_dowel_values(trainer.tabular, stats.total_itr)
            trainer.log_diagnostics(args.pause_for_plot)
            row = trainer.tabular.row()
            self._progress.append(row)
            trainer.tabular.clear()
        recorder.record_statistics(clock, stats, row)
        self.begin_epoch()

    def _open(self, args: TrainArgs) -> None:
        directory = self.config.directory
        if args.plot:
            self._plots = EpisodePlots(self.algo, self.env, directory / DIRECTORY)
        open_directory(directory)
        if self._progress is None or self._progress.path.parent != directory:
            self._progress = ProgressCsv(directory / FILE_NAME)
            self._progress.begin(*self._rows)
        self._has_saved_exception = False
        facts = {
            "algo": f"{type(self.algo).__module__}:{type(self.algo).__qualname__}",
            "env": _text_of(self.env),
            "seed": self.seed,
            **asdict(args),
            "recipe": self._recipe(),
        }
        (directory / EXPERIMENT).write_text(json.dumps(facts, indent=1, default=repr) + "\n")
        self.begin_epoch()

    def _close(self) -> None:
        """Closes the sampler, the plots and the telemetry of the training.

        An exception of the sampler is logged, so that it does not replace the training's exception.
        """
        sampler = getattr(self.algo, "_sampler", None)
        for name in ("shutdown_worker", "close"):
            if callable(end := getattr(sampler, name, None)):
                try:
                    end()
                except Exception:  # noqa: BLE001 - logged
                    _log.exception("the sampler could not be closed")
                break
        if self._plots is not None:
            self._plots.close()
            self._plots = None
        if self._recorder is not None and self._spool is not None:
            self._recorder.flush()
            self._spool.close()


def _rebuild(recipe: StateTree, directory: Path) -> tuple[object, object]:
    if "parts" not in recipe:
        message = (
            f"{directory.name} does not tell how to build its parts: {recipe['missing']}. "
            "Call setup(algo, env) before restore"
        )
        raise RecipeError(message)
    parts = rebuild(recipe["parts"])
    return parts["algo"], parts["env"]


def _as_list(episodes: Any) -> Any:
    return episodes.to_list() if callable(getattr(episodes, "to_list", None)) else episodes


def _text_of(env: object) -> str:
    """Returns the text of an environment for people."""
    try:
        return str(env)
    except AttributeError:
        # Gymnasium's reads the id of the spec, which a spec of garage lacks.
        return f"<{type(env).__name__} instance>"

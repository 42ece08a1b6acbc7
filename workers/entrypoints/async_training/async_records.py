"""What the caller's side of an asynchronous training writes: one process writes the records of all."""

import json
import logging
import os
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from workers.core.types import SnapshotReason
from workers.entrypoints.async_training.messages import EpisodesEnded, Evaluated, Saved
from workers.entrypoints.functional_parts.episodes_csv import EPISODES_FILE, EpisodesFile
from workers.entrypoints.functional_parts.evaluation_records import (
    EpisodeCount,
    EvaluationOutputs,
    EvaluationRecorder,
    History,
)
from workers.entrypoints.functional_parts.evaluator import ForeignEvaluator
from workers.entrypoints.functional_parts.log_recorder import LogRecorder
from workers.entrypoints.functional_parts.scores_file import (
    BASIC_COLUMNS,
    SCORES_FILE,
    ScoresFile,
    set_aside,
)
from workers.recording.tensorboard import TensorBoardFile
from workers.rl.evaluate.vector_evaluator import share_reaching

HISTORY_FILE: Final = "history.jsonl"
SUCCESS_RATE: Final = "success_rate"
"""Column of `scores.txt`: share of an evaluation's returns that are at least the threshold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSettings:
    """What is recorded, and where."""

    outdir: Path
    logger: logging.Logger
    agent_statistics: tuple[tuple[str, object], ...]
    """Of an agent like those that train: their names are the columns."""
    evaluates: bool
    tensorboard: bool
    threshold: float
    start: int
    """Env_step at which training begins; what was recorded of later ones is taken back."""
    fresh: bool
    """Whether records of an earlier training are none of this one."""


class AsyncRecords:
    """Writes what the processes tell.

    Args:
        settings: What, and where.
        stack: Closes the files.
    """

    def __init__(self, settings: RecordSettings, stack: ExitStack) -> None:
        outdir, start = settings.outdir, settings.start
        if settings.fresh:
            for name in (SCORES_FILE, EPISODES_FILE, HISTORY_FILE):
                set_aside(outdir / name)
        self.snapshot: str | None = None
        """The last snapshot that ends a run."""
        self._settings = settings
        self._told: Evaluated | EpisodesEnded | None = None
        self._log = LogRecorder(
            settings.logger, os.fspath(outdir), self._agent_statistics, per_episode=True
        )
        self._episodes = EpisodesFile(outdir / EPISODES_FILE, start)
        stack.callback(self._episodes.close)
        self._evaluations = EvaluationRecorder(
            self._agent_statistics, EpisodeCount(None), self._outputs(stack)
        )
        self._history = outdir / HISTORY_FILE
        if settings.evaluates:
            _keep_history(self._history, start)

    @property
    def best(self) -> float | None:
        """Best mean return of the evaluations that were kept."""
        return self._best

    def heard(self, index: int, message: object) -> None:
        """Writes what process `index` told."""
        match message:
            case EpisodesEnded():
                self._told = message
                self._episodes.tick(message.clock, message.episodes, ())
                if index == 0:
                    self._log.tick(message.clock, message.episodes, ())
            case Evaluated():
                self._told = message
                self._log.evaluation(message.clock, message.result, final=False)
                self._evaluations.evaluation(message.clock, message.result, final=False)
                with self._history.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(self._evaluations.history[-1], default=float) + "\n")
            case Saved():
                if message.reason not in {SnapshotReason.BEST, SnapshotReason.PERIODIC}:
                    self.snapshot = message.name
                self._settings.logger.info(
                    "process %s saved the agent to %s", index, self._settings.outdir / message.name
                )

    def statistics(self) -> list[tuple[str, object]]:
        """Returns the environment's statistics of the evaluation just told of, and its success
        rate.
        """
        assert isinstance(self._told, Evaluated)
        return [
            *self._told.env_statistics,
            (SUCCESS_RATE, share_reaching(self._told.result, self._settings.threshold)),
        ]

    def _agent_statistics(self) -> list[tuple[str, object]]:
        return list(self._told.agent_statistics) if self._told is not None else []

    def _outputs(self, stack: ExitStack) -> EvaluationOutputs | None:
        settings = self._settings
        self._best: float | None = None
        if not settings.evaluates:
            return None
        columns = [*BASIC_COLUMNS, *(name for name, _ in settings.agent_statistics)]
        scores = ScoresFile(settings.outdir / SCORES_FILE, columns, keep_until=settings.start)
        self._best = max(scores.column("mean"), default=None)
        tensorboard = None
        if settings.tensorboard:
            tensorboard = TensorBoardFile(
                settings.outdir, settings.start + 1 if settings.start else None
            )
            stack.callback(tensorboard.close)
        return EvaluationOutputs(
            evaluator=cast("ForeignEvaluator", self),
            scores=scores,
            tensorboard=tensorboard,
            hooks=(),
        )


def read_history(outdir: str | os.PathLike[str]) -> History:
    """Returns one dictionary per evaluation of a training by `train_agent_async`, in the order in
    which they were finished.

    Args:
        outdir: As it was given to `train_agent_async`.
    """
    path = Path(outdir) / HISTORY_FILE
    return _entries(path) if path.exists() else []


def _keep_history(path: Path, keep_until: int) -> None:
    kept = [
        entry for entry in (_entries(path) if path.exists() else []) if entry["step"] <= keep_until
    ]
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text("".join(json.dumps(entry) + "\n" for entry in kept), "utf-8")
    temporary.replace(path)


def _entries(path: Path) -> History:
    """Reads whole lines: what a killed process did not finish does not count."""
    return [
        json.loads(line)
        for line in path.read_text("utf-8").splitlines(keepends=True)
        if line.endswith("\n")
    ]

"""Record files of an asynchronous training, written by the caller's process alone."""

import json
import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, cast

from workers.core.types import SnapshotReason
from workers.entrypoints.async_training.async_call import AsyncCall
from workers.entrypoints.async_training.messages import (
    EpisodesMessage,
    EvaluationMessage,
    SnapshotMessage,
)
from workers.entrypoints.functional_parts.episodes_csv import EPISODES_FILE, EpisodesFile
from workers.entrypoints.functional_parts.evaluation_records import (
    EpisodeCount,
    EvaluationOutputs,
    EvaluationRecorder,
    History,
)
from workers.entrypoints.functional_parts.evaluator import ExternalAgentEvaluator
from workers.entrypoints.functional_parts.log_recorder import LogRecorder
from workers.entrypoints.functional_parts.scores_file import SCORES_FILE
from workers.entrypoints.table_files import complete_lines, rename_existing, replace_text
from workers.rl.evaluate.vector_evaluator import success_share

HISTORY_FILE: Final = "history.jsonl"
SUCCESS_RATE: Final = "success_rate"
"""Column of `scores.txt`: fraction of an evaluation's returns that reach the threshold."""


class AsyncRecords:
    """Writes the records of a training from the messages of its processes.

    Args:
        call: The arguments of the training.
        agent_statistics: Statistics of the caller's agent; their names become columns of
            `scores.txt`.
        start: Env_step at which training begins; records of later env_steps are removed.
        is_new_training: Whether to rename the record files of an earlier training before writing
            new ones.
        stack: Exit stack with which the files are closed.
    """

    def __init__(
        self,
        call: AsyncCall,
        agent_statistics: Sequence[tuple[str, object]],
        start: int,
        stack: ExitStack,
        *,
        is_new_training: bool,
    ) -> None:
        outdir = call.settings.outdir
        if is_new_training:
            for name in (SCORES_FILE, EPISODES_FILE, HISTORY_FILE):
                rename_existing(outdir / name)
        self.snapshot: str | None = None
        """Name of the newest snapshot that is neither the best nor a periodic one."""
        self._call = call
        self._message: EvaluationMessage | EpisodesMessage | None = None
        self._log = LogRecorder(
            call.logger, os.fspath(outdir), self._agent_statistics, logs_episodes=True
        )
        self._episodes = EpisodesFile(outdir / EPISODES_FILE, start)
        stack.callback(self._episodes.close)
        self._history = outdir / HISTORY_FILE
        outputs = None
        if call.settings.evaluation is not None:
            outputs = EvaluationOutputs.open(
                outdir,
                cast("ExternalAgentEvaluator", self),
                agent_statistics,
                start,
                stack,
                writes_events=call.tensorboard,
            )
            kept = [entry for entry in _entries(self._history) if entry["step"] <= start]
            replace_text(self._history, "".join(json.dumps(entry) + "\n" for entry in kept))
        self.best = outputs.best if outputs else None
        """Best mean return of the evaluations up to `start`; `None` if there are none."""
        self._evaluations = EvaluationRecorder(self._agent_statistics, EpisodeCount(None), outputs)

    def receive(self, index: int, message: object) -> None:
        """Records a message that the process `index` sent."""
        match message:
            case EpisodesMessage():
                self._message = message
                self._episodes.record_iteration(message.clock, message.episodes, ())
                if index == 0:
                    self._log.record_iteration(message.clock, message.episodes, ())
            case EvaluationMessage():
                self._message = message
                self._log.record_evaluation(message.clock, message.result, is_final=False)
                self._evaluations.record_evaluation(message.clock, message.result, is_final=False)
                with self._history.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(self._evaluations.history[-1], default=float) + "\n")
            case SnapshotMessage():
                if message.reason not in {SnapshotReason.BEST, SnapshotReason.PERIODIC}:
                    self.snapshot = message.name
                self._call.logger.info(
                    "process %s saved the agent to %s",
                    index,
                    self._call.settings.outdir / message.name,
                )

    def statistics(self) -> list[tuple[str, object]]:
        """Returns the environment statistics and the success rate of the newest evaluation."""
        message, threshold = self._message, self._call.success_threshold
        assert isinstance(message, EvaluationMessage)
        rate = success_share(message.result, threshold)
        return [*message.env_statistics, (SUCCESS_RATE, rate)]

    def _agent_statistics(self) -> list[tuple[str, object]]:
        return list(self._message.agent_statistics) if self._message is not None else []


def read_history(outdir: str | os.PathLike[str]) -> History:
    """Returns one dictionary per evaluation, in the order in which the evaluations finished.

    Args:
        outdir: The `outdir` of a `train_agent_async` call.
    """
    return _entries(Path(outdir) / HISTORY_FILE)


def _entries(path: Path) -> History:
    return [json.loads(line) for line in complete_lines(path)]

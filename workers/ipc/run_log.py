"""Lines in a run's log beside the trainer's output: start, results and end of an attempt.

Text only, and no torch: the trainer and its supervisor both write here.
"""

import time
from collections.abc import Iterator, Sequence
from typing import Final

from palestra.contract.definition import RlDefinition
from palestra.contract.names import EvaluationSource
from palestra.contract.states import Outcome
from palestra.contract.telemetry import MAX_LOG_LINE, Evaluation, LogLines, SnapshotWritten
from palestra.contract.work_order import End, RunOrder, WorkOrder
from workers.ipc.bounded_text import shorten

_MAX_LINES: Final = 1_000
"""Largest number of lines of one record."""


def log_records(run_id: str, texts: Sequence[str]) -> Iterator[LogLines]:
    """Yields records that hold lines of Palestra itself."""
    for start in range(0, len(texts), _MAX_LINES):
        shown = tuple(
            shorten(text.replace("\0", "\ufffd"), MAX_LOG_LINE)
            for text in texts[start : start + _MAX_LINES]
        )
        yield LogLines(run=run_id, stream="palestra", wall=time.time(), lines=shown)


def start_line(order: WorkOrder, run: RunOrder, device: str) -> str:
    """Returns the line with which an attempt begins to work on a run."""
    definition, snapshot = order.definition, run.snapshot
    if isinstance(definition, RlDefinition):
        what = f"{definition.agent.name} on {definition.env.id}"
    else:
        what = f"{definition.estimator.name} on {definition.train_input.name}"
    threads = order.resources.cpu_threads
    where = (
        f"attempt {order.attempt_number} on {device} with {threads} "
        f"thread{'' if threads == 1 else 's'}"
    )
    origin = (
        "from the start"
        if snapshot is None
        else f"from snapshot {snapshot.snapshot_id} at env_step {snapshot.env_step:,}"
    )
    if run.follow is not None:
        origin = "each snapshot as it comes"
    return f"{order.schedule.value}: {what}, seed {run.seed}, {where}, {origin}"


def evaluation_line(record: Evaluation) -> str:
    """Returns the line about an evaluation."""
    kind = (
        "evaluation"
        if record.source is EvaluationSource.EVALUATION
        else f"evaluation ({record.source.value})"
    )
    of = "" if record.snapshot_id is None else f" of snapshot {record.snapshot_id}"
    if record.metrics:
        values = ", ".join(f"{name} {value:.4g}" for name, value in sorted(record.metrics.items()))
        return f"{kind}{of} at update {record.update:,}: {values}"
    spread = f", stdev {record.stdev:,.1f}" if record.episodes > 1 else ""
    found = f"mean {record.mean:,.1f}{spread}, min {record.min:,.1f}, max {record.max:,.1f}"
    return (
        f"{kind}{of} at env_step {record.env_step:,}: {found} over {record.episodes} "
        f"episode{'' if record.episodes == 1 else 's'}"
    )


def snapshot_line(record: SnapshotWritten) -> str:
    """Returns the line about a snapshot."""
    size = sum(file.size for file in record.files) / 2**20
    return (
        f"snapshot {record.snapshot_id} at env_step {record.env_step:,} ({record.reason.value}, "
        f"{size:,.1f} MiB)"
    )


def end_lines(end: End) -> list[str]:
    """Returns the lines about how an attempt ended for a run.

    They state the outcome, the error and its traceback.
    """
    at = f"at env_step {end.env_step:,}, update {end.update:,}, episode {end.episode:,}"
    failure = end.failure
    head = f"{end.outcome.value} ({end.cause.value}) {at}"
    if failure is None:
        return [head]
    return [f"{head}: {failure.message}", *(failure.traceback or "").splitlines()]


def is_recorded(end: End) -> bool:
    """Whether an attempt's end is logged; the server refuses records of a stale attempt."""
    return end.outcome is not Outcome.LOST

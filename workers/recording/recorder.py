"""Converts the events of the training loop to telemetry records and writes them to the spool.

The loop's calls only append to lists; a `WriterThread` empties the lists four times a second. Owns
the windows, the rows not yet written and the summary of the current epoch. Never waits for the
network, and writes to the disk only in `flush`, in `close` and in the thread.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, SupportsFloat, TypeVar

from palestra.contract.names import EvaluationSource
from palestra.contract.telemetry import (
    MAX_COLUMN,
    MAX_EVALUATION_RETURNS,
    MAX_SERIES_PER_RUN,
    Episodes,
    EpochStatsRecord,
    Evaluation,
    Note,
    Points,
    RunRecord,
    Table,
)
from workers.core.protocols import ClockView
from workers.core.types import EpisodeEnd, EvaluationResult, LearnReport, StateTree
from workers.recording.metric_windows import LearnWindow, means
from workers.recording.writer_thread import WriterThread

LAST_EPISODES: Final = 1_000
"""Largest number of episodes, the newest ones, in the summary of an epoch."""


_AXES: Final = ("env_step", "update", "episode", "wall")
_MILLISECONDS: Final = 3
"""Decimals of a time in seconds."""

_Row = TypeVar("_Row")
_PointRow = tuple[str, int, int, int, float, SupportsFloat]
_WindowRow = tuple[Any, int, int, int, float]
_EpisodeRow = tuple[int, int, int, int, float, float, int, bool]


class Sink(Protocol):
    """Destination of records, such as `palestra.telemetry.spool.SpoolWriter`."""

    def append(self, records: list[RunRecord]) -> int:
        """Appends records durably, all in one write."""


class SharedSink:
    """A thread-safe sink for the recorders of several runs.

    Args:
        sink: Sink to which the records are appended under a lock.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._lock = threading.Lock()

    def append(self, records: list[RunRecord]) -> int:
        """Appends records durably, in one write."""
        with self._lock:
            return self._sink.append(records)


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """The properties of the run that the recorder needs."""

    run_id: str
    report_names: tuple[str, ...]
    """Series of the agent's learn reports."""
    metrics: Callable[[], Mapping[str, float]]
    """Returns gauges by series name; called when a window closes."""
    window_env_steps: int


class SpoolRecorder:
    """Records the training loop of one run as telemetry.

    Args:
        run: ID, series and metrics of the run.
        sink: Destination of the records; called under a lock of this recorder.
        wall: Returns the seconds since the epoch.
        writer: Background thread that writes the records; `None` creates one for this recorder.
    """

    def __init__(
        self,
        run: RecordedRun,
        sink: Sink,
        wall: Callable[[], float] = time.time,
        writer: WriterThread | None = None,
    ) -> None:
        self._run = run
        self._sink = sink
        self._wall = wall
        self._writer = writer or WriterThread()
        self._window = LearnWindow(run.report_names)
        self._window_end = run.window_env_steps
        self._epoch_episodes: list[tuple[float, int]] = []
        self._points: list[_PointRow] = []
        self._windows: list[_WindowRow] = []
        self._episodes: list[_EpisodeRow] = []
        self._others: list[RunRecord] = []
        self._writing = threading.Lock()
        self._failure: BaseException | None = None

    def start(self) -> None:
        """Starts writing in the background thread."""
        self._writer.add(self._write_in_background)

    def close(self) -> None:
        """Stops the background writing and writes the remaining records."""
        self._writer.remove(self._write_in_background)
        self._write()

    # The loop's calls

    def record_iteration(
        self,
        clock: ClockView,
        episodes: Sequence[tuple[int, EpisodeEnd]],
        reports: Sequence[LearnReport],
    ) -> None:
        """Records the episodes and updates of one iteration."""
        if reports:
            self._window.add(reports)
        if episodes:
            self._add_episodes(clock, episodes)
        if clock.env_steps >= self._window_end:
            self._close_window(clock)

    def record_point(self, clock: ClockView, series: str, value: SupportsFloat) -> None:
        """Records one value of a series by itself.

        A tensor is read later, by the writing thread.
        """
        self._points.append(
            (series, clock.env_steps, clock.updates, clock.episodes, self._wall(), value)
        )

    def record_evaluation(
        self, clock: ClockView, result: EvaluationResult, *, is_final: bool
    ) -> None:
        """Records an evaluation during training."""
        if len(result.returns) > MAX_EVALUATION_RETURNS:
            message = (
                f"The returns of {len(result.returns)} evaluation episodes at env_step "
                f"{clock.env_steps}"
            )
            self.record_note("evaluation_returns_dropped", f"{message} do not fit one record.")
        sources = (EvaluationSource.EVALUATION, EvaluationSource.STOCHASTIC)
        for record in evaluation_records(
            self._run.run_id, clock, result, self._wall(), sources, final=is_final
        ):
            self.emit(record)

    def record_epoch(self, clock: ClockView) -> None:
        """Records the statistics of the epoch that ended."""
        summary = (
            tuple(
                {"episode_return": value, "episode_length": float(length)}
                for value, length in self._epoch_episodes
            )
            or None
        )
        self._epoch_episodes.clear()
        self.emit(
            EpochStatsRecord(
                run=self._run.run_id,
                total_epoch=max(0, clock.epochs - 1),
                total_itr=clock.iterations,
                total_env_steps=clock.env_steps,
                last_episode=summary,
                update=clock.updates,
                episode=clock.episodes,
                wall=self._wall(),
            )
        )

    def record_note(self, code: str, message: str) -> None:
        """Records a fact about the attempt."""
        self.emit(Note(run=self._run.run_id, wall=self._wall(), code=code, message=message[:2_000]))

    def emit(self, record: RunRecord) -> None:
        """Keeps a complete record for the next write."""
        self._others.append(record)

    def flush(self) -> None:
        """Writes all records so far to the sink, without closing a window.

        Raises:
            OSError: If the sink fails, for example because the disk is full; the records are kept
                for the next write.
        """
        self._write()

    def state_dict(self) -> StateTree:
        """Returns the open window and the episodes of the current epoch."""
        return {
            "window": self._window.state_dict(),
            "window_end": self._window_end,
            "epoch_returns": [value for value, _ in self._epoch_episodes],
            "epoch_lengths": [length for _, length in self._epoch_episodes],
        }

    def load_state_dict(self, state: StateTree) -> None:
        """Restores the open window and the episodes of the current epoch."""
        self._window.load_state_dict(state["window"])
        self._window_end = state["window_end"]
        self._epoch_episodes = list(
            zip(state["epoch_returns"], state["epoch_lengths"], strict=True)
        )

    # Private

    def _add_episodes(self, clock: ClockView, episodes: Sequence[tuple[int, EpisodeEnd]]) -> None:
        number, updates, wall = clock.episodes - len(episodes), clock.updates, self._wall()
        for env_step, end in episodes:
            number += 1
            row = (
                end.env_index,
                env_step,
                updates,
                number,
                wall,
                end.episode_return,
                end.episode_length,
                end.terminated,
            )
            self._episodes.append(row)
            self._epoch_episodes.append((end.episode_return, end.episode_length))
        del self._epoch_episodes[:-LAST_EPISODES]

    def _close_window(self, clock: ClockView) -> None:
        if self._failure is not None:
            raise self._failure
        length = self._run.window_env_steps
        self._window_end = (clock.env_steps // length + 1) * length
        values = self._window.close()
        if values is not None:
            self._windows.append(
                (values, clock.env_steps, clock.updates, clock.episodes, self._wall())
            )
        for series, gauge in self._run.metrics().items():
            self.record_point(clock, series, gauge)

    def _write_in_background(self) -> None:
        """Writes in the background; an error is raised at the end of the next window."""
        if self._failure is None:
            try:
                self._write()
            # Other recorders share the thread, so it must not end; `_close_window` raises this.
            except Exception as error:  # noqa: BLE001
                self._failure = error

    def _write(self) -> None:
        with self._writing:
            taken = _UnwrittenRows(
                *(
                    _take(rows)
                    for rows in (self._windows, self._points, self._episodes, self._others)
                )
            )
            records = taken.records(self._run)
            if not records:
                return
            try:
                self._sink.append(records)
            except OSError:
                self._windows[:0], self._points[:0], self._episodes[:0], self._others[:0] = taken
                raise


class _UnwrittenRows(NamedTuple):
    """The rows and records that the loop recorded since the last write."""

    windows: list[_WindowRow]
    points: list[_PointRow]
    episodes: list[_EpisodeRow]
    others: list[RunRecord]

    def records(self, run: RecordedRun) -> list[RunRecord]:
        """Converts the rows to records.

        Reads tensors, so that the writing thread and not the loop waits for the device.
        """
        rows: list[_PointRow] = []
        for (_, env_step, update, episode, wall), averages in zip(
            self.windows, means([window[0] for window in self.windows]), strict=True
        ):
            rows += [
                (name, env_step, update, episode, wall, mean)
                for name, mean in zip(run.report_names, averages, strict=True)
            ]
        return [
            *_points_records(run.run_id, rows + self.points),
            *_episodes_records(run.run_id, self.episodes),
            *self.others,
        ]


def _take(rows: list[_Row]) -> list[_Row]:
    """Removes and returns the current items of a list to which another thread may append."""
    taken = rows[:]
    del rows[: len(taken)]
    return taken


def evaluation_records(
    run_id: str,
    clock: ClockView,
    result: EvaluationResult,
    wall: float,
    sources: Sequence[EvaluationSource],
    **marks: Any,
) -> list[Evaluation]:
    """Returns the record of an evaluation, and that of drawn actions if both were evaluated.

    Args:
        run_id: Run.
        clock: Counters of the evaluated state.
        result: The result.
        wall: Seconds since the epoch.
        sources: Source of the result, then of that of drawn actions.
        **marks: `final` and `snapshot_id`.
    """
    results = [result] if result.drawn is None else [result, result.drawn]
    return [
        evaluation_record(run_id, clock, one, wall, source=source, **marks)
        for one, source in zip(results, sources, strict=False)
    ]


def evaluation_record(
    run_id: str, clock: ClockView, result: EvaluationResult, wall: float, **marks: Any
) -> Evaluation:
    """Returns the record of an evaluation; `marks` are `final` and `snapshot_id`.

    The list of returns is empty if it is longer than a record may hold; the statistics cover all
    returns in any case.
    """
    returns = result.returns if len(result.returns) <= MAX_EVALUATION_RETURNS else ()
    return Evaluation(
        run=run_id,
        env_step=clock.env_steps,
        update=clock.updates,
        episode=clock.episodes,
        wall=wall,
        episodes=len(result.returns),
        mean=result.mean,
        median=result.median,
        stdev=result.stdev,
        min=result.min,
        max=result.max,
        length_mean=result.length_mean,
        length_median=result.length_median,
        length_stdev=result.length_stdev,
        length_min=result.length_min,
        length_max=result.length_max,
        returns=returns,
        success_rate=result.success_rate,
        cut_episodes=result.cut_episodes,
        metrics=dict(result.metrics),
        seed=result.seed,
        **marks,
    )


def _points_records(run_id: str, rows: list[_PointRow]) -> list[RunRecord]:
    """Returns the records of all series; those with the same positions share a table.

    Series are in order of their first point.
    """
    by_series: dict[str, list[_PointRow]] = {}
    for row in rows:
        by_series.setdefault(row[0], []).append(row)
    by_positions: dict[tuple[Any, ...], dict[str, tuple[float, ...]]] = {}
    for series, points in by_series.items():
        for piece in _split_rows(points):
            _, env_step, update, episode, wall, values = zip(*piece, strict=True)
            positions = (env_step, update, episode, _round_times(wall))
            columns = by_positions.setdefault(positions, {})
            columns[series] = tuple(float(one) for one in values)
    return [
        _points_record(run_id, dict(zip(_AXES, positions, strict=True)), dict(columns))
        for positions, every in by_positions.items()
        for columns in _split_series(every)
    ]


def _points_record(
    run_id: str, positions: dict[str, Any], columns: dict[str, tuple[float, ...]]
) -> RunRecord:
    if len(columns) > 1:
        return Table(run=run_id, **positions, series=columns)
    ((series, value),) = columns.items()
    return Points(run=run_id, **positions, series=series, value=value)


def _split_series(
    columns: dict[str, tuple[float, ...]],
) -> Iterator[list[tuple[str, tuple[float, ...]]]]:
    """Yields the series in groups that one record may hold."""
    every = list(columns.items())
    for begin in range(0, len(every), MAX_SERIES_PER_RUN):
        yield every[begin : begin + MAX_SERIES_PER_RUN]


def _episodes_records(run_id: str, rows: list[_EpisodeRow]) -> list[RunRecord]:
    return [_episodes_record(run_id, piece) for piece in _split_rows(rows)]


def _episodes_record(run_id: str, rows: list[_EpisodeRow]) -> Episodes:
    env_index, env_step, update, episode, wall, episode_return, length, terminated = zip(
        *rows, strict=True
    )
    return Episodes(
        run=run_id,
        env_index=env_index,
        env_step=env_step,
        update=update,
        episode=episode,
        wall=_round_times(wall),
        episode_return=episode_return,
        episode_length=length,
        terminated=terminated,
    )


def _round_times(wall: Sequence[float]) -> tuple[float, ...]:
    """Returns times in milliseconds: these take a byte of the database in place of seven."""
    return tuple(round(one, _MILLISECONDS) for one in wall)


def _split_rows(rows: list[_Row]) -> Iterator[list[_Row]]:
    """Yields the rows in chunks of at most `MAX_COLUMN`, the limit of one record."""
    for begin in range(0, len(rows), MAX_COLUMN):
        yield rows[begin : begin + MAX_COLUMN]

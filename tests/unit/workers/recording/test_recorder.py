"""The recorder: content and time of its records, and that none is lost."""

import errno
import itertools
import json
import threading
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from palestra.contract.names import new_id
from palestra.contract.telemetry import MAX_COLUMN, MAX_EVALUATION_RETURNS, RunRecord
from palestra.telemetry.spool import SpoolReader, SpoolWriter
from tests.support.records_of_tables import split_table
from tests.support.waiting import PATIENCE_SECONDS, wait_for
from workers.core.types import EpisodeEnd, LearnReport
from workers.engine.clock import Clock
from workers.recording.metric_windows import window_length
from workers.recording.progress_file import ProgressFile
from workers.recording.recorder import RecordedRun, SpoolRecorder
from workers.recording.writer_thread import WriterThread
from workers.rl.evaluate.vector_evaluator import summarise

RUN = RecordedRun(new_id("run"), ("loss/td", "q/mean"), lambda: {"explore/epsilon": 0.5}, 10)


class Sink:
    """Keeps records; may raise as a full disk does for a while."""

    def __init__(self) -> None:
        self.records: list[Any] = []
        self.full = False
        self.written = threading.Event()
        self.refused = 0
        self.writes = 0
        self.threads: set[int] = set()

    def append(self, records: Iterable[RunRecord]) -> int:
        if self.full:
            self.refused += 1
            raise OSError(errno.ENOSPC, "full")
        self.records += records
        self.writes += 1
        self.threads.add(threading.get_ident())
        self.written.set()
        return len(self.records)


@pytest.fixture
def clock() -> Clock:
    return Clock(lambda: 0.0)


def list_series(sink: Sink, name: str) -> list[tuple[int, float]]:
    every = (one for found in sink.records for one in split_table(found.model_dump()))
    records = [one for one in every if one["type"] == "points" and one["series"] == name]
    return [pair for one in records for pair in zip(one["env_step"], one["value"], strict=True)]


def test_columns_above_the_limit_become_several_records(tmp_path: Path, clock: Clock) -> None:
    """Writes more episodes and points at once than a column may hold, through a real spool."""
    count = 2 * MAX_COLUMN + 3
    spool = SpoolWriter(tmp_path)
    recorder = SpoolRecorder(RUN, spool)
    for number in range(count):
        recorder.record_point(clock, "value", float(number))
    clock.env_steps = clock.episodes = count
    recorder.record_iteration(
        clock,
        [(number + 1, EpisodeEnd(0, 0, float(number), 1, True)) for number in range(count)],
        (),
    )
    recorder.flush()
    records = [json.loads(payload) for payload in read_all(SpoolReader(tmp_path))]
    returns = [
        value
        for record in records
        if record["type"] == "episodes"
        for value in record["episode_return"]
    ]
    numbers = [
        value for record in records if record["type"] == "episodes" for value in record["episode"]
    ]
    points = [
        value for record in records if record.get("series") == "value" for value in record["value"]
    ]
    assert returns == points == list(range(count))
    assert numbers == list(range(1, count + 1))


def test_an_evaluation_with_too_many_episodes_keeps_its_statistics(
    clock: Clock,
) -> None:
    """Its list of returns is longer than a column may be."""
    sink = Sink()
    recorder = SpoolRecorder(RUN, sink)
    recorder.record_evaluation(
        clock,
        summarise([1.0] * (MAX_EVALUATION_RETURNS + 1), [2] * (MAX_EVALUATION_RETURNS + 1), 0),
        is_final=True,
    )
    recorder.flush()
    note, evaluation = sink.records
    assert (note.code, evaluation.returns) == ("evaluation_returns_dropped", ())
    assert (evaluation.episodes, evaluation.mean, evaluation.length_mean) == (
        MAX_EVALUATION_RETURNS + 1,
        1.0,
        2.0,
    )


def read_all(reader: SpoolReader) -> Iterator[bytes]:
    while payloads := reader.read(5_000).payloads:
        yield from payloads


def tick_recorder(
    recorder: SpoolRecorder, clock: Clock, env_steps: int, *values: Any, ended: Any = ()
) -> None:
    clock.env_steps = env_steps
    recorder.record_iteration(clock, ended, [LearnReport(1, value) for value in values])


def close_windows(recorder: SpoolRecorder, clock: Clock) -> None:
    """Closes windows until the recorder raises the error of its writer thread."""
    steps = itertools.count(RUN.window_env_steps, RUN.window_env_steps)
    wait_for(lambda: tick_recorder(recorder, clock, next(steps)), "the error is raised")


def test_a_window_is_a_mean_over_env_steps(clock: Clock) -> None:
    sink = Sink()
    recorder = SpoolRecorder(RUN, sink)
    tick_recorder(recorder, clock, 4, torch.tensor([1.0, 10.0]), [3.0, 20.0])
    recorder.flush()
    assert sink.records == []
    tick_recorder(recorder, clock, 11, np.array([8.0, 30.0]))
    tick_recorder(recorder, clock, 20)
    recorder.flush()
    assert list_series(sink, "loss/td") == [(11, 4.0)]
    assert list_series(sink, "q/mean") == [(11, 20.0)]
    assert list_series(sink, "explore/epsilon") == [(11, 0.5), (20, 0.5)]


def test_windows_that_are_written_together_stay_separate(clock: Clock) -> None:
    sink = Sink()
    recorder = SpoolRecorder(RUN, sink)
    tick_recorder(recorder, clock, 10, torch.tensor([1.0, 10.0]), torch.tensor([2.0, 20.0]))
    tick_recorder(recorder, clock, 20, torch.tensor([5.0, 50.0]))
    tick_recorder(recorder, clock, 30, [7.0, 70.0], torch.tensor([9.0, 80.0]), [11.0, 90.0])
    recorder.flush()
    assert list_series(sink, "loss/td") == [(10, 1.5), (20, 5.0), (30, 9.0)]
    assert list_series(sink, "q/mean") == [(10, 15.0), (20, 50.0), (30, 80.0)]


def test_tensors_of_a_window_are_freed_by_the_loops_thread(clock: Clock) -> None:
    """If the writer thread freed them, both threads would compete for the interpreter lock."""
    sink, values = Sink(), [torch.tensor([1.0, 10.0]), torch.tensor([4.0, 20.0])]
    left = [weakref.ref(value) for value in values]
    recorder = SpoolRecorder(RUN, sink)
    tick_recorder(recorder, clock, 10, *values)
    values.clear()
    assert [ref() for ref in left] == [None, None]
    recorder.flush()
    assert list_series(sink, "loss/td") == [(10, 2.5)]


def test_an_open_window_is_restored_from_a_snapshot_bit_by_bit(clock: Clock) -> None:
    values = [torch.tensor([0.1 * index, -(0.7**index)]) for index in range(9)]
    straight, first, second = Sink(), Sink(), Sink()
    recorder = SpoolRecorder(RUN, straight)
    for index, value in enumerate(values):
        tick_recorder(recorder, clock, index + 2, value)
    recorder.flush()
    before, after = SpoolRecorder(RUN, first), SpoolRecorder(RUN, second)
    for index, value in enumerate(values[:4]):
        tick_recorder(before, clock, index + 2, value)
    after.load_state_dict(before.state_dict())
    for index, value in enumerate(values[4:]):
        tick_recorder(after, clock, index + 6, value)
    before.flush()
    after.flush()
    assert first.records == []
    assert list_series(second, "loss/td") == list_series(straight, "loss/td") != []
    assert list_series(second, "q/mean") == list_series(straight, "q/mean")


def test_an_open_window_of_other_series_is_dropped(clock: Clock) -> None:
    sink = Sink()
    recorder = SpoolRecorder(RUN, sink)
    recorder.load_state_dict(
        {**recorder.state_dict(), "window": {"rows": np.ones((2, len(RUN.report_names) + 1))}}
    )
    tick_recorder(recorder, clock, 11, torch.tensor([0.5, 0.25]))
    recorder.flush()
    assert [value for _, value in list_series(sink, "loss/td")] == [0.5]


def test_episodes_are_numbered_within_the_run(clock: Clock) -> None:
    sink = Sink()
    recorder = SpoolRecorder(RUN, sink)
    clock.episodes, clock.updates = 7, 3
    ended = [
        (4, EpisodeEnd(1, 0, 2.0, 4, terminated=True)),
        (6, EpisodeEnd(0, 1, 3.0, 6, terminated=False)),
    ]
    tick_recorder(recorder, clock, 8, ended=ended)
    recorder.flush()
    record = sink.records[0]
    assert (record.episode, record.env_step, record.env_index) == ((6, 7), (4, 6), (1, 0))
    assert (record.episode_return, record.episode_length, record.terminated) == (
        (2.0, 3.0),
        (4, 6),
        (True, False),
    )


def test_an_epoch_sums_up_its_own_episodes(clock: Clock) -> None:
    sink = Sink()
    recorder = SpoolRecorder(RUN, sink)
    clock.episodes, clock.epochs, clock.iterations = 1, 1, 9
    tick_recorder(recorder, clock, 8, ended=[(8, EpisodeEnd(0, 0, 2.0, 8, terminated=True))])
    recorder.record_epoch(clock)
    clock.epochs = 2
    recorder.record_epoch(clock)
    recorder.flush()
    first, second = [record for record in sink.records if record.type == "experiment_stats"]
    assert (first.total_epoch, first.total_itr, first.total_env_steps) == (0, 9, 8)
    assert first.last_episode == ({"episode_return": 2.0, "episode_length": 8.0},)
    assert (second.total_epoch, second.last_episode) == (1, None)


def test_an_evaluation_keeps_what_is_not_finite(clock: Clock) -> None:
    sink = Sink()
    recorder = SpoolRecorder(RUN, sink)
    recorder.record_evaluation(clock, summarise([1.0, float("inf")], [2, 3], 5), is_final=True)
    recorder.flush()
    document = json.loads(sink.records[0].model_dump_json())
    assert (document["max"], document["final"], document["episodes"], document["seed"]) == (
        "Infinity",
        True,
        2,
        5,
    )


def test_records_that_a_full_disk_refused_are_written_later_and_in_order(clock: Clock) -> None:
    sink = Sink()
    recorder = SpoolRecorder(RUN, sink)
    recorder.record_point(clock, "a", 1.0)
    sink.full = True
    with pytest.raises(OSError, match="full"):
        recorder.flush()
    recorder.record_point(clock, "a", torch.tensor(2.0))
    sink.full = False
    recorder.flush()
    assert list_series(sink, "a") == [(0, 1.0), (0, 2.0)]


def test_an_error_of_the_writer_thread_is_raised_in_the_loop(clock: Clock) -> None:
    sink = Sink()
    sink.full = True
    recorder = SpoolRecorder(RUN, sink)
    recorder.record_point(clock, "a", 1.0)
    recorder.start()
    wait_for(lambda: sink.refused, "the sink refuses")
    with pytest.raises(OSError, match="full"):
        close_windows(recorder, clock)
    sink.full = False
    recorder.close()
    assert list_series(sink, "a") == [(0, 1.0)]


def test_the_recorders_of_a_pack_share_a_thread_and_one_that_fails_or_ends_leaves_it_to_the_others(
    clock: Clock,
) -> None:
    writer, sinks = WriterThread(), [Sink(), Sink(), Sink()]
    threads = threading.active_count()
    recorders = [SpoolRecorder(RUN, sink, writer=writer) for sink in sinks]
    sinks[0].full = True
    unreadable = SpoolRecorder(RUN, Sink(), writer=writer)
    unreadable.record_point(clock, "a", "no number")
    unreadable.start()
    for recorder in recorders:
        recorder.record_point(clock, "a", 1.0)
        recorder.start()
    assert threading.active_count() == threads + 1
    assert all(sink.written.wait(PATIENCE_SECONDS) for sink in sinks[1:])
    assert sinks[1].threads == sinks[2].threads != {threading.get_ident()}
    with pytest.raises(ValueError, match="no number"):
        close_windows(unreadable, Clock(lambda: 0.0))
    unreadable.close()
    recorders[1].record_point(clock, "a", 2.0)
    recorders[1].close()
    assert list_series(sinks[1], "a") == [(0, 1.0), (0, 2.0)]
    sinks[2].written.clear()
    recorders[2].record_point(clock, "a", 2.0)
    assert sinks[2].written.wait(PATIENCE_SECONDS)
    recorders[2].close()
    sinks[0].full = False
    recorders[0].close()
    assert list_series(sinks[0], "a") == [(0, 1.0)]
    assert threading.active_count() == threads
    recorders[0].start()
    recorders[0].record_point(clock, "a", 2.0)
    recorders[0].close()
    assert list_series(sinks[0], "a") == [(0, 1.0), (0, 2.0)]
    assert threading.active_count() == threads


def test_the_writer_thread_writes_to_the_spool_without_a_flush(
    tmp_path: Path, clock: Clock
) -> None:
    with SpoolWriter(tmp_path) as spool:
        sink = Sink()
        recorder = SpoolRecorder(RUN, sink)
        recorder.start()
        recorder.record_point(clock, "a", 1.0)
        assert sink.written.wait(PATIENCE_SECONDS)
        recorder.close()
        spool.append(sink.records)
    assert json.loads(SpoolReader(tmp_path).read().payloads[0])["series"] == "a"


class SteppedEvent(threading.Event):
    """An event whose waits end when a test says that their seconds have passed."""

    def __init__(self) -> None:
        super().__init__()
        self.lapses = threading.Semaphore(0)
        self.seconds: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.seconds.append(timeout)
        self.lapses.acquire()
        return self.is_set()

    def set(self) -> None:
        super().set()
        self.lapses.release()


def test_a_loop_that_records_all_the_time_is_written_a_few_times_a_second(clock: Clock) -> None:
    sink, stop = Sink(), SteppedEvent()
    recorder = SpoolRecorder(RUN, sink, writer=WriterThread(stop))
    recorder.start()
    for write in range(1, 5):
        for _ in range(100):
            recorder.record_point(clock, "a", 1.0)
        assert sink.writes == write - 1
        stop.lapses.release()
        wait_for(lambda n=write: sink.writes == n, "a write")
        assert len(list_series(sink, "a")) == 100 * write
    recorder.close()
    assert sink.writes == 4
    assert all(0.2 <= seconds <= 0.5 for seconds in stop.seconds)


@pytest.mark.parametrize(
    ("budget", "window"),
    [(None, 500), (1, 1), (2_000, 1), (3_000, 2), (150_000, 100), (1_000_000, 500), (10**9, 1_000)],
)
def test_the_window_follows_from_the_budget(budget: int | None, window: int) -> None:
    assert window_length(budget) == window


def test_progress_is_a_small_file(tmp_path: Path, clock: Clock) -> None:
    progress = ProgressFile(tmp_path / "progress.json", lambda: {"env_step": clock.env_steps})
    progress.start()
    clock.env_steps = 5
    progress.close()
    assert json.loads((tmp_path / "progress.json").read_text()) == {"env_step": 5}
    assert [path.name for path in tmp_path.iterdir()] == ["progress.json"]

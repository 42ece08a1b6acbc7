"""The files that the training functions write."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.acceptance.functional_kit import RecordingLogger
from tests.support.trainer_fakes import FakeRecorder
from workers.core.types import EpisodeEnd
from workers.entrypoints.functional_parts.episodes_csv import EpisodesFile
from workers.entrypoints.functional_parts.log_recorder import LogRecorder
from workers.entrypoints.functional_parts.recorder_group import RecorderGroup
from workers.entrypoints.functional_parts.scores_file import ScoresFile
from workers.entrypoints.table_files import rename_existing


def make_clock(env_steps: int, episodes: int = 0) -> Any:
    return SimpleNamespace(env_steps=env_steps, episodes=episodes, updates=0)


def make_episode_end(value: float, length: int = 3) -> EpisodeEnd:
    return EpisodeEnd(0, 0, value, length, terminated=True)


def test_scores_have_a_header_before_their_first_row(tmp_path: Path) -> None:
    ScoresFile(tmp_path / "scores.txt", ["steps", "mean"], keep_until=0)
    assert (tmp_path / "scores.txt").read_text() == "steps\tmean\n"


def test_a_new_column_shifts_nothing(tmp_path: Path) -> None:
    path = tmp_path / "scores.txt"
    scores = ScoresFile(path, ["steps", "mean"], keep_until=0)
    scores.append({"steps": 1, "mean": 0.5})
    scores.append({"steps": 2, "mean": 1.5, "entropy": 3.0})
    scores.append({"steps": 3, "entropy": 4.0})
    assert path.read_text() == "steps\tmean\tentropy\n1\t0.5\t\n2\t1.5\t3.0\n3\t\t4.0\n"
    assert scores.column("mean") == [0.5, 1.5]


def test_rows_after_the_snapshot_and_incomplete_rows_are_removed(tmp_path: Path) -> None:
    path = tmp_path / "scores.txt"
    path.write_text("steps\tmean\n1\t1.0\n3\t3.0\n2\n2\t2")
    ScoresFile(path, ["steps", "mean"], keep_until=2)
    assert path.read_text() == "steps\tmean\n1\t1.0\n"


def test_tabs_and_newlines_in_values_do_not_break_the_table(tmp_path: Path) -> None:
    path = tmp_path / "scores.txt"
    ScoresFile(path, ["steps"], keep_until=0).append({"steps": "1\t2\n3"})
    assert path.read_text() == "steps\n1 2 3\n"


def test_a_failed_rewrite_does_not_change_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "scores.txt"
    scores = ScoresFile(path, ["steps"], keep_until=0)

    def raise_disk_full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", raise_disk_full)
    with pytest.raises(OSError, match="No space"):
        scores.append({"steps": 1, "new": 2})
    assert path.read_text() == "steps\n"


def test_files_are_set_aside_under_free_names(tmp_path: Path) -> None:
    path = tmp_path / "scores.txt"
    assert rename_existing(path) is None
    for number in (1, 2):
        path.write_text(str(number))
        assert rename_existing(path) == tmp_path / f"scores.{number}.txt"
    assert (tmp_path / "scores.1.txt").read_text() == "1"


def test_episodes_are_written_at_once_and_kept_by_their_step(tmp_path: Path) -> None:
    path = tmp_path / "episodes.csv"
    file = EpisodesFile(path, 0, wall=lambda: 9.5)
    file.record_iteration(
        make_clock(6, 2), [(3, make_episode_end(1.5)), (6, make_episode_end(2.5))], []
    )
    assert (
        path.read_text()
        == "step,episode,env,return,length,terminated,wall\n3,1,0,1.5,3,1,9.5\n6,2,0,2.5,3,1,9.5\n"
    )
    file.close()
    with path.open("a") as torn:
        torn.write("4,3,0,1")
    EpisodesFile(path, 5, wall=lambda: 9.5).close()
    assert path.read_text().splitlines()[1:] == ["3,1,0,1.5,3,1,9.5"]


def test_a_group_fans_out_in_order_and_keeps_state_by_name() -> None:
    trace: list[Any] = []
    one, other = FakeRecorder(trace), FakeRecorder(trace)
    group = RecorderGroup({"one": one, "other": other})
    group.record_iteration(make_clock(1), [(1, make_episode_end(1.0))], [])
    assert one.rows == other.rows == [("episode", 1, 0)]
    state = group.state_dict()
    assert set(state) == {"one", "other"}
    RecorderGroup({"new": FakeRecorder(trace), "one": one}).load_state_dict(state)


def test_an_interval_that_is_jumped_over_is_logged_once() -> None:
    log = RecordingLogger()
    lines = LogRecorder(log.logger, "out", list, interval=2, window=2)
    lines.begin(0)
    for step in (1, 7, 8):
        lines.record_iteration(make_clock(step), [(step, make_episode_end(float(step)))], [])
    assert [line.split()[1] for line in log.lines] == ["step:7", "step:8"]
    assert "average_R:7.5" in log.lines[-1]
    with pytest.raises(ValueError, match="log_interval"):
        LogRecorder(log.logger, "out", list, interval=0)

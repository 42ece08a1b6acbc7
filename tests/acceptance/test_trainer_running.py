"""Rows of garage's Trainer about epochs, train and resume; G23 to G38 for both kinds of trainer."""

import builtins
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.acceptance.trainer_kit import Kind, make_trainer, read_progress
from tests.support.garage_kit import CountingAlgo, CountingEnv, list_snapshot_names
from workers.entrypoints.trainer import ExperimentStats, NotSetupError, TrainArgs, Trainer
from workers.entrypoints.trainer_parts import episode_plots as trainer_plots
from workers.entrypoints.trainer_parts.samplers import LocalSampler
from workers.snapshot import SnapshotConfig
from workers.snapshot.snapshot_directory import read_snapshot


def read_saved_state(path: Path, name: str) -> dict[str, Any]:
    return read_snapshot(path / name).state


def test_G1_experiment_stats(tmp_path: Path) -> None:
    stats = ExperimentStats(
        total_epoch=3, total_itr=7, total_env_steps=90, last_episode=[{"rewards": np.arange(3.0)}]
    )
    assert (stats.total_epoch, stats.total_itr, stats.total_env_steps) == (3, 7, 90)
    trainer, _ = make_trainer(Trainer, tmp_path)
    trainer.train(2, 10, store_episodes=True)
    second, _ = make_trainer(Trainer, tmp_path / "second")
    second.restore(tmp_path)
    assert (second.stats.total_epoch, second.stats.total_itr, second.stats.total_env_steps) == (
        1,
        2,
        20,
    )
    np.testing.assert_equal(second.stats.last_episode, trainer.stats.last_episode)
    assert len(second.stats.last_episode) == 2


def test_G2_train_args(tmp_path: Path) -> None:
    args = TrainArgs(
        n_epochs=4,
        batch_size=10,
        plot=False,
        store_episodes=True,
        pause_for_plot=True,
        start_epoch=2,
    )
    assert args == TrainArgs(4, 10, False, True, True, 2)
    trainer, _ = make_trainer(Trainer, tmp_path)
    trainer.train(3, 10)
    assert trainer.train_args.start_epoch == 0
    assert make_trainer(Trainer, tmp_path / "second")[0].restore(tmp_path).start_epoch == 3
    with pytest.raises(ValueError, match="n_epochs"):
        TrainArgs(-1, 10, False, False, False, 0)


def test_G3_snapshot_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for trainer in (Trainer(None), Trainer()):
        trainer.setup(CountingAlgo(CountingEnv()), None)
        trainer.train(1, 5)
    assert list_snapshot_names(tmp_path / "data/local/experiment") == ["params"]

    class Config:
        snapshot_dir, snapshot_mode, snapshot_gap = tmp_path, "sometimes", 1

    with pytest.raises(ValueError, match="snapshot_mode must be one of"):
        Trainer(Config())
    with pytest.raises(ValueError, match="snapshot_gap must be 1"):
        SnapshotConfig(tmp_path, "last", 2)
    with pytest.raises(TypeError, match="lacks snapshot_dir"):
        Trainer("data")


def test_G4_setup(tmp_path: Path) -> None:
    trainer = Trainer(SnapshotConfig(tmp_path))
    trainer.setup(CountingAlgo(None), None)
    assert trainer.train(1, 5) is not None
    assert trainer.get_env_copy() is None
    algo = CountingAlgo(CountingEnv())
    algo.policy.value = 40.0
    trainer.setup(algo, None)
    assert algo.policy.value == 40.0
    assert trainer.obtain_episodes(0, 5).agent_infos["value"][0] == 40.0


def test_G23_log_diagnostics(kind: Kind, tmp_path: Path) -> None:
    trainer, _ = make_trainer(kind, tmp_path)
    trainer.train(2, 10)
    table = read_progress(tmp_path)
    assert [row["TotalEnvSteps"] for row in table] == ["10", "20"]
    assert all(float(row["TotalTime"]) >= float(row["EpochTime"]) > 0 for row in table)
    assert all(float(row["StepsPerSecond"]) > 0 for row in table)
    assert sum(float(row["EpochTime"]) for row in table) <= float(table[1]["TotalTime"])
    with pytest.raises(NotSetupError):
        kind(SnapshotConfig(tmp_path)).log_diagnostics()


def test_G24_pause_for_plot(kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(builtins, "input", asked.append)
    trainer, _ = make_trainer(kind, tmp_path)
    trainer.train(2, 10, pause_for_plot=True)
    assert asked == []
    for stream in ("stdin", "stdout"):
        monkeypatch.setattr(getattr(sys, stream), "isatty", lambda: True, raising=False)
    trainer.train(2, 10)
    assert asked == []
    trainer.train(2, 10, pause_for_plot=True)
    assert len(asked) == 2
    monkeypatch.setattr(trainer_plots.multiprocessing, "parent_process", object)
    trainer.log_diagnostics(pause_for_plot=True)
    assert len(asked) == 2


def test_G25_train(kind: Kind, tmp_path: Path) -> None:
    with pytest.raises(NotSetupError, match="setup"):
        kind(SnapshotConfig(tmp_path)).train(1)
    trainer, algo = make_trainer(kind, tmp_path, env=CountingEnv(reward=2.0))
    assert trainer.train(3, 10) == 10.0
    assert algo.seen == [0, 1, 2]
    algo.returned = 77.0
    assert trainer.train(2, 10) == 77.0
    assert algo.seen == [0, 1, 2, 0, 1]
    assert trainer.step_itr == 5


def test_G26_n_epochs(kind: Kind, tmp_path: Path) -> None:
    trainer, algo = make_trainer(kind, tmp_path)
    assert trainer.train(0, 10) is None
    assert algo.seen == []
    assert list_snapshot_names(tmp_path) == []
    for wrong in (-1, 1.5, True):
        with pytest.raises(ValueError, match="n_epochs must be a whole number"):
            trainer.train(wrong)


def test_G27_batch_size(kind: Kind, tmp_path: Path) -> None:
    trainer, _ = make_trainer(kind, tmp_path)
    trainer.train(1, 11)
    assert trainer.total_env_steps == 15
    with pytest.raises(ValueError, match="no batch_size"):
        trainer.train(1)


def test_G28_plot(kind: Kind, tmp_path: Path) -> None:
    trainer, _ = make_trainer(kind, tmp_path)
    trainer.train(2, 10, plot=True)
    films = sorted((tmp_path / "plots").glob("*.mp4"))
    assert [film.name for film in films] == ["epoch_0.mp4", "epoch_1.mp4"]
    assert all(film.stat().st_size > 100 for film in films)
    for env, message in (
        (None, "plot=True films"),
        (CountingEnv(render_mode=None), "render_mode='rgb_array'"),
    ):
        trainer.setup(CountingAlgo(None), env)
        with pytest.raises(ValueError, match=message):
            trainer.train(1, 10, plot=True)


def test_G29_store_episodes(kind: Kind, tmp_path: Path) -> None:
    for store in (False, True):
        trainer, _ = make_trainer(kind, tmp_path / str(store))
        trainer.train(1, 10, store_episodes=store)
        kept = read_saved_state(tmp_path / str(store), "itr_0")["trainer"]["stats"]["last_episode"]
        assert (kept is not None) is store
    assert [len(episode["rewards"]) for episode in kept] == [5, 5]


def test_G30_pause_for_plot(kind: Kind, tmp_path: Path) -> None:
    trainer, _ = make_trainer(kind, tmp_path)
    trainer.train(1, 10, pause_for_plot=True)
    assert trainer.train_args.pause_for_plot is True
    assert make_trainer(kind, tmp_path / "second")[0].restore(tmp_path).pause_for_plot is True


def test_G31_step_epochs(kind: Kind, tmp_path: Path) -> None:
    trainer, algo = make_trainer(kind, tmp_path)
    trace: list[Any] = []

    def body(trainer: Any, epoch: int) -> None:
        table = read_progress(tmp_path) if (tmp_path / "progress.csv").exists() else []
        trace.append((epoch, trainer.step_itr, list_snapshot_names(tmp_path), len(table)))

    algo.body = body
    trainer.train(3, 10)
    assert trace == [(0, 1, [], 0), (1, 2, ["itr_0"], 1), (2, 3, ["itr_0", "itr_1"], 2)]
    assert list_snapshot_names(tmp_path) == ["itr_0", "itr_1", "itr_2"]
    assert len(read_progress(tmp_path)) == 3
    with pytest.raises(NotSetupError):
        next(kind(SnapshotConfig(tmp_path)).step_epochs())


def test_G32_step_itr_and_step_episode(kind: Kind, tmp_path: Path) -> None:
    trainer, algo = make_trainer(kind, tmp_path)

    def body(trainer: Any, epoch: int) -> None:
        trainer.step_itr += 10
        trainer.step_episode = [{"mine": np.array([epoch])}]

    algo.body = body
    trainer.train(2, 10, store_episodes=True)
    stats = read_saved_state(tmp_path, "itr_1")["trainer"]["stats"]
    assert (stats["total_itr"], stats["total_epoch"]) == (22, 1)
    assert stats["last_episode"][0]["mine"].tolist() == [1]


def test_G33_break(kind: Kind, tmp_path: Path) -> None:
    trainer, algo = make_trainer(kind, tmp_path)
    algo.body = lambda _, epoch: "break" if epoch == 2 else None
    trainer.train(5, 10)
    assert algo.seen == [0, 1, 2]
    assert list_snapshot_names(tmp_path) == ["itr_0", "itr_1", "itr_2"]
    assert len(read_progress(tmp_path)) == 3
    assert read_saved_state(tmp_path, "itr_2")["trainer"]["stats"]["total_itr"] == 3
    assert read_snapshot(tmp_path / "itr_2").manifest.stop == "requested"
    algo.body = lambda *_: None
    trainer.resume()
    assert algo.seen == [0, 1, 2, 3, 4]


def test_G34_resume(kind: Kind, tmp_path: Path) -> None:
    fresh, algo = make_trainer(kind, tmp_path / "second")
    with pytest.raises(NotSetupError, match="restore"):
        fresh.resume()
    make_trainer(kind, tmp_path)[0].train(2, 10)
    fresh.restore(tmp_path)
    fresh.resume(4)
    assert algo.seen == [0, 1, 2, 3]
    assert list_snapshot_names(tmp_path / "second") == ["itr_2", "itr_3"]


def test_G35_n_epochs(kind: Kind, tmp_path: Path) -> None:
    make_trainer(kind, tmp_path)[0].train(5, 10)
    trainer, algo = make_trainer(kind, tmp_path / "second")
    trainer.restore(tmp_path)
    trainer.resume(n_epochs=10)
    assert algo.seen[5:] == [5, 6, 7, 8, 9]
    for reached in (10, 3, 0, None):
        assert trainer.resume(n_epochs=reached) is None
    assert len(algo.seen) == 10


def test_G36_batch_size(kind: Kind, tmp_path: Path) -> None:
    make_trainer(kind, tmp_path)[0].train(2, 10)
    trainer, _ = make_trainer(kind, tmp_path / "second")
    trainer.restore(tmp_path)
    trainer.resume(n_epochs=3, batch_size=20)
    assert trainer.total_env_steps == 40
    trainer.resume(n_epochs=4)
    assert trainer.total_env_steps == 60
    assert trainer.train_args.batch_size == 20


def test_G37_plot_store_pause(kind: Kind, tmp_path: Path) -> None:
    first, _ = make_trainer(kind, tmp_path)
    first.train(1, 10, plot=True, store_episodes=True, pause_for_plot=True)
    trainer, _ = make_trainer(kind, tmp_path / "second")
    trainer.restore(tmp_path)
    trainer.resume(2)
    args = trainer.train_args
    assert (args.plot, args.store_episodes, args.pause_for_plot) == (True, True, True)
    assert (tmp_path / "second/plots/epoch_1.mp4").exists()
    trainer.resume(3, plot=False, store_episodes=False, pause_for_plot=False)
    args = trainer.train_args
    assert (args.plot, args.store_episodes, args.pause_for_plot) == (False, False, False)
    assert not (tmp_path / "second/plots/epoch_2.mp4").exists()
    assert (
        read_saved_state(tmp_path / "second", "itr_2")["trainer"]["stats"]["last_episode"] is None
    )


def test_G38_return_value(kind: Kind, tmp_path: Path) -> None:
    make_trainer(kind, tmp_path)[0].train(1, 10)
    trainer, algo = make_trainer(kind, tmp_path / "second", env=CountingEnv(reward=3.0))
    trainer.restore(tmp_path)
    assert trainer.resume(3) == 15.0
    algo._sampler = None
    trainer.setup(algo, None)
    assert math.isnan(trainer.resume(4))


def test_G42_not_setup_error() -> None:
    assert issubclass(NotSetupError, Exception)
    error = NotSetupError("set it up", 3)
    assert error.args == ("set it up", 3)
    with pytest.raises(NotSetupError) as raised:
        raise error
    assert raised.value is error
    assert error.__traceback__ is not None
    assert error.with_traceback(None) is error
    assert error.__traceback__ is None


def test_G48_progress_file(tmp_path: Path) -> None:
    trainer, algo = make_trainer(Trainer, tmp_path)
    algo.body = lambda trainer, epoch: trainer.log("Late", epoch * 2) if epoch >= 3 else None
    trainer.train(5, 10)
    assert [row["Late"] for row in read_progress(tmp_path)] == ["", "", "", "6", "8"]
    assert [row["Value"] for row in read_progress(tmp_path)] == ["1.0", "2.0", "3.0", "4.0", "5.0"]


def test_G49_worker_cleanup(kind: Kind, tmp_path: Path) -> None:
    for index, raised in enumerate((RuntimeError, KeyboardInterrupt, SystemExit)):
        path = tmp_path / str(index)
        trainer, algo = make_trainer(kind, path)
        closed: list[bool] = []
        assert isinstance(algo._sampler, LocalSampler)
        algo._sampler.shutdown_worker = lambda closed=closed: closed.append(True)  # type: ignore[method-assign, misc]

        def body(_: Any, epoch: int, raised: type[BaseException] = raised) -> None:
            if epoch == 1:
                raise raised("in the body")

        algo.body = body
        with pytest.raises(raised):
            trainer.train(4, 10)
        assert closed == [True]
        assert list_snapshot_names(path) == ["exception", "itr_0"]
        assert read_snapshot(path / "exception").manifest.reason == "exception"
        second, counted = make_trainer(kind, path / "second")
        assert second.restore(path).start_epoch == 1
        second.restore(path, "exception")
        assert counted.policy.value == 2.0

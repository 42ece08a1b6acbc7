"""Rows of garage's Trainer about snapshots: writing, kills and resumes, for both
kinds of trainer.
"""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from tests.acceptance.trainer_kit import Kind
from tests.support.garage_kit import (
    CountingAlgo,
    CountingEnv,
    flatten,
    list_snapshot_names,
)
from tests.support.torch_garage_kit import Reinforce
from workers.core.recipes import RecipeError
from workers.entrypoints.agent_algorithm import AgentAlgorithm
from workers.entrypoints.resume import main
from workers.entrypoints.trainer import WALL_COLUMNS, NotSetupError, TorchTrainer, Trainer
from workers.entrypoints.trainer_parts.progress_csv import read_rows
from workers.snapshot import SnapshotConfig, snapshot_directory
from workers.snapshot.snapshot_directory import read_snapshot


def train_counting_algo(
    kind: Kind, path: Path, epochs: int, mode: str, gap: int = 1
) -> CountingAlgo:
    """Trains an algorithm that adds 1 to its policy's parameter per epoch."""
    trainer, algo = kind(SnapshotConfig(path, mode, gap)), CountingAlgo(CountingEnv())
    trainer.setup(algo, CountingEnv())
    trainer.train(epochs, 10)
    return algo


def restore_trainer(kind: Kind, path: Path, epoch: int | str = "last") -> tuple[Any, CountingAlgo]:
    """Returns a new trainer and its algorithm, restored from a snapshot."""
    trainer, algo = kind(SnapshotConfig(path / "restored")), CountingAlgo(CountingEnv())
    trainer.setup(algo, CountingEnv())
    trainer.restore(path, epoch)
    return trainer, algo


def run_in_child(work: Callable[[], None]) -> int:
    """Calls a function in a forked process; returns how the process ended.

    Syncing is disabled: only a power loss could lose unsynced data.
    """
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.fsync = lambda _: None
            torch.set_num_threads(1)
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_G12_save(kind: Kind, tmp_path: Path) -> None:
    trainer = kind(SnapshotConfig(tmp_path), seed=9)
    with pytest.raises(NotSetupError, match="setup"):
        trainer.save(0)
    trainer.setup(CountingAlgo(CountingEnv()), CountingEnv(length=4))
    trainer.train(1, 10)
    trainer.save(4)
    state = read_snapshot(tmp_path / "params").state
    assert state["trainer"]["seed"] == 9
    assert state["trainer"]["args"]["batch_size"] == 10
    assert state["trainer"]["stats"]["total_env_steps"] == 10
    assert state["recipe"]["parts"]["env"]["kwargs"] == {"length": 4}
    assert state["agent"]["algorithm"]["$attributes"]["policy"]["$attributes"]["value"] == {
        "$data": 1.0
    }
    assert restore_trainer(kind, tmp_path)[0].train_args.start_epoch == 5


def test_G13_mode_last(kind: Kind, tmp_path: Path) -> None:
    train_counting_algo(kind, tmp_path, 3, "last")
    assert list_snapshot_names(tmp_path) == ["params"]
    trainer, algo = restore_trainer(kind, tmp_path)
    assert (trainer.stats.total_epoch, algo.policy.value) == (2, 3.0)


def test_G14_mode_all(kind: Kind, tmp_path: Path) -> None:
    train_counting_algo(kind, tmp_path, 3, "all")
    assert list_snapshot_names(tmp_path) == ["itr_0", "itr_1", "itr_2"]
    assert [restore_trainer(kind, tmp_path, epoch)[1].policy.value for epoch in range(3)] == [
        1.0,
        2.0,
        3.0,
    ]


def test_G15_mode_gap(kind: Kind, tmp_path: Path) -> None:
    train_counting_algo(kind, tmp_path, 4, "gap", 2)
    assert list_snapshot_names(tmp_path) == ["itr_0", "itr_2"]


def test_G16_mode_gap_overwrite(kind: Kind, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="more than 1 in mode 'gap_overwrite'"):
        SnapshotConfig(tmp_path, "gap_overwrite", 1)
    train_counting_algo(kind, tmp_path, 4, "gap_overwrite", 2)
    assert list_snapshot_names(tmp_path) == ["params"]
    assert restore_trainer(kind, tmp_path)[1].policy.value == 3.0


def test_G17_mode_gap_and_last(kind: Kind, tmp_path: Path) -> None:
    train_counting_algo(kind, tmp_path, 4, "gap_and_last", 2)
    assert list_snapshot_names(tmp_path) == ["itr_0", "itr_2", "params"]
    assert [
        restore_trainer(kind, tmp_path, which)[1].policy.value for which in ("first", "last", 2, 3)
    ] == [1.0, 4.0, 3.0, 4.0]


def test_G18_mode_none(kind: Kind, tmp_path: Path) -> None:
    train_counting_algo(kind, tmp_path, 2, "none")
    assert list_snapshot_names(tmp_path) == []
    with pytest.raises(FileNotFoundError, match="holds no snapshot"):
        restore_trainer(kind, tmp_path)


def test_G19_atomicity(kind: Kind, tmp_path: Path) -> None:
    """Kills the process at each call that syncs or renames a file or directory."""
    ended = -signal.SIGKILL
    moment = 0
    while ended == -signal.SIGKILL:
        moment += 1
        path = tmp_path / str(moment)
        train_counting_algo(kind, path, 1, "last")

        def die(moment: int = moment, path: Path = path) -> None:
            left = moment
            sync, rename = snapshot_directory.sync_file, Path.rename

            def count() -> None:
                nonlocal left
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

            def rename_and_count(self: Path, target: Any) -> Path:
                count()
                moved = rename(self, target)
                count()
                return moved

            snapshot_directory.sync_file = lambda one: (sync(one), count())[0]  # type: ignore[assignment]
            Path.rename = rename_and_count  # type: ignore[method-assign, assignment]
            trainer, _ = restore_trainer(kind, path)
            trainer._session.config = SnapshotConfig(path)
            trainer.resume(2)

        ended = run_in_child(die)
        _, algo = restore_trainer(kind, path)
        assert algo.policy.value in {1.0, 2.0}
        assert list_snapshot_names(path) == ["params"]
        assert algo.policy.value == 1.0 or moment > 4
    assert (ended, algo.policy.value) == (0, 2.0)
    assert moment > 10


def test_G20_restore(kind: Kind, tmp_path: Path) -> None:
    env = gym.make("CartPole-v1")
    first, second = (kind(SnapshotConfig(tmp_path / name)) for name in "ab")
    algo, other = Reinforce(env), Reinforce(env)
    first.setup(algo, env)
    first.train(2, 50)
    second.setup(other, env)
    args = second.restore(tmp_path / "a")
    assert args.start_epoch == 2
    for name, tensor in algo.policy.state_dict().items():
        assert torch.equal(tensor, other.policy.state_dict()[name])
    args.n_epochs = 99
    assert second.train_args is not None
    assert second.train_args.n_epochs == 2


def test_G21_from_epoch(kind: Kind, tmp_path: Path) -> None:
    trainer, algo = kind(SnapshotConfig(tmp_path, "all")), CountingAlgo(CountingEnv())
    trainer.setup(algo, None)
    for epoch in (1, 80, 120):
        algo.policy.value = float(epoch)
        trainer.save(epoch)
    (tmp_path / "notes.pkl").write_text("somebody else's")
    (tmp_path / "itr_999").mkdir()
    found = {
        which: restore_trainer(kind, tmp_path, which)[1].policy.value
        for which in ("last", "first", 80, "80", "1")
    }
    assert found == {"last": 120.0, "first": 1.0, 80: 80.0, "80": 80.0, "1": 1.0}
    with pytest.raises(
        FileNotFoundError, match="no snapshot of epoch 7; it has those of 1, 80, 120"
    ):
        restore_trainer(kind, tmp_path, 7)
    for wrong in ("newest", "-1", -1, "1.0", True):
        with pytest.raises(ValueError, match="from_epoch must be"):
            restore_trainer(kind, tmp_path, wrong)
    with pytest.raises(FileNotFoundError, match="is no directory"):
        trainer.restore(tmp_path / "nowhere")


def test_G22_no_seed_recorded(kind: Kind, tmp_path: Path) -> None:
    train_counting_algo(kind, tmp_path, 1, "last")
    assert read_snapshot(tmp_path / "params").state["trainer"]["seed"] is None
    trainer, algo = restore_trainer(kind, tmp_path)
    trainer.resume(2)
    assert algo.seen == [0, 1]


def make_reinforce_trainer(kind: Kind, path: Path) -> Any:
    env = gym.make("CartPole-v1", disable_env_checker=True)
    trainer = kind(SnapshotConfig(path), seed=4)
    trainer.setup(Reinforce(env), env)
    return trainer


def make_dqn_trainer(kind: Kind, path: Path) -> Any:
    trainer = kind(SnapshotConfig(path), seed=4)
    hyper = {
        "name": "dqn",
        "learning_starts": 20,
        "batch_size": 8,
        "buffer_size": 64,
        "target_update_every": 7,
        "train_every": 2,
    }
    trainer.setup(AgentAlgorithm(hyper, "CartPole-v1", seed=4), None)
    return trainer


def make_ppo_trainer(kind: Kind, path: Path) -> Any:
    trainer = kind(SnapshotConfig(path), seed=4)
    trainer.setup(
        AgentAlgorithm(
            {"name": "ppo", "rollout_steps": 9, "minibatch_size": 8, "passes": 2},
            "CartPole-v1",
            num_envs=2,
            seed=4,
        ),
        None,
    )
    return trainer


def kill_in_epoch(trainer: Any, epoch: int) -> None:
    """Kills this process with SIGKILL within an epoch."""
    step = trainer.step_epochs

    def steps() -> Iterator[int]:
        for one in step():
            if one == epoch:
                trainer.obtain_episodes(0) if hasattr(
                    trainer._session.algo, "_sampler"
                ) else trainer.advance(5)
                os.kill(os.getpid(), signal.SIGKILL)
            yield one

    trainer.step_epochs = steps


def read_final_state(path: Path) -> tuple[dict[str, Any], list[list[str]]]:
    """Returns the state of the last snapshot and the rows, without attempt IDs and times."""
    state = read_snapshot(path / "params").state
    for part, name in (
        (state["clock"], "wall_seconds"),
        (state["trainer"], "run_id"),
        (state["trainer"]["args"], "start_epoch"),
    ):
        del part[name]
    columns, rows = read_rows(path / "progress.csv")
    kept = [index for index, column in enumerate(columns) if column not in WALL_COLUMNS]
    return dict(flatten(state)), [[cells[index] for index in kept] for cells in (columns, *rows)]


@pytest.mark.parametrize(
    "make",
    [
        make_reinforce_trainer,
        *(
            pytest.param(make, marks=pytest.mark.slow)
            for make in (make_dqn_trainer, make_ppo_trainer)
        ),
    ],
)
def test_G39_resume_equality(kind: Kind, make: Callable[[Kind, Path], Any], tmp_path: Path) -> None:
    """Six uninterrupted epochs equal six epochs with a kill in any of them, bit by bit."""
    epochs, batch = 6, 20
    straight = tmp_path / "straight"
    assert run_in_child(lambda: make(kind, straight).train(epochs, batch)) == 0
    state, table = read_final_state(straight)
    assert len(table) == epochs + 1
    for k in range(1, 6) if kind is Trainer else (3,):
        path = tmp_path / str(k)

        def train_until_kill(path: Path = path, k: int = k) -> None:
            trainer = make(kind, path)
            kill_in_epoch(trainer, k)
            trainer.train(epochs, batch)

        def resume_training(path: Path = path, k: int = k) -> None:
            trainer = make(kind, path)
            torch.rand(k)
            trainer.restore(path)
            assert trainer.restore_report.is_exact
            trainer.resume()

        assert run_in_child(train_until_kill) == -signal.SIGKILL
        assert run_in_child(resume_training) == 0
        other, rows = read_final_state(path)
        assert rows == table
        assert set(other) == set(state)
        for name, leaf in state.items():
            np.testing.assert_array_equal(
                np.asarray(leaf),
                np.asarray(other[name]),
                err_msg=f"{name} after a kill in epoch {k}",
            )


def test_G47_resume_directory(tmp_path: Path) -> None:
    train_counting_algo(TorchTrainer, tmp_path, 2, "all")
    assert main([str(tmp_path), "--n-epochs", "3"]) == 0
    assert list_snapshot_names(tmp_path) == ["itr_0", "itr_1", "itr_2"]
    assert len(read_rows(tmp_path / "progress.csv")[1]) == 3
    assert main([str(tmp_path), "--n-epochs", "5", "--snapshot-dir", str(tmp_path / "other")]) == 0
    assert list_snapshot_names(tmp_path) == ["itr_0", "itr_1", "itr_2"]
    assert list_snapshot_names(tmp_path / "other") == ["params"]
    assert len(read_rows(tmp_path / "other/progress.csv")[1]) == 5


def test_restore_without_set_up_builds_the_parts_of_marked_classes(
    kind: Kind, tmp_path: Path
) -> None:
    env = gym.make("CartPole-v1", max_episode_steps=30)
    trainer = kind(SnapshotConfig(tmp_path / "marked"), rebuildable=True)
    trainer.setup(Reinforce(env, learning_rate=0.5), env)
    trainer.train(1, 30)
    second = kind(SnapshotConfig(tmp_path / "second"))
    second.restore(tmp_path / "marked")
    algo = second._session.algo
    assert isinstance(algo, Reinforce)
    assert algo.optimizer.param_groups[0]["lr"] == 0.5
    assert second.get_env_copy().spec.max_episode_steps == 30
    second.resume(2)


class UnmarkedAlgo(CountingAlgo):
    """An algorithm class that is not marked for recipes."""


def test_a_part_without_a_recipe_must_be_set_up(kind: Kind, tmp_path: Path) -> None:
    strict = kind(SnapshotConfig(tmp_path / "strict"), rebuildable=True)
    strict.setup(UnmarkedAlgo(CountingEnv()), None)
    with pytest.raises(
        RecipeError, match=r"algo: UnmarkedAlgo has no recipe.*call setup before restore"
    ):
        strict.save(0)
    trainer = kind(SnapshotConfig(tmp_path / "plain"))
    trainer.setup(UnmarkedAlgo(CountingEnv()), None)
    trainer.train(1, 5)
    with pytest.raises(
        RecipeError, match=r"UnmarkedAlgo has no recipe.*Call setup\(algo, env\) before restore"
    ):
        kind(SnapshotConfig(tmp_path / "other")).restore(tmp_path / "plain")

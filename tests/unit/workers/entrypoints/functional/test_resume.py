"""Trainings that were killed and resumed equal uninterrupted ones bit by bit."""

import csv
import errno
import multiprocessing
import os
import signal
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, VectorWrapper

from tests.support.pfrl_agents import Learner, ScriptedAgent
from tests.support.recording_env import EpisodeLengthsEnv, RepeatingEnv, SeededEpisodesEnv
from tests.support.waiting import PATIENCE_SECONDS
from workers.core.errors import SnapshotUnreadableError
from workers.entrypoints.functional import (
    train_agent,
    train_agent_batch,
    train_agent_batch_with_evaluation,
    train_agent_with_evaluation,
)
from workers.snapshot import state_files
from workers.snapshot.manifest import read_manifest

STEPS = 120


@pytest.fixture(autouse=True)
def _no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disables fsync, which matters only if the machine loses power."""
    monkeypatch.setattr("workers.snapshot.snapshot_directory.sync_file", lambda path: None)


def train(
    kind: str, outdir: Path, agent: Learner, steps: int = STEPS, **options: Any
) -> list[dict[str, Any]]:
    """Trains with the function of the given kind and returns the history."""
    options = {
        "eval_n_steps": None,
        "eval_n_episodes": 3,
        "eval_interval": 20,
        "outdir": outdir,
        "checkpoint_freq": 7,
        "seed": 11,
        **options,
    }
    match kind:
        case "serial":
            _, history = train_agent_with_evaluation(agent, SeededEpisodesEnv(), steps, **options)
        case "serial, apart":
            _, history = train_agent_with_evaluation(
                agent,
                SeededEpisodesEnv(),
                steps,
                eval_env=SeededEpisodesEnv(),
                eval_during_episode=True,
                **options,
            )
        case _:
            _, history = train_agent_batch_with_evaluation(
                agent, [SeededEpisodesEnv() for _ in range(3)], steps, **options
            )
    return history


def read_outcome(outdir: Path, agent: Learner, history: list[dict[str, Any]]) -> Any:
    """Returns all values that must be equal: everything except durations."""
    rows = [line.split("\t") for line in (outdir / "scores.txt").read_text().splitlines()]
    with (outdir / "episodes.csv").open() as file:
        episodes = [row[:-1] for row in csv.reader(file)]
    entries = [
        {name: value for name, value in entry.items() if name not in {"elapsed", "wall_time"}}
        for entry in history
    ]
    weights, state = agent.weights.tobytes(), agent.rng.bit_generator.state
    return (weights, state, agent.t, [[*row[:2], *row[3:]] for row in rows], episodes, entries)


def train_until_killed(kind: str, outdir: Path, at: int) -> None:
    """Trains in a subprocess that kills itself after step `at`."""

    def hook(env: Any, agent: Any, step: int) -> None:
        if step == at:
            os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        try:
            train(kind, outdir, Learner(), step_hooks=[hook])
        finally:
            os._exit(1)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL


@pytest.mark.parametrize(
    "kind",
    [
        "serial",
        pytest.param("serial, apart", marks=pytest.mark.slow),
        pytest.param("batch", marks=pytest.mark.slow),
    ],
)
def test_kill_and_resume_change_nothing(tmp_path: Path, kind: str) -> None:
    whole = Learner()
    expected = read_outcome(tmp_path / "whole", whole, train(kind, tmp_path / "whole", whole))
    for at in (26, 40, 49, 63, 80, 119):
        outdir, agent = tmp_path / str(at), Learner(seed=99)
        train_until_killed(kind, outdir, at)
        assert read_outcome(outdir, agent, train(kind, outdir, agent, resume="latest")) == expected


@pytest.mark.parametrize("kind", ["serial", "batch"])
def test_a_longer_budget_resumes_from_the_end(tmp_path: Path, kind: str) -> None:
    first, second, whole = Learner(), Learner(seed=5), Learner()
    train(kind, tmp_path / "parts", first, steps=60)
    train(kind, tmp_path / "parts", second, resume=tmp_path / "parts" / "60_finish")
    train(kind, tmp_path / "whole", whole)
    assert second.weights.tobytes() == whole.weights.tobytes()


def test_vector_environments_resume_within_their_episodes(tmp_path: Path) -> None:
    def make_envs() -> Any:
        inner = gym.make_vec(
            "CartPole-v1",
            3,
            vectorization_mode="sync",
            vector_kwargs={"autoreset_mode": AutoresetMode.DISABLED},
        )
        return VectorWrapper(inner)

    whole, first, second = Learner(), Learner(), Learner(seed=5)
    train_agent_batch(whole, make_envs(), 150, tmp_path / "whole", seed=1)
    train_agent_batch(first, make_envs(), 75, tmp_path / "parts", seed=1)
    train_agent_batch(second, make_envs(), 150, tmp_path / "parts", resume="latest")
    assert second.weights.tobytes() == whole.weights.tobytes()


def test_environments_in_subprocesses_resume_exactly(tmp_path: Path) -> None:
    envs = AsyncVectorEnv(
        [SeededEpisodesEnv, SeededEpisodesEnv], autoreset_mode=AutoresetMode.DISABLED
    )
    together, alone = Learner(), Learner()
    train_agent_batch_with_evaluation(
        together, envs, 40, None, 2, 20, tmp_path / "processes", seed=1
    )
    train_agent_batch_with_evaluation(
        alone,
        [SeededEpisodesEnv(), SeededEpisodesEnv()],
        40,
        None,
        2,
        20,
        tmp_path / "here",
        seed=1,
    )
    envs.close()
    assert together.weights.tobytes() == alone.weights.tobytes()


def test_best_score_and_rows_are_restored(tmp_path: Path) -> None:
    def run(steps: int, reward: float, **options: Any) -> list[Any]:
        own = {
            "eval_n_steps": None,
            "eval_n_episodes": 1,
            "eval_interval": 3,
            "outdir": tmp_path,
            "checkpoint_freq": 5,
        }
        return train_agent_with_evaluation(
            ScriptedAgent(), RepeatingEnv((3,), reward), steps, **{**own, **options}
        )[1]

    run(9, 2.0)
    run(15, 1.0, resume="latest")
    assert read_manifest(tmp_path / "best").env_step == 3
    run(18, 1.5, step_offset=15)
    assert read_manifest(tmp_path / "best").env_step == 3
    assert [
        float(line.split("\t")[3])
        for line in (tmp_path / "scores.txt").read_text().splitlines()[1:]
    ] == [6, 6, 6, 3, 3, 4.5]


def test_latest_skips_an_incomplete_snapshot(tmp_path: Path) -> None:
    train_agent(Learner(), SeededEpisodesEnv(), 20, tmp_path, checkpoint_freq=6, seed=1)
    torn = tmp_path / "20_finish" / "agent.npz"
    torn.write_bytes(torn.read_bytes()[:-7])
    with pytest.raises(SnapshotUnreadableError, match=r"agent\.npz is not what was written"):
        train_agent(Learner(), SeededEpisodesEnv(), 20, tmp_path, resume=tmp_path / "20_finish")
    steps: list[int] = []
    train_agent(
        Learner(),
        SeededEpisodesEnv(),
        20,
        tmp_path,
        resume="latest",
        step_hooks=[lambda env, agent, step: steps.append(step)],
    )
    assert steps == [19, 20]
    with pytest.raises(FileNotFoundError, match="resume"):
        train_agent(Learner(), SeededEpisodesEnv(), 20, tmp_path, resume=tmp_path / "nothing")


def test_latest_without_a_snapshot_starts_from_the_beginning(tmp_path: Path) -> None:
    agent = Learner()
    train_agent(agent, SeededEpisodesEnv(), 10, tmp_path / "new", resume="latest", seed=3)
    assert agent.t == 10


def test_latest_is_of_the_newest_training(tmp_path: Path) -> None:
    train_agent(Learner(), SeededEpisodesEnv(), 30, tmp_path, seed=1)
    train_agent(Learner(), SeededEpisodesEnv(), 20, tmp_path, seed=2)
    agent = Learner()
    train_agent(agent, SeededEpisodesEnv(), 22, tmp_path, resume="latest")
    assert agent.t == 22
    assert read_manifest(tmp_path / "22_finish").seed == 2


def test_files_of_a_killed_writer_are_repaired(tmp_path: Path) -> None:
    train_agent(Learner(), SeededEpisodesEnv(), 20, tmp_path, checkpoint_freq=6, seed=1)
    (tmp_path / "20_finish").rename(tmp_path / "20_finish.old")
    (tmp_path / "18_checkpoint.tmp").mkdir()
    (tmp_path / "mine.tmp").mkdir()
    train_agent(Learner(), SeededEpisodesEnv(), 20, tmp_path, resume="latest")
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {
        *("6_checkpoint", "12_checkpoint", "18_checkpoint", "20_finish", "mine.tmp"),
    }


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_an_unfinished_snapshot_of_a_live_writer_is_kept(tmp_path: Path) -> None:
    """A training begins in a directory in which another process is writing a snapshot.

    Unfinished snapshots of killed writers are deleted.
    """
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()

    class WaitingLearner(Learner):
        def save(self, dirname: str) -> None:
            Path(dirname, "begun").touch()
            theirs.send(dirname)
            theirs.recv()
            super().save(dirname)

    arguments = (WaitingLearner(), SeededEpisodesEnv(), 5, tmp_path)
    writer = context.Process(target=train_agent, args=arguments, kwargs={"seed": 3})
    writer.start()
    assert ours.poll(PATIENCE_SECONDS), "the writer saves"
    temporary = Path(ours.recv())
    dead = tmp_path / "5_finish.0123abcd.tmp"
    dead.mkdir()
    train_agent(Learner(), SeededEpisodesEnv(), 5, tmp_path, resume="latest", seed=4)
    assert not dead.exists()
    assert (temporary / "begun").exists()
    ours.send("go on")
    writer.join(PATIENCE_SECONDS)
    assert writer.exitcode == 0
    assert read_manifest(tmp_path / "5_finish").seed == 3
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"5_finish"}


def test_a_full_disk_leaves_older_snapshots_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = state_files.write_tree

    def write_or_raise_disk_full(directory: Path, tree: Any, before: Path | None) -> Any:
        if int(tree["clock"]["env_steps"]) > 6:
            raise OSError(errno.ENOSPC, "No space left on device")
        return written(directory, tree, before)

    monkeypatch.setattr("workers.snapshot.snapshot_directory.write_tree", write_or_raise_disk_full)
    with pytest.raises(OSError, match="No space left") as caught:
        train_agent(Learner(), SeededEpisodesEnv(), 20, tmp_path, checkpoint_freq=6, seed=1)
    assert "could not be saved" in caught.value.__notes__[0]
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"6_checkpoint"}
    monkeypatch.undo()
    agent = Learner()
    train_agent(agent, SeededEpisodesEnv(), 20, tmp_path, resume="latest")
    assert agent.t == 20


def test_a_snapshot_of_another_training_is_refused(tmp_path: Path) -> None:
    train_agent(Learner(), SeededEpisodesEnv(), 5, tmp_path, seed=1)
    with pytest.raises(ValueError, match="another agent class"):
        train_agent(ScriptedAgent(), SeededEpisodesEnv(), 9, tmp_path, resume="latest")
    with pytest.raises(ValueError, match="seed 1"):
        train_agent(Learner(), SeededEpisodesEnv(), 9, tmp_path, resume="latest", seed=2)


def test_an_agent_can_be_loaded_without_resuming(tmp_path: Path) -> None:
    source, target = Learner(), Learner(seed=5)
    train_agent(source, SeededEpisodesEnv(), 5, tmp_path / "a", seed=1)
    before = target.rng.bit_generator.state
    steps: list[int] = []

    def hook(env: Any, agent: Any, step: int) -> None:
        steps.append(step)

    train_agent(
        target,
        SeededEpisodesEnv(),
        0,
        tmp_path / "b",
        resume=tmp_path / "a" / "5_finish",
        resume_parts=["weights"],
        step_hooks=[hook],
    )
    assert target.weights.tobytes() == source.weights.tobytes()
    assert (target.rng.bit_generator.state, target.t, steps) == (before, 0, [])
    for parts, message in ((["nothing"], "has no"), ("everything", "resume_parts must be")):
        with pytest.raises(ValueError, match=message):
            train_agent(
                target,
                SeededEpisodesEnv(),
                0,
                tmp_path / "b",
                resume=tmp_path / "a" / "5_finish",
                resume_parts=parts,
            )
    with pytest.raises(ValueError, match="give resume"):
        train_agent(target, SeededEpisodesEnv(), 0, tmp_path / "b", resume_parts="weights")


def test_the_time_limit_ends_a_training_with_a_snapshot(tmp_path: Path) -> None:
    agent = Learner()
    train_agent(agent, SeededEpisodesEnv(), 10**9, tmp_path, time_limit=0.2, seed=1)
    (name,) = (path.name for path in tmp_path.iterdir() if path.is_dir())
    assert name == f"{agent.t}_finish"
    assert read_manifest(tmp_path / name).stop == "time_limit"
    with pytest.raises(ValueError, match="time_limit"):
        train_agent(agent, SeededEpisodesEnv(), 10, tmp_path, time_limit=0)


def test_an_exception_of_a_batch_closes_the_environments(tmp_path: Path) -> None:
    envs, apart = [EpisodeLengthsEnv(), EpisodeLengthsEnv(fail_at=4)], [EpisodeLengthsEnv()]
    with pytest.raises(ValueError, match="fell over"):
        train_agent_batch_with_evaluation(
            Learner(), envs, 40, None, 1, 20, tmp_path, eval_env=apart
        )
    assert [env.closed for env in (*envs, *apart)] == [True] * 3
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"6_except"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("log_interval", 0),
        ("return_window_size", 0),
        ("keep_checkpoints", 0),
        ("seed", -1),
        ("seed", 2**53),
        ("steps", 1.5),
    ],
)
def test_arguments_out_of_range_are_refused_before_any_file_is_written(
    tmp_path: Path, name: str, value: Any
) -> None:
    with pytest.raises(ValueError, match=f"{name} must be"):
        train_agent_batch(
            Learner(),
            [EpisodeLengthsEnv()],
            **{"steps": 9, "outdir": tmp_path / "new", name: value},
        )
    assert not (tmp_path / "new").exists()


def test_the_cause_of_an_environments_exception_is_kept(tmp_path: Path) -> None:
    error = ValueError("the robot fell over")
    error.__cause__ = OSError("no hand")
    with pytest.raises(ValueError, match="fell over") as caught:
        train_agent(
            Learner(), EpisodeLengthsEnv(fail_at=2, error=error), 9, tmp_path, checkpoint_freq=0
        )
    assert caught.value is error
    assert isinstance(error.__cause__, OSError)


def test_observations_in_an_external_agents_memory_keep_their_values(tmp_path: Path) -> None:
    agent = ScriptedAgent()
    train_agent(agent, RepeatingEnv((4,)), 4, tmp_path)
    assert [call[2][0] for call in agent.list_calls("observe")] == [1, 2, 3, 4]
    assert np.shares_memory(agent.list_calls("observe")[0][2], agent.list_calls("act")[1][2])

"""Faults and options of the garage-style trainer beyond the rows of the acceptance table."""

import inspect
import json
import os
import signal
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from palestra.telemetry.spool import SpoolReader
from tests.support.garage_kit import (
    ConstantPolicy,
    CountingAlgo,
    CountingEnv,
    GarageEnv,
    SamplerArgumentAlgo,
    list_snapshot_names,
)
from tests.support.torch_garage_kit import TorchPolicy
from workers.core.errors import SnapshotUnreadableError
from workers.core.types import StopReason
from workers.entrypoints.agent_algorithm import AgentAlgorithm
from workers.entrypoints.trainer import NotSetupError, TorchTrainer, Trainer
from workers.entrypoints.trainer_parts.process_sampler import ProcessSampler
from workers.entrypoints.trainer_parts.samplers import LocalSampler, VecSampler
from workers.entrypoints.trainer_parts.tabular import Tabular, performance_statistics
from workers.snapshot import SnapshotConfig
from workers.snapshot.snapshot_directory import read_snapshot


def make_trainer(path: Path, mode: str = "all", **options: Any) -> tuple[Trainer, CountingAlgo]:
    trainer, algo = Trainer(SnapshotConfig(path, mode), **options), CountingAlgo(CountingEnv())
    trainer.setup(algo, CountingEnv())
    return trainer, algo


def test_sigterm_is_handled_like_an_exception(tmp_path: Path) -> None:
    # A trainer does not replace a handler that another library has installed.
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        trainer, algo = make_trainer(tmp_path)
        algo.body = lambda _, epoch: os.kill(os.getpid(), signal.SIGTERM) if epoch == 1 else None
        with pytest.raises(SystemExit) as raised:
            trainer.train(3, 5)
        assert raised.value.code == 128 + signal.SIGTERM
        assert list_snapshot_names(tmp_path) == ["exception", "itr_0"]
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)


def test_an_order_ends_the_run_with_a_snapshot_that_the_gap_would_leave_out(tmp_path: Path) -> None:
    class StopFlag:
        order: StopReason | None = None
        seen: StopReason | None = None

        def acknowledge(self, reason: StopReason) -> None:
            self.seen = reason

    flag = StopFlag()
    trainer, algo = (
        Trainer(SnapshotConfig(tmp_path, "gap", 4), control=flag),
        CountingAlgo(CountingEnv()),
    )
    trainer.setup(algo, None)
    algo.body = lambda _, epoch: setattr(flag, "order", StopReason.DRAIN) if epoch == 2 else None
    trainer.train(9, 5)
    assert flag.seen is StopReason.DRAIN
    assert list_snapshot_names(tmp_path) == ["itr_0", "itr_2"]
    assert read_snapshot(tmp_path / "itr_2").manifest.stop == "drain"
    assert len(algo.seen) == 3


def test_a_failing_snapshot_keeps_the_first_error(tmp_path: Path) -> None:
    trainer, algo = make_trainer(tmp_path)
    algo.odd = torch.distributions  # type: ignore[attr-defined]
    algo.policy.state_dict = lambda: {"bad": object()}  # type: ignore[attr-defined]
    algo.policy.load_state_dict = lambda _: None  # type: ignore[attr-defined]
    with pytest.raises(
        TypeError, match=r"algo\.policy\.state_dict\(\)\.bad: a object cannot be saved"
    ):
        trainer.train(2, 5)
    assert list_snapshot_names(tmp_path) == []


def test_an_epoch_is_one_record_with_the_algorithms_own_iterations(tmp_path: Path) -> None:
    trainer, algo = make_trainer(tmp_path)

    def body(trainer: Any, epoch: int) -> None:
        trainer.step_itr += 9
        trainer.log("odd name!", 1)

    algo.body = body
    trainer.train(2, 10)
    batch = SpoolReader(tmp_path / "telemetry", after_seq=0).read()
    records = [json.loads(payload) for payload in batch.payloads]
    stats = [one for one in records if one["type"] == "experiment_stats"]
    assert [(one["total_epoch"], one["total_itr"], one["total_env_steps"]) for one in stats] == [
        (0, 10, 10),
        (1, 20, 20),
    ]
    values = [
        one["series"]["Value"]
        for one in records
        if one["type"] == "table" and "Value" in one["series"]
    ]
    assert values == [[1.0], [2.0]]
    assert sum(one["type"] == "episodes" for one in records) == 2


def test_with_logging_off_what_was_logged_waits_for_the_first_row(tmp_path: Path) -> None:
    trainer, algo = make_trainer(tmp_path)
    trainer.enable_logging = False

    def body(trainer: Any, epoch: int) -> None:
        trainer.enable_logging = epoch >= 2
        if epoch == 0:
            trainer.log("Early", 7)

    algo.body = body
    trainer.train(3, 10)
    lines = (tmp_path / "progress.csv").read_text().splitlines()
    assert len(lines) == 2
    assert dict(zip(lines[0].split(","), lines[1].split(","), strict=True))["Early"] == "7"
    second, _ = make_trainer(tmp_path / "second")
    second.restore(tmp_path, 0)
    assert second.tabular.row()["Early"] == 7
    assert second.enable_logging is False


def test_a_second_training_counts_epochs_from_0_and_everything_else_on(tmp_path: Path) -> None:
    trainer, algo = make_trainer(tmp_path)
    trainer.train(2, 10)
    trainer.train(3, 10)
    assert algo.seen == [0, 1, 0, 1, 2]
    assert list_snapshot_names(tmp_path) == ["itr_0", "itr_1", "itr_2"]
    assert (trainer.total_env_steps, trainer.stats.total_itr) == (50, 5)
    assert len((tmp_path / "progress.csv").read_text().splitlines()) == 6


def test_a_fresh_training_in_a_used_directory_sets_the_old_table_aside(tmp_path: Path) -> None:
    for _ in range(2):
        make_trainer(tmp_path)[0].train(1, 10)
    assert (tmp_path / "progress.1.csv").exists()
    assert len((tmp_path / "progress.csv").read_text().splitlines()) == 2


@pytest.mark.slow
def test_a_trainer_with_worker_processes_continues_after_a_restore(tmp_path: Path) -> None:
    def make(path: Path) -> tuple[Trainer, CountingAlgo]:
        env, algo = CountingEnv(), CountingAlgo(None)
        algo._sampler = ProcessSampler(ConstantPolicy(), env, n_workers=2, seed=3)  # type: ignore[assignment]
        trainer = Trainer(SnapshotConfig(path, "all"))
        trainer.setup(algo, env)
        return trainer, algo

    trainer, _ = make(tmp_path)
    trainer.train(2, 10)
    second, algo = make(tmp_path / "second")
    second.restore(tmp_path, 0)
    second.resume()
    states = [
        read_snapshot(path / "itr_1").state["collector"] for path in (tmp_path, tmp_path / "second")
    ]
    assert states[0] == states[1]
    assert algo._sampler.pids == ()  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", [LocalSampler, VecSampler, ProcessSampler])
def test_an_environment_with_garages_spec_trains_and_is_resumed(kind: Any, tmp_path: Path) -> None:
    env, policy = GarageEnv(5, max_episode_length=9), ConstantPolicy()
    options = {"n_workers": 1} if kind is ProcessSampler else {}
    trainer = Trainer(SnapshotConfig(tmp_path), rebuildable=True)
    trainer.setup(SamplerArgumentAlgo(policy, kind(policy, env, seed=1, **options)), env)
    trainer.train(2, 10)
    assert trainer.get_env_copy().spec.max_episode_length == 9
    resumed = Trainer(SnapshotConfig(tmp_path / "resumed"))
    resumed.restore(tmp_path)
    resumed.resume(4)
    assert resumed.stats.total_epoch == 3
    assert resumed.total_env_steps > trainer.total_env_steps


@pytest.mark.parametrize("kind", [LocalSampler, VecSampler, ProcessSampler])
def test_a_sampler_as_an_argument_of_the_algorithm_is_built_again(
    kind: Any, tmp_path: Path
) -> None:
    """`restore` without `setup` builds every sampler again, and each continues from its state."""

    # One process, and none for the whole training: each imports torch, which takes seconds.
    kind_of_whole = LocalSampler if kind is ProcessSampler else kind
    options = {"n_workers": 1} if kind is ProcessSampler else {}

    def train_and_read(path: Path, sampler: Any, epochs: int) -> dict[str, Any]:
        env, policy = CountingEnv(), ConstantPolicy()
        trainer = Trainer(SnapshotConfig(path), rebuildable=True, seed=4)
        trainer.setup(SamplerArgumentAlgo(policy, sampler(policy, env, seed=3, **options)), env)
        trainer.train(epochs, 10)
        return read_snapshot(path / "params").state

    whole = train_and_read(tmp_path / "whole", kind_of_whole, 3)
    train_and_read(tmp_path / "first", kind, 2)
    again = Trainer(SnapshotConfig(tmp_path / "again"))
    again.restore(tmp_path / "first")
    again.resume(n_epochs=3)
    state = read_snapshot(tmp_path / "again" / "params").state
    assert type(again._session.algo._sampler) is kind
    assert [state[part] for part in ("agent", "collector")] == [
        whole[part] for part in ("agent", "collector")
    ]


def test_numpy_integers_are_accepted_as_counts(tmp_path: Path) -> None:
    """This holds for arguments, assigned attributes and snapshots."""
    trainer, algo = (
        Trainer(SnapshotConfig(tmp_path, "all", np.int64(1))),
        CountingAlgo(CountingEnv()),
    )  # type: ignore[arg-type]
    trainer.setup(algo, CountingEnv())
    trainer.train(np.int64(1), np.int32(10))  # type: ignore[arg-type]
    trainer.total_env_steps = np.int64(20)
    trainer.save(np.uint8(1))  # type: ignore[arg-type]
    again, _ = make_trainer(tmp_path / "again")
    args = again.restore(tmp_path, np.int64(1))  # type: ignore[arg-type]
    assert [type(value) for value in (args.n_epochs, args.batch_size, again.total_env_steps)] == [
        int
    ] * 3
    assert (args.n_epochs, args.batch_size, again.total_env_steps) == (1, 10, 20)
    for wrong in (np.float64(2), np.True_, np.int64(0)):
        with pytest.raises(ValueError, match="batch_size must be a whole number"):
            again.train(1, wrong)  # type: ignore[arg-type]


def test_policies_without_parameters_are_sampled_as_they_are(tmp_path: Path) -> None:
    class ScriptedPolicy:
        def __init__(self) -> None:
            self.action = 0

        def get_action(self, observation: Any) -> tuple[int, dict[str, Any]]:
            return self.action, {}

    algo = CountingAlgo(None)
    algo.policy = ScriptedPolicy()  # type: ignore[assignment]
    algo._sampler = LocalSampler(algo.policy, CountingEnv(), seed=1)
    trainer = Trainer(SnapshotConfig(tmp_path))
    trainer.setup(algo, None)
    algo.policy.action = 1  # type: ignore[attr-defined]
    assert set(trainer.obtain_episodes(0, 5).actions) == {1}


def test_built_in_agents_learn_by_their_schedule_and_on_demand(tmp_path: Path) -> None:
    hyper = {
        "name": "dqn",
        "learning_starts": 10,
        "batch_size": 4,
        "train_every": 5,
        "hidden_sizes": (4,),
    }
    algo = AgentAlgorithm(hyper, gym.make("CartPole-v1"), seed=1)
    trainer = Trainer(SnapshotConfig(tmp_path), rebuildable=True)
    trainer.setup(algo, None)
    trainer.train(2, 23)
    assert trainer.total_env_steps == 46
    clock = trainer._session.clock
    assert clock.updates == 8
    assert trainer.learn(3).updates == 3
    assert clock.updates == 11
    with pytest.raises(ValueError, match="AgentAlgorithm has no sampler"):
        trainer.obtain_episodes(0, 5)
    second = Trainer(SnapshotConfig(tmp_path / "second"))
    second.restore(tmp_path)
    assert second._session.clock.updates == 8
    for name, tensor in algo.agent.state_dict()["learning"]["parameters"].items():
        assert (
            tensor.shape
            == second._session.algo.agent.state_dict()["learning"]["parameters"][name].shape
        )
    with pytest.raises(ValueError, match="agent: learning_rate: must be greater than 0"):
        AgentAlgorithm({"name": "dqn", "learning_rate": -1}, "CartPole-v1")
    other, plain = make_trainer(tmp_path / "third")
    plain.body = lambda trainer, _: trainer.learn()
    with pytest.raises(ValueError, match=r"CountingAlgo has no built-in `agent`"):
        other.train(1, 5)


def test_a_snapshot_of_something_else_is_refused(tmp_path: Path) -> None:
    trainer, _ = make_trainer(tmp_path)
    trainer.train(1, 5)
    state = tmp_path / "itr_0" / "state.json"
    state.write_text(state.read_text().replace('"trainer"', '"coach"'))
    with pytest.raises(SnapshotUnreadableError, match="not what was written"):
        make_trainer(tmp_path / "second")[0].restore(tmp_path)


def test_restore_continues_the_random_stream_instead_of_replaying_it(tmp_path: Path) -> None:
    drawn: list[float] = []
    trainer, algo = make_trainer(tmp_path, seed=3)
    algo.body = lambda *_: drawn.append(
        float(torch.rand(1)) + float(np.random.default_rng(0).random())
    )
    trainer.train(4, 5)
    second, other = make_trainer(tmp_path / "second", seed=3)
    again: list[float] = []
    other.body = lambda *_: again.append(
        float(torch.rand(1)) + float(np.random.default_rng(0).random())
    )
    second.restore(tmp_path, 1)
    second.resume()
    assert again == drawn[2:]


def test_log_performance_records_the_statistics_of_a_batch() -> None:
    env = gym.wrappers.TimeLimit(CountingEnv(5, reward=2.0), 3)
    batch = LocalSampler(ConstantPolicy(), env, seed=1).obtain_samples(0, 6, None)
    row, returns = performance_statistics(4, batch, 0.5)
    assert returns == [6.0, 6.0]
    assert row == {
        "Iteration": 4,
        "NumEpisodes": 2,
        "AverageDiscountedReturn": 3.5,
        "AverageReturn": 6.0,
        "StdReturn": 0.0,
        "MaxReturn": 6.0,
        "MinReturn": 6.0,
        "TerminationRate": 0.0,
    }
    batch.env_infos["success"] = np.array([np.nan, 1.0, 0.0, 0.0, 0.0, np.nan])
    assert performance_statistics(4, batch, 0.5)[0]["SuccessRate"] == 0.5


def test_columns_take_numbers_and_words() -> None:
    tabular = Tabular()
    tabular.record("tensor", torch.tensor([2.0]))
    with tabular.prefix("a/"), tabular.prefix("b/"):
        tabular.record("word", "x")
    assert tabular.row() == {"tensor": 2.0, "a/b/word": "x"}
    for wrong in (np.zeros(2), object(), [1]):
        with pytest.raises(TypeError, match="key: a column takes"):
            tabular.record("key", wrong)


def test_torch_policies_are_sent_to_the_sampler_at_each_call(tmp_path: Path) -> None:
    env = gym.make("CartPole-v1", disable_env_checker=True)
    algo = CountingAlgo(None)
    algo.policy = TorchPolicy(4, 2)  # type: ignore[assignment]
    algo._sampler = LocalSampler(algo.policy, env, seed=1)
    trainer = Trainer(SnapshotConfig(tmp_path))
    trainer.setup(algo, env)
    with torch.no_grad():
        algo.policy.net[2].bias.copy_(torch.tensor([-100.0, 100.0]))  # type: ignore[attr-defined]
    assert set(trainer.obtain_episodes(0, 5).actions) == {1}


def test_filming_changes_nothing(tmp_path: Path) -> None:
    class CountingPolicy(ConstantPolicy):
        acted = 0

        def get_action(self, observation: Any) -> tuple[int, dict[str, Any]]:
            self.acted += 1
            return super().get_action(observation)

    trainer, algo = make_trainer(tmp_path)
    algo.policy = CountingPolicy()
    before = torch.get_rng_state()
    trainer.train(1, 5, plot=True)
    assert (tmp_path / "plots/epoch_0.mp4").exists()
    assert algo.policy.acted == 0
    assert torch.equal(torch.get_rng_state(), before)


NEED_SETUP = {
    "advance": (5,),
    "initialize_tf_vars": (),
    "learn": (),
    "log_diagnostics": (),
    "obtain_episodes": (0,),
    "obtain_samples": (0,),
    "resume": (),
    "save": (0,),
    "train": (1,),
}
"""Methods that need `setup`, with their arguments."""


@pytest.mark.parametrize("name", NEED_SETUP)
def test_a_method_before_setup_raises_the_error_of_its_docstring(name: str, tmp_path: Path) -> None:
    method = getattr(TorchTrainer(SnapshotConfig(tmp_path)), name)
    with pytest.raises(NotSetupError, match=r"restore\(from_dir\)"):
        method(*NEED_SETUP[name])
    assert "NotSetupError: If" in inspect.getdoc(method)

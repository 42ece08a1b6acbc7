"""Writes files of every kind that a version of Palestra stores, for compatibility tests.

    python -m tests.compatibility.make DIRECTORY

`tests/assets/stored` has the files of released versions. They are never written again, because
every later version must read them; a new set gets a directory of its own. Each set is a few KiB.
"""

import asyncio
import json
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from app.db.engine import Database
from app.db.migrate import upgrade
from app.services.artifacts.blob_store import BlobStore
from palestra.contract.states import Cause, Outcome
from tests.support import records
from tests.support.artifact_store import AttemptWithStore
from tests.support.async_fakes import TallyAgent, make_agent, make_env
from tests.support.garage_kit import ConstantPolicy, CountingEnv, SamplerArgumentAlgo
from tests.support.server_fixture import make_definition as small_definition
from tests.support.server_fixture import make_world
from tests.support.trainings import TrainingAttempt, make_definition, make_work_order
from workers.entrypoints.agent_algorithm import AgentAlgorithm
from workers.entrypoints.experiment import RLExperiment
from workers.entrypoints.functional import train_agent, train_agent_async
from workers.entrypoints.trainer import Trainer
from workers.entrypoints.trainer_parts.process_sampler import ProcessSampler
from workers.entrypoints.trainer_parts.samplers import LocalSampler, VecSampler
from workers.estimators import Agent, Estimator, Memory, RunConfig
from workers.snapshot import SnapshotConfig
from workers.supervised.models import classifier, dqn

BIT_FLIP = "workers.rl.envs.builtin:palestra/BitFlip-v0"
"""Documented ID of an environment of Palestra, which is stored unchanged."""
SAMPLERS: dict[str, Callable[..., Any]] = {
    "local": LocalSampler,
    "vec": VecSampler,
    "process": ProcessSampler,
}
DEFINITIONS: dict[str, dict[str, Any]] = {
    "dqn": make_definition(
        agent="dqn",
        env={"id": "palestra/BitFlip-v0", "kwargs": {"bits": 3}},
        loop={"env_steps": 120, "epoch_env_steps": 40},
        evaluation={"every_env_steps": 50, "episodes": 1},
        snapshot={"every_env_steps": 60},
    ),
    "ppo": make_definition(
        agent="ppo",
        loop={"env_steps": 96, "epoch_env_steps": 32},
        evaluation={"every_env_steps": 48, "episodes": 1, "max_episode_steps": 9},
        snapshot={"every_env_steps": 32},
    ),
    "classifier": {
        "kind": "supervised",
        "name": "spirals",
        "estimator": {"name": "classifier", "params": {"classes": 3, "hidden_sizes": [4]}},
        "train_input": {"name": "spirals", "params": {"batch_size": 8, "points": 8}},
        "evaluation_input": {"name": "spirals", "params": {"points": 8}},
        "loop": {"updates": 20, "epoch_updates": 10},
        "evaluation": {"every_updates": 10, "metric": "accuracy", "goal": "maximize"},
        "snapshot": {"every_updates": 5},
    },
}
DEFINITIONS["dqn"]["agent"].update(buffer_size=100, learning_starts=20, hidden_sizes=[4])
DEFINITIONS["ppo"]["agent"].update(hidden_sizes=[4])


def main(directory: Path) -> None:
    """Writes all files below a directory that does not exist yet."""
    directory.mkdir(parents=True)
    for name, document in DEFINITIONS.items():
        write_job(directory / name, document, stop_at=15 if name == "classifier" else 80)
    write_trainer(directory / "trainer")
    for name, kind in SAMPLERS.items():
        write_sampling_trainer(directory / f"trainer_{name}", kind)
    write_pfrl_style_trainings(directory)
    write_estimator(directory / "estimator")
    write_agent(directory / "agent")
    asyncio.run(write_database(directory / "database"))


def write_job(target: Path, document: dict[str, Any], stop_at: int) -> None:
    """Writes the newest snapshot of a training of `document` that is killed at `stop_at`."""
    order = make_work_order(document)
    with tempfile.TemporaryDirectory() as scratch:
        killed = TrainingAttempt(order, Path(scratch, "snapshots")).run(stop_at=stop_at)
        snapshot, _ = killed.get_snapshot("periodic")
        shutil.copytree(snapshot, target / snapshot.name)
    (target / "order.json").write_text(order.model_dump_json(indent=1) + "\n", "utf-8")


def write_trainer(target: Path) -> None:
    """Writes a garage-style training of a built-in agent, which `restore` builds from
    its recipe.
    """
    made = Trainer(SnapshotConfig(str(target)), seed=1)
    parameters = {
        "name": "dqn",
        "learning_starts": 20,
        "batch_size": 8,
        "hidden_sizes": (4,),
        "buffer_size": 100,
    }
    made.setup(AgentAlgorithm(parameters, BIT_FLIP, seed=1), gym.make(BIT_FLIP))
    made.train(n_epochs=2, batch_size=40)


def write_sampling_trainer(target: Path, kind: Callable[..., Any]) -> None:
    """Writes a garage-style training whose recipe contains one of Palestra's samplers."""
    env, policy = CountingEnv(), ConstantPolicy()
    made = Trainer(SnapshotConfig(str(target)), rebuildable=True, seed=4)
    made.setup(SamplerArgumentAlgo(policy, kind(policy, env, seed=3)), env)
    made.train(2, 10)


def write_pfrl_style_trainings(directory: Path) -> None:
    """Writes trainings by `train_agent` and by `train_agent_async`, which uses a subprocess."""
    train_agent(TallyAgent(), make_env(0, test=False), 40, str(directory / "train_agent"), seed=1)
    target = str(directory / "train_agent_async")
    train_agent_async(target, 1, make_env, steps=40, eval_interval=None, make_agent=make_agent)


def make_batches() -> Any:
    """Returns batches of rows for a classifier."""
    generator = np.random.default_rng(1)
    for _ in range(12):
        yield {"x": generator.random((4, 2), np.float32)}, generator.integers(0, 3, 4)


def write_estimator(target: Path) -> None:
    """Writes the model directory of a shipped model function."""
    Estimator(
        classifier, target, RunConfig(keep_checkpoint_max=1), {"classes": 3, "hidden_sizes": [4]}
    ).train(make_batches, max_steps=8)


def write_agent(target: Path) -> None:
    """Writes the model directory of an agent with a shipped model function."""
    made = Agent(
        dqn,
        Memory(size=64, batch_size=8),
        str(target),
        RunConfig(keep_checkpoint_max=1),
        {"actions": 2, "hidden_sizes": [4]},
    )
    RLExperiment(
        made, CountingEnv(), train_steps=8, first_update=10, update_frequency=2, eval_steps=1
    ).train()


async def write_database(target: Path) -> None:
    """Writes a SQLite database as SQL.

    It has a run that was paused with a snapshot, a run that succeeded, and telemetry of both.
    """
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "palestra.db")
        upgrade(f"sqlite:///{path}")
        opened = Database(f"sqlite:///{path}")
        facts = await _fill_database(opened, Path(scratch, "blobs"))
        await opened.dispose()
        target.mkdir()
        with sqlite3.connect(path) as connection:
            (target / "palestra.sql").write_text("\n".join(connection.iterdump()) + "\n", "utf-8")
    (target / "facts.json").write_text(json.dumps(facts, indent=1) + "\n", "utf-8")


async def _fill_database(opened: Database, blobs: Path) -> dict[str, Any]:
    world = await make_world(opened)
    registered = await world.register(slots=12)
    experiment, _ = await world.submit(
        small_definition(snapshot={"keep_last": 2, "keep_best": True}), seeds=(0, 1)
    )
    first, second = await world.list_jobs()
    order = (await world.start(first.id, registered.worker_id)).work_order
    run_id = order.runs[0].run_id
    live_run = AttemptWithStore(
        world,
        opened,
        BlobStore(blobs),
        blobs,
        run_id,
        first.id,
        registered.worker_id,
        order.attempt_id,
    )
    await live_run.send(
        records.make_points(run_id, "loss/td", range(1, 50)),
        records.make_episodes(run_id, [1, 2, 3]),
        records.make_log(run_id, "hello"),
    )
    await live_run.send(records.make_evaluation(run_id, 40, 12.5), records.make_stats(run_id, 40))
    snapshot_id = await live_run.write_snapshot(40, score=12.5)
    await world.pause(first.id)
    await world.release(order.attempt_id, Outcome.PAUSED, Cause.USER, last_seq=live_run.seq)
    other = (await world.start(second.id, registered.worker_id, slot=1)).work_order
    await world.release(other.attempt_id, Outcome.SUCCEEDED, Cause.BUDGET)
    return {
        "project": world.project_id,
        "admin": world.admin.user_id,
        "experiment": experiment.id,
        "run": run_id,
        "job": first.id,
        "snapshot": snapshot_id,
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]))

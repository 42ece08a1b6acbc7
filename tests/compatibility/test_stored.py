"""Files of an older version are read by this one: snapshots of every API, and a database.

`tests/assets/stored` was written before modules and classes were moved. Module paths in recipes,
IDs of environments and documents in the database are therefore old ones.
"""

import json
import shutil
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from app.db.engine import Database
from app.db.migrate import upgrade
from app.db.models import ProjectRow, UserRow
from app.domain.paging import PageRequest
from app.services.curves import curves
from app.services.experiments import experiments
from app.services.snapshots import snapshots
from palestra.contract.identity import hash_definition
from palestra.contract.queries import SeriesQuery
from palestra.contract.work_order import WorkOrder
from tests.compatibility.make import BIT_FLIP, DEFINITIONS, SAMPLERS, make_batches
from tests.support.async_fakes import TallyAgent, make_agent, make_env
from tests.support.garage_kit import CountingEnv
from tests.support.server_fixture import ALL, World, make_principal
from tests.support.trainings import TrainingAttempt
from workers.entrypoints.experiment import RLExperiment
from workers.entrypoints.functional import train_agent, train_agent_async
from workers.entrypoints.trainer import Trainer
from workers.estimators import Agent, Estimator, Memory, RunConfig
from workers.snapshot import SnapshotConfig
from workers.snapshot.attempt_store import load_snapshot
from workers.supervised.models import classifier, dqn

ASSETS = Path(__file__).parents[1] / "assets" / "stored"


@pytest.fixture(params=sorted(path.name for path in ASSETS.iterdir() if path.is_dir()))
def stored_version(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Copy of the files of one version, since reading them may write beside them."""
    return Path(shutil.copytree(ASSETS / request.param, tmp_path / "stored"))


@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_job_resumes_from_its_snapshot(stored_version: Path, tmp_path: Path, name: str) -> None:
    order = WorkOrder.model_validate_json((stored_version / name / "order.json").read_text("utf-8"))
    (snapshot,) = (stored_version / name).glob("snp_*")
    found = load_snapshot(
        snapshot, run_id=order.runs[0].run_id, definition_hash=hash_definition(order.definition)
    )
    resumed = TrainingAttempt(order, tmp_path / "resumed")
    resumed._snapshot = found
    resumed.run()
    assert resumed.exact
    loop = DEFINITIONS[name]["loop"]
    last = [record for record in resumed.dump_records() if record["type"] == "snapshot"][-1]
    assert (last["reason"], last["update"] if name == "classifier" else last["env_step"]) == (
        "finish",
        loop.get("env_steps", 20),
    )
    assert 0 < found.manifest.update < last["update"]


def test_a_trainer_restores_a_built_in_agent(stored_version: Path, tmp_path: Path) -> None:
    trainer = Trainer(SnapshotConfig(str(tmp_path / "again")))
    trainer.restore(stored_version / "trainer")
    trainer.resume(n_epochs=3)
    assert (trainer.stats.total_env_steps, trainer.stats.total_epoch) == (120, 2)
    assert type(trainer._session.algo).__name__ == "AgentAlgorithm"  # type: ignore[union-attr]


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_trainer_restores_samplers(stored_version: Path, tmp_path: Path, name: str) -> None:
    trainer = Trainer(SnapshotConfig(str(tmp_path / "again")))
    trainer.restore(stored_version / f"trainer_{name}")
    trainer.resume(n_epochs=3)
    assert type(trainer._session.algo._sampler) is SAMPLERS[name]  # type: ignore[union-attr]
    assert trainer.stats.total_epoch == 2


def test_training_functions_resume_from_their_snapshots(stored_version: Path) -> None:
    agent = TallyAgent()
    train_agent(
        agent,
        make_env(0, test=False),
        60,
        str(stored_version / "train_agent"),
        seed=1,
        resume="latest",
    )
    assert (stored_version / "train_agent" / "60_finish").is_dir()
    assert agent.t == 60
    target = str(stored_version / "train_agent_async")
    found = train_agent_async(
        target, 1, make_env, steps=60, eval_interval=None, make_agent=make_agent, resume="latest"
    )
    assert found.t == 60


def test_model_directories_load_with_the_same_model_functions(stored_version: Path) -> None:
    estimator = Estimator(
        classifier, stored_version / "estimator", params={"classes": 3, "hidden_sizes": [4]}
    )
    assert (estimator.global_step, estimator.train(make_batches, max_steps=12).global_step) == (
        8,
        12,
    )
    agent = Agent(
        dqn,
        Memory(size=64, batch_size=8),
        stored_version / "agent",
        RunConfig(),
        {"actions": 2, "hidden_sizes": [4]},
    )
    assert agent.global_step == 8
    RLExperiment(
        agent, CountingEnv(), train_steps=12, first_update=10, update_frequency=2, eval_steps=1
    ).train()
    assert agent.global_step == 12


def test_an_own_environment_is_found_by_its_documented_id() -> None:
    assert isinstance(gym.make(BIT_FLIP, bits=4).reset(seed=1)[0], dict | np.ndarray)


@pytest.fixture
async def world(stored_version: Path, tmp_path: Path) -> AsyncIterator[World]:
    """The stored database, upgraded to this version."""
    path = tmp_path / "palestra.db"
    with sqlite3.connect(path) as connection:
        connection.executescript((stored_version / "database" / "palestra.sql").read_text("utf-8"))
    connection.close()
    upgrade(f"sqlite:///{path}")
    database = Database(f"sqlite:///{path}")
    known = read_facts(stored_version)
    project, user = (
        ProjectRow(id=known["project"], slug="default", name="default"),
        UserRow(id=known["admin"], name="admin", is_admin=True),
    )
    admin = make_principal(project, user, ALL)
    yield World(database, project.id, admin, admin)
    await database.dispose()


def read_facts(stored: Path) -> dict[str, Any]:
    known: dict[str, Any] = json.loads((stored / "database" / "facts.json").read_text("utf-8"))
    return known


async def test_a_database_is_read(stored_version: Path, world: World) -> None:
    known = read_facts(stored_version)
    async with world.database.read() as session:
        experiment = await experiments.get(session, world.admin, known["experiment"])
        (snapshot,) = (
            await snapshots.list_for_run(session, world.admin, known["run"], PageRequest(limit=9))
        ).items
    assert {job.state for job in await world.list_jobs()} == {"paused", "succeeded"}
    assert (experiment.name, snapshot.id, snapshot.state) == (
        "CartPole DQN",
        known["snapshot"],
        "verified",
    )
    body = {
        "select": [{"run_id": known["run"], "series": "loss/td"}],
        "start": 1,
        "end": 49,
        "buckets": 7,
    }
    (curve,) = (
        await curves.query(
            world.database, world.admin, SeriesQuery.model_validate_json(json.dumps(body))
        )
    ).series
    assert sum(curve.n) == 49


async def test_a_paused_run_of_an_older_database_is_resumed(
    stored_version: Path, world: World
) -> None:
    known = read_facts(stored_version)
    await world.resume(known["job"])
    worker = await world.register(name="w2")
    order = (await world.claim(known["job"], worker.worker_id, attempt=2)).work_order
    assert order.runs[0].snapshot is not None
    assert (order.runs[0].run_id, order.runs[0].snapshot.snapshot_id) == (
        known["run"],
        known["snapshot"],
    )
    again, is_new = await world.submit(
        seeds=(0,), document=order.definition.model_dump(mode="json")
    )
    assert (again.id, is_new) == (known["experiment"], False), "the same definition has the same ID"

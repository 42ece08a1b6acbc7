"""Trainings of every family of agents whose numbers cease to be finite, with the hook nan_guard."""

import re
from pathlib import Path
from typing import Any

import pytest

from palestra.contract.names import WORKER_IMPORTS
from palestra.contract.states import Cause, Outcome
from palestra.contract.work_order import AttemptReport
from tests.support.diverging import TorchAgent
from tests.support.trainings import make_definition, make_work_order
from tests.unit.workers.trainer_process.test_attempt import execute, read_records
from tests.unit.workers.trainer_process.test_packs import make_pack_order
from workers.assembly import rl_parts
from workers.rl.agents.pfrl_adapter import ExternalAgent

SINCE = 100
"""The env_step after which rewards are NaN."""
LIMIT = 12
BUDGET = 1_200
REPLAY = {"batch_size": 8, "learning_starts": 8, "hidden_sizes": [8], "buffer_size": 500}
ROLLOUT = {"rollout_steps": 8, "hidden_sizes": [8]}
PPO = {"name": "ppo", **ROLLOUT, "minibatch_size": 4, "passes": 2}
CEM = {"name": "cem", "population_size": 4, "elite_fraction": 0.5}
DISCRETE = [
    {"name": "dqn", **REPLAY},
    {"name": "dqn", **REPLAY, "updates_per_train": 8},
    {"name": "drqn", **REPLAY},
    {"name": "rainbow", **REPLAY},
    PPO,
    {"name": "a2c", **ROLLOUT},
    {"name": "a3c", **ROLLOUT, "processes": 2},
    {"name": "reinforce", "hidden_sizes": [8]},
    {"name": "recurrent_ppo", **ROLLOUT},
    CEM,
]
CONTINUOUS = [{"name": name, **REPLAY} for name in ("sac", "td3", "ddpg", "naf")]


@pytest.fixture(autouse=True)
def _register_in_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processes of a3c import the module that registers the environment."""
    monkeypatch.setenv(WORKER_IMPORTS, "tests.support.diverging")


def make_document(agent: dict[str, Any], limit: int = LIMIT, **env: Any) -> dict[str, Any]:
    return make_definition(
        agent="ppo",
        env={"id": "Diverging-v0", "kwargs": {"since": SINCE, **env}},
        loop={"env_steps": BUDGET},
        hooks=[{"name": "nan_guard", "updates": limit}],
        evaluation={"every_env_steps": None, "episodes": 1},
        snapshot={},
    ) | {"agent": agent}


def place_of(text: str) -> tuple[str, int, int]:
    """Returns series, env_step and episode that a note or failure names."""
    found = re.search(r"(\S+) was (?:nan|inf) at env_step ([\d,]+), episode ([\d,]+)\.", text)
    assert found is not None, text
    return found[1], int(found[2].replace(",", "")), int(found[3].replace(",", ""))


def check_end(report: AttemptReport, notes: list[dict[str, Any]]) -> tuple[str, int, int]:
    """Checks that a run ended as diverged with the same place in failure and note; returns it."""
    assert (report.outcome, report.cause) == (Outcome.FAILED, Cause.DIVERGED), report.failure
    assert report.failure is not None
    (note,) = notes
    place = place_of(report.failure.message)
    assert place_of(note["message"]) == place
    return place


@pytest.mark.parametrize(
    ("agent", "continuous"),
    [
        *((agent, False) for agent in DISCRETE),
        *((agent, True) for agent in CONTINUOUS),
        # Its products of the Fisher matrix load the compiler of torch, which takes a while.
        pytest.param({"name": "trpo", **ROLLOUT}, False, marks=pytest.mark.extended),
    ],
    ids=lambda value: value["name"] if isinstance(value, dict) else str(value),
)
def test_a_run_of_every_family_ends_soon_after_the_first_value_and_names_it(
    tmp_path: Path, agent: dict[str, Any], continuous: bool
) -> None:
    order = make_work_order(make_document(agent, continuous=continuous))
    directory, report = execute(tmp_path, order)
    series, env_step, episode = check_end(report, read_records(directory, "note"))
    assert series.startswith("loss/")
    assert SINCE < env_step <= report.env_step < BUDGET
    # A learn follows at most 32 episodes; each of two processes has an episode in progress.
    assert env_step <= SINCE + 256
    assert env_step // 8 - 1 <= episode <= env_step // 8


def test_480_updates_in_twelve_learns_count_as_480(tmp_path: Path) -> None:
    """More than the default limit of 100, in fewer than 50 learns."""
    agent = {**PPO, "rollout_steps": 80, "minibatch_size": 4, "passes": 2}
    document = make_document(agent, limit=100)
    document["loop"] = {"env_steps": 12 * 80}
    _, report = execute(tmp_path, make_work_order(document))
    assert report.cause is Cause.DIVERGED


def test_the_last_updates_of_a_run_count(tmp_path: Path) -> None:
    """The limit is reached with the last update of the budget."""
    document = make_document({"name": "dqn", **REPLAY}, limit=30)
    _, report = execute(tmp_path, make_work_order(document))
    assert report.cause is Cause.DIVERGED
    document["loop"] = {"env_steps": report.env_step}
    _, again = execute(tmp_path, make_work_order(document))
    assert (again.cause, again.env_step) == (Cause.DIVERGED, report.env_step)
    document["loop"] = {"env_steps": report.env_step - 1}
    directory, before = execute(tmp_path, make_work_order(document))
    assert before.cause is Cause.BUDGET
    (note,) = read_records(directory, "note")
    assert place_of(note["message"])[0] == "loss/td"


def test_a_candidate_of_cem_without_a_finite_return_ends_nothing(tmp_path: Path) -> None:
    """It ranks last, and the elites' returns are finite."""
    agent = {**CEM, "population_size": 8, "elite_fraction": 0.25}
    document = make_document(agent, limit=1, since=8, length=4, bad="-inf", until=12)
    _, report = execute(tmp_path, make_work_order(document))
    assert report.cause is Cause.BUDGET


def test_each_run_of_a_pack_ends_by_itself_and_names_its_first_value(tmp_path: Path) -> None:
    order = make_pack_order(make_document(PPO))
    directory, report = execute(tmp_path, order)
    assert report.cause is Cause.DIVERGED
    assert report.failure is not None
    notes = read_records(directory, "note")
    for end in report.runs:
        assert (end.outcome, end.cause) == (Outcome.FAILED, Cause.DIVERGED)
        assert end.failure is not None
        (own,) = (note for note in notes if note["run"] == end.run_id)
        assert place_of(own["message"]) == place_of(end.failure.message)
    assert len(report.runs) == 3


@pytest.fixture
def torch_agent(monkeypatch: pytest.MonkeyPatch) -> TorchAgent:
    """An agent with PFRL's methods, which the definition's agent is replaced by."""
    agent = TorchAgent()
    wrapped = ExternalAgent(agent, num_envs=1, is_batch=False)
    monkeypatch.setattr(rl_parts, "make_agent", lambda *_, **__: wrapped)
    return agent


def test_parameters_of_an_agent_that_reports_nothing_are_checked(
    tmp_path: Path, torch_agent: TorchAgent
) -> None:
    directory, report = execute(tmp_path, make_work_order(make_document(PPO)))
    name, env_step, episode = check_end(report, read_records(directory, "note"))
    assert name == "model.weight"
    assert SINCE < env_step <= SINCE + LIMIT
    assert episode == env_step // 8
    assert report.env_step <= env_step + LIMIT


def test_an_agent_that_reports_nothing_and_stays_finite_uses_its_budget(
    tmp_path: Path, torch_agent: TorchAgent
) -> None:
    directory, report = execute(tmp_path, make_work_order(make_document(PPO, since=BUDGET)))
    assert report.cause is Cause.BUDGET
    assert read_records(directory, "note") == []

"""Warnings about definitions that cannot learn or cannot reach their target.

Other definitions get no warning.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from palestra.contract.advice import list_warnings
from palestra.contract.definition import read_definition
from palestra.contract.job_options import JobOptions
from tests.support.server_fixture import make_definition

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.yaml"))
PPO = {"name": "ppo", "rollout_steps": 128, "minibatch_size": 32}
MLP = {member: {"name": "x"} for member in ("estimator", "train_input", "evaluation_input")}


def list_codes_and_pointers(document: dict[str, Any], **options: Any) -> list[tuple[str, str]]:
    jobs = JobOptions.model_validate_json(json.dumps(options))
    return [
        (one.code, one.pointer)
        for one in list_warnings(read_definition(json.dumps(document)), jobs)
    ]


@pytest.mark.parametrize(
    ("changes", "code", "pointer"),
    [
        (
            {"agent": {"name": "dqn", "learning_starts": 20_000}},
            "no_updates",
            "/definition/agent/learning_starts",
        ),
        (
            {"agent": PPO, "loop": {"env_steps": 500}, "env": {"id": "CartPole-v1", "num_envs": 4}},
            "less_than_a_rollout",
            "/definition/loop/env_steps",
        ),
        (
            {"evaluation": {"every_env_steps": 100}},
            "costly_evaluation",
            "/definition/evaluation/every_env_steps",
        ),
        (
            {"evaluation": {"every_env_steps": 100, "episodes": None, "steps": 101}},
            "costly_evaluation",
            "/definition/evaluation/every_env_steps",
        ),
        (
            {"snapshot": {"every_env_steps": 1}},
            "snapshot_every_step",
            "/definition/snapshot/every_env_steps",
        ),
        (
            {"env": {"id": "CartPole-v1", "num_envs": 4_096, "vectorization": "async"}},
            "many_processes",
            "/definition/env/num_envs",
        ),
    ],
)
def test_definitions_that_cannot_learn_get_a_warning(
    changes: dict[str, Any], code: str, pointer: str
) -> None:
    assert (code, pointer) in list_codes_and_pointers(make_definition(**changes))


def test_supervised_definitions_get_warnings() -> None:
    document = {"kind": "supervised", "name": "s", "loop": {"updates": 50}, **MLP}
    assert list_codes_and_pointers(document) == []
    dear = {
        **document,
        "evaluation": {"every_updates": 5, "steps": 6},
        "snapshot": {"every_updates": 1},
    }
    assert [code for code, _ in list_codes_and_pointers(dear)] == [
        "costly_evaluation",
        "snapshot_every_step",
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"agent": {"name": "dqn", "learning_starts": 10_000}},
        {"agent": PPO, "loop": {"env_steps": 128}},
        {"loop": {"episodes": 5}, "agent": {"name": "dqn", "learning_starts": 20_000}},
        {"evaluation": {"every_env_steps": 200}},
        {"evaluation": {"every_env_steps": 100, "max_episode_steps": 10}},
        {"evaluation": {"every_env_steps": None}},
        {"env": {"id": "CartPole-v1", "num_envs": 256, "vectorization": "async"}},
    ],
)
def test_a_useful_definition_gets_no_warning(changes: dict[str, Any]) -> None:
    assert list_codes_and_pointers(make_definition(**changes)) == []


def test_a_test_job_gets_no_warning() -> None:
    assert (
        list_codes_and_pointers(make_definition(snapshot={"every_env_steps": 1}), schedule="test")
        == []
    )


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_our_own_examples_give_no_warning(example: Path) -> None:
    document = yaml.safe_load(example.read_text())
    assert list_codes_and_pointers(document.get("definition", document)) == []

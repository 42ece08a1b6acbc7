import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from palestra.contract.code import BuiltinCode
from palestra.contract.definition import SCHEMA_VERSION
from palestra.contract.documents import encode_canonical_json
from palestra.contract.identity import compute_experiment_id, hash_definition
from palestra.contract.upgrade import (
    UnsupportedSchemaError,
    load_definition,
    upgrade,
    upgrade_submission,
)
from palestra.contract.versions import STEPS
from tests.support.api_samples import make_definition

ASSETS = Path(__file__).parents[2] / "assets" / "definitions"
SAMPLES = sorted(ASSETS.glob("v*.json"))

# The identity of a released document must never change: experiment IDs depend on it.
RELEASED_HASHES = {
    "v1-dqn.json": "62dd969bb2a7c833eb98fe1c9d7e3626c8ec174650822078ba7e5686ed553b2a",
    "v1-ppo.json": "6b7b86d0826f33fb88cdf1db69d2d52f72e4e9add574ab5c391467a7efa38697",
    "v2-ppo.json": "d2c4bc7b3748327de7741f988ab943d663efe851fd252edca2a193ec779d0c3a",
    "v3-ppo.json": "4e495b271e43338ffe0a881f184691c96121a5f1c13bf553f01ceb1fa6d0ee98",
}
RELEASED_IDS = {
    "v1-dqn.json": "cartpole-with-dqn-b189a2ebca0be72d",
    "v1-ppo.json": "pendulum-ppo-5e5cc1f5002edf3a",
}
ON_POLICY = ["ppo", "a2c", "a3c", "reinforce", "recurrent_ppo"]


def write_document(version: int, agent: dict[str, Any], **changes: Any) -> str:
    return json.dumps(make_definition(schema_version=version, agent=agent, **changes))


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_samples_of_every_version_are_still_read_as_the_same_definition(sample: Path) -> None:
    assert hash_definition(load_definition(sample.read_bytes())) == RELEASED_HASHES[sample.name]


@pytest.mark.parametrize(
    "known",
    json.loads((ASSETS / "identities.json").read_text("utf-8")),
    ids=lambda known: known["id"],
)
def test_definitions_keep_the_id_and_the_hash_that_they_had(known: dict[str, Any]) -> None:
    definition = load_definition(json.dumps(known["definition"]))
    assert compute_experiment_id(definition, BuiltinCode()) == known["id"]
    assert hash_definition(definition) == known["hash"]
    current = json.dumps({**known["definition"], "schema_version": SCHEMA_VERSION})
    assert hash_definition(load_definition(current)) == known["hash"]


def test_a_policy_that_is_not_greedy_is_part_of_the_identity() -> None:
    def identify(**evaluation: Any) -> str:
        document = write_document(3, {"name": "ppo"}, evaluation=evaluation)
        return compute_experiment_id(load_definition(document), BuiltinCode())

    plain = load_definition(write_document(2, {"name": "ppo"}, evaluation={}))
    assert identify(policy="greedy") == compute_experiment_id(plain, BuiltinCode())
    ids = {identify(policy=policy) for policy in ("greedy", "stochastic", "both")}
    assert len(ids) == 3


@pytest.mark.parametrize("name", RELEASED_IDS)
def test_documents_of_version_1_keep_their_id(name: str) -> None:
    """This includes documents that are submitted again to a server that supports version 2."""
    raw = next(sample for sample in SAMPLES if sample.name == name).read_bytes()
    assert compute_experiment_id(load_definition(raw), BuiltinCode()) == RELEASED_IDS[name]


@pytest.mark.parametrize("name", ON_POLICY)
def test_the_upgrade_halves_the_value_coefficient(name: str) -> None:
    """This holds for explicit and default values.

    0.5 times half the squared error equals 0.25 times the squared error.
    """
    for said, meant in (
        ({}, 0.25),
        ({"value_coefficient": 0.3}, 0.15),
        ({"value_coefficient": 1}, 0.5),
        ({"value_coefficient": 0}, 0.0),
    ):
        agent = load_definition(write_document(1, {"name": name, **said})).agent
        assert agent.value_coefficient == meant
        assert (
            load_definition(
                write_document(2, {"name": name, "value_coefficient": 0.3})
            ).agent.value_coefficient
            == 0.3
        )
    with pytest.raises(ValidationError, match="value_coefficient"):
        load_definition(write_document(1, {"name": name, "value_coefficient": "much"}))


@pytest.mark.parametrize("name", ON_POLICY)
def test_equivalent_documents_of_both_versions_have_the_same_id(name: str) -> None:
    """Documents that differ in meaning have different IDs."""
    old = load_definition(write_document(1, {"name": name, "value_coefficient": 0.7}))
    same = load_definition(write_document(2, {"name": name, "value_coefficient": 0.35}))
    other = load_definition(write_document(2, {"name": name, "value_coefficient": 0.7}))
    code = BuiltinCode()
    assert (
        compute_experiment_id(old, code)
        == compute_experiment_id(same, code)
        != compute_experiment_id(other, code)
    )
    assert hash_definition(old) == hash_definition(same) != hash_definition(other)
    stored = encode_canonical_json(old)
    assert load_definition(stored) == old, "what is stored in the new version stays as it is"


def test_agents_without_a_value_coefficient_are_the_same_in_both_versions() -> None:
    """The upgrade changes only the coefficient of the value loss."""
    for agent in (
        {"name": "dqn"},
        {"name": "trpo"},
        {"name": "sb3", "algorithm": "PPO", "parameters": {"vf_coef": 0.5}},
        {"name": "mine"},
    ):
        one, two = (load_definition(write_document(version, agent)) for version in (1, 2))
        assert one == two
        assert compute_experiment_id(one, BuiltinCode()) == compute_experiment_id(
            two, BuiltinCode()
        )


def test_submissions_are_upgraded_and_other_documents_are_not_changed() -> None:
    """This holds for documents from a file and from the API."""
    document = json.loads(
        write_document(1, {"name": "ppo"}, env={"id": "CartPole-v1", "num_envs": 8})
    )
    assert upgrade_submission({"definition": document, "options": {}})["definition"]["agent"] == {
        "name": "ppo",
        "value_coefficient": 0.25,
    }
    assert upgrade_submission({"definition": "none"}) == {"definition": "none"}
    assert upgrade_submission({"definition": {"schema_version": 1, "agent": 5}})["definition"] == {
        "schema_version": SCHEMA_VERSION,
        "agent": 5,
    }


def test_every_released_version_has_a_sample_and_an_upgrade() -> None:
    versions = {json.loads(sample.read_text())["schema_version"] for sample in SAMPLES}
    assert versions == set(range(1, SCHEMA_VERSION + 1))
    assert set(STEPS) == set(range(1, SCHEMA_VERSION))


def test_upgrade_steps_run_in_order_and_do_not_change_the_input() -> None:
    document = {"schema_version": 1, "steps": 5}
    steps = {
        1: lambda old: {"env_steps": old["steps"]},
        2: lambda old: {"loop": {"env_steps": old["env_steps"]}},
    }
    assert upgrade(document, steps, current=3) == {"schema_version": 3, "loop": {"env_steps": 5}}
    assert document == {"schema_version": 1, "steps": 5}


@pytest.mark.parametrize(
    ("version", "sentence"),
    [(99, "upgrade Palestra"), (0, "whole number"), (True, "whole number"), ("1", "whole number")],
)
def test_unsupported_versions_are_refused_with_a_remedy(version: object, sentence: str) -> None:
    with pytest.raises(UnsupportedSchemaError, match=sentence):
        upgrade({"schema_version": version})


def test_a_version_without_an_upgrade_step_is_refused() -> None:
    with pytest.raises(UnsupportedSchemaError, match="no step leads to 2"):
        upgrade({"schema_version": 1}, {}, current=2)

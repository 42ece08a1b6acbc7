import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from palestra.contract.definition import (
    BuiltinCode,
    Definition,
    GitCode,
    definition_hash,
    experiment_id,
    identity_hash,
)
from palestra.contract.documents import canonical_json
from palestra.contract.options import Submission

ASSETS = Path(__file__).parents[2] / "assets" / "definitions"


def minimal(**changes: Any) -> dict[str, Any]:
    return {"kind": "rl", "name": "tiny", "env": {"id": "CartPole-v1"}, "agent": {"name": "dqn"}, "loop": {"env_steps": 100}} | changes


def load(document: dict[str, Any]) -> Definition:
    return Definition.model_validate_json(json.dumps(document))


def test_defaults_are_part_of_the_canonical_form() -> None:
    written_out = minimal(agent={"name": "dqn", "gamma": 0.99, "batch_size": 64})
    assert canonical_json(load(minimal())) == canonical_json(load(written_out))


def test_name_and_notes_do_not_change_the_hash() -> None:
    assert definition_hash(load(minimal())) == definition_hash(load(minimal(name="other", notes="why")))


@pytest.mark.parametrize(
    "change",
    [
        {"env": {"id": "CartPole-v0"}},
        {"env": {"id": "CartPole-v1", "num_envs": 2}},
        {"agent": {"name": "dqn", "gamma": 0.98}},
        {"agent": {"name": "ppo", "minibatch_size": 64}},
        {"loop": {"env_steps": 101}},
        {"stop": {"success_score": 1.0}},
        {"hooks": []},
    ],
)
def test_any_other_change_changes_the_hash(change: dict[str, Any]) -> None:
    assert definition_hash(load(minimal())) != definition_hash(load(minimal(**change)))


def test_an_integer_and_the_same_float_are_one_definition() -> None:
    assert definition_hash(load(minimal(stop={"success_score": 475}))) == definition_hash(load(minimal(stop={"success_score": 475.0})))


@given(st.randoms(use_true_random=False))
def test_the_hash_ignores_key_order(random: Any) -> None:
    def shuffled(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        items = [(key, shuffled(item)) for key, item in value.items()]
        random.shuffle(items)
        return dict(items)

    document = json.loads((ASSETS / "v1-dqn.json").read_text())
    assert definition_hash(load(shuffled(document))) == definition_hash(load(document))


def test_canonical_json_round_trips() -> None:
    definition = load(json.loads((ASSETS / "v1-dqn.json").read_text()))
    assert Definition.model_validate_json(canonical_json(definition)) == definition


def test_code_is_part_of_the_identity() -> None:
    definition = load(minimal())
    clean = GitCode(kind="git", head="a" * 40)
    dirty = GitCode(kind="git", head="a" * 40, dirty_digest="b" * 64)
    assert len({identity_hash(definition, code) for code in (BuiltinCode(), clean, dirty)}) == 3


def test_the_id_is_a_slug_and_sixteen_digits() -> None:
    definition = load(minimal(name="Würfel & DQN!"))
    assert experiment_id(definition, BuiltinCode()) == f"wurfel-dqn-{identity_hash(definition, BuiltinCode())[:16]}"


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"loop": {}}, ("loop",)),
        ({"loop": {"env_steps": 0}}, ("loop", "env_steps")),
        ({"loop": {"env_steps": "10k"}}, ("loop", "env_steps")),
        ({"agent": {"name": "dqn", "gamma": 1.5}}, ("agent", "dqn", "gamma")),
        ({"agent": {"name": "dqn", "learning_rate": "0.001"}}, ("agent", "dqn", "learning_rate")),
        ({"agent": {"name": "dqn", "learning_rate": True}}, ("agent", "dqn", "learning_rate")),
        ({"agent": {"name": "dqn", "batch_size": 64, "buffer_size": 32}}, ("agent", "dqn")),
        ({"agent": {"name": "dqn", "epsilon_start": 0.1, "epsilon_end": 0.5}}, ("agent", "dqn")),
        ({"agent": {"name": "ppo", "rollout_steps": 8}}, ()),
        ({"evaluation": {"episodes": 5, "steps": 5}}, ("evaluation",)),
        ({"evaluation": {"episodes": None}}, ("evaluation",)),
        ({"env": {"id": "CartPole-v1", "num_envs": 100_000}}, ("env", "num_envs")),
        ({"name": "two\nlines"}, ("name",)),
        ({"name": "gpj\u202eexe"}, ("name",)),
        ({"name": " "}, ("name",)),
        ({"name": "x" * 65}, ("name",)),
        ({"notes": "nul \u0000"}, ("notes",)),
        ({"surprise": 1}, ("surprise",)),
        ({"schema_version": 2}, ("schema_version",)),
    ],
)
def test_bad_definitions_are_refused_where_they_are_bad(change: dict[str, Any], where: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError) as raised:
        load(minimal(**change))
    assert [error["loc"] for error in raised.value.errors()] == [where]


@pytest.mark.parametrize("seeds", [[], [1, 1], [-1], [2**32], ["a"], [1.0], [True]])
def test_bad_seeds_are_refused(seeds: list[Any]) -> None:
    with pytest.raises(ValidationError):
        Submission.model_validate_json(json.dumps({"definition": minimal(), "options": {"seeds": seeds}}))

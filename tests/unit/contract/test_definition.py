import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from palestra.contract.agents import BUILTIN_AGENTS
from palestra.contract.code import (
    BuiltinCode,
    Code,
    DistributionCode,
    EntrypointCode,
    GitCode,
    ModuleCode,
)
from palestra.contract.definition import Definition, read_definition
from palestra.contract.documents import encode_canonical_json, hash_document
from palestra.contract.free_parameters import check_schema
from palestra.contract.identity import compute_experiment_id, hash_definition, hash_identity
from palestra.contract.job_options import Submission
from palestra.contract.problems import explain
from palestra.contract.upgrade import upgrade

ASSETS = Path(__file__).parents[2] / "assets" / "definitions"


def make_minimal_document(**changes: Any) -> dict[str, Any]:
    return {
        "kind": "rl",
        "name": "tiny",
        "env": {"id": "CartPole-v1"},
        "agent": {"name": "dqn"},
        "loop": {"env_steps": 100},
    } | changes


def load(document: dict[str, Any]) -> Definition:
    return read_definition(json.dumps(document))


def make_supervised_document(**changes: Any) -> dict[str, Any]:
    named = {
        member: {"name": name}
        for member, name in (
            ("estimator", "mlp"),
            ("train_input", "rows"),
            ("evaluation_input", "rows"),
        )
    }
    return {"kind": "supervised", "name": "tiny", "loop": {"updates": 100}, **named, **changes}


def test_defaults_are_part_of_the_canonical_form() -> None:
    written_out = make_minimal_document(agent={"name": "dqn", "gamma": 0.99, "batch_size": 64})
    assert encode_canonical_json(load(make_minimal_document())) == encode_canonical_json(
        load(written_out)
    )


def test_name_and_notes_do_not_change_the_hash() -> None:
    assert hash_definition(load(make_minimal_document())) == hash_definition(
        load(make_minimal_document(name="other", notes="why"))
    )


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
    assert hash_definition(load(make_minimal_document())) != hash_definition(
        load(make_minimal_document(**change))
    )


def test_an_integer_and_the_equal_float_give_the_same_hash() -> None:
    assert hash_definition(
        load(make_minimal_document(stop={"success_score": 475}))
    ) == hash_definition(load(make_minimal_document(stop={"success_score": 475.0})))


@given(st.randoms(use_true_random=False))
def test_the_hash_ignores_key_order(random: Any) -> None:
    def shuffle_keys(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        items = [(key, shuffle_keys(item)) for key, item in value.items()]
        random.shuffle(items)
        return dict(items)

    document = upgrade(json.loads((ASSETS / "v1-dqn.json").read_text()))
    assert hash_definition(load(shuffle_keys(document))) == hash_definition(load(document))


def test_canonical_json_round_trips() -> None:
    definition = load(upgrade(json.loads((ASSETS / "v1-dqn.json").read_text())))
    assert read_definition(encode_canonical_json(definition)) == definition


def test_code_is_part_of_the_identity() -> None:
    definition = load(make_minimal_document())
    clean = GitCode(kind="git", head="a" * 40)
    dirty = GitCode(kind="git", head="a" * 40, dirty_digest="b" * 64)
    installed = [
        EntrypointCode(kind="entrypoint", distribution="d", version=version, digest=digest * 64)
        for version, digest in ("1a", "2a", "1b")
    ]
    assert (
        len({hash_identity(definition, code) for code in (BuiltinCode(), clean, dirty, *installed)})
        == 6
    )


def test_the_code_of_an_environment_is_part_of_the_hash_only_if_present() -> None:
    """IDs of experiments without such an environment do not change."""
    definition = load(make_minimal_document())
    assert encode_canonical_json(BuiltinCode()) == b'{"kind":"builtin"}'
    assert hash_identity(definition, BuiltinCode()) == hash_document(
        {
            "code": {"kind": "builtin"},
            "definition": hash_definition(definition),
            "schema_version": 1,
        }
    )
    agent = {"kind": "entrypoint", "distribution": "d", "version": "1", "digest": "a" * 64}
    assert json.loads(encode_canonical_json(EntrypointCode(**agent))) == agent
    environments = [
        None,
        ModuleCode(module="m", digest="b" * 64),
        ModuleCode(module="m", digest="c" * 64),
    ]
    environments.append(DistributionCode(distribution="m", version="1", digest="b" * 64))
    codes = [
        one.model_copy(update={"environment": env})
        for one in (BuiltinCode(), EntrypointCode(**agent))
        for env in environments
    ]
    assert len({hash_identity(definition, code) for code in codes}) == 8
    assert [TypeAdapter(Code).validate_json(encode_canonical_json(code)) for code in codes] == codes


def test_work_tree_code_is_refused_in_submissions() -> None:
    """No worker could load such code.

    Stored experiments that have it are still read.
    """
    document = {"definition": make_minimal_document(), "code": {"kind": "git", "head": "a" * 40}}
    with pytest.raises(ValidationError) as raised:
        Submission.model_validate_json(json.dumps(document))
    (problem,) = explain(raised.value, Submission)
    assert problem.pointer == "/code"
    assert (
        "put the code into a package whose entry points name the agent or the environment"
        in problem.message
    )
    assert TypeAdapter(Code).validate_python(document["code"]) == GitCode(kind="git", head="a" * 40)


def test_the_id_is_a_slug_and_sixteen_digits() -> None:
    definition = load(make_minimal_document(name="Würfel & DQN!"))
    assert (
        compute_experiment_id(definition, BuiltinCode())
        == f"wurfel-dqn-{hash_identity(definition, BuiltinCode())[:16]}"
    )


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"loop": {}}, "/loop"),
        ({"loop": {"env_steps": 0}}, "/loop/env_steps"),
        ({"loop": {"env_steps": "10k"}}, "/loop/env_steps"),
        ({"agent": {"name": "dqn", "gamma": 1.5}}, "/agent/gamma"),
        ({"agent": {"name": "dqn", "learning_rate": "0.001"}}, "/agent/learning_rate"),
        ({"agent": {"name": "dqn", "learning_rate": True}}, "/agent/learning_rate"),
        ({"agent": {"name": "dqn", "batch_size": 64, "buffer_size": 32}}, "/agent"),
        ({"agent": {"name": "dqn", "epsilon_start": 0.1, "epsilon_end": 0.5}}, "/agent"),
        ({"agent": {"name": "ppo", "rollout_steps": 8, "minibatch_size": 256}}, ""),
        ({"agent": {"name": "a3c"}, "env": {"id": "CartPole-v1", "num_envs": 2}}, ""),
        ({"agent": {"name": "a3c"}, "loop": {"env_steps": 100, "updates": 10}}, ""),
        ({"agent": {"name": "a3c", "processes": 65}}, "/agent/processes"),
        ({"evaluation": {"episodes": 5, "steps": 5}}, "/evaluation"),
        ({"evaluation": {"episodes": None}}, "/evaluation"),
        ({"env": {"id": "CartPole-v1", "num_envs": 100_000}}, "/env/num_envs"),
        ({"name": "two\nlines"}, "/name"),
        ({"name": "gpj\u202eexe"}, "/name"),
        ({"name": " "}, "/name"),
        ({"name": "x" * 65}, "/name"),
        ({"notes": "nul \u0000"}, "/notes"),
        ({"surprise": 1}, "/surprise"),
        ({"schema_version": 1}, "/schema_version"),
        ({"kind": "other"}, ""),
        ({"agent": {"name": "os:system"}}, "/agent"),
        ({"agent": {"gamma": 0.9}}, "/agent"),
        ({"agent": []}, "/agent"),
        ({"agent": {"name": "mine", "gamma": 0.9}}, "/agent"),
        ({"agent": {"name": "mine", "parameters": []}}, "/agent/parameters"),
        ({"agent": {"name": "mine", "parameters": {"a": 2**63}}}, "/agent/parameters"),
        ({"agent": {"name": "mine", "parameters": {"a": "x" * 65_536}}}, "/agent/parameters"),
        ({"agent": {"name": "mine", "parameters": {"": 1}}}, "/agent/parameters//[key]"),
    ],
)
def test_invalid_definitions_are_refused_with_a_pointer(change: dict[str, Any], where: str) -> None:
    assert list_error_pointers(make_minimal_document(**change)) == [where]


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"loop": {}}, "/loop/updates"),
        ({"loop": {"updates": 0}}, "/loop/updates"),
        ({"estimator": {"name": "os:system"}}, "/estimator/name"),
        ({"estimator": {"name": "mlp", "units": 3}}, "/estimator/units"),
        ({"train_input": None}, "/train_input"),
        ({"evaluation": {"goal": "best"}}, "/evaluation/goal"),
        ({"evaluation": {"metric": "../x"}}, "/evaluation/metric"),
        ({"evaluation": {"metric": "accuracy"}}, "/evaluation"),
        ({"evaluation": {"episodes": 5}}, "/evaluation/episodes"),
        ({"snapshot": {"keep_last": 1}}, "/snapshot/keep_last"),
        ({"hooks": [{"name": "learning_rate_schedule", "env_steps": 5}]}, "/hooks/0/name"),
        ({"env": {"id": "CartPole-v1"}}, "/env"),
    ],
)
def test_invalid_supervised_definitions_are_refused_with_a_pointer(
    change: dict[str, Any], where: str
) -> None:
    assert where in list_error_pointers(make_supervised_document(**change))


def list_error_pointers(document: dict[str, Any]) -> list[str]:
    with pytest.raises(ValidationError) as raised:
        Submission.model_validate_json(json.dumps({"definition": document}))
    return [
        problem.pointer.removeprefix("/definition") for problem in explain(raised.value, Submission)
    ]


def test_the_error_of_a_misspelt_agent_lists_the_known_agents() -> None:
    with pytest.raises(ValidationError, match="none of the built-in agents a2c, a3c"):
        load(make_minimal_document(agent={"name": "dnq", "gamma": 0.9}))


def test_a_supervised_definition_is_hashed_like_any_other() -> None:
    first, renamed = (
        load(make_supervised_document()),
        load(make_supervised_document(name="other", notes="why")),
    )
    assert hash_definition(first) == hash_definition(renamed)
    assert hash_definition(first) != hash_definition(
        load(make_supervised_document(estimator={"name": "mlp", "params": {"units": 3}}))
    )
    assert read_definition(encode_canonical_json(first)) == first


def test_parameters_of_registered_agents_are_part_of_the_identity_in_any_order() -> None:
    first, again, other = (
        load(make_minimal_document(agent={"name": "mine", "parameters": given}))
        for given in ({"a": 1, "b": [{}]}, {"b": [{}], "a": 1}, {"a": 2, "b": [{}]})
    )
    assert hash_definition(first) == hash_definition(again) != hash_definition(other)


def make_exponential_schema(times: int) -> dict[str, Any]:
    """Returns a schema of a few hundred bytes whose validation takes 2 ** times steps."""
    parts: dict[str, Any] = {"a0": {"type": "object"}}
    for index in range(1, times + 1):
        parts[f"a{index}"] = {"allOf": [{"$ref": f"#/$defs/a{index - 1}"}] * 2}
    return {"$defs": parts, "$ref": f"#/$defs/a{times}"}


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"$ref": "https://example.org/schema.json"}, "refers to its own parts only"),
        (
            {"properties": {"a": {"anyOf": [{"$ref": "file:///etc/passwd"}]}}},
            "refers to its own parts only",
        ),
        ({"$dynamicRef": "other.json#a"}, r"leave \$dynamicRef out"),
        ({"$id": "https://example.org/"}, r"leave \$id out"),
        ({"$ref": "#/$defs/none"}, "a part that it has not"),
        ({"$ref": "#"}, "must begin with #/"),
        (
            {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"items": {"$ref": "#/$defs/a"}}}},
            "in a circle",
        ),
        ({"description": "x" * 65_536}, "65536 bytes"),
        (make_exponential_schema(20), "2000 parts"),
        (json.loads('{"not":' * 65 + "{}" + "}" * 65), "64 deep"),
    ],
)
def test_a_schema_that_is_too_large_or_has_external_references_is_refused(
    schema: dict[str, Any], told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        check_schema(schema)


def test_a_schema_may_refer_to_its_own_parts_and_describe_names_that_look_like_references() -> None:
    check_schema(
        {
            "$defs": {"a~1": {}},
            "properties": {"$ref": {"type": "string"}, "$id": {}, "a": {"$ref": "#/$defs/a~01"}},
        }
    )
    check_schema(make_exponential_schema(6))


@pytest.mark.parametrize("seeds", [[], [1, 1], [-1], [2**32], ["a"], [1.0], [True]])
def test_bad_seeds_are_refused(seeds: list[Any]) -> None:
    with pytest.raises(ValidationError):
        Submission.model_validate_json(
            json.dumps({"definition": make_minimal_document(), "options": {"seeds": seeds}})
        )


@pytest.mark.parametrize("num_envs", [1, 2, 8])
@pytest.mark.parametrize("name", sorted(set(BUILTIN_AGENTS) - {"sb3", "a3c"}))
def test_no_agent_requires_parameters(name: str, num_envs: int) -> None:
    """Regression: `agent: {name: ppo}` was refused, since its default minibatch exceeded its
    rollout.
    """
    loaded = load(
        make_minimal_document(agent={"name": name}, env={"id": "CartPole-v1", "num_envs": num_envs})
    )
    assert read_definition(encode_canonical_json(loaded)) == loaded


def test_a3c_needs_no_parameters_with_an_environment_per_process() -> None:
    """Each process of A3C has one environment."""
    assert load(make_minimal_document(agent={"name": "a3c"}))


def test_the_default_minibatch_is_no_larger_than_the_rollout() -> None:
    """A definition that was valid before keeps its values and its ID.

    An explicit minibatch size is never changed.
    """
    sizes = {
        num_envs: load(
            make_minimal_document(
                agent={"name": "ppo"}, env={"id": "CartPole-v1", "num_envs": num_envs}
            )
        )
        for num_envs in (1, 2, 8)
    }
    assert [definition.agent.minibatch_size for definition in sizes.values()] == [128, 256, 256]
    asked = load(make_minimal_document(agent={"name": "ppo", "minibatch_size": 128}))
    assert hash_definition(asked) == hash_definition(sizes[1])
    with pytest.raises(
        ValidationError, match=r"agent.minibatch_size 256 is larger than a rollout of 128"
    ):
        load(make_minimal_document(agent={"name": "ppo", "minibatch_size": 256}))

"""Registered parts: the server looks them up in workers' catalogues and never imports them.

Their parameters are validated by the schemas in the catalogue.
"""

import json
from typing import Any

import pytest

from app.domain import registered_parts
from app.domain.errors import InvalidError
from palestra.contract.catalogue import Catalogue
from palestra.contract.code import BuiltinCode, DistributionCode, EntrypointCode, GitCode
from palestra.contract.definition import RlDefinition, SupervisedDefinition, read_definition
from tests.support.server_fixture import (
    TINY_CODE,
    TINY_SCHEMA,
    WALK_CODE,
    catalogue,
    catalogue_with_walk,
    definition,
)

GIT = GitCode(kind="git", head="a" * 40)


def offered(**changes: Any) -> Catalogue:
    return Catalogue.model_validate_json(json.dumps({**catalogue(), **changes}))


def code(**changes: Any) -> EntrypointCode:
    return EntrypointCode.model_validate({**TINY_CODE, **changes})


def tiny(**parameters: Any) -> RlDefinition | SupervisedDefinition:
    return read_definition(json.dumps(definition(agent={"name": "tiny", "parameters": parameters})))


def supervised(**changes: Any) -> RlDefinition | SupervisedDefinition:
    named = {
        member: {"name": name}
        for member, name in (
            ("estimator", "mlp"),
            ("train_input", "rows"),
            ("evaluation_input", "rows"),
        )
    }
    return read_definition(
        json.dumps({"kind": "supervised", "name": "s", "loop": {"updates": 9}, **named, **changes})
    )


def refusal(one: Any, given: Any = None, workers: Any = None) -> tuple[str, str | None, str]:
    with pytest.raises(InvalidError) as refused:
        registered_parts.resolve(
            one, given or BuiltinCode(), [offered()] if workers is None else workers, "default"
        )
    return refused.value.code, refused.value.pointer, refused.value.detail


def test_code_and_defaults_come_from_the_catalogue() -> None:
    resolved, installed = registered_parts.resolve(tiny(), BuiltinCode(), [offered()], "default")
    assert isinstance(resolved, RlDefinition)
    assert resolved.agent.model_dump() == {"name": "tiny", "parameters": {"rate": 0.5}}
    assert installed == code()
    assert registered_parts.resolve(tiny(rate=0.5), code(), [offered()], "default") == (
        resolved,
        installed,
    )


def test_built_in_parts_are_not_changed() -> None:
    plain = read_definition(json.dumps(definition()))
    for given in (BuiltinCode(), GIT):
        assert registered_parts.resolve(plain, given, [offered()], "default") == (plain, given)
        assert registered_parts.resolve(plain, given, [], "default") == (plain, given)
    assert refusal(plain, code())[:2] == ("code_mismatch", "/code")


def test_an_unknown_agent_is_refused_with_a_remedy_even_without_workers() -> None:
    one = read_definition(json.dumps(definition(agent={"name": "tinny"})))
    kind, pointer, detail = refusal(one)
    assert (kind, pointer) == ("unknown_agent", "/definition/agent/name")
    assert "did you mean tiny?" in detail
    assert "Install the distribution that registers it on a worker of the pool" in detail
    assert refusal(one, workers=[])[:2] == ("unknown_agent", "/definition/agent/name")
    assert "a2c, a3c" in refusal(one, workers=[])[2]


@pytest.mark.parametrize(
    ("parameters", "where", "told"),
    [
        ({"rate": 0}, "/rate", "0"),
        ({"rate": "fast"}, "/rate", 'is not of type "number"'),
        ({"table": [1, "x"]}, "/table/1", "integer"),
        ({"other": 1}, "", "Additional properties"),
    ],
)
def test_parameters_are_validated_by_the_schema(
    parameters: dict[str, Any], where: str, told: str
) -> None:
    kind, pointer, detail = refusal(tiny(**parameters))
    assert (kind, pointer) == ("invalid_parameters", "/definition/agent/parameters" + where)
    assert told in detail
    assert "fast" not in detail


def test_code_that_no_worker_of_the_pool_has_is_refused() -> None:
    for given in (code(digest="8" * 64), code(version="1.3.0"), code(distribution="other"), GIT):
        kind, pointer, detail = refusal(tiny(), given)
        assert (kind, pointer) == ("code_mismatch", "/code")
        assert "tiny-agents 1.2.0 (digest 777777777777)" in detail
    older = {
        "name": "tiny",
        "action_spaces": ["discrete"],
        "code": {**TINY_CODE, "version": "1.1.0"},
    }
    both = [offered(agents=[older]), offered()]
    assert registered_parts.resolve(tiny(), code(version="1.1.0"), both, "default")[1] == code(
        version="1.1.0"
    )
    assert registered_parts.resolve(tiny(), BuiltinCode(), both, "default")[1] == code(), (
        "the latest registration"
    )


@pytest.mark.parametrize("pattern", ["(a+)+$", "^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_an_expensive_pattern_is_refused(pattern: str) -> None:
    schema = {"properties": {"text": {"type": "string", "pattern": pattern}}}
    worker = offered(
        agents=[
            {"name": "tiny", "action_spaces": [], "parameters_schema": schema, "code": TINY_CODE}
        ]
    )
    assert refusal(tiny(text="a" * 5_000 + "!"), workers=[worker])[0] == "invalid_parameters"


@pytest.mark.parametrize(
    "schema", [{"type": 7}, {"pattern": "("}, {"properties": {"a": {"pattern": "a(?=b)"}}}]
)
def test_an_invalid_schema_of_a_catalogue_is_reported(schema: dict[str, Any]) -> None:
    worker = offered(
        agents=[
            {"name": "tiny", "action_spaces": [], "parameters_schema": schema, "code": TINY_CODE}
        ]
    )
    assert refusal(tiny(), workers=[worker])[:2] == (
        "invalid_schema",
        "/definition/agent/parameters",
    )


def test_defaults_that_make_too_much_are_refused() -> None:
    schema = {"properties": {name: {"default": "x" * 20_000} for name in "abc"}}
    worker = offered(
        agents=[
            {"name": "tiny", "action_spaces": [], "parameters_schema": schema, "code": TINY_CODE}
        ]
    )
    assert refusal(tiny(text="x" * 20_000), workers=[worker])[:2] == (
        "invalid_parameters",
        "/definition/agent",
    )


def test_supervised_parts_are_looked_up_in_their_own_lists() -> None:
    resolved, found = registered_parts.resolve(supervised(), BuiltinCode(), [offered()], "default")
    assert isinstance(resolved, SupervisedDefinition)
    assert resolved.train_input.params == resolved.evaluation_input.params == {"batch_size": 32}
    assert found == BuiltinCode()
    assert (
        registered_parts.resolve(
            supervised(estimator={"name": "tiny"}), BuiltinCode(), [offered()], "default"
        )[1]
        == code()
    )
    assert registered_parts.resolve(supervised(), BuiltinCode(), [], "default") == (
        supervised(),
        BuiltinCode(),
    )
    assert refusal(supervised(estimator={"name": "rows"}))[:2] == (
        "unknown_part",
        "/definition/estimator/name",
    )
    assert refusal(supervised(train_input={"name": "mlp"}))[:2] == (
        "unknown_part",
        "/definition/train_input/name",
    )
    wrong = supervised(evaluation_input={"name": "rows", "params": {"batch_size": 0.5}})
    assert refusal(wrong)[:2] == (
        "invalid_parameters",
        "/definition/evaluation_input/params/batch_size",
    )
    assert refusal(supervised(), code())[:2] == ("code_mismatch", "/code")


def test_parts_of_two_distributions_do_not_mix() -> None:
    inputs = [{"name": "rows", "code": {**TINY_CODE, "distribution": "other"}}]
    assert (
        refusal(supervised(estimator={"name": "tiny"}), workers=[offered(input_functions=inputs)])[
            0
        ]
        == "code_mismatch"
    )


WALK = DistributionCode.model_validate(WALK_CODE)


def walk(env_id: str = "tiny/Walk-v0", **changes: Any) -> RlDefinition | SupervisedDefinition:
    return read_definition(json.dumps(definition(env={"id": env_id}, **changes)))


def with_walk(**changes: Any) -> Catalogue:
    return Catalogue.model_validate_json(json.dumps({**catalogue_with_walk(), **changes}))


def test_the_code_of_an_environment_is_part_of_the_definition() -> None:
    """Regression: a changed reward function did not change the experiment's ID."""
    resolved, found = registered_parts.resolve(walk(), BuiltinCode(), [with_walk()], "default")
    assert (resolved, found) == (walk(), BuiltinCode(environment=WALK))
    assert registered_parts.resolve(walk(), found, [with_walk()], "default")[1] == found
    other = {**WALK_CODE, "digest": "6" * 64}
    changed = with_walk(environments=[{"id": "tiny/Walk-v0", "code": other}])
    assert registered_parts.resolve(walk(), BuiltinCode(), [with_walk(), changed], "default")[
        1
    ] == BuiltinCode(environment=DistributionCode.model_validate(other))
    assert registered_parts.resolve(walk(), found, [with_walk(), changed], "default")[1] == found, (
        "a worker still has it"
    )
    kind, where, detail = refusal(walk(), found, [changed])
    assert (kind, where) == ("code_mismatch", "/code/environment")
    assert "tiny-envs 2.0 (digest 666666666666)" in detail
    assert "tiny-envs 2.0 (digest 555555555555)" in detail
    assert registered_parts.resolve(walk(), found, [], "default")[1] == found, (
        "its jobs wait for a worker"
    )


def test_agent_and_environment_may_come_from_two_distributions() -> None:
    one = walk(agent={"name": "tiny"})
    assert registered_parts.resolve(one, BuiltinCode(), [with_walk()], "default")[1] == code(
        environment=WALK
    )
    assert refusal(one, code(), [with_walk()])[:2] == ("code_mismatch", "/code/environment")
    same = {**TINY_CODE, "kind": "distribution"}
    together = with_walk(environments=[{"id": "tiny/Walk-v0", "code": same}])
    assert registered_parts.resolve(one, BuiltinCode(), [together], "default")[1] == code(), (
        "one distribution is named once"
    )


def test_code_for_a_built_in_environment_is_refused() -> None:
    plain = read_definition(json.dumps(definition()))
    assert refusal(plain, BuiltinCode(environment=WALK), [with_walk()])[:2] == (
        "code_mismatch",
        "/code/environment",
    )


def test_module_and_id_are_the_same_experiment_as_the_id() -> None:
    named = registered_parts.resolve(
        walk("loose:tiny/Walk-v0"), BuiltinCode(), [offered(), with_walk()], "default"
    )
    assert named == registered_parts.resolve(walk(), BuiltinCode(), [with_walk()], "default")


@pytest.mark.parametrize(
    ("env_id", "workers", "told"),
    [
        (
            "os:tiny/Walk-v0",
            [with_walk()],
            "may import the module os; they import loose. Start one with --import os",
        ),
        ("loose:tiny/Walk-v0", [offered()], "they import none"),
        ("loose:tiny/Walk-v0", [], "the pool has no worker"),
        ("loose:Other-v0", [with_walk()], "registers no environment 'Other-v0'"),
        (
            "loose:tiny/Walk-v0",
            [with_walk(imports=[]), with_walk(environments=[])],
            "registers no environment",
        ),
    ],
)
def test_a_module_that_no_worker_may_import_is_refused(
    env_id: str, workers: list[Catalogue], told: str
) -> None:
    kind, where, detail = refusal(walk(env_id), workers=workers)
    assert (kind, where) == ("unknown_environment", "/definition/env/id")
    assert told in detail


def test_the_schema_of_the_samples_is_one() -> None:
    assert offered().agents[2].parameters_schema == TINY_SCHEMA

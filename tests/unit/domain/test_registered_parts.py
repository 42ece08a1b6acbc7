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
    make_catalogue,
    make_catalogue_with_walk,
    make_definition,
)

GIT = GitCode(kind="git", head="a" * 40)


def parse_catalogue(**changes: Any) -> Catalogue:
    return Catalogue.model_validate_json(json.dumps({**make_catalogue(), **changes}))


def make_code(**changes: Any) -> EntrypointCode:
    return EntrypointCode.model_validate({**TINY_CODE, **changes})


def make_tiny_definition(**parameters: Any) -> RlDefinition | SupervisedDefinition:
    return read_definition(
        json.dumps(make_definition(agent={"name": "tiny", "parameters": parameters}))
    )


def make_supervised_definition(**changes: Any) -> RlDefinition | SupervisedDefinition:
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


def resolve_refused(
    one: Any, given: Any = None, workers: Any = None
) -> tuple[str, str | None, str]:
    with pytest.raises(InvalidError) as refused:
        registered_parts.resolve(
            one,
            given or BuiltinCode(),
            [parse_catalogue()] if workers is None else workers,
            "default",
        )
    return refused.value.code, refused.value.pointer, refused.value.detail


def test_code_and_defaults_come_from_the_catalogue() -> None:
    resolved, installed = registered_parts.resolve(
        make_tiny_definition(), BuiltinCode(), [parse_catalogue()], "default"
    )
    assert isinstance(resolved, RlDefinition)
    assert resolved.agent.model_dump() == {"name": "tiny", "parameters": {"rate": 0.5}}
    assert installed == make_code()
    assert registered_parts.resolve(
        make_tiny_definition(rate=0.5), make_code(), [parse_catalogue()], "default"
    ) == (
        resolved,
        installed,
    )


def test_built_in_parts_are_not_changed() -> None:
    plain = read_definition(json.dumps(make_definition()))
    for given in (BuiltinCode(), GIT):
        assert registered_parts.resolve(plain, given, [parse_catalogue()], "default") == (
            plain,
            given,
        )
        assert registered_parts.resolve(plain, given, [], "default") == (plain, given)
    assert resolve_refused(plain, make_code())[:2] == ("code_mismatch", "/code")


def test_an_unknown_agent_is_refused_with_a_remedy_even_without_workers() -> None:
    one = read_definition(json.dumps(make_definition(agent={"name": "tinny"})))
    kind, pointer, detail = resolve_refused(one)
    assert (kind, pointer) == ("unknown_agent", "/definition/agent/name")
    assert "did you mean tiny?" in detail
    assert "Install the distribution that registers it on a worker of the pool" in detail
    assert resolve_refused(one, workers=[])[:2] == ("unknown_agent", "/definition/agent/name")
    assert "a2c, a3c" in resolve_refused(one, workers=[])[2]


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
    kind, pointer, detail = resolve_refused(make_tiny_definition(**parameters))
    assert (kind, pointer) == ("invalid_parameters", "/definition/agent/parameters" + where)
    assert told in detail
    assert "fast" not in detail


def test_code_that_no_worker_of_the_pool_has_is_refused() -> None:
    for given in (
        make_code(digest="8" * 64),
        make_code(version="1.3.0"),
        make_code(distribution="other"),
        GIT,
    ):
        kind, pointer, detail = resolve_refused(make_tiny_definition(), given)
        assert (kind, pointer) == ("code_mismatch", "/code")
        assert "tiny-agents 1.2.0 (digest 777777777777)" in detail
    older = {
        "name": "tiny",
        "action_spaces": ["discrete"],
        "code": {**TINY_CODE, "version": "1.1.0"},
    }
    both = [parse_catalogue(agents=[older]), parse_catalogue()]
    assert registered_parts.resolve(
        make_tiny_definition(), make_code(version="1.1.0"), both, "default"
    )[1] == make_code(version="1.1.0")
    assert (
        registered_parts.resolve(make_tiny_definition(), BuiltinCode(), both, "default")[1]
        == make_code()
    ), "the latest registration"


@pytest.mark.parametrize("pattern", ["(a+)+$", "^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_an_expensive_pattern_is_refused(pattern: str) -> None:
    schema = {"properties": {"text": {"type": "string", "pattern": pattern}}}
    worker = parse_catalogue(
        agents=[
            {"name": "tiny", "action_spaces": [], "parameters_schema": schema, "code": TINY_CODE}
        ]
    )
    assert (
        resolve_refused(make_tiny_definition(text="a" * 5_000 + "!"), workers=[worker])[0]
        == "invalid_parameters"
    )


@pytest.mark.parametrize(
    "schema", [{"type": 7}, {"pattern": "("}, {"properties": {"a": {"pattern": "a(?=b)"}}}]
)
def test_an_invalid_schema_of_a_catalogue_is_reported(schema: dict[str, Any]) -> None:
    worker = parse_catalogue(
        agents=[
            {"name": "tiny", "action_spaces": [], "parameters_schema": schema, "code": TINY_CODE}
        ]
    )
    assert resolve_refused(make_tiny_definition(), workers=[worker])[:2] == (
        "invalid_schema",
        "/definition/agent/parameters",
    )


def test_defaults_that_make_too_much_are_refused() -> None:
    schema = {"properties": {name: {"default": "x" * 20_000} for name in "abc"}}
    worker = parse_catalogue(
        agents=[
            {"name": "tiny", "action_spaces": [], "parameters_schema": schema, "code": TINY_CODE}
        ]
    )
    assert resolve_refused(make_tiny_definition(text="x" * 20_000), workers=[worker])[:2] == (
        "invalid_parameters",
        "/definition/agent",
    )


def test_supervised_parts_are_looked_up_in_their_own_lists() -> None:
    resolved, found = registered_parts.resolve(
        make_supervised_definition(), BuiltinCode(), [parse_catalogue()], "default"
    )
    assert isinstance(resolved, SupervisedDefinition)
    assert resolved.train_input.params == resolved.evaluation_input.params == {"batch_size": 32}
    assert found == BuiltinCode()
    assert (
        registered_parts.resolve(
            make_supervised_definition(estimator={"name": "tiny"}),
            BuiltinCode(),
            [parse_catalogue()],
            "default",
        )[1]
        == make_code()
    )
    assert registered_parts.resolve(make_supervised_definition(), BuiltinCode(), [], "default") == (
        make_supervised_definition(),
        BuiltinCode(),
    )
    assert resolve_refused(make_supervised_definition(estimator={"name": "rows"}))[:2] == (
        "unknown_part",
        "/definition/estimator/name",
    )
    assert resolve_refused(make_supervised_definition(train_input={"name": "mlp"}))[:2] == (
        "unknown_part",
        "/definition/train_input/name",
    )
    wrong = make_supervised_definition(
        evaluation_input={"name": "rows", "params": {"batch_size": 0.5}}
    )
    assert resolve_refused(wrong)[:2] == (
        "invalid_parameters",
        "/definition/evaluation_input/params/batch_size",
    )
    assert resolve_refused(make_supervised_definition(), make_code())[:2] == (
        "code_mismatch",
        "/code",
    )


def test_parts_of_two_distributions_do_not_mix() -> None:
    inputs = [{"name": "rows", "code": {**TINY_CODE, "distribution": "other"}}]
    assert (
        resolve_refused(
            make_supervised_definition(estimator={"name": "tiny"}),
            workers=[parse_catalogue(input_functions=inputs)],
        )[0]
        == "code_mismatch"
    )


WALK = DistributionCode.model_validate(WALK_CODE)


def make_walk_definition(
    env_id: str = "tiny/Walk-v0", **changes: Any
) -> RlDefinition | SupervisedDefinition:
    return read_definition(json.dumps(make_definition(env={"id": env_id}, **changes)))


def make_catalogue_with_walk_env(**changes: Any) -> Catalogue:
    return Catalogue.model_validate_json(json.dumps({**make_catalogue_with_walk(), **changes}))


def test_the_code_of_an_environment_is_part_of_the_definition() -> None:
    """Regression: a changed reward function did not change the experiment's ID."""
    resolved, found = registered_parts.resolve(
        make_walk_definition(), BuiltinCode(), [make_catalogue_with_walk_env()], "default"
    )
    assert (resolved, found) == (make_walk_definition(), BuiltinCode(environment=WALK))
    assert (
        registered_parts.resolve(
            make_walk_definition(), found, [make_catalogue_with_walk_env()], "default"
        )[1]
        == found
    )
    other = {**WALK_CODE, "digest": "6" * 64}
    changed = make_catalogue_with_walk_env(environments=[{"id": "tiny/Walk-v0", "code": other}])
    assert registered_parts.resolve(
        make_walk_definition(), BuiltinCode(), [make_catalogue_with_walk_env(), changed], "default"
    )[1] == BuiltinCode(environment=DistributionCode.model_validate(other))
    assert (
        registered_parts.resolve(
            make_walk_definition(), found, [make_catalogue_with_walk_env(), changed], "default"
        )[1]
        == found
    ), "a worker still has it"
    kind, where, detail = resolve_refused(make_walk_definition(), found, [changed])
    assert (kind, where) == ("code_mismatch", "/code/environment")
    assert "tiny-envs 2.0 (digest 666666666666)" in detail
    assert "tiny-envs 2.0 (digest 555555555555)" in detail
    assert registered_parts.resolve(make_walk_definition(), found, [], "default")[1] == found, (
        "its jobs wait for a worker"
    )


def test_agent_and_environment_may_come_from_two_distributions() -> None:
    one = make_walk_definition(agent={"name": "tiny"})
    assert registered_parts.resolve(
        one, BuiltinCode(), [make_catalogue_with_walk_env()], "default"
    )[1] == make_code(environment=WALK)
    assert resolve_refused(one, make_code(), [make_catalogue_with_walk_env()])[:2] == (
        "code_mismatch",
        "/code/environment",
    )
    same = {**TINY_CODE, "kind": "distribution"}
    together = make_catalogue_with_walk_env(environments=[{"id": "tiny/Walk-v0", "code": same}])
    assert registered_parts.resolve(one, BuiltinCode(), [together], "default")[1] == make_code(), (
        "one distribution is named once"
    )


def test_code_for_a_built_in_environment_is_refused() -> None:
    plain = read_definition(json.dumps(make_definition()))
    assert resolve_refused(plain, BuiltinCode(environment=WALK), [make_catalogue_with_walk_env()])[
        :2
    ] == (
        "code_mismatch",
        "/code/environment",
    )


def test_module_and_id_are_the_same_experiment_as_the_id() -> None:
    named = registered_parts.resolve(
        make_walk_definition("loose:tiny/Walk-v0"),
        BuiltinCode(),
        [parse_catalogue(), make_catalogue_with_walk_env()],
        "default",
    )
    assert named == registered_parts.resolve(
        make_walk_definition(), BuiltinCode(), [make_catalogue_with_walk_env()], "default"
    )


@pytest.mark.parametrize(
    ("env_id", "workers", "told"),
    [
        (
            "os:tiny/Walk-v0",
            [make_catalogue_with_walk_env()],
            "may import the module os; they import loose. Start one with --import os",
        ),
        ("loose:tiny/Walk-v0", [parse_catalogue()], "they import none"),
        ("loose:tiny/Walk-v0", [], "the pool has no worker"),
        ("loose:Other-v0", [make_catalogue_with_walk_env()], "registers no environment 'Other-v0'"),
        (
            "loose:tiny/Walk-v0",
            [
                make_catalogue_with_walk_env(imports=[]),
                make_catalogue_with_walk_env(environments=[]),
            ],
            "registers no environment",
        ),
    ],
)
def test_a_module_that_no_worker_may_import_is_refused(
    env_id: str, workers: list[Catalogue], told: str
) -> None:
    kind, where, detail = resolve_refused(make_walk_definition(env_id), workers=workers)
    assert (kind, where) == ("unknown_environment", "/definition/env/id")
    assert told in detail


def test_the_schema_of_the_samples_is_one() -> None:
    assert parse_catalogue().agents[2].parameters_schema == TINY_SCHEMA

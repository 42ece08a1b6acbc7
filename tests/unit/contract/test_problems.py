import json
from typing import Any

import pytest
from pydantic import ValidationError

from palestra.contract.job_options import Submission
from palestra.contract.problems import build_pointer, explain, suggest_nearest
from palestra.contract.telemetry import TelemetryBatch
from tests.support.server_fixture import make_definition


def list_problems(document: dict[str, Any], model: Any = Submission) -> list[tuple[str, str, str]]:
    with pytest.raises(ValidationError) as refused:
        model.model_validate_json(json.dumps(document))
    return [
        (problem.pointer, problem.code, problem.message)
        for problem in explain(refused.value, model)
    ]


def test_pointers_contain_only_members_of_the_document() -> None:
    hooks = [{"name": "nan_guard", "updates": 0}]
    assert list_problems({"definition": make_definition(hooks=hooks)}) == [
        ("/definition/hooks/0/updates", "out_of_range", "must be at least 1")
    ]
    found = list_problems(
        {"definition": make_definition(env={"id": "CartPole-v1", "kwargs": {"a": [1]}})}
    )
    assert found == [
        (
            "/definition/env/kwargs/a",
            "wrong_type",
            "must be a string, a number, true, false or null",
        )
    ]


def test_every_error_is_reported_once_without_its_consequences() -> None:
    found = list_problems(
        {
            "definition": make_definition(agent={"name": "dqn", "gamma": 2, "lr": 1}),
            "options": {"seeds": ["x"], "name": 1},
        }
    )
    assert [place for place, _, _ in found] == [
        "/definition/agent/gamma",
        "/definition/agent/lr",
        "/options/seeds/0",
        "/options/name",
    ]


def test_the_input_is_never_repeated() -> None:
    secret = "hunter2-hunter2"
    documents = [
        {"definition": make_definition(name=[secret])},
        {"definition": make_definition(agent={"name": secret + "!"})},
        {"definition": make_definition(agent={"name": "dqn", "loss": secret})},
        {"definition": make_definition(env={"id": "../" + secret})},
        {"definition": make_definition(loop={"env_steps": secret})},
    ]
    for document in documents:
        assert secret not in json.dumps(list_problems(document))


def test_errors_of_telemetry_name_the_record() -> None:
    record = {
        "type": "points",
        "run": "run_" + "0" * 26,
        "series": "a b",
        "env_step": [1],
        "update": [0],
        "episode": [0],
        "wall": [0],
        "value": [1],
    }
    assert list_problems({"first_seq": 1, "records": [record]}, TelemetryBatch)[0][:2] == (
        "/records/0/series",
        "pattern",
    )


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("lr", "learning_rate"),
        ("learnig_rate", "learning_rate"),
        ("Gamma", "gamma"),
        ("buffer", "buffer_size"),
        ("zzz", None),
        ("", None),
    ],
)
def test_an_unknown_field_is_answered_with_the_nearest_name(name: str, told: str | None) -> None:
    known = ["learning_rate", "gamma", "buffer_size", "batch_size"]
    assert suggest_nearest(name, known) == (f"; did you mean {told}?" if told else "")


def test_pointers_are_escaped_and_short() -> None:
    assert build_pointer(["a/b", "~", 0]) == "/a~1b/~0/0"
    assert build_pointer([]) == ""
    assert len(build_pointer(["x" * 1_000])) < 80
    assert build_pointer(["\n\x1b[31m"]).isprintable()


def test_thousands_of_errors_are_counted_and_not_described() -> None:
    """Pydantic can describe either all errors or none."""
    unknown = {f"k{index}": 0 for index in range(1_500)}
    sentence = "has 1500 faults: check that this is the document which is wanted here"
    assert list_problems({"definition": make_definition(), **unknown}) == [
        ("", "too_many_faults", sentence)
    ]


def test_of_a_long_array_only_the_first_error_is_reported() -> None:
    """A megabyte can contain a third of a million errors."""
    found = list_problems({"definition": make_definition(), "options": {"seeds": ["x"] * 10_000}})
    assert [place for place, _, _ in found] == ["/options/seeds/0"]
    hooks = [{"name": "nan_guard", "updates": 0}] * 3
    assert len(list_problems({"definition": make_definition(hooks=hooks)})) == 3

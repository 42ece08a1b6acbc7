"""Definitions and reports with contradictory values are refused at submission.

Stored ones remain readable.
"""

import json
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from palestra.contract.definition import read_definition
from palestra.contract.documents import encode_canonical_json
from palestra.contract.job_options import EvaluateOptions, Submission
from palestra.contract.names import Title
from palestra.contract.problems import explain
from palestra.contract.states import Cause, Outcome
from palestra.contract.work_order import Release
from tests.support.server_fixture import make_definition

SCHEDULE = {"name": "learning_rate_schedule", "env_steps": 5}


def list_refused_pointers(changes: dict[str, Any], **more: Any) -> list[str]:
    document = {"definition": make_definition(**changes), **more}
    with pytest.raises(ValidationError) as error:
        Submission.model_validate_json(json.dumps(document))
    return [problem.pointer for problem in explain(error.value, Submission)]


@pytest.mark.parametrize(
    ("changes", "more", "pointer"),
    [
        ({"env": {"id": "CartPole-v1", "kwargs": {"a": 10**400}}}, {}, "/definition/env/kwargs/a"),
        (
            {"env": {"id": "CartPole-v1", "kwargs": {"a": -(2**63) - 1}}},
            {},
            "/definition/env/kwargs/a",
        ),
        ({}, {"provenance": {"a": [{"b": 2**63}]}}, "/provenance/a/0/b"),
        ({"name": "\u3164\u00a0\u00ad"}, {}, "/definition/name"),
        ({"name": "\u2800"}, {}, "/definition/name"),
        ({"hooks": [SCHEDULE, {"name": "nan_guard"}, SCHEDULE]}, {}, "/definition/hooks/2"),
        ({"export": {"formats": ["onnx", "onnx"]}}, {}, "/definition/export/formats/1"),
        (
            {"agent": {"name": "drqn"}},
            {"options": {"resources": {"pack": 4}}},
            "/options/resources/pack",
        ),
    ],
)
def test_contradictory_values_are_refused(
    changes: dict[str, Any], more: dict[str, Any], pointer: str
) -> None:
    assert list_refused_pointers(changes, **more) == [pointer]


def test_all_errors_are_reported_together() -> None:
    twice = {"hooks": [SCHEDULE, SCHEDULE], "export": {"formats": ["weights", "weights"]}}
    assert len(list_refused_pointers(twice, provenance={"a": 2**64})) == 3


def test_values_at_their_upper_limits_are_accepted() -> None:
    document = {
        "definition": make_definition(
            env={"id": "CartPole-v1", "kwargs": {"a": 2**63 - 1, "b": -(2**63)}}
        )
    }
    assert Submission.model_validate_json(json.dumps(document))


@pytest.mark.parametrize("pack", ["auto", "off"])
def test_an_agent_that_cannot_be_packed_accepts_pack_size_1(pack: str) -> None:
    document = {
        "definition": make_definition(agent={"name": "drqn"}),
        "options": {"resources": {"pack": pack}},
    }
    assert Submission.model_validate_json(json.dumps(document))


def test_stored_definitions_with_contradictory_values_are_still_read() -> None:
    odd = make_definition(
        name="\u3164",
        env={"id": "CartPole-v1", "kwargs": {"a": 10**400}},
        hooks=[SCHEDULE, SCHEDULE],
        export={"formats": ["weights", "weights"]},
    )
    assert read_definition(encode_canonical_json(read_definition(json.dumps(odd)))).name == "\u3164"


def test_a_repeated_export_format_is_refused() -> None:
    with pytest.raises(ValidationError, match="name each format once"):
        EvaluateOptions.model_validate_json('{"formats": ["onnx", "onnx"]}')


@pytest.mark.parametrize(
    "name",
    [
        "\U0001f469\u200d\U0001f680",
        "\U0001f3f3\ufe0f\u200d\U0001f308",
        "\u0645\u06cc\u200c\u062e\u0648",
        "क\u094d\u200dष",
    ],
)
def test_names_with_joiners_are_accepted_unchanged(name: str) -> None:
    assert TypeAdapter(Title).validate_python(name) == name


@pytest.mark.parametrize(
    "name",
    ["\u200d", "a\u200d", "\u200ca", "a\u200c\u200cb", "a \u200db", "\u00ad", "\u3164", "\u0301"],
)
def test_invisible_names_and_names_with_stray_joiners_are_refused(
    name: str,
) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Title).validate_python(name)


def make_release(outcome: Outcome, cause: Cause, place: str = "report") -> Release:
    end = {"outcome": outcome, "cause": cause}
    fine = {"outcome": "succeeded", "cause": "budget"}
    pack = [{**end, "run_id": "run_" + "0" * 26}] if place == "runs" else []
    report = {**(end if place == "report" else fine), "runs": pack}
    return Release.model_validate_json(json.dumps({"report": report, "last_seq": 0}))


@pytest.mark.parametrize("place", ["report", "runs"])
@pytest.mark.parametrize(
    ("outcome", "cause"),
    [
        (Outcome.SUCCEEDED, Cause.POISON),
        (Outcome.SUCCEEDED, Cause.DIVERGED),
        (Outcome.FAILED, Cause.BUDGET),
        (Outcome.FAILED, Cause.POISON),
        (Outcome.PAUSED, Cause.BUDGET),
        (Outcome.CANCELLED, Cause.TIME_LIMIT),
        (Outcome.LOST, Cause.BUDGET),
    ],
)
def test_an_outcome_with_a_cause_of_another_outcome_is_refused(
    outcome: Outcome, cause: Cause, place: str
) -> None:
    with pytest.raises(ValidationError, match=f"cause {cause} does not go with outcome {outcome}"):
        make_release(outcome, cause, place)


@pytest.mark.parametrize(
    ("outcome", "cause"),
    [
        (Outcome.SUCCEEDED, Cause.USER),
        (Outcome.FAILED, Cause.CODE_CHANGED),
        (Outcome.FAILED, Cause.TRAINER_KILLED),
        (Outcome.LOST, Cause.STALE),
        (Outcome.DRAINED, Cause.DRAIN),
    ],
)
def test_the_outcomes_of_real_attempts_are_accepted(outcome: Outcome, cause: Cause) -> None:
    assert make_release(outcome, cause).report.cause is cause

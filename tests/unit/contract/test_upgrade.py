import json
from pathlib import Path

import pytest

from palestra.contract.definition import SCHEMA_VERSION, definition_hash
from palestra.contract.upgrade import STEPS, UnsupportedSchemaError, load_definition, upgrade

SAMPLES = sorted((Path(__file__).parents[2] / "assets" / "definitions").glob("v*.json"))

# The identity of a released document must never move: a team's experiment IDs hang on it.
RELEASED_HASHES = {
    "v1-dqn.json": "05a294f8ee39377f2b5eac9d66e7cba4fd2e2d0efd0417be91794c0b5750845a",
    "v1-ppo.json": "6b7b86d0826f33fb88cdf1db69d2d52f72e4e9add574ab5c391467a7efa38697",
}


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_samples_of_every_version_are_still_read_as_the_same_definition(sample: Path) -> None:
    assert definition_hash(load_definition(sample.read_bytes())) == RELEASED_HASHES[sample.name]


def test_every_released_version_has_a_sample_and_a_way_up() -> None:
    versions = {json.loads(sample.read_text())["schema_version"] for sample in SAMPLES}
    assert versions == set(range(1, SCHEMA_VERSION + 1))
    assert set(STEPS) == set(range(1, SCHEMA_VERSION))


def test_steps_are_taken_in_order_and_leave_the_input_alone() -> None:
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
def test_versions_that_cannot_be_read_say_so(version: object, sentence: str) -> None:
    with pytest.raises(UnsupportedSchemaError, match=sentence):
        upgrade({"schema_version": version})


def test_a_version_whose_step_is_gone_says_so() -> None:
    with pytest.raises(UnsupportedSchemaError, match="no step leads to 2"):
        upgrade({"schema_version": 1}, {}, current=2)

import pytest
from pydantic import TypeAdapter, ValidationError

from palestra.contract.names import ArtifactName, Schedule, new_id, slugify


def test_ids_sort_by_time_and_are_unique() -> None:
    ids = [new_id("run") for _ in range(1_000)]
    assert len(set(ids)) == 1_000
    assert [identifier[:13] for identifier in ids] == sorted(identifier[:13] for identifier in ids)


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("CartPole DQN", "cartpole-dqn"),
        ("ÅÄÖ 1", "aao-1"),
        ("日本", "experiment"),
        ("a" * 99, "a" * 40),
    ],
)
def test_slugs(text: str, slug: str) -> None:
    assert slugify(text) == slug


@pytest.mark.parametrize("name", ["model.safetensors", "a/b/c.json", "é.txt"])
def test_artifact_names_that_are_fine(name: str) -> None:
    assert TypeAdapter(ArtifactName).validate_python(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "..\\x",
        "/etc/passwd",
        "C:\\x",
        "%2e%2e%2f",
        "..;/",
        "a#../b",
        "",
        ".",
        "..",
        "...",
        "x.",
        "x ",
        "CON",
        "nul.txt",
        "a:b",
        "a\0",
        "a\nb",
        "gpj\u202e.exe",
        "a\u2215b",
        "é" * 128,
        "a/" * 9 + "b",
        "a//b",
    ],
)
def test_artifact_names_that_are_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(ArtifactName).validate_python(name)


def test_only_training_schedules_raise_fences() -> None:
    assert {schedule for schedule in Schedule if schedule.writes_training_state} == {
        Schedule.TRAIN,
        Schedule.TRAIN_AND_EVALUATE,
        Schedule.CONTINUOUS_TRAIN_AND_EVALUATE,
    }

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from palestra.contract.names import (
    ArtifactName,
    Email,
    Schedule,
    StoredTitle,
    Text,
    Title,
    new_id,
    slugify,
)


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
def test_a_text_becomes_a_slug(text: str, slug: str) -> None:
    assert slugify(text) == slug


@pytest.mark.parametrize("name", ["model.safetensors", "a/b/c.json", "é.txt"])
def test_good_artifact_names_are_accepted(name: str) -> None:
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
def test_bad_artifact_names_are_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(ArtifactName).validate_python(name)


def test_only_training_schedules_raise_fences() -> None:
    assert {schedule for schedule in Schedule if schedule.writes_training_state} == {
        Schedule.TRAIN,
        Schedule.TRAIN_AND_EVALUATE,
        Schedule.CONTINUOUS_TRAIN_AND_EVALUATE,
    }


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Title, "\u0958" * 64),
        (Title, "\U0001d160" * 30),
        (StoredTitle, "\u0958" * 64),
        (Text, "\u0958" * 16_384),
        (Email, "\u0958" * 150 + "@lab.org"),
    ],
)
def test_the_length_of_a_text_is_that_of_its_normal_form(kind: Any, text: str) -> None:
    """Regression: NFC made such texts longer than their column, and stored ones unreadable."""
    adapter = TypeAdapter(kind)
    with pytest.raises(ValidationError):
        adapter.validate_python(text)
    shorter = text[: len(text) // 4] + ("@lab.org" if kind is Email else "")
    read = adapter.validate_python(shorter)
    assert adapter.validate_python(read) == read


@pytest.mark.parametrize(
    "address", ["a\u202e@lab.org", "a@lab.org\x7f", "a@l\x85ab.org", "a\u200b@lab.org", "a@", "a"]
)
def test_addresses_that_do_not_show_what_they_hold_are_refused(address: str) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Email).validate_python(address)

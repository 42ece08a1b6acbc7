"""Files that users wrote.

Each error names path, line and column.
"""

import io
import json
from pathlib import Path

import pytest

from palestra.cli.documents import parse_seeds, read_submission
from palestra.cli.output import CommandError

GOOD = """\
definition:
  kind: rl
  name: sample
  env: {id: CartPole-v1}
  agent:
    name: dqn
    learning_rate: 1e-3
    double: true
  loop: {env_steps: 1_000}
options:
  seeds: [0, 1]
"""


def read_refused(path: Path | str) -> str:
    with pytest.raises(CommandError) as caught:
        read_submission(str(path))
    assert caught.value.exit_code == 2
    return str(caught.value)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "definition.yaml"


def test_a_submission_is_read(file: Path) -> None:
    file.write_text(GOOD)
    submission = read_submission(str(file))
    assert submission.options.seeds == (0, 1)
    assert submission.definition.agent.learning_rate == 0.001
    assert submission.definition.loop.env_steps == 1_000


def test_a_definition_alone_and_json_are_read_too(file: Path) -> None:
    definition = {
        "kind": "rl",
        "name": "x",
        "env": {"id": "CartPole-v1"},
        "agent": {"name": "dqn"},
        "loop": {"updates": 1},
    }
    file.write_text(json.dumps(definition))
    assert read_submission(str(file)).definition.name == "x"


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(GOOD.encode())))
    assert read_submission("-").definition.name == "sample"


def test_a_byte_order_mark_is_removed(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert read_submission(str(file)).definition.name == "sample"


def test_yaml_words_such_as_no_stay_strings(file: Path) -> None:
    file.write_text(GOOD.replace("name: sample", "name: no"))
    assert read_submission(str(file)).definition.name == "no"


@pytest.mark.parametrize(
    ("old", "new", "place", "told"),
    [
        ("learning_rate", "learning_rte", "7:5", "unknown field; did you mean learning_rate?"),
        ("1e-3", "fast", "7:5", "must be a number"),
        ("1e-3", "'0.001'", "7:5", "must be a number"),
        ("1_000", "10.5", "9:10", "whole number"),
        ("1_000", "-1", "9:10", "at least 1"),
        ("seeds: [0, 1]", "seeds: [0, x]", "11:14", "whole number"),
        ("seeds: [0, 1]", "seeds: [1, 1]", "10:1", "name each seed once"),
        ("name: dqn", "name: dqm", "5:3", "none of the built-in agents a2c, a3c"),
        ("  loop: {env_steps: 1_000}\n", "", "1:1", "is required"),
        ("kind: rl", "kind: rl\n  kind: rl", "3:3", "twice"),
        ("kind: rl", "kind: rl\n  ? [a, b]\n  : 1", "3:5", "plain text"),
        (
            "kind: rl",
            "kind: !!python/object/apply:os.system [id]",
            "2:9",
            "could not determine a constructor",
        ),
        ("kind: rl", "kind: *nothing", "2:9", "undefined alias"),
        ("kind: rl", "kind: [rl", "3:7", "expected"),
        ("kind: rl", "kind: rl\n\tx: 1", "3:1", "cannot start any token"),
        ("name: sample", 'name: "\\uD800"', "3:3", "surrogate"),
        ("name: sample", "name: 2020-01-01", None, None),
    ],
)
def test_errors_name_line_and_column(
    file: Path, old: str, new: str, place: str | None, told: str | None
) -> None:
    assert old in GOOD
    file.write_text(GOOD.replace(old, new))
    if told is None:
        assert read_submission(str(file)).definition.name == "2020-01-01"
        return
    sentence = read_refused(file)
    assert told in sentence
    assert sentence.startswith(f"{file}:{place}:" if place else str(file))


def test_every_error_of_a_file_is_reported_with_its_line(file: Path) -> None:
    file.write_text(GOOD.replace("learning_rate: 1e-3", "learning_rate: -1\n    gamma: 7"))
    assert len(read_refused(file).splitlines()) == 2


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    assert "no such file" in read_refused(tmp_path / "nothing.yaml")
    assert "is a directory" in read_refused(tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"name: ok\nx: \xe9\n")
    assert read_refused(tmp_path / "latin.yaml").startswith(
        f"{tmp_path / 'latin.yaml'}:2:4: is not UTF-8"
    )
    (tmp_path / "empty.yaml").write_text("# nothing\n")
    assert "is empty" in read_refused(tmp_path / "empty.yaml")
    (tmp_path / "large.yaml").write_text("x" * 1_100_000)
    assert "larger than" in read_refused(tmp_path / "large.yaml")
    (tmp_path / "null.yaml").write_bytes(b"name: \x00\n")
    assert "not YAML" in read_refused(tmp_path / "null.yaml")


def test_empty_standard_input_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert read_refused("-") == "-: is empty"


def test_documents_that_expand_exponentially_are_refused_unexpanded(file: Path) -> None:
    levels = [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 31)]
    file.write_text("a0: &a0 x\n" + "\n".join(levels) + "\n")
    assert "too large once its aliases are followed" in read_refused(file)
    file.write_text("a: &a x\nb: [" + ", ".join(["*a"] * 100) + "]\n")
    assert "more than 64 aliases" in read_refused(file)
    file.write_text("[" * 5_000)
    assert str(file) in read_refused(file)
    file.write_text("a: " + "[" * 40 + "]" * 40)
    assert "nested deeper than 32" in read_refused(file)
    file.write_text("a: &a [*a]\n")
    assert str(file) in read_refused(file)
    file.write_text(GOOD.replace("1_000", "9" * 5_000))
    assert str(file) in read_refused(file)


def test_a_newer_schema_asks_for_a_newer_palestra(file: Path) -> None:
    file.write_text(GOOD.replace("kind: rl", "kind: rl\n  schema_version: 99"))
    assert "upgrade Palestra" in read_refused(file)


@pytest.mark.parametrize(
    ("text", "seeds"), [("0-2", (0, 1, 2)), ("7", (7,)), ("0-1,5", (0, 1, 5)), (" 3 - 4 ", (3, 4))]
)
def test_seeds_are_parsed(text: str, seeds: tuple[int, ...]) -> None:
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize(
    "text", ["", "a", "2-0", "1,1", "-1", "0-99999999", "4294967296", "1;rm -rf ~"]
)
def test_bad_seeds_are_refused(text: str) -> None:
    with pytest.raises(CommandError, match="--seeds") as caught:
        parse_seeds(text)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    "example",
    sorted((Path(__file__).parents[3] / "examples").glob("*.yaml")),
    ids=lambda path: path.stem,
)
def test_every_example_can_be_submitted(example: Path) -> None:
    assert read_submission(str(example)).options.seeds == (0, 1, 2)

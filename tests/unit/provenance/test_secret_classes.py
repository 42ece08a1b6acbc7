"""Redaction of every class of secret in the record of a run.

Covers diffs, untracked files, command lines and environment variables; replacements are counted.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from palestra.provenance import capture, prepare_output_dir
from palestra.redaction import REDACTED, redact, redact_arguments
from palestra.secret_names import is_secret_name
from tests.support.secret_samples import make_assignments, make_private_keys, make_tokens
from tests.support.work_trees import git

pytestmark = pytest.mark.secrets

LINES = {
    **{name: (f"x = f({token!r})", token) for name, token in make_tokens().items()},
    **{f"{name}, bare": (f"see {token} there", token) for name, token in make_tokens().items()},
    **make_assignments(),
}
TEXTS = LINES | make_private_keys()


@pytest.mark.parametrize("name", TEXTS)
def test_a_secret_is_replaced_and_counted_in_text(name: str) -> None:
    text, secret = TEXTS[name]
    clean, count = redact(f"before\n{text}\nafter\n")
    assert secret not in clean
    assert REDACTED in clean
    assert count >= 1
    assert clean.startswith("before\n")


@pytest.mark.parametrize("name", TEXTS)
def test_a_secret_is_replaced_in_added_lines_of_a_diff(name: str) -> None:
    text, secret = TEXTS[name]
    diff = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1,9 @@\n" + "".join(
        f"+{line}\n" for line in text.splitlines()
    )
    clean, count = redact(diff + "diff --git a/b.py b/b.py\n+kept = 1\n")
    assert secret not in clean
    assert count >= 1
    assert clean.endswith("diff --git a/b.py b/b.py\n+kept = 1\n"), (
        "a key without an end does not take the files after it along"
    )


@pytest.mark.parametrize("name", make_tokens())
def test_a_secret_is_replaced_in_a_command_line(name: str) -> None:
    token = make_tokens()[name]
    clean, count = redact_arguments(["train.py", token, f"--other={token}", f"logger.key={token}"])
    assert token not in " ".join(clean)
    assert count >= 3


@pytest.mark.parametrize(
    "argument", ["DB_PASSWORD={}", "logger.api_key={}", "+logger.api_key={}", "--db-password={}"]
)
def test_a_named_argument_is_replaced_however_short(argument: str) -> None:
    word = "hunter" + "2"
    assert redact_arguments([argument.format(word)]) == ([argument.format(REDACTED)], 1)


def commit_and_change(tree: Path, name: str, text: str) -> None:
    (tree / name).parent.mkdir(exist_ok=True, parents=True)
    (tree / name).write_text("first\n")
    git("add", "--force", name)
    git("commit", "-q", "-m", "second")
    (tree / name).write_text(text)


def capture_record(tree: Path, **options: Any) -> tuple[dict[str, Any], str]:
    record = capture(["train.py"], **options)
    directory = prepare_output_dir({}, exp_id="x", argv=["train.py"], make_backup=False, **options)
    return record, json.dumps(record) + "".join(
        path.read_text() for path in Path(directory).glob("*.txt")
    )


def test_no_secret_of_a_tracked_file_is_recorded(tree: Path) -> None:
    (tree / "agent.py").write_text("\n".join(text for text, _ in TEXTS.values()) + "\n")
    record, everything = capture_record(tree)
    assert [name for name, (_, secret) in TEXTS.items() if secret in everything] == []
    assert record["redactions"] >= len(LINES)


def test_untracked_files_are_recorded_by_name_and_digest_only(tree: Path) -> None:
    (tree / "new.py").write_text("marked = 'content of mine'\n")
    record, everything = capture_record(tree)
    assert "content of mine" not in everything
    (found,) = record["git"]["untracked"]
    assert (found["name"], found["bytes"], len(found["sha256"])) == ("new.py", 27, 64)
    assert '"name": "new.py"' in everything
    assert "new.py" not in record["git"]["diff"]


def test_untracked_files_are_recorded_whole_when_asked_for_without_their_secrets(
    tree: Path,
) -> None:
    (tree / "new.py").write_text(
        "marked = 'content of mine'\n" + "\n".join(text for text, _ in TEXTS.values()) + "\n"
    )
    (tree / "sub").mkdir()
    (tree / "sub" / ".env").write_text("COLOUR=marked-blue\n")
    record, everything = capture_record(tree, with_untracked=True)
    assert "+marked = 'content of mine'" in record["git"]["diff"]
    assert [name for name, (_, secret) in TEXTS.items() if secret in everything] == []
    assert record["redactions"] >= len(LINES)
    assert "marked-blue" not in everything, "whatever it holds"
    assert {"name": "sub/.env"} in record["git"]["untracked"], (
        "a digest lets a short secret be guessed"
    )


@pytest.mark.parametrize(
    "name",
    [
        ".env",
        "conf/prod.env",
        "server.pem",
        "id_rsa",
        "credentials.json",
        ".netrc",
        "tls.KEY",
        ".aws/config",
    ],
)
def test_a_file_with_a_secret_file_name_is_listed_without_its_content(
    tree: Path, name: str
) -> None:
    commit_and_change(tree, name, "marked-blue\n")
    (tree / "agent.py").write_text("lr = 2\n")
    record, everything = capture_record(tree, with_untracked=True)
    assert "marked-blue" not in everything
    assert record["git"]["withheld"] == [name]
    assert (
        f"diff --git a/{name} b/{name}\nnot recorded: files of this name hold secrets\n"
        in record["git"]["diff"]
    )
    assert "+lr = 2" in record["git"]["diff"]


def test_a_file_renamed_from_a_secret_file_name_is_listed_without_its_content(tree: Path) -> None:
    (tree / ".env").write_text("COLOUR=marked-blue\n")
    git("add", "--force", ".env")
    git("commit", "-q", "-m", "second")
    git("mv", "--force", ".env", "colours.txt")
    record, _ = capture_record(tree)
    assert record["git"]["withheld"] == [".env"]
    assert "-COLOUR" not in record["git"]["diff"]


@pytest.mark.parametrize(
    "name",
    [
        "agent.py",
        "keys.py",
        "environment.py",
        "README.md",
        "token_embedding.py",
        "monkey.txt",
        "env/grid.py",
    ],
)
def test_files_with_ordinary_names_are_recorded(name: str) -> None:
    assert not is_secret_name(name)


def test_the_values_of_allow_listed_variables_are_searched_and_counted(
    directory_without_git: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = capture(["x"])["redactions"]
    for index, token in enumerate(make_tokens().values()):
        monkeypatch.setenv(f"OMP_{index}", f"a {token} b")
    record = capture(["x"])
    assert [token for token in make_tokens().values() if token in json.dumps(record)] == []
    assert record["redactions"] >= before + len(make_tokens())


def test_a_text_is_cut_between_lines(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret that is cut in two would not be recognised."""
    token = make_tokens()["GitHub ghp"]
    (tree / "agent.py").write_text("x = 1\n" * 20 + f"y = '{token}'\n")
    whole = len(capture(["x"])["git"]["diff"]) - len(REDACTED) + len(token)
    for size in range(whole - len(token) - 10, whole, 5):
        monkeypatch.setattr("palestra.worktree.MAX_TEXT", size)
        assert token[:8] not in capture(["x"])["git"]["diff"]


def test_searching_for_secrets_does_not_load_the_detectors_before_there_is_a_text() -> None:
    import subprocess
    import sys

    program = (
        "import sys, palestra, palestra.cli.main\n"
        "unwanted = ('detect_secrets', 'requests')\n"
        "print([name for name in sys.modules if name.startswith(unwanted)])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"

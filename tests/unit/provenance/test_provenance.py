"""The provenance record of a run, and the secrets that it must not contain.

The rows P72 to P82 are in `tests/acceptance`.
"""

import json
from pathlib import Path

import pytest

from palestra import provenance
from palestra.provenance import capture, generate_exp_id, prepare_output_dir
from tests.support.secret_samples import make_private_keys, make_tokens
from tests.support.work_trees import read

TOKEN = make_tokens()["Palestra"]
PRIVATE_KEY, BODY = make_private_keys()["private key: RSA"]
AWS = make_tokens()["AWS access key"]


def test_the_id_of_a_subdirectory_covers_the_whole_tree(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree / "sub").mkdir()
    (tree / "new.py").write_text("x")
    whole = generate_exp_id(argv=["a"])
    monkeypatch.chdir(tree / "sub")
    assert generate_exp_id(argv=["a"]) == whole


def test_ignored_files_are_not_part_of_the_id(tree: Path) -> None:
    (tree / ".gitignore").write_text("*.log\n")
    before = generate_exp_id(argv=["a"])
    (tree / "out.log").write_text("x")
    assert generate_exp_id(argv=["a"]) == before


def test_only_allow_listed_variables_are_recorded(
    directory_without_git: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "marked-secret")
    monkeypatch.setenv("PALESTRA_TOKEN", TOKEN)
    monkeypatch.setenv("PALESTRA_DATABASE_URL", "postgresql://me:hunter2hunter2@db/x")
    directory = prepare_output_dir({}, exp_id="x")
    recorded = json.loads(read(directory, "environ"))
    assert recorded["OMP_NUM_THREADS"] == "2"
    assert "AWS_SECRET_ACCESS_KEY" not in recorded
    assert "PALESTRA_TOKEN" not in recorded
    assert "hunter2" not in json.dumps([recorded, capture(["x"])])


def test_no_secret_reaches_a_file_or_the_record(tree: Path) -> None:
    (tree / "agent.py").write_text(
        f'lr = 2\nAPI_KEY = "{TOKEN}"\nurl = "https://me:hunter2hunter2@example.org/"\n'
    )
    (tree / "new.py").write_text(f"{PRIVATE_KEY}\naws = {AWS!r}\n")
    argv = [
        "train.py",
        "--token",
        "hunter2",
        f"--other={TOKEN}",
        "--token-file",
        "secrets/token.txt",
    ]
    record = capture(argv, with_untracked=True)
    directory = prepare_output_dir({}, argv=argv, with_untracked=True)
    everything = json.dumps(record) + "".join(
        path.read_text() for path in Path(directory).glob("*.txt")
    )
    for secret in (TOKEN, "hunter2", BODY, AWS):
        assert secret not in everything
    assert "new.py" in record["git"]["diff"]
    assert "secrets/token.txt" in record["arguments"]
    assert record["redactions"] >= 6


def test_capture_is_complete_plain_json(tree: Path) -> None:
    (tree / b"odd\xff.py".decode("utf-8", "surrogateescape")).write_bytes(
        b"nul \0 and \xff and literal \\u0000 text\n"
    )
    (tree / "literal.py").write_text('x = "\\u0000"\n')
    record = capture(["train.py"], with_untracked=True)
    assert set(record) == {
        *(
            "command",
            "arguments",
            "started_at",
            "directory",
            "git",
            "packages",
            "hardware",
            "environment",
            "redactions",
        ),
    }
    assert set(record["git"]) == {
        "head",
        "dirty_digest",
        "status",
        "log",
        "diff",
        "untracked",
        "withheld",
    }
    text = json.dumps(record, ensure_ascii=False)
    assert text.encode().decode() == text
    assert "\0" not in text
    assert '"\\\\u0000' not in record["git"]["head"]
    assert record["packages"]["pydantic"]
    assert record["hardware"]["cores"] >= 1


def test_capture_outside_git_has_no_commit(directory_without_git: Path) -> None:
    assert capture(["x"])["git"] is None


def test_a_large_untracked_file_is_named_but_not_copied(tree: Path) -> None:
    (tree / "big.bin").write_bytes(b"0" * (2 * 2**20))
    diff = capture(["x"], with_untracked=True)["git"]["diff"]
    assert "big.bin" in diff
    assert len(diff) < 10_000


def test_gpus_are_empty_without_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert provenance.describe_hardware()["gpus"] == []

"""Every code block of README and docs is run by a test, or is marked with its requirement and
parsed.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import yaml

from palestra.contract.job_options import Submission
from tests.support.commands import run_command
from tests.support.documents import PAGES, REPOSITORY, Block, read_blocks

NEEDS = {"docker", "a GPU", "another machine", "make", "another version of Palestra", "root"}
"""Requirements of a block that no test can meet."""
LANGUAGES = {"sh", "python", "yaml", "toml", "json", "text", "mermaid", "nginx", "caddyfile", ""}
BLOCKS = [block for page in PAGES for block in read_blocks(page)]
NOT_RUN = [block for block in BLOCKS if block.needs is not None]


def get_name(block: Block) -> str:
    return f"{block.page}:{block.line}"


def test_every_block_has_a_language_and_a_known_requirement() -> None:
    assert {block.language for block in BLOCKS} <= LANGUAGES
    assert {block.needs for block in NOT_RUN} <= NEEDS, "a new need: think of a test that has it"
    unmarked = [
        get_name(block)
        for block in BLOCKS
        if block.needs is None
        and re.search(r"docker|nvidia|^make ", block.text, re.MULTILINE)
        and block.language == "sh"
    ]
    assert unmarked == []


@pytest.mark.parametrize("block", NOT_RUN, ids=get_name)
def test_a_block_that_is_not_run_can_be_parsed(block: Block) -> None:
    if block.language != "sh":
        return
    subprocess.run(["sh", "-n"], input=block.text, text=True, check=True)
    for command in find_commands(block.text):
        check_command(command)


@pytest.mark.parametrize(
    "block", [block for block in BLOCKS if block.language == "yaml"], ids=get_name
)
def test_documents_in_blocks_are_submissions(block: Block) -> None:
    document = yaml.safe_load(block.text)
    Submission.model_validate_json(
        __import__("json").dumps(document if "definition" in document else {"definition": document})
    )


def find_commands(text: str) -> list[list[str]]:
    """Returns the calls of `palestra` and `make` in a block, each as a list of words."""
    joined = re.sub(r"<<'?(\w+)'?.*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL).replace(
        "\\\n", " "
    )
    found = []
    for line in joined.splitlines():
        words = shlex.split(line.split(" | ")[0], comments=True)
        while words and (
            words[0] in {"docker", "compose", "exec", "-T", "server"} or "=" in words[0]
        ):
            words = words[1:]
        if words and Path(words[0]).name in {"palestra", "make"}:
            found.append(words)
    return found


def check_command(words: list[str]) -> None:
    """Checks that a command and its options exist."""
    if words[0] == "make":
        targets = re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
        assert words[1] in targets, words
        return
    depth = 2 if words[1] == "db" else 1
    usage = read_help(tuple(words[1 : 1 + depth]))
    for option in (word.split("=")[0] for word in words if word.startswith("--")):
        assert re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", usage), (
            f"palestra {words[1]} knows no {option}"
        )


@cache
def read_help(command: tuple[str, ...]) -> str:
    arguments = [*command, "--help"]
    if command[0] in {"server", "worker", "db"}:  # Another program replaces the command.
        call = [sys.executable, "-m", "palestra.cli", *arguments]
        return subprocess.run(
            call, capture_output=True, text=True, check=True, cwd=REPOSITORY
        ).stdout
    done = run_command(arguments, os.environ, REPOSITORY)
    assert done.exit_code == 0, done.errors
    return done.output


def test_the_reference_agrees_with_the_schema() -> None:
    made = subprocess.run(
        [sys.executable, ".ci/tools/definition_reference.py"],
        capture_output=True,
        text=True,
        check=True,
        cwd=REPOSITORY,
    ).stdout
    assert made == (REPOSITORY / "docs" / "definition.md").read_text(encoding="utf-8"), (
        "run make reference"
    )


def test_links_between_pages_have_a_target() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#\s]+)\)", page.read_text(encoding="utf-8")):
            assert target.startswith("http") or (page.parent / target).exists(), (
                f"{page.name}: {target}"
            )


def test_bash_is_installed() -> None:
    assert shutil.which("bash")

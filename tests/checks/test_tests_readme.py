"""`tests/README.md` names each support module and each mark."""

import re
import tomllib
from pathlib import Path

TESTS = Path(__file__).parents[1]
README = (TESTS / "README.md").read_text("utf-8")


def test_the_page_lists_the_support_modules() -> None:
    listed = re.findall(r"^- \[(\w+\.py)\]\(support/\1\): \S", README, re.MULTILINE)
    assert listed == sorted(path.name for path in (TESTS / "support").glob("*.py"))


def test_the_page_explains_the_marks() -> None:
    project = tomllib.loads((TESTS.parent / "pyproject.toml").read_text("utf-8"))
    marks = project["tool"]["pytest"]["ini_options"]["markers"]
    names = {re.split(r"[(:]", mark)[0] for mark in marks}
    (section,) = re.findall(r"^## Marks$(.*?)^## ", README, re.MULTILINE | re.DOTALL)
    assert set(re.findall(r"^\| `(\w+)` \| ", section, re.MULTILINE)) == names


def test_links_of_the_page_lead_to_files() -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", README)
    assert [target for target in targets if not (TESTS / target).exists()] == []

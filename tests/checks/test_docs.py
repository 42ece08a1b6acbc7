"""Every Python example of the documentation runs unchanged.

The examples of a page run from top to bottom in an empty directory.
"""

import re
import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PAGES = sorted(
    path.name for path in DOCS.glob("*.md") if _BLOCK.search(path.read_text(encoding="utf-8"))
)


@pytest.mark.parametrize("page", _PAGES)
def test_the_examples_of_a_page_run(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks: list[str] = _BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))
    program = tmp_path / "examples.py"
    program.write_text("\n".join(blocks), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    # In this process, because a new one would import torch and its compiler for seconds.
    runpy.run_path(str(program), run_name="__main__")


def test_the_training_page_has_examples() -> None:
    assert "training.md" in _PAGES

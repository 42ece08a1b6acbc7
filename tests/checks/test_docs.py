"""Every Python example of the documentation runs unchanged.

The examples of a page run from top to bottom in an empty directory.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PAGES = sorted(
    path.name for path in DOCS.glob("*.md") if _BLOCK.search(path.read_text(encoding="utf-8"))
)


@pytest.mark.parametrize("page", _PAGES)
def test_the_examples_of_a_page_run(page: str, tmp_path: Path) -> None:
    blocks: list[str] = _BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))
    program = tmp_path / "examples.py"
    program.write_text("\n".join(blocks), encoding="utf-8")
    command = [sys.executable, "-W", "error", "-B", str(program)]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stderr[-4_000:]


def test_the_training_page_has_examples() -> None:
    assert "training.md" in _PAGES

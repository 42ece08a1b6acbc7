"""The code blocks of README and docs, and the requirements that keep a test from running them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PAGES = (REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md")))
_BLOCK = re.compile(
    r"^(?:[ ]*<!-- not run: (?P<needs>[^>]+?) -->\n)?"
    r"(?P<indent>[ ]*)```(?P<language>\w*)\n(?P<text>.*?)^[ ]*```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced code block of a page."""

    page: str
    line: int
    language: str
    text: str
    needs: str | None
    """Requirement that tests do not meet, such as docker; `None` for a block that a test runs."""


def read_blocks(page: Path) -> Iterator[Block]:
    """Yields the blocks of a page from top to bottom."""
    content = page.read_text(encoding="utf-8")
    for found in _BLOCK.finditer(content):
        indent = len(found["indent"])
        text = "\n".join(line[indent:] for line in found["text"].splitlines()) + "\n"
        line = content.count("\n", 0, found.start()) + 1
        yield Block(
            page.relative_to(REPOSITORY).as_posix(), line, found["language"], text, found["needs"]
        )

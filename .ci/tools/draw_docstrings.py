"""Prints names with their docstrings, drawn at random from each top folder, for a reader to judge.

From the frontend it draws functions, components and types with their TSDoc comment.

Usage: python .ci/tools/draw_docstrings.py SEED [COUNT]
"""

import argparse
import ast
import random
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

REPOSITORY = Path(__file__).parents[2]
FOLDERS = ("app", "benchmarks", "frontend/src", "palestra", "tests", "workers")

_DECLARATION: Final = re.compile(
    r"/\*\*(?P<comment>(?:(?!\*/).)*)\*/[ \t]*\n"
    r"[ \t]*(?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?"
    r"(?:function\*?|class|interface|type|enum|const|let)\s+(?P<name>\w+)",
    re.DOTALL,
)
"""A TSDoc comment and the declaration that follows it."""
_GENERATED: Final = "frontend/src/api/schema.d.ts"


def documented_names(path: Path) -> Iterator[str]:
    """Yields place, name and docstring of each class and function of a file that has one."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        docstring = ast.get_docstring(node)
        if docstring:
            place = f"{path.relative_to(REPOSITORY)}:{node.lineno}"
            yield f"{place} {node.name}\n    " + docstring.replace("\n", "\n    ")


def documented_declarations(path: Path) -> Iterator[str]:
    """Yields place, name and comment of each declaration of a TypeScript file that has one."""
    source = path.read_text(encoding="utf-8")
    for found in _DECLARATION.finditer(source):
        lines = (re.sub(r"^\s*\* ?", "", line) for line in found["comment"].strip().splitlines())
        place = (
            f"{path.relative_to(REPOSITORY)}:{source.count(chr(10), 0, found.start('name')) + 1}"
        )
        yield f"{place} {found['name']}\n    " + "\n    ".join(lines)


def tracked_files(folder: str) -> list[Path]:
    """Returns the source files of a folder that git tracks, sorted, without generated ones."""
    command = ["git", "ls-files", *(f"{folder}/*.{suffix}" for suffix in ("py", "ts", "tsx"))]
    listed = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True)
    return [REPOSITORY / line for line in sorted(listed.stdout.splitlines()) if line != _GENERATED]


def main() -> None:
    """Prints the same names for the same seed and the same sources."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int, nargs="?", default=10, help="names from each folder")
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    for folder in FOLDERS:
        names: list[str] = []
        for path in tracked_files(folder):
            read = documented_names if path.suffix == ".py" else documented_declarations
            names.extend(read(path))
        drawn = rng.sample(names, min(arguments.count, len(names)))
        print(f"== {folder}: {len(drawn)} of {len(names)}", *drawn, sep="\n")


if __name__ == "__main__":
    main()

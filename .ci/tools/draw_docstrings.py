"""Prints names with their docstrings, drawn at random from each top folder, for a reader to judge.

Usage: python .ci/tools/draw_docstrings.py SEED [COUNT]
"""

import argparse
import ast
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
FOLDERS = ("app", "benchmarks", "palestra", "tests", "workers")


def documented_names(path: Path) -> Iterator[str]:
    """The classes and functions of a file that have a docstring: place, name and docstring."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        docstring = ast.get_docstring(node)
        if docstring:
            place = f"{path.relative_to(REPOSITORY)}:{node.lineno}"
            yield f"{place} {node.name}\n    " + docstring.replace("\n", "\n    ")


def tracked_modules(folder: str) -> list[Path]:
    """The Python files of a folder that git tracks, sorted."""
    command = ["git", "ls-files", f"{folder}/*.py"]
    listed = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True)
    return [REPOSITORY / line for line in sorted(listed.stdout.splitlines())]


def main() -> None:
    """Draws the same names for the same seed and the same sources."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int, nargs="?", default=10, help="names from each folder")
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    for folder in FOLDERS:
        names = [name for path in tracked_modules(folder) for name in documented_names(path)]
        drawn = rng.sample(names, min(arguments.count, len(names)))
        print(f"== {folder}: {len(drawn)} of {len(names)}", *drawn, sep="\n")


if __name__ == "__main__":
    main()

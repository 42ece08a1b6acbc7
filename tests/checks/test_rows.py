"""Every row of the acceptance table has its test, and no test names a row that does not exist."""

import ast
from pathlib import Path

from tests.acceptance.acceptance_rows import COUNTS, ROWS, get_row

ACCEPTANCE = Path(__file__).parents[1] / "acceptance"


def test_there_are_197_rows() -> None:
    assert sum(COUNTS.values()) == len(ROWS) == 197


def test_every_row_has_a_test() -> None:
    found: set[str] = set()
    for path in ACCEPTANCE.glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
                and (row := get_row(f"::{node.name}")) is not None
            ):
                found.add(row[0])
    assert sorted(found) == sorted(ROWS)

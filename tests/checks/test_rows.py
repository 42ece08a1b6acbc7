"""Every row of the acceptance table has its test, and no test names a row that does not exist."""

import ast
from collections import Counter
from pathlib import Path

from tests.acceptance.rows import COUNTS, ROWS, row_of

ACCEPTANCE = Path(__file__).parents[1] / "acceptance"


def test_there_are_197_rows() -> None:
    assert sum(COUNTS.values()) == len(ROWS) == 197


def test_every_row_has_one_test() -> None:
    found: Counter[str] = Counter()
    for path in ACCEPTANCE.glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (row := row_of(f"::{node.name}")) is not None:
                found[row[0]] += 1
    assert found == dict.fromkeys(ROWS, 1)

"""Every row of the acceptance table has its test, and no test names a row that does not exist."""

import ast
from pathlib import Path

from tests.acceptance.acceptance_rows import COUNTS, ROWS, get_row
from tests.acceptance.mutations import MUTATIONS

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


def test_every_mutation_fits_the_code_once() -> None:
    root = ACCEPTANCE.parents[1]
    counts = {
        (one.row, one.path, one.old): (root / one.path).read_text(encoding="utf-8").count(one.old)
        for one in MUTATIONS
    }
    assert {place: count for place, count in counts.items() if count != 1} == {}


def test_every_mutation_changes_code_and_none_is_repeated() -> None:
    """A mutation that does not change or does not parse would not test its row."""
    root = ACCEPTANCE.parents[1]
    assert {one.row for one in MUTATIONS} <= set(ROWS)
    results = [
        (one.row, one.path, (root / one.path).read_text(encoding="utf-8").replace(one.old, one.new))
        for one in MUTATIONS
    ]
    assert len(set(results)) == len(MUTATIONS)
    for one, (_, path, mutated) in zip(MUTATIONS, results, strict=True):
        original = ast.dump(ast.parse((root / path).read_text(encoding="utf-8")))
        assert ast.dump(ast.parse(mutated)) != original, one

"""Counts the single mutations of `app` and `workers` that no test notices.

`draw` wrote `tests/mutations.json`, once, on the tree of commit e859b569: with the seed below it
draws an operator, then a place in the code for it, and draws again if no test runs the line in
pytest's own process. A mutation is identified by file, function, text of its line and operator, so
that `run` makes the same change to a later tree. `run` applies each mutation to a copy of the tree
in the current directory, and runs the tests that cover its line and the fewest other lines. It
continues where an interrupted run stopped. A time-out counts as noticed.

Usage:
    mutations.py draw COVERAGE
    mutations.py run COVERAGE RESULTS

COVERAGE is a data file with a context per test, as `make coverage` leaves it.
"""

import ast
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass
from pathlib import Path

from tests.support import postgres

MUTATIONS = Path(__file__).parents[2] / "tests" / "mutations.json"
SEED = 31
COUNT = 60
PACKAGES = ("app", "workers")
MAX_TESTS = 20
LIMIT_SECONDS = 120
STOP_SECONDS = 20
NOT_COPIED = (".git", ".venv", "node_modules", "__pycache__", ".*_cache", ".coverage*")
NOTICED, SURVIVED, TIMED_OUT = "noticed", "survived", "timed out"
GONE = "gone"
"""The tree has no such line any more."""
UNDECIDED = "undecided"
"""The tests fail or time out without the mutation, too; the next run tries again."""

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
}


def _swap_comparison(node: ast.AST) -> ast.AST | None:
    match node:
        case ast.Compare(left, [first, *others], values):
            return ast.Compare(left, [_COMPARISONS[type(first)](), *others], values)
    return None


def _negate_boolean(node: ast.AST) -> ast.AST | None:
    match node:
        case ast.UnaryOp(ast.Not(), operand):
            return operand
        case ast.BoolOp(operator, values):
            return ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), values)
        case ast.Constant(bool() as value):
            return ast.Constant(not value)
    return None


def _swap_arithmetic(node: ast.AST) -> ast.AST | None:
    match node:
        case ast.BinOp(_, _, ast.Constant(str()) | ast.JoinedStr()):
            return None
        case ast.BinOp(left, operator, right) if type(operator) in _ARITHMETIC:
            return ast.BinOp(left, _ARITHMETIC[type(operator)](), right)
        case ast.AugAssign(target, operator, value) if type(operator) in _ARITHMETIC:
            return ast.AugAssign(target, _ARITHMETIC[type(operator)](), value)
    return None


def _increase_constant(node: ast.AST) -> ast.AST | None:
    match node:
        case ast.Constant(int() | float() as value) if not isinstance(value, bool):
            return ast.Constant(value + 1)
    return None


def _return_none(node: ast.AST) -> ast.AST | None:
    match node:
        case ast.Return(ast.expr() as value) if ast.unparse(value) != "None":
            return ast.Return(ast.Constant(None))
    return None


def _remove_condition(node: ast.AST) -> ast.AST | None:
    match node:
        case ast.If(_, body, orelse):
            return ast.If(ast.Constant(value=True), body, orelse)
    return None


def _remove_call(node: ast.AST) -> ast.AST | None:
    match node:
        case ast.Expr(ast.Call() | ast.Await(ast.Call())):
            return ast.Pass()
    return None


OPERATORS: dict[str, Callable[[ast.AST], ast.AST | None]] = {
    "swap comparison": _swap_comparison,
    "negate boolean": _negate_boolean,
    "swap arithmetic": _swap_arithmetic,
    "constant + 1": _increase_constant,
    "return None": _return_none,
    "remove condition": _remove_condition,
    "remove call": _remove_call,
}
"""Each returns what replaces a node, or `None` if it does not apply to the node."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """A change of one node of a source file."""

    file: str
    function: str
    line: str
    """Text of the line on which the node begins."""
    operator: str
    occurrence: int
    """Index among the nodes with the same file, function, line and operator."""


@dataclass(frozen=True, slots=True)
class Place:
    """A node that a mutation changes, with the tree that contains it."""

    tree: ast.Module
    node: ast.expr | ast.stmt

    def mutate(self, operator: str) -> str:
        """Returns the source of the file with the mutation. The place is used up."""
        replacement = OPERATORS[operator](self.node)
        for parent in ast.walk(self.tree):
            for name, value in ast.iter_fields(parent):
                if value is self.node:
                    setattr(parent, name, replacement)
                elif isinstance(value, list):
                    value[:] = [replacement if item is self.node else item for item in value]
        return ast.unparse(ast.fix_missing_locations(self.tree))


def find_places(file: Path) -> Iterator[tuple[Mutation, Place]]:
    """Yields all mutations of a source file, with its path relative to the current directory."""
    source = file.read_text("utf-8")
    lines = source.splitlines()
    tree = ast.parse(source)
    counts: Counter[tuple[str, str, str]] = Counter()
    for function, node in _walk(tree, ""):
        for operator, mutate in OPERATORS.items():
            if mutate(node) is not None:
                key = (function, lines[node.lineno - 1].strip(), operator)
                yield Mutation(file.as_posix(), *key, counts[key]), Place(tree, node)
                counts[key] += 1


def _walk(node: ast.AST, function: str) -> Iterator[tuple[str, ast.expr | ast.stmt]]:
    """Yields expressions and statements with the function they are in, but not parts of texts."""
    for child in ast.iter_child_nodes(node):
        inner = function
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{function}.{child.name}".removeprefix(".")
        if isinstance(child, ast.expr | ast.stmt):
            yield inner, child
        if not isinstance(child, ast.JoinedStr):
            yield from _walk(child, inner)


class LineCoverage:
    """Which test ran which line, from a data file of coverage.py with a context per test."""

    def __init__(self, path: Path) -> None:
        self.measured = path.stat().st_mtime
        self._database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        self._sizes: Counter[str] = Counter()
        """Number of lines that each test ran."""
        files = [file for (file,) in self._database.execute("SELECT path FROM file")]
        for lines in map(self._read, files):
            self._sizes.update({test: mask.bit_count() for test, mask in lines.items()})

    def find_tests(self, file: str, line: int) -> list[str]:
        """Returns the tests that ran a line, those that ran the fewest lines first."""
        tests = [test for test, mask in self._read(file).items() if mask >> line & 1]
        return sorted(tests, key=lambda test: (self._sizes[test], test))

    def _read(self, file: str) -> dict[str, int]:
        """Returns for each test the lines of a file that it ran, as a bit mask."""
        rows = self._database.execute(
            "SELECT context.context, line_bits.numbits FROM line_bits"
            " JOIN context ON context.id = line_bits.context_id"
            " JOIN file ON file.id = line_bits.file_id"
            " WHERE file.path = ? AND context.context <> ''",
            (file,),
        )
        lines: dict[str, int] = defaultdict(int)
        for context, mask in rows:
            test, _, _phase = context.rpartition("|")
            lines[test] |= int.from_bytes(mask, "little")
        return lines


def draw(coverage: LineCoverage) -> None:
    """Writes the list of mutations, which must not exist."""
    places: dict[str, list[tuple[Mutation, int]]] = defaultdict(list)
    for package in PACKAGES:
        for file in sorted(Path(package).rglob("*.py")):
            for mutation, place in find_places(file):
                places[mutation.operator].append((mutation, place.node.lineno))
    generator = random.Random(SEED)
    drawn: list[Mutation] = []
    while len(drawn) < COUNT:
        mutation, line = generator.choice(places[generator.choice(list(OPERATORS))])
        if mutation not in drawn and coverage.find_tests(mutation.file, line):
            drawn.append(mutation)
    text = json.dumps([asdict(mutation) for mutation in drawn], indent=1)
    with MUTATIONS.open("x", encoding="utf-8") as output:
        output.write(text + "\n")


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a mutation."""

    verdict: str
    seconds: float = 0.0
    tests: int = 0
    """Number of tests that were chosen."""
    noticed_by: str = ""


class Copy:
    """A copy of the tree in the current directory, in which tests run."""

    def __init__(self, directory: Path) -> None:
        self.tree = directory / "tree"
        self._cache = directory / "pytest"
        self._environment = os.environ | {
            "PYTHONPATH": str(self.tree),
            "XDG_CACHE_HOME": str(directory / "cache"),
            postgres.ROOT_VARIABLE: str(postgres.make_root()),
        }
        shutil.copytree(".", self.tree, symlinks=True, ignore=shutil.ignore_patterns(*NOT_COPIED))
        names = ("app", "palestra", "workers", "tests.support.postgres")
        program = f"import {', '.join(names)}; print({', '.join(f'{n}.__file__' for n in names)})"
        imported = subprocess.run(
            [sys.executable, "-c", program],
            cwd=self.tree,
            env=self._environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()
        if not all(Path(file).is_relative_to(self.tree) for file in imported):
            raise SystemExit(f"tests would import {imported}, not {self.tree}")

    def close(self) -> None:
        """Stops the PostgreSQL server that the runs share."""
        postgres.stop(Path(self._environment[postgres.ROOT_VARIABLE]))

    def try_mutation(self, mutation: Mutation, mutated: str, tests: list[str]) -> Result:
        """Runs tests with the mutation; without it those that failed, or all after a time-out."""
        file = self.tree / mutation.file
        original = file.read_text("utf-8")
        shutil.rmtree(self._cache, ignore_errors=True)
        file.write_text(mutated, encoding="utf-8")
        start = time.monotonic()
        try:
            status = self._run_pytest(tests)
        finally:
            file.write_text(original, encoding="utf-8")
        seconds = round(time.monotonic() - start, 1)
        if status == 0:
            return Result(SURVIVED, seconds, len(tests))
        stored = self._cache / "v" / "cache" / "lastfailed"
        failed = list(json.loads(stored.read_text("utf-8"))) if stored.exists() else []
        verdict = TIMED_OUT if status is None else NOTICED
        if self._run_pytest(tests if status is None or not failed else failed) != 0:
            verdict = UNDECIDED
        return Result(verdict, seconds, len(tests), ", ".join(failed))

    def _run_pytest(self, arguments: list[str]) -> int | None:
        """Returns the exit status, or `None` if the time was up."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-o", f"cache_dir={self._cache}"]
        process = subprocess.Popen(
            [*command, *arguments],
            cwd=self.tree,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return process.wait(LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(STOP_SECONDS)
            return None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def run(coverage: LineCoverage, path: Path) -> None:
    """Tries the mutations that have no result yet, and prints the table of all."""
    mutations = [Mutation(**members) for members in json.loads(MUTATIONS.read_text("utf-8"))]
    stored = json.loads(path.read_text("utf-8")) if path.exists() else {}
    results = {name: Result(**members) for name, members in stored.items()}
    with tempfile.TemporaryDirectory(prefix="palestra-mutations-") as directory:
        copy = Copy(Path(directory))
        try:
            for mutation in mutations:
                name = " | ".join(map(str, astuple(mutation)))
                if name not in results or results[name].verdict == UNDECIDED:
                    results[name] = _try(mutation, copy, coverage)
                    temporary = path.with_suffix(".new")
                    stored = {name: asdict(result) for name, result in results.items()}
                    temporary.write_text(json.dumps(stored, indent=1), encoding="utf-8")
                    temporary.replace(path)
                _print(mutation, results[name])
        finally:
            copy.close()
    verdicts = Counter(result.verdict for result in results.values())
    counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
    sys.stdout.write(f"{len(mutations)} mutations: {counts}\n")


def _try(mutation: Mutation, copy: Copy, coverage: LineCoverage) -> Result:
    file = Path(mutation.file)
    place = dict(find_places(file)).get(mutation) if file.exists() else None
    if place is None:
        return Result(GONE)
    if file.stat().st_mtime > coverage.measured:
        raise SystemExit(f"{file} changed after coverage was measured: measure it again")
    tests = coverage.find_tests(mutation.file, place.node.lineno)[:MAX_TESTS]
    if not tests:
        return Result(SURVIVED)
    return copy.try_mutation(mutation, place.mutate(mutation.operator), tests)


def _print(mutation: Mutation, result: Result) -> None:
    sys.stdout.write(
        f"{result.verdict:10} {result.seconds:6.1f} s {result.tests:3} tests  "
        f"{mutation.operator:17} {mutation.file}: {mutation.function}: {mutation.line}\n"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["draw", data]:
            draw(LineCoverage(Path(data)))
        case ["run", data, results]:
            run(LineCoverage(Path(data)), Path(results))
        case _:
            raise SystemExit(__doc__)

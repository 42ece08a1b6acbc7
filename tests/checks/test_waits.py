"""Tests wait for conditions, by `tests/support/waiting.py`, and not for seconds."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

SLOW_ON_PURPOSE = {
    "support/async_fakes.py",  # a hook that pauses after each step, so that all processes step
    "support/holding_worker.py",  # holds slots for the seconds that a benchmark chooses
    "support/killed_program.py",  # kills a program after a time that is drawn at random
    "support/proxy.py",  # delays what it passes on
    "support/slow_pole.py",  # steps that take long while a file exists
    "support/waiting.py",  # the waits themselves
}

SLEEP = (
    "waits for seconds: wait for the condition by `wait_for` or `until` of "
    "tests/support/waiting.py, or move a clock"
)
LIMIT = (
    "fails on a machine that takes longer: its limit is PATIENCE_SECONDS of "
    "tests/support/waiting.py"
)
MARK = "is shorter than the timeout of every test: let the test wait for a condition"
_EVERY_TEST_SECONDS = 900
_CLOCKS = {"time", "asyncio"}
_WAITS = {"wait", "wait_for", "timeout", "communicate", "join", "wait_procs"}
_WAITS_OF_ARGUMENT = {"wait_for", "wait_procs"}
"""Waits whose first argument is what they wait for."""
_PROGRAM = re.compile(r"\b(time|asyncio)\.sleep\((?!0\))|\bpg_sleep\(")
"""A sleep in a program or statement that a test passes on as text."""

Breach = tuple[int, str]


def find_breaches(source: str) -> list[Breach]:
    """Returns line and sentence of each wait for seconds in a module."""
    tree = ast.parse(source)
    constants = set(_find_constants(tree))
    found = [breach for node in ast.walk(tree) for breach in _judge(node, constants)]
    return sorted(set(found))


def _find_constants(tree: ast.Module) -> Iterator[str]:
    """Yields the names to which the module assigns a number."""
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        if isinstance(node, ast.Assign | ast.AnnAssign) and _is_number(node.value, set()):
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def _is_number(node: ast.expr | None, constants: set[str]) -> bool:
    """Whether an expression is a number other than 0 that the module states."""
    match node:
        case ast.Constant(value=int() | float() as value):
            return value != 0
        case ast.Name(id=name):
            return name in constants
        case ast.BinOp(left=left, right=right):
            return _is_number(left, constants) and _is_number(right, constants)
    return False


def _judge(node: ast.AST, constants: set[str]) -> Iterator[Breach]:
    match node:
        case ast.Constant(value=str() as text, lineno=line) if _PROGRAM.search(text):
            yield line, SLEEP
        case ast.Attribute(attr="pg_sleep", lineno=line):
            yield line, SLEEP
        case ast.ImportFrom(module="time" | "asyncio", names=names, lineno=line) if any(
            one.name == "sleep" for one in names
        ):
            yield line, SLEEP
        case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr="sleep"), lineno=line):
            if module in _CLOCKS and not _is_zero(node):
                yield line, SLEEP
        case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="mark"), attr="timeout")):
            if _is_number(node.args[0], constants) and int(ast.literal_eval(node.args[0])) <= (
                _EVERY_TEST_SECONDS
            ):
                yield node.lineno, MARK
        case ast.Call(func=ast.Attribute(attr=name), lineno=line) if name in _WAITS:
            positional = node.args[1:] if name in _WAITS_OF_ARGUMENT else node.args[:1]
            limits = [*positional, *(one.value for one in node.keywords if one.arg == "timeout")]
            if any(_is_number(limit, constants) for limit in limits):
                yield line, LIMIT


def _is_zero(call: ast.Call) -> bool:
    return [ast.unparse(argument) for argument in call.args] == ["0"]


def test_no_test_waits_for_seconds() -> None:
    breaches = []
    for path in sorted(TESTS.rglob("*.py")):
        place = path.relative_to(TESTS).as_posix()
        if place in SLOW_ON_PURPOSE:
            continue
        if path != Path(__file__):
            found = find_breaches(path.read_text(encoding="utf-8"))
            breaches += [f"tests/{place}:{line} {sentence}" for line, sentence in found]
    assert not breaches, "\n".join(["", *breaches])


def test_the_files_that_may_wait_for_seconds_do() -> None:
    for place in SLOW_ON_PURPOSE:
        assert find_breaches((TESTS / place).read_text(encoding="utf-8")), place


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("time.sleep(0.1)", SLEEP),
        ("time.sleep(PAUSE)", SLEEP),
        ("await asyncio.sleep(delay)", SLEEP),
        ("from time import sleep", SLEEP),
        ("session.execute(select(func.pg_sleep(1)))", SLEEP),
        ("connection.execute('SELECT pg_sleep(0.5)')", SLEEP),
        ("PROGRAM = 'import time; time.sleep(600)'", SLEEP),
        ("process.wait(60)", LIMIT),
        ("process.wait(timeout=60)", LIMIT),
        ("await subscription.wait(0.05)", LIMIT),
        ("SECONDS = 5.0\nassert event.wait(2 * SECONDS)", LIMIT),
        ("SECONDS: Final = 5.0\nassert event.wait(SECONDS)", LIMIT),
        ("await asyncio.wait_for(task, 60)", LIMIT),
        ("async with asyncio.timeout(60): pass", LIMIT),
        ("await asyncio.wait([task], timeout=0.3)", LIMIT),
        ("process.communicate(timeout=60)", LIMIT),
        ("thread.join(10)", LIMIT),
        ("pytestmark = pytest.mark.timeout(300)", MARK),
    ],
)
def test_a_breach_is_found(source: str, sentence: str) -> None:
    assert [found for _, found in find_breaches(source)] == [sentence]


@pytest.mark.parametrize(
    "source",
    [
        "time.sleep(0)",
        "asyncio.sleep(0)",
        "clock.sleep(5)",
        "process.wait()",
        "process.wait(PATIENCE_SECONDS)",
        "await_only(event.wait())",
        "subscription.wait(0)",
        "client.wait(JOB, period=5)",
        "budget.wait('key', 5)",
        "','.join(names)",
        "pytest.mark.timeout(3_600)",
    ],
)
def test_other_code_is_no_breach(source: str) -> None:
    assert find_breaches(source) == []

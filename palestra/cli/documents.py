"""Reads a submission from a YAML or JSON file and reports every fault with line and column.

The rules of the document itself are those of the contract.
"""

import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import ValidationError
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from palestra.cli.output import fail_usage
from palestra.contract.job_options import Submission
from palestra.contract.problems import explain
from palestra.contract.strict_json import MAX_DEPTH, JsonError, check_json
from palestra.contract.upgrade import UnsupportedSchemaError, upgrade_submission
from palestra.contract.views import FieldProblem

MAX_BYTES: Final = 1_048_576
MAX_ALIASES: Final = 64
MAX_NODES: Final = 100_000

_OPENING: Final = (
    yaml.FlowSequenceStartToken,
    yaml.FlowMappingStartToken,
    yaml.BlockSequenceStartToken,
    yaml.BlockMappingStartToken,
)
_CLOSING: Final = (yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken, yaml.BlockEndToken)

_FLOAT: Final = re.compile(r"^[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9_]+)(?:[eE][-+]?[0-9]+)?$")


class _Loader(yaml.SafeLoader):
    """YAML's safe types with YAML 1.2's booleans and numbers.

    `no` is a string and `1e-3` a number.
    """


def _resolvers() -> dict[str | None, list[tuple[str, re.Pattern[str]]]]:
    kept = ("tag:yaml.org,2002:null", "tag:yaml.org,2002:merge")
    found = {
        first: [rule for rule in rules if rule[0] in kept]
        for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    for first in "tTfF":
        found.setdefault(first, []).append(
            ("tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"))
        )
    for first in "-+0123456789":
        found.setdefault(first, []).append(
            ("tag:yaml.org,2002:int", re.compile(r"^[-+]?(?:0|[1-9][0-9_]*)$"))
        )
    for first in "-+.0123456789":
        found.setdefault(first, []).append(("tag:yaml.org,2002:float", _FLOAT))
    return found


_Loader.yaml_implicit_resolvers = _resolvers()


def read_submission(path: str) -> Submission:
    """Returns the submission in a file: `definition` with `options`, or a definition alone.

    `-` is standard input.

    Raises:
        CommandError: With the exit code 2, the path and where one can be named the line and column.
    """
    text = _read_text(path)
    node = _compose(path, text)
    if node is None:
        fail_usage(f"{path}: is empty")
    _check(path, node)
    value = _construct(path, node)
    prefix: tuple[str, ...] = ()
    if isinstance(value, dict) and "definition" not in value and "kind" in value:
        value, prefix = {"definition": value}, ("definition",)
    return _validate(path, value, node, prefix)


def _read_text(path: str) -> str:
    try:
        raw = sys.stdin.buffer.read(MAX_BYTES + 1) if path == "-" else _read_file(Path(path))
    except OSError as error:
        fail_usage(f"{path}: {(error.strerror or str(error)).lower()}")
    if len(raw) > MAX_BYTES:
        fail_usage(f"{path}: is larger than {MAX_BYTES} bytes")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        fail_usage(f"{path}:{line}:{column}: is not UTF-8 text")


def _read_file(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def _compose(path: str, text: str) -> Node | None:
    try:
        _check_tokens(path, text)
        composed: Node | None = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        fail_usage(f"{_at(path, mark)}: {error.problem or 'is not YAML'}")
    except yaml.YAMLError as error:
        fail_usage(f"{path}: is not YAML: {str(error).splitlines()[0]}")
    return composed


def _check_tokens(path: str, text: str) -> None:
    """Refuses excessive depth and aliases before the document is built."""
    depth = aliases = 0
    for token in yaml.scan(text, Loader=_Loader):
        depth += isinstance(token, _OPENING) - isinstance(token, _CLOSING)
        aliases += isinstance(token, yaml.AliasToken)
        if depth > MAX_DEPTH:
            fail_usage(f"{_at(path, token.start_mark)}: is nested deeper than {MAX_DEPTH}")
        if aliases > MAX_ALIASES:
            fail_usage(f"{path}: has more than {MAX_ALIASES} aliases")


def _check(path: str, root: Node) -> None:
    """Refuses duplicate keys, keys that are not text, deep nesting and multiplying aliases.

    PyYAML accepts all of them.
    """
    stack = [(root, 1)]
    seen = 0
    while stack:
        node, depth = stack.pop()
        seen += 1
        if seen > MAX_NODES:
            fail_usage(f"{path}: is too large once its aliases are followed")
        if depth > MAX_DEPTH:
            fail_usage(f"{_at(path, node.start_mark)}: is nested deeper than {MAX_DEPTH}")
        if isinstance(node, MappingNode):
            _check_keys(path, node)
            stack += [(value, depth + 1) for _, value in node.value]
        elif isinstance(node, SequenceNode):
            stack += [(value, depth + 1) for value in node.value]


def _check_keys(path: str, node: MappingNode) -> None:
    known: set[str] = set()
    for key, _ in node.value:
        if not isinstance(key, ScalarNode):
            fail_usage(f"{_at(path, key.start_mark)}: a key must be a plain text")
        if key.tag == "tag:yaml.org,2002:merge":
            continue
        if key.value in known:
            fail_usage(f"{_at(path, key.start_mark)}: has the key {key.value!r} twice")
        known.add(key.value)


def _construct(path: str, node: Node) -> Any:
    loader = _Loader("")
    try:
        return loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        fail_usage(f"{_at(path, error.problem_mark)}: {error.problem}")
    except (ValueError, OverflowError, RecursionError) as error:
        fail_usage(f"{path}: holds a value that cannot be read: {error}")
    finally:
        loader.dispose()


def _validate(path: str, value: Any, node: Node, prefix: Sequence[str]) -> Submission:
    if isinstance(value, dict):
        try:
            value = upgrade_submission(value)
        except UnsupportedSchemaError as error:
            fail_usage(f"{path}: {error}")
    try:
        text = json.dumps(value, allow_nan=True)
    except (TypeError, ValueError):
        fail_usage(
            f"{path}: holds a value that has no JSON form, for example a date: put it in quotes"
        )
    try:
        check_json(text.encode())
        return Submission.model_validate_json(text)
    except JsonError as error:
        fail_usage(
            _sentence(
                path,
                node,
                prefix,
                FieldProblem(pointer=error.pointer, code=error.code, message=error.message),
            )
        )
    except ValidationError as error:
        fail_usage(
            "\n".join(_sentence(path, node, prefix, fault) for fault in explain(error, Submission))
        )


def _sentence(path: str, node: Node, prefix: Sequence[str], fault: FieldProblem) -> str:
    steps = [step.replace("~1", "/").replace("~0", "~") for step in fault.pointer.split("/")[1:]]
    steps = steps[len(prefix) :] if steps[: len(prefix)] == list(prefix) else steps
    return (
        f"{_at(path, _find(node, steps).start_mark)}: {'.'.join(steps) or 'the document'}: "
        f"{fault.message}"
    )


def _find(node: Node, steps: Sequence[str]) -> Node:
    """Returns the node at a path, or the last existing one on the way.

    For a member of a mapping, returns the node of its key.
    """
    shown = node
    for step in steps:
        shown, node = next(_children(node, step), (shown, node))
    return shown


def _children(node: Node, step: str) -> Iterator[tuple[Node, Node]]:
    if isinstance(node, MappingNode):
        yield from ((key, value) for key, value in node.value if key.value == step)
    elif isinstance(node, SequenceNode) and step.isdigit() and int(step) < len(node.value):
        child = node.value[int(step)]
        yield child, child


def _at(path: str, mark: Any) -> str:
    return f"{path}:{mark.line + 1}:{mark.column + 1}" if mark is not None else path


def parse_seeds(text: str) -> tuple[int, ...]:
    """Returns the seeds that a text such as `0-2`, `7` or `0-2,7` lists.

    Raises:
        CommandError: With the exit code 2.
    """
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,10})(?:\s*-\s*(\d{1,10}))?\s*", part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if last < first or last >= 2**32 or last - first >= 10_000:
            fail_usage(
                f"--seeds {text!r}: give numbers and ranges from 0 to 4294967295, at most 10000 of "
                "them, for example 0-2,7"
            )
        seeds += range(first, last + 1)
    if len(set(seeds)) != len(seeds):
        fail_usage(f"--seeds {text!r}: names a seed twice")
    return tuple(seeds)

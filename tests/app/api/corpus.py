"""Reads the rows of the bad-input corpus (tests/corpus/*.yaml) and builds requests from them.

A row has an `id`, a `name`, the input to send and the expected answer. The input is one of

- `body` (text), `base64`, `json`, `repeat: [text, times]`: the whole body;
- `set` or `set_repeat` (JSON pointer -> value), `splice` (JSON pointer -> JSON text): changes to a
  small valid submission;
- `artifact`: changes to a small valid declaration, sent after the declaration `before` if given;
  `upload`: content sent for the artifact `before` (default: the small valid declaration);
  `stored` says that the artifact is stored beforehand;
- `batch`, `many_records`, `many_series`: telemetry.

In texts `{name}` stands for one of the server's IDs and `<x*n>` for x repeated n times. The
expected answer has a `status` and optionally `code`, `text` (part of the message), `pointer` and
`field_code` (of one of its errors), `expected_seq`, `answer` and `no_header`.
"""

import base64
import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from tests.support.records import make_points
from tests.support.server_fixture import make_definition

CORPUS = Path(__file__).parents[2] / "corpus"
_REPEAT = re.compile(r"<([^<>]+)\*(\d+)>")
_NAME = re.compile(r"\{([a-z_]+)\}")

Row = dict[str, Any]


def read_rows(name: str) -> list[Row]:
    """Returns the rows of a corpus file, with the file's defaults filled in."""
    document = yaml.safe_load((CORPUS / f"{name}.yaml").read_text("utf-8"))
    return [{**document["defaults"], **row} for row in document["rows"]]


def expand(value: Any, names: dict[str, str]) -> Any:
    """Returns `value` with IDs and repetitions filled in."""
    if isinstance(value, dict):
        return {key: expand(member, names) for key, member in value.items()}
    if isinstance(value, list):
        return [expand(member, names) for member in value]
    if not isinstance(value, str):
        return value
    text = _REPEAT.sub(lambda match: match[1] * int(match[2]), value)
    return _NAME.sub(lambda match: names.get(match[1], match[0]), text)


def make_body(row: Row, names: dict[str, str]) -> bytes | None:
    """Returns the request body of a row, or `None` if it has none."""
    return next((make(row, names) for keys, make in _MAKERS if keys & row.keys()), None)


def make_declaration(
    names: dict[str, str], *, content: str = "1234567890", **changes: Any
) -> dict[str, Any]:
    """Returns a small valid artifact declaration."""
    held = {"size": len(content), "sha256": hashlib.sha256(content.encode()).hexdigest()}
    return {"run_id": names["live_run"], "name": "weights.bin", "kind": "other", **held, **changes}


def _make_changed_submission(row: Row, names: dict[str, str]) -> bytes:
    document: dict[str, Any] = {"definition": make_definition()}
    for pointer, value in expand(row.get("set", {}), names).items():
        _put(document, pointer, value)
    for pointer, (text, times) in row.get("set_repeat", {}).items():
        _put(document, pointer, text * times)
    marks = {}
    for index, (pointer, text) in enumerate(row.get("splice", {}).items()):
        _put(document, pointer, f"splice-{index}")
        marks[f'"splice-{index}"'] = str(expand(text, names))
    encoded = json.dumps(document)
    for mark, text in marks.items():
        encoded = encoded.replace(mark, text)
    return encoded.encode()


def _put(document: dict[str, Any], pointer: str, value: Any) -> None:
    *parents, last = pointer.removeprefix("/").split("/")
    for parent in parents:
        document = document.setdefault(parent, {})
    document[last] = value


def _make_telemetry(row: Row, names: dict[str, str]) -> bytes:
    run = names["live_run"]
    if "many_records" in row:
        return _write_compact_batch(
            [
                {"type": "note", "run": run, "wall": 1, "code": "x", "message": ""}
                for _ in range(row["many_records"])
            ]
        )
    if "many_series" in row:
        return _write_compact_batch(
            [make_points(run, f"s{index}", [1]) for index in range(row["many_series"])]
        )
    batch = expand(row["batch"], names)
    run = batch.get("run_id") or names[batch.get("run", "live_run")]
    step = batch.get("step", 1)
    records = [
        make_points(run, batch.get("series", "loss"), [step + index], [value])
        for index, value in enumerate(batch["values"])
    ]
    encoded = json.dumps(
        {"first_seq": batch["first_seq"], "records": records},
        separators=row.get("separators", (",", ":")),
    )
    return re.sub(r'"@([^"]+)"', r"\1", encoded).encode()


def _write_compact_batch(records: list[dict[str, Any]]) -> bytes:
    """Returns a telemetry batch as JSON without white space, so that it fits into the size
    limit.
    """
    return json.dumps({"first_seq": 4, "records": records}, separators=(",", ":")).encode()


_MAKERS: tuple[tuple[set[str], Callable[[Row, dict[str, str]], bytes]], ...] = (
    ({"repeat"}, lambda row, _: (row["repeat"][0] * row["repeat"][1]).encode()),
    ({"base64"}, lambda row, _: base64.b64decode(row["base64"])),
    ({"body"}, lambda row, _: str(row["body"]).encode()),
    ({"json"}, lambda row, names: json.dumps(expand(row["json"], names)).encode()),
    (
        {"artifact"},
        lambda row, names: json.dumps(
            make_declaration(names, **expand(row["artifact"], names))
        ).encode(),
    ),
    ({"batch", "many_records", "many_series"}, _make_telemetry),
    ({"set", "set_repeat", "splice"}, _make_changed_submission),
)

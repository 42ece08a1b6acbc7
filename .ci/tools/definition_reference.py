"""Prints docs/definition.md, the reference of a submission, from the schema of the contract.

It writes to standard output, which `make reference` redirects to the file.
"""

import json
import sys
from collections.abc import Iterator
from typing import Any

from palestra.contract.job_options import Submission

HEAD = """\
# What a submission says

Made from the schema by `make reference`: every member of the document that `palestra submit`
sends, with its type, range, default and meaning. A file may hold the whole document, or a
definition alone. The experiment's ID covers `definition` without `name` and `notes`, with all
defaults filled in; `options` are no part of it.

```yaml
definition:
  kind: rl
  name: CartPole DQN
  env: {id: CartPole-v1}
  agent: {name: dqn}
  loop: {env_steps: 50000}
options:
  seeds: [0, 1, 2]
```
"""
ORDER = (
    "Submission",
    "RlDefinition",
    "SupervisedDefinition",
    "EnvDefinition",
    "JobOptions",
    "Resources",
    "Limits",
)
HIDDEN = {"JsonValue"}


def main() -> None:
    schema = Submission.model_json_schema()
    parts = {"Submission": schema, **schema["$defs"]}
    names = [*ORDER, *(name for name in parts if name not in ORDER and name not in HIDDEN)]
    sys.stdout.write(
        HEAD + "".join(f"\n{section}" for name in names for section in _section(name, parts[name]))
    )


def _section(name: str, schema: dict[str, Any]) -> Iterator[str]:
    yield f"## {name}\n"
    if text := schema.get("description"):
        yield _line(text) + "\n"
    if "enum" in schema:
        yield "One of " + ", ".join(f"`{value}`" for value in schema["enum"]) + ".\n"
    if members := schema.get("properties"):
        rows = [
            _row(member, one, required=member in schema.get("required", ()))
            for member, one in members.items()
        ]
        yield "| member | type | default | meaning |\n|---|---|---|---|\n" + "".join(rows)


def _row(name: str, schema: dict[str, Any], *, required: bool) -> str:
    default = "required" if required else _default(schema)
    cells = (f"`{name}`", _type(schema), default, _line(schema.get("description", "")))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _default(schema: dict[str, Any]) -> str:
    """Returns a default in words; the default of a part is in the description of the part."""
    if "default" not in schema or (isinstance(schema["default"], dict) and "$ref" in schema):
        return ""
    return f"`{json.dumps(schema['default'])}`"


def _type(schema: dict[str, Any]) -> str:
    if reference := schema.get("$ref"):
        name = reference.rpartition("/")[2]
        return "any JSON" if name in HIDDEN else f"[{name}](#{name.lower()})"
    if several := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(dict.fromkeys(_type(one) for one in several))
    if "const" in schema or "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    return _plain_type(schema)


def _plain_type(schema: dict[str, Any]) -> str:
    match schema.get("type"):
        case "array":
            items = _range(schema, "minItems", "maxItems", " of ", " items")
            return f"list of {_type(schema.get('items', {}))}{items}"
        case "object":
            inner = schema.get("additionalProperties")
            return f"object of {_type(inner)}" if isinstance(inner, dict) else "object"
        case "integer" | "number" as kind:
            return f"{kind}{_range(schema, 'minimum', 'maximum')}"
        case "string":
            return f"string{_range(schema, 'minLength', 'maxLength', ' of ', ' characters')}"
        case None:
            return "any JSON"
        case other:
            return str(other)


def _range(schema: dict[str, Any], low: str, high: str, before: str = " ", after: str = "") -> str:
    least, most = schema.get(low), schema.get(high)
    if (above := schema.get("exclusiveMinimum")) is not None:
        words = f"> {_number(above)}"
    else:
        words = "" if least is None else f"≥ {_number(least)}"
    if (below := schema.get("exclusiveMaximum")) is not None:
        words += f" < {_number(below)}"
    elif most is not None:
        words += f" ≤ {_number(most)}"
    return f"{before}{words.strip()}{after}" if words else ""


def _number(value: float) -> str:
    return f"{value:,}".replace(",", " ") if isinstance(value, int) else f"{value:g}"


def _line(text: str) -> str:
    return " ".join(text.split())


if __name__ == "__main__":
    main()

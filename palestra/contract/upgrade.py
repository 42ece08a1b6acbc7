"""Upgrades definitions of older schema versions to the current one.

One step per version, from n to n + 1, kept for ever (`versions.py`); `tests/assets/definitions/`
holds a sample of every version that was ever released, and a test reads each. A step works on plain
JSON, since the models of an old version are gone.
"""

import json
from collections.abc import Mapping
from typing import Any

from palestra.contract.definition import SCHEMA_VERSION, Definition, read_definition
from palestra.contract.documents import encode_canonical_json
from palestra.contract.versions import STEPS, Step


class UnsupportedSchemaError(ValueError):
    """The document's schema version is not one that this Palestra can read."""


def upgrade(
    document: Mapping[str, Any], steps: Mapping[int, Step] = STEPS, current: int = SCHEMA_VERSION
) -> dict[str, Any]:
    """Returns `document` upgraded to the version `current`, one step at a time.

    The input is not modified.

    Raises:
        UnsupportedSchemaError: If the version is newer than `current`, or has no upgrade step.
    """
    upgraded = dict(document)
    version = upgraded.get("schema_version", current)
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise UnsupportedSchemaError(f"schema_version must be a whole number from 1 to {current}")
    if version > current:
        raise UnsupportedSchemaError(
            f"made for schema_version {version}, this Palestra reads up to {current}: upgrade "
            "Palestra"
        )
    while version < current:
        if version not in steps:
            raise UnsupportedSchemaError(
                f"schema_version {version} can no longer be read: no step leads to {version + 1}"
            )
        upgraded = {**steps[version](upgraded), "schema_version": version + 1}
        version += 1
    return upgraded


def upgrade_submission(value: dict[str, Any]) -> dict[str, Any]:
    """Returns a submission as plain JSON with its definition upgraded.

    A submission whose definition is not an object is returned unchanged.

    Raises:
        UnsupportedSchemaError: Like `upgrade`.
    """
    definition = value.get("definition")
    return {**value, "definition": upgrade(definition)} if isinstance(definition, dict) else value


def load_definition(raw: bytes | str) -> Definition:
    """Returns a stored definition of any released version as the current model.

    Raises:
        UnsupportedSchemaError: If its version cannot be read.
        pydantic.ValidationError: If it is not a definition.
    """
    return read_definition(encode_canonical_json(upgrade(json.loads(raw))))

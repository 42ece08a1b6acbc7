"""The identity of a definition: its hash and the reproducible ID of the experiment."""

from typing import Any

from palestra.contract.code import AnyCode
from palestra.contract.definition import Definition
from palestra.contract.documents import hash_document
from palestra.contract.names import slugify
from palestra.contract.versions import convert_to_oldest_form


def hash_definition(definition: Definition) -> str:
    """Returns the SHA-256 of the definition with all defaults, without name and notes.

    Seeds are options of a job and no part of it.

    It is computed from the definition's oldest form (`versions.py`), so that old snapshots keep
    the hash of their definition.
    """
    return hash_document(
        {
            key: value
            for key, value in _oldest_form(definition).items()
            if key not in {"name", "notes"}
        }
    )


def hash_identity(definition: Definition, code: AnyCode) -> str:
    """Returns the SHA-256 that decides whether two submissions are one experiment.

    It covers the definition in its oldest form, that form's schema version, and the code.
    """
    return hash_document(
        {
            "code": code.model_dump(mode="json"),
            "definition": hash_definition(definition),
            "schema_version": _oldest_form(definition)["schema_version"],
        }
    )


def _oldest_form(definition: Definition) -> dict[str, Any]:
    return convert_to_oldest_form(definition.model_dump(mode="json"))


def compute_experiment_id(definition: Definition, code: AnyCode) -> str:
    """Returns the reproducible experiment ID: a slug of the name and 16 digits of a hash.

    The digits are the first of the identity hash.
    """
    return f"{slugify(definition.name)}-{hash_identity(definition, code)[:16]}"

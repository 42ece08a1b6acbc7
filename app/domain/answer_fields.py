"""The version of the contract that added each field of an answer to workers.

Workers of version 1 refuse an answer with a key that they do not know, so an answer is cut to the
fields of its reader's version.
"""

from collections.abc import Mapping
from typing import Any, Final, get_args

from pydantic import BaseModel

from palestra.contract.registration import RegistrationAnswer, WorkerHeartbeatAnswer
from palestra.contract.telemetry import TelemetryAck
from palestra.contract.work_order import (
    AdoptionAnswer,
    ClaimAnswer,
    FollowAnswer,
    RenewalAnswer,
    SnapshotFileRef,
    SnapshotRef,
)

FIELDS: Final[Mapping[type[BaseModel], Mapping[str, int]]] = {
    RegistrationAnswer: {
        "worker_id": 1,
        "secret": 1,
        "broker_url": 1,
        "queue": 1,
        "heartbeat_seconds": 1,
        "work_order_versions": 1,
    },
    WorkerHeartbeatAnswer: {"order": 1, "drain_reason": 2, "secret": 2},
    ClaimAnswer: {
        "work_order": 1,
        "token": 1,
        "lease_seconds": 1,
        "renew_seconds": 1,
        "takes_tables": 2,
        "takes_open_lines": 2,
    },
    RenewalAnswer: {"order": 1, "acked_seq": 1, "lease_seconds": 1, "give_up": 1},
    AdoptionAnswer: {"token": 1, "slot": 1, "further_slots": 2, "renew_seconds": 1},
    FollowAnswer: {"snapshot": 1, "training": 1, "evaluated": 1},
    SnapshotRef: {
        "snapshot_id": 1,
        "env_step": 1,
        "update": 1,
        "episode": 1,
        "resume_exact": 1,
        "files": 1,
    },
    SnapshotFileRef: {"name": 1, "size": 1, "sha256": 1, "artifact_id": 1},
    TelemetryAck: {"acked_seq": 1},
}
"""For each model, its fields and the version of the contract since which each is sent.

A new field has the number of the next release in `CONTRACT_VERSION`. No field is removed or
renamed while workers of its version are supported. The work order is not listed: it is never cut,
since its own version determines its fields.
"""


def cut(model: type[BaseModel], document: Mapping[str, Any], version: int) -> dict[str, Any]:
    """Returns the JSON of an answer without the fields that versions after `version` added.

    Args:
        model: The answer's model; one of `FIELDS`.
        document: The answer as plain JSON.
        version: Version of the contract that the reader knows.
    """
    return {
        name: _cut_value(model.model_fields[name].annotation, document[name], version)
        for name, since in FIELDS[model].items()
        if since <= version and name in document
    }


def _cut_value(annotation: Any, value: Any, version: int) -> Any:
    """Returns the value of a field without the newer fields of the models that it contains."""
    model = next((kind for kind in _find_nested_types(annotation) if kind in FIELDS), None)
    if model is None or value is None:
        return value
    if isinstance(value, list):
        return [cut(model, item, version) for item in value]
    return cut(model, value, version)


def _find_nested_types(annotation: Any) -> set[Any]:
    """Returns an annotation and all types nested in it."""
    return {annotation}.union(*(_find_nested_types(part) for part in get_args(annotation)))

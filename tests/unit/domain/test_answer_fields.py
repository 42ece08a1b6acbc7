"""What an older worker is sent: the record of fields holds for every model of an answer."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from app.domain import answer_fields
from app.domain.answer_fields import FIELDS, cut
from palestra.contract.answers import CONTRACT_VERSION
from palestra.contract.job_options import EvaluateOptions, Resources
from palestra.contract.states import Order
from palestra.contract.work_order import (
    OLDEST_WORK_ORDER,
    WORK_ORDER_VERSION,
    DispatchMessage,
    FollowAnswer,
    RenewalAnswer,
    SnapshotFileRef,
    SnapshotRef,
    WorkOrder,
    choose_work_order_version,
)
from tests.support.trainings import make_definition, make_work_order

RECORDS = Path(__file__).parents[2] / "assets" / "work_orders"
RECORD = RECORDS / f"{WORK_ORDER_VERSION}.json"
RULE = (
    "record the field in app/domain/answer_fields.py with the version of the contract that it "
    "comes with, and raise CONTRACT_VERSION if that is released"
)


@pytest.mark.parametrize("model", FIELDS, ids=lambda model: model.__name__)
def test_every_field_of_an_answer_is_recorded_with_its_version(model: type[BaseModel]) -> None:
    recorded = FIELDS[model]
    assert set(model.model_fields) - set(recorded) == set(), RULE
    assert set(recorded) - set(model.model_fields) == set(), "workers that are out need the field"
    assert set(recorded.values()) <= set(range(1, CONTRACT_VERSION + 1))


@pytest.mark.parametrize("model", FIELDS, ids=lambda model: model.__name__)
def test_models_inside_an_answer_are_recorded_too(model: type[BaseModel]) -> None:
    inner = {
        part
        for field in model.model_fields.values()
        for part in find_models(field.annotation)
        if part is not WorkOrder
    }
    assert inner <= set(FIELDS), "an older worker would get their new fields"


def test_enum_values_unknown_to_an_older_worker_are_not_sent() -> None:
    """A new order or a new state is a value, not a field, so it cannot be removed
    from an answer.
    """
    assert {order.value for order in Order} == {"continue", "pause", "cancel", "drain", "stale"}
    known = {"order": {"continue", "drain"}, "training": {"live", "waiting", "over"}}
    for model, field in (("WorkerHeartbeatAnswer", "order"), ("FollowAnswer", "training")):
        (found,) = [kind for kind in FIELDS if kind.__name__ == model]
        assert set(get_args(found.model_fields[field].annotation)) == known[field], (
            "send the new word only to callers whose version knows it, then record it here"
        )


def test_a_dispatch_message_for_one_slot_keeps_its_fields() -> None:
    message = DispatchMessage(job_id="job_" + "0" * 26, expected_attempt=1)
    assert set(message.model_dump()) == {"v", "job_id", "expected_attempt"}, (
        "workers of the version before refuse unknown keys: leave them out where the worker did "
        "not register as one that knows them"
    )


def test_a_field_of_a_later_version_is_cut_at_every_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    file = SnapshotFileRef(name="a", size=1, sha256="0" * 64, artifact_id="art_1")
    reference = SnapshotRef(
        snapshot_id="snp_" + "0" * 26,
        env_step=1,
        update=2,
        episode=3,
        resume_exact=True,
        files=(file, file),
    )
    document = json.loads(FollowAnswer(training="live", snapshot=reference).model_dump_json())
    assert cut(FollowAnswer, document, 1) == document
    later: dict[type[BaseModel], dict[str, int]] = {model: dict(FIELDS[model]) for model in FIELDS}
    later[FollowAnswer]["evaluated"] = later[SnapshotRef]["episode"] = 2
    later[SnapshotFileRef]["artifact_id"] = 3
    monkeypatch.setattr(answer_fields, "FIELDS", later)
    assert cut(FollowAnswer, document, 3) == document
    second, first = cut(FollowAnswer, document, 2), cut(FollowAnswer, document, 1)
    assert set(document) - set(second) == set()
    assert set(document) - set(first) == {"evaluated"}
    assert set(document["snapshot"]) - set(first["snapshot"]) == {"episode"}
    for answer in (first, second):
        files = answer["snapshot"]["files"]
        assert [set(sent) for sent in files] == [{"name", "size", "sha256"}] * 2
    empty = {"snapshot": None, "training": "over", "evaluated": 1}
    assert cut(FollowAnswer, empty, 1) == {"snapshot": None, "training": "over"}


def test_a_renewal_for_an_older_worker_lacks_a_later_field(monkeypatch: pytest.MonkeyPatch) -> None:
    later = {**FIELDS, RenewalAnswer: {**FIELDS[RenewalAnswer], "give_up": 2}}
    monkeypatch.setattr(answer_fields, "FIELDS", later)
    document = {"order": "pause", "acked_seq": 1, "lease_seconds": 2.0, "give_up": True}
    assert cut(RenewalAnswer, document, 2) == document
    assert cut(RenewalAnswer, document, 1) == {name: document[name] for name in list(document)[:3]}


def test_the_work_order_has_exactly_the_fields_of_its_version() -> None:
    """A worker refuses a work order with a key that it does not know, so a new key anywhere in it,
    the definition included, needs a new version of the work order.

    `python -m tests.unit.domain.test_answer_fields` writes the record of a new version.
    """
    recorded = json.loads(RECORD.read_text("utf-8"))
    found = list_fields_of_work_order()
    changed = {
        name: sorted(set(found.get(name, ())) ^ set(recorded.get(name, ())))
        for name in found.keys() | recorded.keys()
        if found.get(name) != recorded.get(name)
    }
    assert changed == {}, (
        f"workers that execute version {WORK_ORDER_VERSION} do not know these fields, or need "
        "them: raise WORK_ORDER_VERSION, and record the fields of the new version"
    )


@pytest.mark.parametrize("policy", ["greedy", "both"])
def test_an_order_has_the_oldest_version_that_can_express_it(policy: str) -> None:
    """Workers that speak the version before execute what they can."""
    definition = make_definition("ppo", evaluation={"policy": policy})
    order = make_work_order(definition)
    resources, schema_version = order.resources, order.definition.schema_version
    assert choose_work_order_version(schema_version, resources, None) == (
        OLDEST_WORK_ORDER if policy == "greedy" else WORK_ORDER_VERSION
    )
    known = json.loads((RECORDS / f"{OLDEST_WORK_ORDER}.json").read_text("utf-8"))
    document = order.model_dump(mode="json")
    unknown = {
        *(set(document["definition"]["evaluation"]) - set(known["EvaluationSpec"])),
        *(set(document["resources"]) - set(known["Resources"])),
        *(set(document["runs"][0]) - set(known["RunOrder"])),
    }
    assert unknown == (set() if policy == "greedy" else {"policy"})
    assert document["definition"]["schema_version"] == (2 if policy == "greedy" else 3)


@pytest.mark.parametrize(
    ("resources", "evaluate"),
    [
        ({"simulator": "registered"}, {}),
        ({}, {"policy": "greedy"}),
        ({}, {"policy": "stochastic"}),
    ],
)
def test_options_that_earlier_workers_refuse_need_the_newest_version(
    resources: dict[str, Any], evaluate: dict[str, Any]
) -> None:
    version = choose_work_order_version(2, Resources(**resources), EvaluateOptions(**evaluate))
    assert version == WORK_ORDER_VERSION


def list_fields_of_work_order() -> dict[str, list[str]]:
    """Returns the fields of every model in a work order."""
    found: dict[str, list[str]] = {}
    waiting: list[type[BaseModel]] = [WorkOrder]
    while waiting:
        model = waiting.pop()
        if model.__name__ not in found:
            found[model.__name__] = sorted(model.model_fields)
            for field in model.model_fields.values():
                waiting += find_models(field.annotation)
    return dict(sorted(found.items()))


def find_models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yields the models in an annotation."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from find_models(part)


if __name__ == "__main__":
    RECORD.parent.mkdir(exist_ok=True)
    lines = [
        f'"{name}": {json.dumps(found)}' for name, found in list_fields_of_work_order().items()
    ]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")

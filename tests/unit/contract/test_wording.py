"""Validation errors use Palestra's wording; pydantic's wording never reaches a user."""

from typing import Any

import pytest
from pydantic_core._pydantic_core import list_all_errors

from palestra.contract.wording import describe_fault
from tests.support.phrases import find_pydantic_phrases


@pytest.mark.parametrize("kind", list_all_errors(), ids=lambda kind: kind["type"])
def test_every_kind_of_validation_error_has_its_own_message(kind: dict[str, Any]) -> None:
    context = {**(kind["example_context"] or {}), "error": "must be even"}
    told = describe_fault(
        {"type": kind["type"], "loc": (), "msg": kind["example_message_python"], "ctx": context}
    )
    assert told
    assert told[0].islower()
    assert told == "is not valid" or not find_pydantic_phrases(told)


def test_the_searched_phrases_occur_in_pydantics_messages() -> None:
    theirs = [kind["example_message_python"] for kind in list_all_errors()]
    assert sum(bool(find_pydantic_phrases(message)) for message in theirs) > len(theirs) * 0.6


def test_a_limit_of_one_is_written_in_the_singular() -> None:
    assert (
        describe_fault({"type": "too_short", "ctx": {"min_length": 1}})
        == "must have at least 1 item"
    )
    assert (
        describe_fault({"type": "too_long", "ctx": {"max_length": 11}})
        == "must have at most 11 items"
    )

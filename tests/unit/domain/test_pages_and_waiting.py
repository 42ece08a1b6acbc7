import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.errors import InvalidError
from app.domain.paging import PageRequest, build_keyset, encode_cursor, read_cursor_of_keys
from app.domain.queue.holds import Hold, HoldReason
from app.domain.queue.waiting import PoolFacts, WaitingJob, explain

COLUMNS = ("created_at", "name")


@given(
    st.one_of(
        st.integers(-(2**63) + 1, 2**63 - 1),
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=64),
    )
)
def test_a_cursor_is_decoded_as_it_was_encoded(value: int | str) -> None:
    page = build_keyset(
        PageRequest(sort="-name", cursor=encode_cursor("-name", (value,), "exp-1")), COLUMNS
    )
    assert page.after == (value, "exp-1")
    assert page.descending


def test_a_cursor_of_four_long_keys_is_taken() -> None:
    keys = ("系" * 256, "列" * 256, "名" * 256, "称" * 256)
    cursor = encode_cursor("a,b,c,d", keys, "exp-1")
    page = PageRequest(sort="a,b,c,d", cursor=cursor)
    assert read_cursor_of_keys(page, 4) == (keys, "exp-1")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "....",
        "e30",
        "W10",
        "bnVsbA",
        "é",
        "a" * 5_000,
        base64.b64encode(b'["-name",[true],"x"]').decode().rstrip("="),
        "\ud800",
    ],
)
def test_an_invalid_cursor_is_refused(text: str) -> None:
    with pytest.raises(InvalidError) as refused:
        build_keyset(PageRequest(sort="-name", cursor=text), COLUMNS)
    assert refused.value.code == "invalid_cursor"


def test_a_cursor_of_another_order_is_refused() -> None:
    cursor = encode_cursor("-name", ("a",), "x")
    with pytest.raises(InvalidError, match="a page in another order"):
        build_keyset(PageRequest(sort="name", cursor=cursor), COLUMNS)


@pytest.mark.parametrize("value", [2**63, -(2**63), 10**40])
def test_a_number_that_no_column_holds_is_refused(value: int) -> None:
    with pytest.raises(InvalidError):
        build_keyset(PageRequest(sort="name", cursor=encode_cursor("name", (value,), "x")), COLUMNS)


@pytest.mark.parametrize("sort", ["created;drop table", "__class__", "", "--name"])
def test_only_listed_columns_sort(sort: str) -> None:
    with pytest.raises(InvalidError) as refused:
        build_keyset(PageRequest(sort=sort), COLUMNS)
    assert refused.value.code == "invalid_sort"


@pytest.mark.parametrize("limit", [0, -1, 501, 10**9])
def test_limits_are_bounded(limit: int) -> None:
    with pytest.raises(InvalidError):
        build_keyset(PageRequest(limit=limit), COLUMNS)


JOB = {"gpus": 0, "version": 1, "slots": 4, "free_slots": 2, "ahead": 0}
POOL = {
    "name": "lab",
    "registered": 2,
    "workers": 1,
    "slots": 4,
    "free_slots": 2,
    "most_gpus": 1,
    "versions": frozenset({1}),
}


@pytest.mark.parametrize(
    ("job", "pool", "words"),
    [
        ({}, {"registered": 0}, "palestra worker --pool lab"),
        ({}, {"workers": 0}, "offline or draining"),
        ({"gpus": 8}, {}, "offers 8 GPUs; the largest has 1"),
        ({"version": 2}, {}, "upgrade the workers"),
        ({"delay_seconds": 12.0}, {}, "Waits 12 s more"),
        ({"is_assigned": True}, {}, "asked to start"),
        ({"has_other_interactive": True}, {}, "one interactive job at a time"),
        (
            {"ahead": 1, "free_slots": 0},
            {},
            "slots of the pool lab are busy; 1 job starts before it.",
        ),
        ({"ahead": 1_000, "ahead_is_cut": True}, {}, "More than 1,000 jobs start before it."),
        ({"free_slots": 0}, {}, "All 4 slots of the pool lab are busy."),
        (
            {"slots": 2, "free_slots": 0},
            {},
            "All 2 slots of the pool lab that it could use are busy.",
        ),
        ({"hold": Hold(HoldReason.EXPERIMENT_LIMIT)}, {}, "of its experiment run"),
        ({"hold": Hold(HoldReason.NOT_FREE_LONG_ENOUGH)}, {}, "shorter limits.wall_seconds"),
        ({}, {}, "A slot is free for it"),
    ],
)
def test_a_waiting_job_has_the_reason_why_it_waits(
    job: dict[str, Any], pool: dict[str, int], words: str
) -> None:
    facts = PoolFacts(**{**POOL, **pool})
    assert words in explain(WaitingJob(**{**JOB, **job}), facts).sentence


def test_every_reason_of_a_decision_is_one_of_the_contract_with_a_sentence() -> None:
    for reason in HoldReason:
        found = explain(WaitingJob(**JOB, hold=Hold(reason)), PoolFacts(**POOL))
        assert found.reason == reason
        assert found.sentence.endswith(".")

"""Filters are read into terms, and each fault has its own code and position."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palestra.contract.filters import (
    MAX_FILTER,
    Age,
    FilterError,
    Term,
    parse_filter,
    parse_key,
)


def test_the_example_of_the_guide() -> None:
    text = "agent:ppo env:~Ant evaluation/mean>3000 state:running,queued created:<7d -user:ada"
    assert parse_filter(text, "runs") == (
        Term("agent", "text", "is", ("ppo",), 0),
        Term("env", "text", "contains", ("Ant",), 10),
        Term("evaluation/mean", "series", "gt", (3000.0,), 19),
        Term("state", "choice", "is", ("running", "queued"), 40),
        Term("created", "time", "lt", (Age(604_800),), 61),
        Term("user", "text", "is", ("ada",), 73, is_negated=True),
    )


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("", None),
        ("   ", None),
        ('name:"two words"', Term("name", "text", "is", ("two words",), 0)),
        (r'name:~"a \"b\" \\ c"', Term("name", "text", "contains", ('a "b" \\ c',), 0)),
        ("not agent:a,b", Term("agent", "text", "is", ("a", "b"), 0, is_negated=True)),
        ("NOT agent:a", Term("agent", "text", "is", ("a",), 0, is_negated=True)),
        ("cart", Term("", "text", "contains", ("cart",), 0)),
        ('-"my run"', Term("", "text", "contains", ("my run",), 0, is_negated=True)),
        ("agent.lr:0.001", Term("agent.lr", "member", "is", ("0.001",), 0)),
        ("agent.lr<=1e-3", Term("agent.lr", "member", "le", (0.001,), 0)),
        ("agent.hidden:[64,64]", Term("agent.hidden", "member", "is", ("[64,64]",), 0)),
        ("a/b.best>=-2", Term("a/b", "series", "ge", (-2.0,), 0, statistic="best")),
        ("a/b.c.mean10<1", Term("a/b.c", "series", "lt", (1.0,), 0, statistic="mean10")),
        ("a/b.c>1", Term("a/b.c", "series", "gt", (1.0,), 0)),
        ("series.loss.count:>5", Term("loss", "series", "gt", (5.0,), 0, statistic="count")),
        ("reached.solved<5e4", Term("solved", "threshold", "lt", (5e4,), 0, statistic="env_step")),
        (
            "-reached.half-way.seconds>60",
            Term("half-way", "threshold", "gt", (60.0,), 0, is_negated=True, statistic="seconds"),
        ),
        ("seed:1,2", Term("seed", "number", "is", (1.0, 2.0), 0)),
        ("env_step>1_000", Term("env_step", "number", "gt", (1000.0,), 0)),
        ("archived:TRUE", Term("archived", "flag", "is", (True,), 0)),
        (
            "created>=2026-01-31",
            Term("created", "time", "ge", (datetime(2026, 1, 31, tzinfo=UTC),), 0),
        ),
    ],
)
def test_terms(text: str, term: Term | None) -> None:
    assert parse_filter(text, "runs") == (() if term is None else (term,))


@pytest.mark.parametrize(
    ("text", "code", "position", "part"),
    [
        ("agnt:ppo", "unknown_filter_field", 0, "did you mean agent?"),
        ("state:failed sed:1", "unknown_filter_field", 13, "did you mean seed?"),
        ("é:4", "unknown_filter_field", 0, ""),
        ("agent:", "filter_missing_value", 6, ""),
        ("agent: ppo", "filter_missing_value", 6, ""),
        ("agent:a,", "filter_missing_value", 8, ""),
        (">3", "filter_missing_field", 0, ""),
        ("agent:dqn OR agent:ppo", "filter_connective", 10, "agent:dqn,ppo"),
        ("agent:dqn && seed:1", "filter_connective", 10, "all terms of a filter must hold"),
        ("a,b", "filter_missing_field", 1, ""),
        ("agent:ppo -", "filter_nothing_to_negate", 10, ""),
        ("--agent:ppo", "filter_nothing_to_negate", 0, ""),
        ('name:"two', "filter_unclosed_quote", 5, ""),
        ('agent:ppo"x"', "filter_missing_space", 9, ""),
        ("reached.Solved>1", "unknown_filter_field", 0, ""),
        ("reached.solved.runs>1", "unknown_filter_field", 0, "is no field of this list"),
        ("reached.solved:~4", "filter_wrong_operator", 14, "a threshold takes"),
        ("seed:~4", "filter_wrong_operator", 4, "seed takes"),
        ("agent>4", "filter_wrong_operator", 5, ": or :~"),
        ("created:2026-01-01", "filter_wrong_operator", 7, ""),
        ("seed>1,2", "filter_wrong_operator", 4, "one value"),
        ("evaluation/mean>high", "filter_not_a_number", 16, ""),
        ("evaluation/mean>nan", "filter_not_a_number", 16, "finite"),
        ("seed:1e400", "filter_not_a_number", 5, ""),
        ("state:runing", "filter_not_a_choice", 6, "did you mean running?"),
        ("created:<soon", "filter_not_a_time", 9, ""),
        ("created:<99999999999w", "filter_not_a_time", 9, ""),
        ("a " * 33, "filter_too_many_terms", 64, ""),
        ("seed:" + ",".join("1" * 101), "filter_too_many_terms", 205, ""),
        ("x" * (MAX_FILTER + 1), "filter_too_long", MAX_FILTER, ""),
    ],
)
def test_each_fault_has_its_code_and_position(
    text: str, code: str, position: int, part: str
) -> None:
    with pytest.raises(FilterError) as caught:
        parse_filter(text, "runs")
    assert (caught.value.code, caught.value.position) == (code, position)
    assert part in str(caught.value)
    assert f"at character {position + 1}: " in str(caught.value)


def test_fields_of_runs_are_none_of_experiments() -> None:
    with pytest.raises(FilterError) as caught:
        parse_filter("seed:1", "experiments")
    assert caught.value.code == "unknown_filter_field"
    assert parse_key("evaluation/mean.best", "experiments") == ("evaluation/mean", "series", "best")
    assert parse_key("reached.solved.runs", "experiments") == ("solved", "threshold", "runs")


@given(st.text(max_size=60) | st.text('agent:~<>=,-"\\ ./[]0d', max_size=60))
def test_any_text_is_read_or_refused_with_a_position_within_it(text: str) -> None:
    try:
        terms = parse_filter(text, "runs")
    except FilterError as error:
        assert 0 <= error.position <= len(text)  # noqa: PT017 - one of two outcomes
    else:
        assert all(text[term.position : term.position + 1].strip() for term in terms)

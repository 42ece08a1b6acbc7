"""The fence chain: which records belong to a run's history after any sequence of resumes."""

from hypothesis import given
from hypothesis import strategies as st

from app.metrics.fence_chain import Link, Position, build_chain, is_in_history


def test_without_attempts_every_point_counts() -> None:
    assert is_in_history(build_chain([]), 0, Position(10, 0))


def test_points_beyond_the_resumed_step_are_superseded() -> None:
    history = build_chain([Link(1, None, None), Link(2, 1, Position(100, 10))])
    assert is_in_history(history, 1, Position(100, 10))
    assert not is_in_history(history, 1, Position(100, 11))
    assert not is_in_history(history, 1, Position(101, 10))
    assert is_in_history(history, 2, Position(50, 1))


def test_an_attempt_that_no_later_one_resumed_is_superseded_as_a_whole() -> None:
    history = build_chain(
        [Link(1, None, None), Link(2, 1, Position(100, 0)), Link(3, 1, Position(200, 0))]
    )
    assert is_in_history(history, 1, Position(200, 0))
    assert not is_in_history(history, 2, Position(1, 0))


def test_a_fresh_start_supersedes_all() -> None:
    history = build_chain([Link(1, None, None), Link(2, None, None)])
    assert not is_in_history(history, 1, Position(0, 0))


def test_a_resume_from_an_earlier_snapshot_bounds_all_attempts_before_it() -> None:
    history = build_chain(
        [Link(1, None, None), Link(2, 1, Position(100, 0)), Link(3, 2, Position(60, 0))]
    )
    assert history == {3: None, 2: Position(60, 0), 1: Position(60, 0)}


@st.composite
def draw_trees(draw: st.DrawFn) -> list[Link]:
    links = [Link(1, None, None)]
    for fence in range(2, draw(st.integers(2, 8))):
        parent = draw(st.none() | st.integers(1, fence - 1))
        at = None if parent is None else Position(draw(st.integers(0, 5)), draw(st.integers(0, 5)))
        links.append(Link(fence, parent, at))
    return links


@given(draw_trees(), st.integers(1, 8), st.integers(0, 6), st.integers(0, 6))
def test_a_point_counts_exactly_if_every_later_resume_kept_it(
    links: list[Link], fence: int, step: int, update: int
) -> None:
    by_fence = {link.fence: link for link in links}
    walk, kept = by_fence[max(by_fence)], True
    while walk.fence != fence and walk.resumed_fence is not None and walk.resumed_at is not None:
        kept = kept and (step, update) <= (walk.resumed_at.env_step, walk.resumed_at.update)
        walk = by_fence[walk.resumed_fence]
    assert is_in_history(build_chain(links), fence, Position(step, update)) == (
        walk.fence == fence and kept
    )

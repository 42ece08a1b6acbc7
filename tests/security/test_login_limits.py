"""Rate limits for password guesses, with a fake clock."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.errors import TooManyRequestsError, UnavailableError
from app.domain.login_limits import (
    MAX_WAITING,
    PER_ACCOUNT,
    PER_ADDRESS,
    PER_BROWSER,
    Allowance,
    Guess,
    GuessBudget,
    LoginLimits,
)

NOW = 1_000.0


def _try_guess(limits: LoginLimits, guess: Guess, now: float, *, right: bool = False) -> int:
    """Returns 0 for an admitted guess, else the seconds to wait."""
    try:
        with limits.admit(guess, now) as admission:
            admission.is_correct = right
    except (TooManyRequestsError, UnavailableError) as refused:
        return int(refused.extra["retry_after"])
    return 0


def _count_admitted(limits: LoginLimits, guesses: list[Guess], now: float = NOW) -> int:
    return sum(_try_guess(limits, guess, now) == 0 for guess in guesses)


@given(st.integers(1, 5), st.floats(0.5, 60), st.lists(st.floats(0, 100), max_size=60))
def test_a_budget_permits_no_more_than_its_allowance(
    at_once: int, seconds: float, pauses: list[float]
) -> None:
    budget = GuessBudget(Allowance(at_once, seconds))
    now, taken = NOW, []
    for pause in pauses:
        now += pause
        wait = budget.wait("key", now)
        if wait == 0:
            budget.take("key", now)
            taken.append(now)
        else:
            assert budget.wait("key", now + wait + 1e-6) == 0
    for index, first in enumerate(taken):
        within = taken[index:]
        for count, last in enumerate(within, 1):
            assert count <= at_once + (last - first) / seconds + 1e-6


def test_a_full_table_keeps_the_keys_that_have_no_guess_left() -> None:
    budget = GuessBudget(PER_ACCOUNT, most_keys=100)
    for _ in range(PER_ACCOUNT.at_once):
        budget.take("victim", NOW)
    for index in range(10_000):
        budget.take(f"name {index}", NOW)
    assert budget.wait("victim", NOW) > 0
    assert len(budget._whole_at) <= 100


def test_guesses_at_one_account_are_limited_over_all_addresses() -> None:
    limits = LoginLimits()
    guesses = [Guess("admin", f"address {index}") for index in range(10_000)]
    assert _count_admitted(limits, guesses) == limits.admitted == PER_ACCOUNT.at_once
    wait = _try_guess(limits, guesses[0], NOW)
    assert wait == PER_ACCOUNT.seconds
    assert _try_guess(limits, guesses[0], NOW + wait) == 0
    assert _try_guess(limits, guesses[1], NOW + wait) == wait, "one guess a minute, not ten"
    assert _try_guess(limits, Guess("bea", "address 0"), NOW) == 0, "others are not held up"


def test_guesses_from_one_address_are_limited_over_all_accounts() -> None:
    limits = LoginLimits()
    guesses = [Guess(f"user {index}", "lab") for index in range(10_000)]
    assert _count_admitted(limits, guesses) == PER_ADDRESS.at_once
    assert _try_guess(limits, guesses[0], NOW) == PER_ADDRESS.seconds
    with pytest.raises(TooManyRequestsError, match="address"):
        limits.check_address("lab", NOW)
    limits.check_address("lab", NOW + PER_ADDRESS.seconds)


def test_a_known_browser_has_a_separate_limit() -> None:
    limits = LoginLimits()
    _count_admitted(limits, [Guess("admin", "lab") for _ in range(100)])
    own = [Guess("admin", "lab", browser="hers") for _ in range(100)]
    assert _count_admitted(limits, own) == PER_BROWSER.at_once
    with pytest.raises(TooManyRequestsError, match="for this account"):
        limits.admit(own[0], NOW + 20.0).__enter__()
    elsewhere = Guess("admin", "elsewhere", browser="hers")
    assert _try_guess(limits, elsewhere, NOW) == PER_ACCOUNT.seconds, "it counts as an unknown one"
    assert _try_guess(limits, Guess("admin", "lab", browser="his"), NOW) == 0
    assert _try_guess(limits, own[0], NOW + PER_BROWSER.seconds) == 0


def test_a_right_password_is_not_counted_as_a_guess() -> None:
    limits = LoginLimits()
    for browser in (None, "hers"):
        for _ in range(50):
            assert _try_guess(limits, Guess("admin", "lab", browser), NOW, right=True) == 0
    assert (
        _count_admitted(limits, [Guess("admin", "lab") for _ in range(50)]) == PER_ACCOUNT.at_once
    )


def test_waiting_logins_are_limited_with_separate_places_for_known_browsers() -> None:
    limits = LoginLimits()
    strangers = [
        limits.admit(Guess(f"user {index}", f"address {index}"), NOW)
        for index in range(MAX_WAITING)
    ]
    for admitted in strangers:
        admitted.__enter__()
    for index in range(3):
        with pytest.raises(UnavailableError, match="Try again in 1 s") as refused:
            limits.admit(Guess("bea", "hers"), NOW).__enter__()
        assert refused.value.extra["retry_after"] == 1, index
    known = [limits.admit(Guess("bea", "hers", f"b{index}"), NOW) for index in range(MAX_WAITING)]
    for admitted in known:
        admitted.__enter__()
    assert _try_guess(limits, Guess("bea", "hers", "one more"), NOW) == 1
    strangers[0].__exit__(None, None, None)
    assert _try_guess(limits, Guess("bea", "hers"), NOW) == 1, "the places are known browsers'"
    for admitted in [*strangers[1:], *known]:
        admitted.__exit__(None, None, None)
    fresh = [Guess("bea", "hers") for _ in range(20)]
    assert _count_admitted(limits, fresh) == PER_ACCOUNT.at_once, (
        "the refused ones were not counted"
    )


def test_every_refusal_names_other_ways_to_log_in() -> None:
    limits = LoginLimits()
    _count_admitted(limits, [Guess("admin", "lab") for _ in range(20)])
    for guess in (Guess("admin", "another"), Guess("bea", "lab")):
        with pytest.raises(TooManyRequestsError) as refused:
            limits.admit(guess, NOW).__enter__()
        sentence = str(refused.value)
        assert "Try again in" in sentence
        assert "browser that has logged in" in sentence
        assert "`palestra login-link`" in sentence

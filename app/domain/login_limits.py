"""How many passwords may be guessed: by account, by address, and by known browser.

Pure: the clock is a parameter. Each server process counts for itself.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from typing import Final

from app.domain.errors import TooManyRequestsError, UnavailableError


@dataclass(frozen=True, slots=True)
class Allowance:
    """Guesses that are permitted at once, and the seconds until another guess is permitted."""

    at_once: int
    seconds: float


PER_ACCOUNT: Final = Allowance(10, 60.0)
"""Guesses at one account by all browsers that are not known to have logged in to it."""
PER_ADDRESS: Final = Allowance(10, 10.0)
"""Guesses from one address, or /64 network of IPv6, by browsers that are not known."""
PER_BROWSER: Final = Allowance(10, 360.0)
"""Guesses at its own account by one known browser; then it counts as an unknown one."""
MAX_WAITING: Final = 8
"""Logins of unknown browsers that wait at once for their password to be verified.

Known browsers have as many places again.
"""
_MAX_KEYS: Final = 20_000
_WAYS_AROUND: Final = (
    "A browser that has logged in to this account before is not held up by the guesses of others, "
    "and a new link from `palestra login-link` always works."
)


class GuessBudget:
    """Counts guesses per key within one allowance.

    Holds one number per key: the time at which the key has its full allowance again.

    Args:
        allowance: Guesses per key.
        most_keys: Number of keys to hold; at the limit, the keys with the most guesses left are
            deleted first.
    """

    def __init__(self, allowance: Allowance, most_keys: int = _MAX_KEYS) -> None:
        self._allowance = allowance
        self._most_keys = most_keys
        self._whole_at: dict[str, float] = {}

    def wait(self, key: str, now: float) -> float:
        """Returns the seconds until the key may guess again; 0 if it may now."""
        spent = self._whole_at.get(key, now) - now
        return max(0.0, spent - (self._allowance.at_once - 1) * self._allowance.seconds)

    def take(self, key: str, now: float) -> None:
        """Counts a guess of the key."""
        self._whole_at[key] = max(self._whole_at.get(key, now), now) + self._allowance.seconds
        if len(self._whole_at) > self._most_keys:
            self._forget(now)

    def give_back(self, key: str) -> None:
        """Removes the count of a guess that was the right password."""
        if key in self._whole_at:
            self._whole_at[key] -= self._allowance.seconds

    def _forget(self, now: float) -> None:
        """Deletes the half of the keys with the most guesses left."""
        latest = sorted(self._whole_at.items(), key=lambda item: item[1])[self._most_keys // 2 :]
        self._whole_at = {key: whole_at for key, whole_at in latest if whole_at > now}


@dataclass(frozen=True, slots=True)
class Guess:
    """Origin of a password that is to be verified."""

    account: str
    """Key of the account, the same for every spelling of its name; unknown names have one too."""
    address: str
    browser: str | None = None
    """ID of a browser that is known to have logged in to this account."""


class Admission:
    """A login whose password may be verified."""

    def __init__(self) -> None:
        self.is_correct = False
        """To be set once the password is found to be right: the guess is then not counted."""


class LoginLimits:
    """Decides which logins may have their password verified."""

    def __init__(self) -> None:
        self._accounts = GuessBudget(PER_ACCOUNT)
        self._addresses = GuessBudget(PER_ADDRESS)
        self._browsers = GuessBudget(PER_BROWSER)
        self._waiting = 0
        self.admitted = 0
        """Logins that were admitted since the process started."""

    def check_address(self, address: str, now: float) -> None:
        """Refuses an unknown browser whose address has no guess left.

        Raises:
            TooManyRequestsError: With the seconds to wait.
        """
        if wait := self._addresses.wait(address, now):
            raise _too_many("Too many logins from this network address.", wait)

    @contextmanager
    def admit(self, guess: Guess, now: float) -> Iterator[Admission]:
        """Admits a login while its password is verified, or refuses it before.

        A refused login is not counted.

        Args:
            guess: Origin of the login.
            now: Seconds of a clock that never goes back.

        Raises:
            TooManyRequestsError: If the account or the address has no guess left.
            UnavailableError: If too many logins wait already.
        """
        is_known = guess.browser is not None and not self._browsers.wait(guess.browser, now)
        if not is_known:
            self.check_address(guess.address, now)
            if wait := self._accounts.wait(guess.account, now):
                raise _too_many("Too many wrong passwords for this account.", wait)
        if self._waiting >= (2 * MAX_WAITING if is_known else MAX_WAITING):
            raise UnavailableError(
                "logins_busy",
                "The server is verifying as many passwords as it can. Try again in 1 s. "
                + _WAYS_AROUND,
                retry_after=1,
            )
        counted = (
            [(self._browsers, guess.browser or "")]
            if is_known
            else [(self._accounts, guess.account), (self._addresses, guess.address)]
        )
        for budget, key in counted:
            budget.take(key, now)
        self._waiting += 1
        self.admitted += 1
        admission = Admission()
        try:
            yield admission
        finally:
            self._waiting -= 1
            if admission.is_correct:
                for budget, key in counted:
                    budget.give_back(key)


def _too_many(reason: str, wait: float) -> TooManyRequestsError:
    seconds = ceil(wait)
    return TooManyRequestsError(
        "too_many_logins",
        f"{reason} Try again in {seconds} s. {_WAYS_AROUND}",
        retry_after=seconds,
    )

"""Bounds on how often a login may be tried, by address and by account, kept in this process."""

import time
from collections import OrderedDict, deque
from typing import Final

from fastapi import Request

from app.api.errors import HttpProblemError
from app.api.origin import address_of
from app.domain.networks import subscriber

PER_MINUTE: Final = 10
FREE_FAILURES: Final = 5
"""Wrong passwords of an account before its back-off begins."""
LONGEST_WAIT: Final = 60.0
"""Upper bound of the back-off in seconds; an account is never locked."""
_MAX_ADDRESSES: Final = 10_000
_MAX_ACCOUNTS: Final = 100_000


class LoginRate:
    """Recent login attempts per address.

    Failures and successes count alike, so that the timing does not reveal a success.
    """

    def __init__(self, per_minute: int = PER_MINUTE) -> None:
        self._per_minute = per_minute
        self._attempts: OrderedDict[str, deque[float]] = OrderedDict()

    def admit(self, address: str, now: float) -> int:
        """Records an attempt; returns 0, or the seconds to wait after too many attempts."""
        attempts = self._attempts.setdefault(address, deque(maxlen=self._per_minute))
        self._attempts.move_to_end(address)
        if len(self._attempts) > _MAX_ADDRESSES:
            self._attempts.popitem(last=False)
        if len(attempts) == self._per_minute and now - attempts[0] < 60.0:
            return int(60.0 - (now - attempts[0])) + 1
        attempts.append(now)
        return 0


class AccountRate:
    """Counts wrong passwords per account over all addresses, for names without an account too.

    After some failures each further attempt has to wait twice as long as the one before, up to a
    minute; an hour without failures resets the count. Addresses from which the account was logged
    in to before are not delayed by the failures of others, and login links are never delayed.
    """

    def __init__(self) -> None:
        self._failures: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._known: OrderedDict[tuple[str, str], None] = OrderedDict()

    def admit(self, account: str, address: str, now: float) -> int:
        """Returns the seconds to wait before the login attempt is permitted; 0 if it is now.

        A permitted attempt counts as failed until `succeeded` is called for it.
        """
        if (account, address) in self._known:
            return 0
        failures, last = self._failures.get(account, (0, now))
        if now - last > 3_600:
            failures = 0
        over = failures - FREE_FAILURES
        ready = last + min(LONGEST_WAIT, 2.0**over) if over >= 0 else now
        if ready > now:
            return int(ready - now) + 1
        self._failures[account] = (min(failures + 1, 1_000), now)
        self._failures.move_to_end(account)
        if len(self._failures) > _MAX_ACCOUNTS:
            self._failures.popitem(last=False)
        return 0

    def succeeded(self, account: str, address: str) -> None:
        """Resets the failures of the account, and stores the address as known for it."""
        self._failures.pop(account, None)
        self._known[account, address] = None
        self._known.move_to_end((account, address))
        if len(self._known) > _MAX_ADDRESSES:
            self._known.popitem(last=False)


def subscriber_of(request: Request) -> str:
    """Returns the network to count as one client (`app.domain.networks.subscriber`)."""
    return subscriber(address_of(request))


def check_login_rate(request: Request) -> None:
    """Refuses the eleventh login attempt of an address within a minute: 429."""
    _refuse(request.app.state.login_rate.admit(subscriber_of(request), time.monotonic()))


def check_account_rate(request: Request, account: str) -> None:
    """Refuses a login with 429 while the back-off of the account's failed logins lasts."""
    rate: AccountRate = request.app.state.account_rate
    _refuse(rate.admit(account.casefold(), subscriber_of(request), time.monotonic()))


def note_login(request: Request, account: str) -> None:
    """Records a successful login with a password."""
    rate: AccountRate = request.app.state.account_rate
    rate.succeeded(account.casefold(), subscriber_of(request))


def _refuse(wait: int) -> None:
    if wait:
        detail = (
            f"Too many login attempts. Try again in {wait} s, or use a new link from "
            "`palestra login-link`."
        )
        raise HttpProblemError(429, "too_many_logins", detail, headers={"Retry-After": str(wait)})

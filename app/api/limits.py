"""Bounds on how often one address may try to log in, kept in this process."""

import time
from collections import OrderedDict, deque
from typing import Final

from fastapi import Request

from app.api.errors import ApiError

PER_MINUTE: Final = 10
_MAX_ADDRESSES: Final = 10_000


class LoginRate:
    """Recent login attempts per address. Failures and successes count alike, so that a hit is not told by the pace."""

    def __init__(self, per_minute: int = PER_MINUTE) -> None:
        self._per_minute = per_minute
        self._attempts: OrderedDict[str, deque[float]] = OrderedDict()

    def admit(self, address: str, now: float) -> int:
        """Notes an attempt; returns 0, or the seconds to wait where there were too many."""
        attempts = self._attempts.setdefault(address, deque(maxlen=self._per_minute))
        self._attempts.move_to_end(address)
        if len(self._attempts) > _MAX_ADDRESSES:
            self._attempts.popitem(last=False)
        if len(attempts) == self._per_minute and now - attempts[0] < 60.0:
            return int(60.0 - (now - attempts[0])) + 1
        attempts.append(now)
        return 0


def check_login_rate(request: Request) -> None:
    """Refuses the eleventh login attempt of an address within a minute: 429."""
    address = request.client.host if request.client else ""
    wait = request.app.state.login_rate.admit(address, time.monotonic())
    if wait:
        raise ApiError(429, "too_many_logins", f"Too many login attempts. Try again in {wait} s.", headers={"Retry-After": str(wait)})

"""Limits the requests of each token and login. Each server process counts for itself."""

import time
from math import ceil

from app.api.errors import HttpProblemError
from app.domain.login_limits import Allowance, GuessBudget
from app.domain.principal import Principal
from app.settings import Settings

_WITH_OTHER_LIMITS = frozenset({"worker", "attempt", "enrolment"})


class RequestRate:
    """Counts requests per token and login.

    Args:
        settings: Hold the limits.
    """

    def __init__(self, settings: Settings) -> None:
        self._per_second = settings.api_requests_per_second
        self._burst = settings.api_burst
        seconds = 1 / self._per_second if self._per_second else 0.0
        self._budget = GuessBudget(Allowance(self._burst, seconds))

    def check(self, principal: Principal, now: float | None = None) -> None:
        """Counts a request, or refuses it.

        A refused request is not counted. Workers, attempts and enrolment tokens have limits of
        their own.

        Args:
            principal: The caller.
            now: Seconds of a clock that never goes back; `time.monotonic()` by default.

        Raises:
            HttpProblemError: 429 `too_many_requests` with the seconds to wait.
        """
        if not self._per_second or principal.via in _WITH_OTHER_LIMITS:
            return
        at = time.monotonic() if now is None else now
        wait = self._budget.wait(principal.credential_id, at)
        if wait > 0:
            raise self._refusal(wait)
        self._budget.take(principal.credential_id, at)

    def _refusal(self, wait: float) -> HttpProblemError:
        seconds = ceil(wait)
        window = ceil(self._burst / self._per_second)
        headers = {
            "Retry-After": str(seconds),
            "RateLimit-Policy": f'"credential";q={self._burst};w={window}',
            "RateLimit": f'"credential";r=0;t={seconds}',
        }
        sentence = (
            f"Too many requests with this token or login: {self._burst:,} at once and "
            f"{self._per_second:g} a second are answered. Try again in {seconds} s."
        )
        return HttpProblemError(429, "too_many_requests", sentence, headers=headers)

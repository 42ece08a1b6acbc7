"""Limits on logins by password, applied to requests, and the cookie of known browsers."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from fastapi import Request, Response

from app.api.cookies import read_cookie, set_cookie
from app.api.origin import get_client_address
from app.domain import device_cookies
from app.domain.device_cookies import KnownBrowser
from app.domain.errors import UnauthenticatedError
from app.domain.login_limits import Guess, LoginLimits
from app.domain.networks import find_subscriber
from app.services.access.device_keys import DeviceKeys
from app.services.access.logins import Account

_COOKIE: Final = "palestra_device"

FAILURE_SECONDS: Final = 0.25
"""A wrong login is answered at a multiple of this after it came.

A password hash that an older version stored takes less time to verify than today's; without the
delay, the time would tell that the account exists.
"""


class LoginClock:
    """The clock by which logins are counted and wrong ones are answered."""

    def read(self) -> float:
        """Returns seconds that never go backwards."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Waits for some seconds."""
        await asyncio.sleep(seconds)


def find_client_subscriber(request: Request) -> str:
    """Returns the network to count as one client (`app.domain.networks.find_subscriber`)."""
    return find_subscriber(get_client_address(request))


def check_address(request: Request) -> None:
    """Refuses an unknown browser whose address has no guess left, before the body is read.

    Raises:
        TooManyRequestsError: With the seconds to wait.
    """
    if _known_browser(request) is None:
        limits: LoginLimits = request.app.state.login_limits
        limits.check_address(find_client_subscriber(request), _clock(request).read())


@asynccontextmanager
async def count_guess(request: Request, account: Account) -> AsyncIterator[None]:
    """Counts a login by password as a guess while the block verifies it.

    If the block ends without an error, the password was right, and the guess is not counted.

    Raises:
        TooManyRequestsError: If the account or the address has no guess left.
        UnavailableError: If too many logins wait already.
    """
    clock = _clock(request)
    began = clock.read()
    browser = _known_browser(request)
    is_own = browser is not None and browser.user_id == account.user_id
    guess = Guess(
        account.key,
        find_client_subscriber(request),
        browser.id if browser is not None and is_own else None,
    )
    limits: LoginLimits = request.app.state.login_limits
    try:
        with limits.admit(guess, began) as admission:
            yield
            admission.is_correct = True
    except UnauthenticatedError:
        await clock.sleep(FAILURE_SECONDS - (clock.read() - began) % FAILURE_SECONDS)
        raise


def remember_browser(request: Request, response: Response, user_id: str) -> None:
    """Sets the cookie that identifies the browser as one that has logged in to this account."""
    cookie = device_cookies.sign(_keys(request)[0], user_id, time.time())
    set_cookie(request, response, _COOKIE, cookie, max_age=device_cookies.LIFE_SECONDS)


def _known_browser(request: Request) -> KnownBrowser | None:
    cookie = read_cookie(request, _COOKIE)
    return None if not cookie else device_cookies.read(_keys(request), cookie, time.time())


def _clock(request: Request) -> LoginClock:
    clock: LoginClock = request.app.state.login_clock
    return clock


def _keys(request: Request) -> tuple[bytes, ...]:
    keys: DeviceKeys = request.app.state.device_keys
    return keys.current()

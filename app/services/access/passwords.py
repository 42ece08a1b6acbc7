"""Rules for new passwords, their hashes, and the verification of passwords at a login."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from app.domain.errors import InvalidError

SHORTEST: Final = 12
"""Least length of a new password in characters."""
MAX_LENGTH: Final = 1_024
"""Greatest length of a password in characters."""
LEAST_GUESSES: Final = 10**10
"""Estimated guesses that a new password must withstand.

A stolen argon2id hash is then safe against years of guessing (the highest class of zxcvbn).
"""

_ESTIMATED: Final = 72
"""Leading characters from which the guesses are estimated: the time grows with their cube."""

_HASHER: Final = PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)
"""argon2id with the least parameters that OWASP recommends."""

_SUBSTITUTE_HASH: Final = (
    "$argon2id$v=19$m=19456,t=2,p=1$JJ9bSw0/d4sI+9TwL5qHlw"
    "$M64+260Oq3szi7+0pF5zZMfgCViKiwq/0FSSXB2z6GQ"
)
"""A hash that is verified where there is no stored one, so that the duration reveals nothing.

It has the parameters of `_HASHER`; nobody knows its password.
"""

_thread: Final = ThreadPoolExecutor(1, "palestra-passwords")
"""The only thread that works on passwords: each hash takes 19 MiB and some 30 ms.

zxcvbn keeps the words of a call in a global variable and may not run in two threads at once.
"""


@dataclass(frozen=True, slots=True)
class Verification:
    """Result of comparing a password with a stored hash."""

    is_correct: bool
    new_hash: str | None = None
    """The password's hash with today's parameters, where the stored one has others."""


async def verify(stored: str | None, password: str) -> Verification:
    """Compares a password with a stored hash.

    Args:
        stored: Hash of the user's password. `None` for an unknown user or one without a password;
            the comparison then fails after as much work.
        password: The password that was entered.
    """
    return await asyncio.get_running_loop().run_in_executor(_thread, _verify, stored, password)


async def hash_new(password: str, *names: str, pointer: str = "/password") -> str:
    """Returns the hash of a new password; arguments and errors are those of `check`."""
    await check(password, *names, pointer=pointer)
    return await asyncio.get_running_loop().run_in_executor(_thread, _HASHER.hash, password)


async def check(password: str, *names: str, pointer: str = "/password") -> None:
    """Refuses a new password that is too short, too long or too easy to guess.

    Args:
        password: The new password.
        names: Words that make a password easy to guess, such as the user's name.
        pointer: JSON pointer to the password in the request, for the error.

    Raises:
        InvalidError: `password_length` or `weak_password`.
    """
    if not SHORTEST <= len(password) <= MAX_LENGTH:
        raise InvalidError(
            "password_length",
            f"A password has {SHORTEST} to {MAX_LENGTH:,} characters; this one has "
            f"{len(password):,}. Choose another.",
            pointer=pointer,
        )
    loop = asyncio.get_running_loop()
    guesses = await loop.run_in_executor(_thread, _estimate_guesses, password, names)
    if guesses < LEAST_GUESSES:
        raise InvalidError(
            "weak_password",
            "This password is too easy to guess: it is a common password, or made of common "
            "words, names, dates or keys that lie side by side. Choose a longer one, for example "
            "four words that have nothing to do with each other.",
            pointer=pointer,
        )


def _verify(stored: str | None, password: str) -> Verification:
    try:
        is_correct = _HASHER.verify(stored or _SUBSTITUTE_HASH, password) and stored is not None
    except (VerificationError, InvalidHashError):
        return Verification(is_correct=False)
    if stored is None or not is_correct:
        return Verification(is_correct=False)
    is_outdated = _HASHER.check_needs_rehash(stored)
    return Verification(True, _HASHER.hash(password) if is_outdated else None)


def _estimate_guesses(password: str, names: tuple[str, ...]) -> float:
    # Its word lists take 14 MiB, which a server where nobody sets a password does without.
    from zxcvbn import zxcvbn  # noqa: PLC0415

    words = [*names, "palestra"]
    return float(zxcvbn(password[:_ESTIMATED], user_inputs=words)["guesses"])

"""Secrets that are handed out once: their form, and the only form in which they are kept.

Pure but for the system's randomness.
"""

import hashlib
import hmac
import secrets
import zlib
from typing import Final, Literal

_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_LENGTH: Final = 43
_CHECK: Final = 6

SecretPrefix = Literal["plr", "plw", "pla", "pls", "pll"]
"""`plr` API token, `plw` a worker's own secret, `pla` attempt token, `pls` browser session, `pll`
setup or login link.
"""


def new_secret(prefix: SecretPrefix) -> str:
    """Returns `PREFIX_`, 256 random bits in base 62, and a checksum that scanners can verify."""
    body = _base62(int.from_bytes(secrets.token_bytes(32)), _LENGTH)
    return f"{prefix}_{body}{_checksum(prefix, body)}"


def derivation_key(secret: str) -> str:
    """Returns the key from which further secrets are derived for the holder of `secret`.

    The stored hash of the secret does not reveal it.
    """
    return hashlib.sha256(b"palestra derived secrets " + secret.encode()).hexdigest()


def derive_secret(prefix: SecretPrefix, key: str, label: str) -> str:
    """Returns the secret that a key and a label determine, in the form of `new_secret`.

    A request that is repeated because its answer was lost gets the same secret again, although the
    server keeps only the hash.

    Args:
        prefix: Kind of the secret.
        key: The caller's `derivation_key`.
        label: What the secret is for; unique among the secrets of one key.

    Raises:
        ValueError: If the key is empty: everybody could derive the secret.
    """
    if not key:
        raise ValueError("a secret cannot be derived from an empty key")
    body = _base62(
        int.from_bytes(hmac.digest(key.encode(), f"{prefix} {label}".encode(), "sha256")), _LENGTH
    )
    return f"{prefix}_{body}{_checksum(prefix, body)}"


def is_well_formed(secret: str) -> bool:
    """Returns whether prefix, length and checksum are valid.

    A mistyped token is recognised without a query of the database.
    """
    prefix, _, rest = secret.partition("_")
    return (
        len(rest) == _LENGTH + _CHECK
        and rest.isascii()
        and rest[_LENGTH:] == _checksum(prefix, rest[:_LENGTH])
    )


def hash_secret(secret: str) -> str:
    """Returns the SHA-256 by which a secret is stored and found.

    256 random bits need no salt and no slow hash.
    """
    return hashlib.sha256(secret.encode()).hexdigest()


def csrf_token(session_secret: str) -> str:
    """Returns the token that pages of this session send with every change.

    It does not reveal the session.
    """
    return hashlib.sha256(b"palestra csrf " + session_secret.encode()).hexdigest()


def _checksum(prefix: str, body: str) -> str:
    return _base62(zlib.crc32(f"{prefix}_{body}".encode()), _CHECK)


def _base62(number: int, length: int) -> str:
    digits = ""
    for _ in range(length):
        number, digit = divmod(number, len(_DIGITS))
        digits = _DIGITS[digit] + digits
    return digits

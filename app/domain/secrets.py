"""Format, derivation and hashing of secrets, which are shown once and stored as hashes.

Pure except for the system's source of randomness.
"""

import hashlib
import hmac
import secrets
import zlib
from typing import Final, Literal

_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_LENGTH: Final = 43
_CHECK: Final = 6

SecretPrefix = Literal["plr", "ple", "plw", "pla", "pls", "pll"]
"""`plr` API token, `ple` enrolment token of a pool, `plw` a worker's own secret, `pla` attempt
token, `pls` browser session, `pll` setup or login link.
"""


def generate_secret(prefix: SecretPrefix) -> str:
    """Returns a new secret: `PREFIX_`, 256 random bits in base 62, and a checksum."""
    body = _base62(int.from_bytes(secrets.token_bytes(32)), _LENGTH)
    return f"{prefix}_{body}{_checksum(prefix, body)}"


def derive_key(secret: str) -> str:
    """Returns the key from which the secrets of the holder of `secret` are derived.

    The stored hash of the secret does not reveal it.
    """
    return hashlib.sha256(b"palestra derived secrets " + secret.encode()).hexdigest()


def derive_secret(prefix: SecretPrefix, key: str, label: str) -> str:
    """Derives a secret in the format of `generate_secret` from a key and a label.

    A request that is repeated because its answer was lost gets the same secret again, although only
    the hash is stored.

    Args:
        prefix: Kind of the secret.
        key: The result of `derive_key`.
        label: Purpose of the secret; unique among the secrets of one key.

    Raises:
        ValueError: If the key is empty, since anybody could derive the secret then.
    """
    if not key:
        raise ValueError("a secret cannot be derived from an empty key")
    body = _base62(
        int.from_bytes(hmac.digest(key.encode(), f"{prefix} {label}".encode(), "sha256")), _LENGTH
    )
    return f"{prefix}_{body}{_checksum(prefix, body)}"


def is_well_formed(secret: str) -> bool:
    """Returns whether prefix, length and checksum are valid.

    A mistyped token is refused without a database query.
    """
    prefix, _, rest = secret.partition("_")
    return (
        len(rest) == _LENGTH + _CHECK
        and rest.isascii()
        and rest[_LENGTH:] == _checksum(prefix, rest[:_LENGTH])
    )


def hash_secret(secret: str) -> str:
    """Returns the SHA-256 under which a secret is stored and looked up.

    A secret of 256 random bits needs no salt and no slow hash.
    """
    return hashlib.sha256(secret.encode()).hexdigest()


def derive_csrf_token(session_secret: str) -> str:
    """Returns the CSRF token that the session's pages send with every modifying request.

    The session's secret cannot be computed from it.
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

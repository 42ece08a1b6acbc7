"""Addresses of servers, brokers and databases: checked, and written in one form.

Schemes and hosts are in lower case, names in other scripts in their ASCII form (IDNA), and no
address ends with a slash. Messages never repeat an address, since it may hold a password.
"""

import re
from collections.abc import Collection
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

import idna

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_REDIS_SCHEMES: Final = {
    "redis": "redis",
    "valkey": "redis",
    "rediss": "rediss",
    "valkeys": "rediss",
}
_SOCKET_SCHEMES: Final = {"redis+socket": "redis+socket", "valkey+socket": "redis+socket"}
_DATABASE_SCHEMES: Final = frozenset({"sqlite", "postgresql", "postgres"})

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_FORBIDDEN: Final = re.compile(r"[\s\\\x00-\x1f\x7f-\x9f]")
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
_MAX_NAME_LENGTH: Final = 253
_PATH_PART: Final = re.compile(r"[A-Za-z0-9._~-]+", re.ASCII)
_PORT: Final = re.compile(r"[0-9]{1,5}", re.ASCII)
_MAX_PORT: Final = 65_535
_PASSWORD: Final = re.compile(r"(?<=://)([^\s:/@]*):[^\s/]*@")


def mask_password(text: str) -> str:
    """Returns a text without the passwords of the addresses in it, for logs."""
    return _PASSWORD.sub(r"\1:***@", text)


_MAPPED_BITS: Final = 96
"""Bits before the IPv4 address in an IPv4 address in IPv6 form."""

_SERVER: Final = "an address such as https://palestra.example.org"
_BROKER: Final = "an address such as redis://USER:PASSWORD@HOST:6379/0"


class AddressError(ValueError):
    """An address is not valid; the message continues a sentence that begins with its name."""


def parse_server_address(text: str) -> str:
    """Returns the address of a server: scheme, host, port and path.

    The default port of the scheme is left out.

    Raises:
        AddressError: If it is no address of a server.
    """
    parts = _split(text, {"http", "https"}, _SERVER)
    if "@" in parts.netloc:
        raise AddressError(f"must not hold a user or a password: give {_SERVER}")
    if "?" in text or "#" in text:
        raise AddressError(f"must end with its path, without ? and #: give {_SERVER}")
    location = _format_location(parts, _SERVER, _DEFAULT_PORTS[parts.scheme])
    path = parts.path.rstrip("/")
    for part in path.split("/")[1:]:
        if _PATH_PART.fullmatch(part) is None or part in {".", ".."}:
            raise AddressError(
                "has a path that is not valid: use letters, digits, '.', '_', '~' and '-' "
                "between single slashes, as in https://example.org/palestra"
            )
    return f"{parts.scheme}://{location}{path}"


def parse_redis_address(text: str, *, is_bus: bool = False, is_of_worker: bool = False) -> str:
    """Returns the address of a Redis or Valkey, with `valkey` schemes as `redis` schemes.

    Args:
        text: The address.
        is_bus: Whether `unix:///PATH` is permitted, which redis-py knows.
        is_of_worker: Whether `redis+socket:///PATH` is permitted, which kombu knows.

    Raises:
        AddressError: If it is no such address.
    """
    sockets = {**({"unix": "unix"} if is_bus else {}), **(_SOCKET_SCHEMES if is_of_worker else {})}
    parts = _split(text, {*_REDIS_SCHEMES, *sockets}, _BROKER)
    if "#" in text:
        raise AddressError("must not have a #: write %23 where a password has one")
    query = f"?{parts.query}" if parts.query else ""
    if parts.scheme in sockets:
        if not parts.path.strip("/") or parts.netloc.rpartition("@")[2]:
            raise AddressError(f"must name a socket, as in {parts.scheme}:///run/valkey.sock")
        return f"{sockets[parts.scheme]}://{parts.netloc}{parts.path}{query}"
    user = _format_user(parts)
    location = _format_location(parts, _BROKER)
    path = parts.path.rstrip("/")
    if path and re.fullmatch(r"/[0-9]{1,5}", path, re.ASCII) is None:
        raise AddressError("must end with the number of a database, as in redis://HOST:6379/0")
    return f"{_REDIS_SCHEMES[parts.scheme]}://{user}{location}{path}{query}"


def parse_database_address(text: str) -> str:
    """Returns the address of a database, `sqlite:///FILE` or `postgresql://...`.

    Raises:
        AddressError: If it is neither.
    """
    form = "sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME"
    address = _strip_path(text)
    match = _SCHEME.match(address)
    scheme = match[1].lower() if match else ""
    if match is None or scheme.split("+", 1)[0] not in _DATABASE_SCHEMES:
        raise AddressError(f"must begin with sqlite:/// or postgresql://: give {form}")
    address = scheme + address[len(scheme) :]
    if scheme.split("+", 1)[0] == "sqlite":
        file = address.removeprefix(f"{scheme}:///").partition("?")[0]
        if not address.startswith(f"{scheme}:///") or not file.strip("/") or file == ":memory:":
            raise AddressError("must name a file after three slashes, as in sqlite:///FILE")
        return address
    parts = _split(address, {scheme}, form)
    if "#" in address:
        raise AddressError("must not have a #: write %23 where a password has one")
    user = _format_user(parts)
    # The host of a PostgreSQL may be a parameter, such as the directory of its socket.
    has_host = bool(parts.netloc.rpartition("@")[2]) or "host=" not in parts.query
    location = _format_location(parts, form) if has_host else ""
    query = f"?{parts.query}" if parts.query else ""
    return f"{scheme}://{user}{location}{parts.path.rstrip('/')}{query}"


def parse_directory_address(text: str) -> str:
    """Returns a directory as a path, from a path or a `file:///PATH`.

    Raises:
        AddressError: If it is another address.
    """
    address = _strip_path(text)
    scheme, colon, rest = address.partition(":")
    if f"{scheme.lower()}{colon}" == "file:":
        if not rest.startswith("///") or not rest.strip("/"):
            raise AddressError("must have three slashes and a directory, as in file:///PATH")
        return unquote(rest.removeprefix("//"))
    if "://" in address:
        raise AddressError("must be a directory, as a path or as file:///PATH")
    return address


def parse_host(text: str) -> str:
    """Returns a host name or an IP address, without brackets.

    Raises:
        AddressError: If it is neither, or has a scheme, a port or a path.
    """
    host = _strip(text)
    if "/" in host or "@" in host or _has_port(host):
        raise AddressError("must be a host name or an IP address, without scheme, port or path")
    if host.startswith("[") != host.endswith("]"):
        raise AddressError("has a bracket that is not closed")
    address = _parse_ip(host.removeprefix("[").removesuffix("]"))
    if host.startswith("[") and not isinstance(address, IPv6Address):
        raise AddressError("has brackets around something else than an IPv6 address")
    return str(address) if address is not None else _parse_name(host)


def parse_network(text: str) -> IPv4Network | IPv6Network:
    """Returns the network of an IP address, or of a range such as `10.0.0.0/8`.

    Raises:
        AddressError: If it is neither, or the address has bits beyond those of the range.
    """
    address, slash, bits = _strip(text).partition("/")
    if address.startswith("[") and address.endswith("]"):
        address = address[1:-1]
    first = _parse_ip(address)
    try:
        network = None if first is None else ip_network(f"{first}{slash}{bits}", strict=False)
    except ValueError:
        network = None
    if first is None or network is None:
        raise AddressError("is no address and no network such as 10.0.0.0/8")
    if first != network.network_address:
        raise AddressError(
            f"is an address within a network: write {network} for the network, or {first} for the "
            "address"
        )
    mapped = getattr(network.network_address, "ipv4_mapped", None)
    if mapped is not None and network.prefixlen >= _MAPPED_BITS:
        return IPv4Network((mapped, network.prefixlen - _MAPPED_BITS))
    return network


def format_host(host: str) -> str:
    """Returns a host as addresses and `Host` headers have it: IPv6 addresses in brackets."""
    return f"[{host}]" if ":" in host else host


def _strip(text: str) -> str:
    address = text.strip()
    if not address:
        raise AddressError("must not be empty")
    if _FORBIDDEN.search(address):
        raise AddressError("must not have white space, control characters or backslashes")
    return address


def _strip_path(text: str) -> str:
    path = text.strip()
    if not path:
        raise AddressError("must not be empty")
    if _CONTROL.search(unquote(path)):
        raise AddressError("must not have control characters")
    return path


def _split(text: str, schemes: Collection[str], form: str) -> SplitResult:
    address = _strip(text)
    match = _SCHEME.match(address)
    named = " or ".join(f"{scheme}://" for scheme in sorted(schemes))
    if (
        match is None
        or match[1].lower() not in schemes
        or not address.startswith("//", match.end())
    ):
        raise AddressError(f"must begin with {named}: give {form}")
    try:
        return urlsplit(address)
    except ValueError:
        raise AddressError(f"has a host that is not valid: give {form}") from None


def _format_user(parts: SplitResult) -> str:
    """Returns user and password of an address with the `@` behind them, and no other `@`."""
    user, at, _ = parts.netloc.rpartition("@")
    return user.replace("@", "%40") + at


def _format_location(parts: SplitResult, form: str, default_port: int | None = None) -> str:
    """Returns host and port of an address."""
    location = parts.netloc.rpartition("@")[2]
    host, port = location, ""
    if _has_port(location):
        host, _, port = location.rpartition(":")
        if _PORT.fullmatch(port) is None or not 1 <= int(port) <= _MAX_PORT:
            raise AddressError(
                "has a port that is not valid: a port is a number from 1 to 65535, and special "
                "characters of a password are written as %XX"
                if "@" in form
                else "has a port that is not valid: a port is a number from 1 to 65535"
            )
    if not host:
        raise AddressError(f"has no host: give {form}")
    if ":" in host and not host.startswith("["):
        raise AddressError("has an IPv6 address without brackets: write it as in http://[::1]:8080")
    is_default = not port or int(port) == default_port
    return format_host(parse_host(host)) + ("" if is_default else f":{int(port)}")


def _has_port(location: str) -> bool:
    """Returns whether a colon and more follows the host."""
    behind = location.rpartition("]")[2] if location.startswith("[") else location
    return behind.count(":") == 1


def _parse_ip(text: str) -> IPv4Address | IPv6Address | None:
    try:
        # What follows a % names a network interface of one machine.
        return None if "%" in text else ip_address(text)
    except ValueError:
        return None


def _parse_name(text: str) -> str:
    try:
        name = text.lower() if text.isascii() else idna.encode(text, uts46=True).decode()
    except idna.IDNAError:
        name = ""
    name = name.removesuffix(".")
    labels = name.split(".")
    # Programs read a name that ends with a number as an IPv4 address, such as 127.1.
    if (
        len(name) > _MAX_NAME_LENGTH
        or not all(_LABEL.fullmatch(label) for label in labels)
        or _NUMBER.fullmatch(labels[-1])
    ):
        raise AddressError("has a host that is no host name and no IP address")
    return name

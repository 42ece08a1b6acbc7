"""Networks of trusted proxies, and the client address of a request behind them. Pure."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

_MAX_LENGTH: Final = 128
"""Characters of an address with its port and what proxies write around it, more than any has."""

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address


def contains(networks: Iterable[Network], address: Address) -> bool:
    """Returns whether one of the networks holds the address.

    An IPv4 address in IPv6 form counts as IPv4.
    """
    plain = getattr(address, "ipv4_mapped", None) or address
    return any(plain.version == network.version and plain in network for network in networks)


def find_client_address(peer: str, forwarded_for: Sequence[str], proxies: Sequence[Network]) -> str:
    """Returns the client's address of a request that may have passed proxies.

    Args:
        peer: Address of the other end of the TCP connection.
        forwarded_for: The `X-Forwarded-For` headers, in order.
        proxies: Networks of proxies whose forwarded address is trusted.

    Returns:
        `peer`, unless it is a trusted proxy: then the rightmost forwarded address that is not a
            trusted proxy's. The client can forge the addresses to the left of it.
    """
    address = _parse_address(peer)
    if address is None:
        return peer
    hops = [part for header in forwarded_for for part in header.split(",")]
    while hops and contains(proxies, address):
        before = _parse_address(hops.pop())
        if before is None:
            break
        address = before
    return str(address)


def find_subscriber(address: str) -> str:
    """Returns the network to count as one client: an IPv4 address, or a /64 of IPv6."""
    known = _parse_address(address)
    if known is None or known.version == 4:
        return address if known is None else str(known)
    return str(IPv6Network((int(known) >> 64 << 64, 64)))


def _parse_address(text: str) -> Address | None:
    """Parses an address as proxies write it: with or without port and brackets."""
    return _parse_short(text) if len(text) <= _MAX_LENGTH else None


@lru_cache(1_024)
def _parse_short(text: str) -> Address | None:
    plain = text.strip().strip('"')
    if plain.startswith("["):
        plain = plain[1:].partition("]")[0]
    elif plain.count(":") == 1:
        plain = plain.partition(":")[0]
    try:
        address = ip_address(plain.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address

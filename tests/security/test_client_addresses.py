"""The client address used for login limits, behind proxies and with IPv6."""

from ipaddress import ip_network

import pytest

from app.domain.networks import find_client_address, find_subscriber
from app.settings import SettingsError, load_settings


@pytest.mark.parametrize(
    ("peer", "headers", "address"),
    [
        ("203.0.113.7", ["1.1.1.1"], "203.0.113.7"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["1.1.1.1"], "1.1.1.1"),
        ("10.0.0.1", ["2.2.2.2, 1.1.1.1"], "1.1.1.1"),
        ("10.0.0.1", ["2.2.2.2", "1.1.1.1 , 10.0.0.2"], "1.1.1.1"),
        ("10.0.0.1", ["2.2.2.2, nonsense"], "10.0.0.1"),
        ("10.0.0.1", ["2.2.2.2, unknown, 10.0.0.9"], "10.0.0.9"),
        ("10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        ("10.0.0.1", ['"[2001:db8::1]:4711"'], "2001:db8::1"),
        ("10.0.0.1", ["1.1.1.1:80"], "1.1.1.1"),
        ("::ffff:10.0.0.1", ["1.1.1.1"], "1.1.1.1"),
        ("testclient", ["1.1.1.1"], "testclient"),
    ],
)
def test_the_rightmost_untrusted_address_is_the_clients(
    peer: str, headers: list[str], address: str
) -> None:
    assert find_client_address(peer, headers, [ip_network("10.0.0.0/8")]) == address


def test_ipv6_addresses_are_limited_by_network() -> None:
    assert (
        find_subscriber("2001:db8:1:2:3:4:5:6")
        == find_subscriber("2001:db8:1:2::9")
        == "2001:db8:1:2::/64"
    )
    assert find_subscriber("203.0.113.7") == "203.0.113.7"


def test_trusted_proxies_are_addresses_or_networks() -> None:
    settings = load_settings({}, {"PALESTRA_TRUSTED_PROXIES": "127.0.0.1,10.0.0.0/8,::1"})
    assert len(settings.proxy_networks) == 3
    with pytest.raises(SettingsError, match=r"trusted_proxies.*'proxy.local' is no address"):
        load_settings({}, {"PALESTRA_TRUSTED_PROXIES": "proxy.local"})

"""Addresses are normalised, or refused without repeating what may be a password."""

import pytest

from palestra import Client
from palestra.addresses import (
    AddressError,
    parse_database_address,
    parse_directory_address,
    parse_host,
    parse_network,
    parse_redis_address,
    parse_server_address,
)
from palestra.errors import UnreachableError
from palestra.sign_in import InvitationLink


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("https://palestra.example.org", "https://palestra.example.org"),
        ("HTTPS://Palestra.Example.ORG/", "https://palestra.example.org"),
        (" https://palestra.example.org\n", "https://palestra.example.org"),
        ("https://h:443", "https://h"),
        ("http://h:80/", "http://h"),
        ("http://h:443", "http://h:443"),
        ("http://h:08080", "http://h:8080"),
        ("https://h.example.org./", "https://h.example.org"),
        ("http://palestra_server:8080", "http://palestra_server:8080"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("http://[::1]:8080", "http://[::1]:8080"),
        ("http://[2001:DB8:0:0::1]", "http://[2001:db8::1]"),
        ("https://Bücher.example", "https://xn--bcher-kva.example"),
        ("https://straße.example", "https://xn--strae-oqa.example"),
        ("https://xn--bcher-kva.example", "https://xn--bcher-kva.example"),
        ("https://h/Palestra/", "https://h/Palestra"),
        ("https://h/a/b-1_2.3~", "https://h/a/b-1_2.3~"),
    ],
)
def test_addresses_of_servers_are_normalised(text: str, normal: str) -> None:
    assert parse_server_address(text) == normal
    assert parse_server_address(normal) == normal


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "must not be empty"),
        ("  ", "must not be empty"),
        ("palestra.example.org", "must begin with http:// or https://"),
        ("localhost:8080", "must begin with http:// or https://"),
        ("//h", "must begin with http:// or https://"),
        ("https:h", "must begin with http:// or https://"),
        ("https:/h", "must begin with http:// or https://"),
        ("ftp://h", "must begin with http:// or https://"),
        ("javascript:alert(1)", "must begin with http:// or https://"),
        ("https://", "has no host"),
        ("https:///palestra", "has no host"),
        ("https://:8080", "has no host"),
        ("https://h:0", "a number from 1 to 65535"),
        ("https://h:65536", "a number from 1 to 65535"),
        ("https://h:", "a number from 1 to 65535"),
        ("https://h:-1", "a number from 1 to 65535"),
        ("https://h:x", "a number from 1 to 65535"),
        ("https://h:٨٠", "a number from 1 to 65535"),
        ("https://h?x=1", "without ? and #"),
        ("https://h?", "without ? and #"),
        ("https://h/#x", "without ? and #"),
        ("https://h/#", "without ? and #"),
        ("https://user@h", "must not hold a user or a password"),
        ("https://user:hunter2@h", "must not hold a user or a password"),
        ("https://h i", "white space"),
        ("https://h\ti", "white space"),
        ("https://h\x00", "control characters"),
        ("https://h\\i", "backslashes"),
        ("https://h/a b", "white space"),
        ("https://a..b", "no host name"),
        ("https://-a.example", "no host name"),
        ("https://a-.example", "no host name"),
        ("https://a*b", "no host name"),
        ("https://a,b", "no host name"),
        ("https://h<script>", "no host name"),
        ("https://" + "a" * 64 + ".example", "no host name"),
        ("https://" + "a." * 127 + "example", "no host name"),
        ("https://127.1", "no host name"),
        ("https://256.0.0.1", "no host name"),
        ("https://010.0.0.1", "no host name"),
        ("https://0x7f.0x1", "no host name"),
        ("https://::1", "without brackets"),
        ("https://2001:db8::1:8080", "without brackets"),
        ("https://[::1", "not valid"),
        ("https://[::1]x", "bracket"),
        ("https://[example.org]", "not valid|IPv6"),
        ("https://[127.0.0.1]", "not valid|IPv6"),
        ("https://[fe80::1%25eth0]", "IPv6"),
        ("https://xn--\u2603.example", "no host name"),
        ("https://h//palestra", "path that is not valid"),
        ("https://h/../palestra", "path that is not valid"),
        ("https://h/./palestra", "path that is not valid"),
        ("https://h/%2e%2e", "path that is not valid"),
        ("https://h/a;b", "path that is not valid"),
        ("https://h/bücher", "path that is not valid"),
    ],
)
def test_what_is_no_address_of_a_server_is_refused(text: str, reason: str) -> None:
    with pytest.raises(AddressError, match=reason.replace("?", r"\?")) as refused:
        parse_server_address(text)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("redis://h:1/0", "redis://h:1/0"),
        ("REDIS://H:1/0/", "redis://h:1/0"),
        ("rediss://h", "rediss://h"),
        ("valkey://:P%40ss@H:1/0", "redis://:P%40ss@h:1/0"),
        ("redis://u:p@ss@h:1/0", "redis://u:p%40ss@h:1/0"),
        ("Valkeys://h/0?ssl_cert_reqs=none", "rediss://h/0?ssl_cert_reqs=none"),
        (" redis://[::1]:6379/0 ", "redis://[::1]:6379/0"),
    ],
)
def test_addresses_of_brokers_are_normalised(text: str, normal: str) -> None:
    for kind in ({}, {"is_bus": True}, {"is_of_worker": True}):
        assert parse_redis_address(text, **kind) == normal


def test_sockets_are_permitted_where_the_client_knows_their_scheme() -> None:
    socket = "redis+socket:///tmp/x.sock"
    assert parse_redis_address(socket, is_of_worker=True) == socket
    assert parse_redis_address("valkey+socket:///tmp/x.sock", is_of_worker=True) == socket
    assert parse_redis_address("UNIX:///tmp/x.sock?db=1", is_bus=True) == "unix:///tmp/x.sock?db=1"
    for text, kind in (
        (socket, {"is_bus": True}),
        ("unix:///tmp/x.sock", {"is_of_worker": True}),
        ("unix:///tmp/x.sock", {}),
        ("unix://host/x.sock", {"is_bus": True}),
        ("unix://", {"is_bus": True}),
    ):
        with pytest.raises(AddressError):
            parse_redis_address(text, **kind)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "must not be empty"),
        ("h:6379", "must begin with"),
        ("amqp://u:hunter2@h", "must begin with"),
        ("sentinel://h:1", "must begin with"),
        ("redis://", "has no host"),
        ("redis://u:hunter2@", "has no host"),
        ("redis://u:hunter2@h:0/0", "from 1 to 65535"),
        ("redis://u:hunter2@h:65536/0", "from 1 to 65535"),
        ("redis://u:hunter2/x@h:1/0", "written as %XX"),
        ("redis://u:hunter2#x@h:1/0", "write %23"),
        ("redis://u:hunter2 x@h:1/0", "white space"),
        ("redis://u:hunter2@h:1/zero", "number of a database"),
        ("redis://u:hunter2@a b/0", "white space"),
        ("redis://u:hunter2@a*b/0", "no host name"),
        ("redis://u:hunter2@[::1/0", "not valid"),
    ],
)
def test_what_is_no_address_of_a_broker_is_refused(text: str, reason: str) -> None:
    with pytest.raises(AddressError, match=reason) as refused:
        parse_redis_address(text)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("sqlite:///palestra.db", "sqlite:///palestra.db"),
        ("SQLite:////var/My Lab/P.db", "sqlite:////var/My Lab/P.db"),
        (
            "PostgreSQL://U:P%40@DB.Example:5432/Name/",
            "postgresql://U:P%40@db.example:5432/Name",
        ),
        ("postgresql://u:p@ss@h/d", "postgresql://u:p%40ss@h/d"),
        ("postgresql+psycopg://h/d", "postgresql+psycopg://h/d"),
        ("postgresql://u@/d?host=/run/postgresql", "postgresql://u@/d?host=/run/postgresql"),
        ("postgresql://[::1]/d?sslmode=require", "postgresql://[::1]/d?sslmode=require"),
    ],
)
def test_addresses_of_databases_are_normalised(text: str, normal: str) -> None:
    assert parse_database_address(text) == normal


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("palestra.db", "must begin with sqlite:///"),
        ("mysql://u:hunter2@h/d", "must begin with sqlite:///"),
        ("sqlite:palestra.db", "three slashes"),
        ("sqlite://palestra.db", "three slashes"),
        ("sqlite://", "three slashes"),
        ("sqlite:///", "three slashes"),
        ("sqlite:///:memory:", "three slashes"),
        ("sqlite:///a%00b", "control characters"),
        ("postgresql:///d", "has no host"),
        ("postgresql://u:hunter2@h:65536/d", "from 1 to 65535"),
        ("postgresql://u:hunter2/x@h/d", "written as %XX"),
        ("postgresql://u:hunter2#x@h/d", "write %23"),
        ("postgresql://u:hunter2@a b/d", "white space"),
    ],
)
def test_what_is_no_address_of_a_database_is_refused(text: str, reason: str) -> None:
    with pytest.raises(AddressError, match=reason) as refused:
        parse_database_address(text)
    assert "hunter2" not in str(refused.value)


def test_directories_are_paths_or_file_addresses() -> None:
    assert parse_directory_address("FILE:///my%20blobs") == "/my blobs"
    assert parse_directory_address(" my blobs ") == "my blobs"
    assert parse_directory_address("file") == "file"
    for text in ("", "s3://bucket", "file://host/x", "file:/x", "file:///", "file:///a%00", "a\nb"):
        with pytest.raises(AddressError):
            parse_directory_address(text)


def test_hosts_stand_alone() -> None:
    for text, host in (
        ("Example.ORG", "example.org"),
        (" h ", "h"),
        ("[::1]", "::1"),
        ("0:0::1", "::1"),
        ("bücher.example", "xn--bcher-kva.example"),
    ):
        assert parse_host(text) == host
    for text in (
        "", "*", "*.example.org", ".example.org", "https://h", "h:80", "[::1]:80", "h/x", "u@h",
        "[::1", "::1]", "1.2.3", "fe80::1%eth0", "10.0.0.0/8", "a b",
    ):  # fmt: skip
        with pytest.raises(AddressError):
            parse_host(text)


def test_networks_have_no_bits_beyond_their_length() -> None:
    for text, network in (
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("10.0.0.0/255.0.0.0", "10.0.0.0/8"),
        (" 127.0.0.1 ", "127.0.0.1/32"),
        ("[::1]", "::1/128"),
        ("FD00:0::/8", "fd00::/8"),
        ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
        ("::ffff:10.0.0.1", "10.0.0.1/32"),
    ):
        assert str(parse_network(text)) == network
    with pytest.raises(AddressError, match=r"write 10.0.0.0/8 .* or 10.0.0.1 "):
        parse_network("10.0.0.1/8")
    for text in ("", "*", "proxy", "10.0.0.0/33", "10.0.0.0/", "10.0.0.1:80", "fe80::1%eth0", "10"):
        with pytest.raises(AddressError):
            parse_network(text)


def test_clients_refuse_what_is_no_address_of_a_server() -> None:
    for text in ("h:80", "ftp://h", "http://u:hunter2@h", "http://h?x", "http://h:0", ""):
        with pytest.raises(UnreachableError, match="the address of the server ") as refused:
            Client(text, "plr_x")
        assert "hunter2" not in str(refused.value)


def test_links_of_invitations_are_read_below_a_path() -> None:
    link = InvitationLink.read(" HTTPS://H:443/palestra/login#code=pll_x\n")
    assert link == InvitationLink("https://h/palestra", "pll_x")
    for text in (
        "h/login#code=x", "https://h/login", "https://h/login#code=", "https://h/x#code=x",
        "https://u:p@h/login#code=x", "https://h:0/login#code=x", "https://h/login?x#code=x",
    ):  # fmt: skip
        with pytest.raises(ValueError, match="no link of an invitation"):
            InvitationLink.read(text)

"""Line 15.18: logins are slowed down by the address they come from and by the account, and nobody
locks another out.
"""

from collections.abc import AsyncIterator
from ipaddress import ip_network
from pathlib import Path

import httpx
import pytest

from app.api.login_rate import LONGEST_WAIT, AccountRate, LoginRate
from app.domain.networks import client_address, subscriber
from app.services.access import logins
from app.settings import SettingsError, load_settings
from tests.app.api.serving import ORIGIN, Served, serve

PASSWORD = "a long enough password"


@pytest.fixture
async def served(database_url: str, tmp_path: Path) -> AsyncIterator[Served]:
    async with serve(database_url, tmp_path, trusted_proxies=("10.0.0.0/8",)) as started:
        client, _ = await started.browser()
        await client.aclose()
        async with started.client() as client:
            code = {"code": await _link(started), "user": "admin", "password": PASSWORD}
            assert (await client.post("/api/v1/session:redeem", json=code)).status_code == 201
        started.app.state.login_rate, started.app.state.account_rate = LoginRate(), AccountRate()
        yield started


async def _link(served: Served) -> str:
    from app.db.models import MembershipRow

    world = served.world
    async with served.database.write() as session:
        who = MembershipRow(project_id=world.project_id, user_id=world.admin.user_id, role="admin")
        return await logins.make_link(session, who, 3_600)


async def _log_in(
    served: Served,
    peer: str,
    user: str = "admin",
    password: str = "wrong",
    forwarded: str = "",
) -> httpx.Response:
    transport = httpx.ASGITransport(served.app, client=(peer, 1))
    headers = {"X-Forwarded-For": forwarded} if forwarded else {}
    async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as client:
        body = {"user": user, "password": password}
        return await client.post("/api/v1/session", json=body, headers=headers)


async def test_behind_a_proxy_the_address_is_the_client_s(served: Served) -> None:
    """Ten bad logins a minute locked everyone out who came through the same proxy."""
    for index in range(12):
        answer = await _log_in(served, "10.0.0.1", f"user{index}", forwarded="1.2.3.4, 203.0.113.7")
    assert answer.status_code == 429
    other = await _log_in(served, "10.0.0.1", "admin", PASSWORD, forwarded="203.0.113.8")
    assert other.status_code == 201
    spoofed = await _log_in(served, "10.0.0.1", "x", forwarded="203.0.113.8, 203.0.113.7")
    assert spoofed.status_code == 429


async def test_a_header_of_strangers_is_not_believed(served: Served) -> None:
    statuses = [
        (
            await _log_in(served, "203.0.113.7", f"user{index}", forwarded=f"198.51.100.{index}")
        ).status_code
        for index in range(11)
    ]
    assert statuses == [401] * 10 + [429]


async def test_many_addresses_have_one_account_s_limit(served: Served) -> None:
    """Many addresses had no limit per account."""
    answers = [await _log_in(served, f"203.0.113.{index}") for index in range(30)]
    assert [answer.status_code for answer in answers[:5]] == [401] * 5
    assert [answer.status_code for answer in answers].count(429) > 15
    assert 0 < int(answers[-1].headers["retry-after"]) <= LONGEST_WAIT
    assert (await _log_in(served, "198.51.100.1", "bea")).status_code == 401
    async with served.client() as owner:
        redeemed = await owner.post("/api/v1/session:redeem", json={"code": await _link(served)})
    assert redeemed.status_code == 201


async def test_an_address_that_was_right_before_is_let_in(served: Served) -> None:
    assert (await _log_in(served, "198.51.100.1", password=PASSWORD)).status_code == 201
    for index in range(30):
        await _log_in(served, f"203.0.113.{index}")
    assert (await _log_in(served, "203.0.113.99", password=PASSWORD)).status_code == 429
    assert (await _log_in(served, "198.51.100.1", password=PASSWORD)).status_code == 201


def test_an_account_is_slowed_down_and_never_locked() -> None:
    rate, now, waits = AccountRate(), 1_000.0, []
    for _ in range(20):
        wait = rate.admit("admin", f"address {now}", now)
        now += wait
        if wait:
            assert rate.admit("admin", f"address {now}", now) == 0
        waits.append(wait)
    assert waits[:5] == [0] * 5
    assert waits[5:] == sorted(waits[5:])
    assert max(waits) <= LONGEST_WAIT + 1
    assert rate.admit("admin", "another", now + 3_601) == 0
    assert rate.admit("admin", "another", now + 3_602) == 0


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
def test_the_rightmost_address_that_no_proxy_has_counts(
    peer: str, headers: list[str], address: str
) -> None:
    assert client_address(peer, headers, [ip_network("10.0.0.0/8")]) == address


def test_ipv6_counts_by_its_network() -> None:
    assert (
        subscriber("2001:db8:1:2:3:4:5:6") == subscriber("2001:db8:1:2::9") == "2001:db8:1:2::/64"
    )
    assert subscriber("203.0.113.7") == "203.0.113.7"


def test_proxies_are_addresses_or_networks() -> None:
    settings = load_settings({}, {"PALESTRA_TRUSTED_PROXIES": "127.0.0.1,10.0.0.0/8,::1"})
    assert len(settings.proxy_networks) == 3
    with pytest.raises(SettingsError, match=r"trusted_proxies.*'proxy.local' is no address"):
        load_settings({}, {"PALESTRA_TRUSTED_PROXIES": "proxy.local"})

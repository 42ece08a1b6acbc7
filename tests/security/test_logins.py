"""Password guesses are limited by address and by account, and no client can lock another one out.

`benchmarks/login_attack.py` runs the attacks in full.
"""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import pytest_asyncio
from argon2 import extract_parameters

from app.api.login_rate import FAILURE_SECONDS, LoginClock
from app.db.models import MembershipRow, UserRow
from app.domain.login_limits import MAX_WAITING, PER_ACCOUNT, PER_ADDRESS, LoginLimits
from app.services.access import logins, passwords
from palestra.contract.names import new_id
from tests.app.api.serving import ORIGIN, AppServer, serve
from tests.support.waiting import until

PASSWORD = "a long enough password"
PROXY = "10.0.0.1"


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def server_with_password(
    module_database_url: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[AppServer]:
    """A server behind a trusted proxy, whose administrator has a password."""
    directory = tmp_path_factory.mktemp("logins")
    async with serve(module_database_url, directory, trusted_proxies=("10.0.0.0/8",)) as started:
        async with started.client() as client:
            code = {"code": await _link(started), "user": "admin", "password": PASSWORD}
            assert (await client.post("/api/v1/session:redeem", json=code)).status_code == 201
        yield started


class StillClock(LoginClock):
    """A clock that only waits move."""

    seconds = 0.0

    def read(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds


@pytest.fixture
def clock(server_with_password: AppServer) -> Iterator[StillClock]:
    """A clock of logins that the server uses during the test."""
    state = server_with_password.app.state
    before, state.login_clock = state.login_clock, StillClock()
    yield state.login_clock
    state.login_clock = before


@pytest.fixture
def server(server_with_password: AppServer) -> AppServer:
    """The server with all login limits reset."""
    server_with_password.app.state.login_limits = LoginLimits()
    return server_with_password


@pytest.fixture
def verified_hashes(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """Records the stored hash of each argon2 verification."""
    stored_hashes: list[str | None] = []
    verify = passwords._verify

    def count(stored: str | None, password: str) -> passwords.Verification:
        stored_hashes.append(stored)
        return verify(stored, password)

    monkeypatch.setattr(passwords, "_verify", count)
    return stored_hashes


async def _link(served: AppServer) -> str:
    async with served.database.write() as session:
        return await logins.make_link(session, served.world.admin.user_id, 3_600)


async def _log_in(
    served: AppServer,
    peer: str,
    user: str = "admin",
    password: str = "wrong",
    forwarded: str = "",
    cookie: str = "",
) -> httpx.Response:
    transport = httpx.ASGITransport(served.app, client=(peer, 1))
    headers = {"X-Forwarded-For": forwarded} if forwarded else {}
    cookies = {"palestra_device": cookie} if cookie else {}
    async with httpx.AsyncClient(
        transport=transport, base_url=ORIGIN, cookies=cookies, headers=headers
    ) as client:
        return await client.post("/api/v1/session", json={"user": user, "password": password})


async def _log_in_concurrently(
    logins: list[Coroutine[Any, Any, httpx.Response]],
) -> list[httpx.Response]:
    """Returns the answers to concurrent logins.

    At most as many run at a time as may wait for argon2.
    """
    places = asyncio.Semaphore(MAX_WAITING)

    async def wait_and_log_in(login: Coroutine[Any, Any, httpx.Response]) -> httpx.Response:
        async with places:
            return await login

    return await asyncio.gather(*map(wait_and_log_in, logins))


async def _redeem(served: AppServer, peer: str) -> httpx.Response:
    transport = httpx.ASGITransport(served.app, client=(peer, 1))
    async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as client:
        body = {"code": await _link(served)}
        return await client.post("/api/v1/session:redeem", json=body)


async def _log_in_known_browser(served: AppServer, peer: str = "192.0.2.1") -> str:
    """Returns the cookie of a browser in which the administrator has logged in."""
    answer = await _log_in(served, peer, password=PASSWORD)
    assert answer.status_code == 201, answer.text
    return answer.cookies["palestra_device"]


def _list_statuses(answers: list[httpx.Response]) -> list[int]:
    return sorted(answer.status_code for answer in answers)


async def test_guesses_at_one_account_are_limited_over_all_addresses(
    server: AppServer, clock: StillClock, verified_hashes: list[str | None]
) -> None:
    """The user can still log in with a known browser or a login link."""
    cookie = await _log_in_known_browser(server)
    verified_hashes.clear()
    attack = asyncio.gather(
        *(_log_in(server, f"203.0.{index // 250}.{index % 250 + 1}") for index in range(500))
    )
    known = await _log_in(server, "203.0.0.1", password=PASSWORD, cookie=cookie)
    link = await _redeem(server, "203.0.0.2")
    answers = await attack
    assert (known.status_code, link.status_code) == (201, 201)
    guesses = _list_statuses(answers).count(401)
    assert MAX_WAITING <= guesses == len(verified_hashes) - 1 <= PER_ACCOUNT.at_once
    assert set(_list_statuses(answers)) <= {401, 429, 503}
    while (last := await _log_in(server, "203.0.113.1")).status_code == 401:
        pass
    assert last.status_code == 429
    assert last.json()["code"] == "too_many_logins"
    assert 0 < int(last.headers["retry-after"]) <= PER_ACCOUNT.seconds
    assert f"Try again in {last.headers['retry-after']} s" in last.json()["detail"]
    unknown = await _log_in(server, "192.0.2.9", password=PASSWORD)
    assert unknown.status_code == 429, "without the cookie it may be anybody"
    assert (await _log_in(server, "203.0.113.1", "bea")).status_code == 401
    assert (await _log_in(server, "203.0.113.1", "admin", PASSWORD, cookie=cookie)).is_success


async def test_guesses_from_one_address_behind_a_proxy_are_limited(
    server: AppServer, clock: StillClock, verified_hashes: list[str | None]
) -> None:
    """Other users with the same address can still log in with known browsers and login links."""
    cookie = await _log_in_known_browser(server, "203.0.113.7")
    verified_hashes.clear()
    # The left address is forged.
    forwarded = [f"198.51.100.{index}, 203.0.113.7" for index in range(200)]
    answers = await _log_in_concurrently(
        [_log_in(server, PROXY, f"user {text}", forwarded=text) for text in forwarded]
    )
    assert _list_statuses(answers).count(401) == len(verified_hashes) == PER_ADDRESS.at_once
    assert _list_statuses(answers).count(429) == 200 - len(verified_hashes)
    known = await _log_in(server, PROXY, password=PASSWORD, forwarded="203.0.113.7", cookie=cookie)
    link = await _redeem(server, "203.0.113.7")
    other = await _log_in(server, PROXY, password=PASSWORD, forwarded="203.0.113.8")
    assert (known.status_code, link.status_code, other.status_code) == (201, 201, 201)


async def test_a_forwarded_header_of_an_untrusted_peer_is_ignored(
    server: AppServer, clock: StillClock
) -> None:
    answers = await _log_in_concurrently(
        [
            _log_in(server, "203.0.113.7", f"user{index}", forwarded=f"198.51.100.{index}")
            for index in range(PER_ADDRESS.at_once + 1)
        ]
    )
    assert _list_statuses(answers) == [401] * PER_ADDRESS.at_once + [429]


async def test_logins_beyond_the_verification_queue_are_refused_without_delay(
    server: AppServer,
    clock: StillClock,
    verified_hashes: list[str | None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Many addresses guess at many accounts; the number of logins that wait for
    argon2 is limited. A known browser is admitted behind those that wait.
    """
    cookie = await _log_in_known_browser(server)
    verified_hashes.clear()
    limits: LoginLimits = server.app.state.login_limits
    before = limits.admitted
    go_on, verify = threading.Event(), passwords._verify

    def verify_later(stored: str | None, password: str) -> passwords.Verification:
        go_on.wait()
        return verify(stored, password)

    monkeypatch.setattr(passwords, "_verify", verify_later)
    attack = [
        asyncio.create_task(_log_in(server, f"203.0.113.{index}", f"user{index}"))
        for index in range(100)
    ]
    try:
        await until(lambda: sum(task.done() for task in attack) == 100 - MAX_WAITING)
        known = asyncio.create_task(_log_in(server, "192.0.2.1", password=PASSWORD, cookie=cookie))
        await until(lambda: limits.admitted == before + MAX_WAITING + 1)
    finally:
        go_on.set()
    assert (await known).status_code == 201
    answers = [await task for task in attack]
    assert len(verified_hashes) == MAX_WAITING + 1
    assert verified_hashes[-1] is not None, "the known browser's login is verified last"
    busy = [answer for answer in answers if answer.status_code == 503]
    assert len(busy) == 100 - MAX_WAITING
    assert busy[0].json()["code"] == "logins_busy"
    assert busy[0].headers["retry-after"] == "1"


async def test_the_cookie_of_one_account_is_invalid_for_another(
    server: AppServer, clock: StillClock
) -> None:
    cookie = await _log_in_known_browser(server)
    await _add_user(server, "ann", passwords._HASHER.hash(PASSWORD))
    guesses = [_log_in(server, f"203.0.113.{index}", "ann") for index in range(PER_ACCOUNT.at_once)]
    assert _list_statuses(await _log_in_concurrently(guesses)) == [401] * PER_ACCOUNT.at_once
    hers = await _log_in(server, "192.0.2.1", "ann", PASSWORD, cookie=cookie)
    assert hers.status_code == 429
    assert (await _log_in(server, "192.0.2.1", "admin", PASSWORD, cookie=cookie)).is_success


async def test_a_stolen_cookie_gives_few_guesses(
    server: AppServer, clock: StillClock, verified_hashes: list[str | None]
) -> None:
    cookie = await _log_in_known_browser(server)
    verified_hashes.clear()
    answers = await _log_in_concurrently(
        [_log_in(server, f"203.0.113.{index}", cookie=cookie) for index in range(30)]
    )
    assert _list_statuses(answers).count(401) == len(verified_hashes) == 20, (
        "its own, and an unknown one's"
    )
    assert _list_statuses(answers).count(429) == 10


@pytest.mark.parametrize("tls", [False, True])
async def test_the_cookie_is_same_site_and_http_only(server: AppServer, tls: bool) -> None:
    state, settings = server.app.state, server.app.state.settings
    address = {"public_url": "https://127.0.0.1" if tls else ""}
    state.settings = settings.model_copy(update=address)
    try:
        answer = await _redeem(server, "192.0.2.1")
    finally:
        state.settings = settings
    (cookie,) = (
        text for text in answer.headers.get_list("set-cookie") if "palestra_device" in text
    )
    name, *attributes = cookie.split("; ")
    assert name.startswith("__Host-palestra_device=v1.usr_" if tls else "palestra_device=v1.usr_")
    secure = {"Secure"} if tls else set()
    assert set(attributes) == {"HttpOnly", "Max-Age=15552000", "Path=/", "SameSite=lax"} | secure


async def test_logging_out_leaves_the_browser_known(server: AppServer) -> None:
    client, csrf = await server.browser()
    async with contextlib.aclosing(client):
        headers = {"Origin": ORIGIN, "X-CSRF-Token": csrf}
        assert (await client.delete("/api/v1/session", headers=headers)).status_code == 204
        assert "palestra_session" not in client.cookies
        assert "palestra_device" in client.cookies


async def test_codes_of_links_are_not_counted_as_guesses(server: AppServer) -> None:
    """A code has 256 bits; a wrong one costs one read of the database."""
    from app.domain.secrets import generate_secret

    transport = httpx.ASGITransport(server.app, client=("203.0.113.7", 1))
    async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as client:
        for code in [generate_secret("pll") for _ in range(30)]:
            answer = await client.post("/api/v1/session:redeem", json={"code": code})
            assert answer.status_code == 401
    assert (await _redeem(server, "203.0.113.7")).status_code == 201


async def test_unknown_names_take_as_long_as_known_ones(
    server: AppServer, clock: StillClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers come at a multiple of a time, however long the verification took.

    The benchmark measures the distributions in full.
    """
    await _add_user(server, "old", passwords._HASHER.hash(PASSWORD))
    verify = passwords._verify
    durations = {"admin": 0.03, "old": 0.01, "nobody": 0.2, "tired": FAILURE_SECONDS + 0.01}
    answered_after = {}
    for index, (name, seconds) in enumerate(durations.items()):

        def verify_for(
            stored: str | None, password: str, seconds: float = seconds
        ) -> passwords.Verification:
            clock.seconds += seconds
            return verify(stored, password)

        monkeypatch.setattr(passwords, "_verify", verify_for)
        began = clock.seconds
        answer = await _log_in(server, f"203.0.113.{index}", name)
        assert answer.status_code == 401
        answered_after[name] = (clock.seconds - began) / FAILURE_SECONDS
    assert answered_after == pytest.approx({"admin": 1, "old": 1, "nobody": 1, "tired": 2})


async def test_verifying_an_unknown_user_takes_the_work_of_a_wrong_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    verified: list[str] = []
    hasher = passwords._HASHER

    def verify(stored: str, password: str) -> bool:
        verified.append(stored)
        return hasher.verify(stored, password)

    monkeypatch.setattr(passwords, "_HASHER", SimpleNamespace(verify=verify))
    for stored in (hasher.hash(PASSWORD), None):
        assert not passwords._verify(stored, "wrong").is_correct
    of_known, of_unknown = map(extract_parameters, verified)
    assert of_known == of_unknown


async def _add_user(served: AppServer, name: str, password_hash: str) -> None:
    user = UserRow(id=new_id("usr"), name=name, password_hash=password_hash)
    async with served.database.write() as session:
        session.add(user)
        await session.flush()
        session.add(
            MembershipRow(project_id=served.world.project_id, user_id=user.id, role="member")
        )

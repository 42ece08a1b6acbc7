"""Rules for new passwords, their hashes, and the renewal of hashes with other parameters."""

import pytest
from argon2 import PasswordHasher
from zxcvbn.frequency_lists import FREQUENCY_LISTS

from app.db.engine import Database
from app.db.models import UserRow
from app.domain.errors import InvalidError, UnauthenticatedError
from app.services.access import logins, passwords
from app.services.audit.audit_log import RequestOrigin
from tests.support.server_fixture import World

PASSWORD = "a long enough password"
CHEAPER = PasswordHasher(time_cost=1, memory_cost=8_192, parallelism=1)
COMMON = [word for word in FREQUENCY_LISTS["passwords"] if len(word) >= passwords.SHORTEST]


@pytest.mark.parametrize(
    "password",
    [
        "password1234",
        "Password123456!",
        "P@ssw0rd2026",
        "123456789012",
        "qwertyuiop12",
        "1qaz2wsx3edc",
        "letmeinletmein",
        "adminadminadmin",
        "motherfucker",
        "Palestra2026!",
        "aaaaaaaaaaaa",
        "november24112026",
        "mylittlepony1",
        "Magdalena.Kowalska",
        "magdalena.kowalska1",
        "password" * 128,
    ],
)
async def test_passwords_that_are_easy_to_guess_are_refused(password: str) -> None:
    with pytest.raises(InvalidError, match="too easy to guess") as refused:
        await passwords.hash_new(password, "magdalena.kowalska")
    assert refused.value.code == "weak_password"
    assert refused.value.pointer == "/password"
    assert password not in str(refused.value)


async def test_the_list_of_common_passwords_is_refused() -> None:
    assert len(COMMON) > 200
    for password in COMMON:
        with pytest.raises(InvalidError, match="too easy to guess"):
            await passwords.hash_new(password)


@pytest.mark.parametrize("length", [0, 11, 1_025])
async def test_a_password_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(InvalidError, match=f"12 to 1,024 characters; this one has {length:,}"):
        await passwords.hash_new(("kX9#vB2!qLmZ" * 100)[:length])


@pytest.mark.parametrize(
    "password",
    [PASSWORD, "kX9#vB2!qLmZ", "four unrelated owls sing", ("kX9#vB2!qLmZ" * 100)[:1024]],
)
async def test_a_good_password_is_hashed_and_recognised(password: str) -> None:
    stored = await passwords.hash_new(password, "admin")
    assert stored.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    assert await passwords.verify(stored, password) == passwords.Verification(True)
    assert not (await passwords.verify(stored, password + "x")).is_correct


async def test_an_invalid_stored_hash_refuses_every_password() -> None:
    for stored in (None, "", "x", "$argon2id$v=19$m=19456,t=2,p=1$broken"):
        assert not (await passwords.verify(stored, PASSWORD)).is_correct


def test_the_hash_for_unknown_users_has_the_parameters_of_the_others() -> None:
    assert not passwords._HASHER.check_needs_rehash(passwords._SUBSTITUTE_HASH)


async def test_a_login_renews_a_hash_with_other_parameters(
    database: Database, world: World
) -> None:
    old = CHEAPER.hash(PASSWORD)
    await _store_hash(database, world, old)
    with pytest.raises(UnauthenticatedError):
        await _log_in(database, "wrong")
    assert await _read_stored_hash(database, world) == old
    await _log_in(database, PASSWORD)
    renewed = await _read_stored_hash(database, world)
    assert renewed.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    await _log_in(database, PASSWORD)
    assert await _read_stored_hash(database, world) == renewed, "one with today's parameters stays"


async def test_a_password_changed_during_the_login_is_refused(
    database: Database, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _store_hash(database, world, CHEAPER.hash(PASSWORD))
    verify = passwords.verify

    async def change_meanwhile(stored: str | None, password: str) -> passwords.Verification:
        verified = await verify(stored, password)
        await _store_hash(database, world, CHEAPER.hash("another password"))
        return verified

    monkeypatch.setattr(passwords, "verify", change_meanwhile)
    with pytest.raises(UnauthenticatedError):
        await _log_in(database, PASSWORD)
    assert CHEAPER.verify(await _read_stored_hash(database, world), "another password")


async def _log_in(database: Database, password: str) -> None:
    await logins.log_in(
        database, await logins.find_account(database, "admin"), password, RequestOrigin()
    )


async def _store_hash(database: Database, world: World, stored: str) -> None:
    async with database.write() as session:
        user = await session.get_one(UserRow, world.admin.user_id)
        user.password_hash = stored


async def _read_stored_hash(database: Database, world: World) -> str:
    async with database.read() as session:
        return (await session.get_one(UserRow, world.admin.user_id)).password_hash or ""

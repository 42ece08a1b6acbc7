"""Some requests of a person run at the same time; further ones wait, then are refused."""

import asyncio

import pytest

from app.api.turns import WAIT_SECONDS, Turns
from app.domain.errors import TooManyRequestsError
from tests.support.waiting import until

MAX_CONCURRENT = 2


def make_turns(wait_seconds: float = WAIT_SECONDS) -> Turns:
    return Turns(MAX_CONCURRENT, "too_many_reads", "lists", wait_seconds)


class Reading:
    """Reads of users that run until a test ends them."""

    def __init__(self, reads: Turns) -> None:
        self.reads = reads
        self.running: list[str] = []
        self._may_end = asyncio.Event()

    async def read(self, user: str) -> None:
        async with self.reads.take_turn(user):
            self.running.append(user)
            await self._may_end.wait()
            self.running.remove(user)

    def start(self, user: str) -> asyncio.Task[None]:
        return asyncio.create_task(self.read(user))

    def end(self) -> None:
        self._may_end.set()


async def test_two_reads_of_a_person_run_and_the_next_wait() -> None:
    reading = Reading(make_turns())
    tasks = [reading.start("ada") for _ in range(5)]
    other = reading.start("grace")
    await until(lambda: "grace" in reading.running, "the read of another person runs")
    assert reading.running.count("ada") == MAX_CONCURRENT
    reading.end()
    await asyncio.gather(*tasks, other)


async def test_a_read_that_waits_too_long_is_refused() -> None:
    reading = Reading(make_turns(0.01))
    tasks = [reading.start("ada") for _ in range(MAX_CONCURRENT)]
    await until(lambda: len(reading.running) == MAX_CONCURRENT, "two reads run")
    with pytest.raises(TooManyRequestsError, match=r"more than 0\.01 s") as refused:
        await reading.read("ada")
    assert (refused.value.code, refused.value.extra) == ("too_many_reads", {"retry_after": 1})
    reading.end()
    await asyncio.gather(*tasks)


async def test_reads_that_are_cancelled_or_fail_give_their_place_away() -> None:
    reading = Reading(make_turns())
    tasks = [reading.start("ada") for _ in range(MAX_CONCURRENT + 1)]
    await until(lambda: len(reading.running) == MAX_CONCURRENT, "two reads run")
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for _ in range(MAX_CONCURRENT + 1):
        with pytest.raises(ZeroDivisionError):
            async with reading.reads.take_turn("ada"):
                raise ZeroDivisionError
    async with reading.reads.take_turn("ada"), reading.reads.take_turn("ada"):
        pass

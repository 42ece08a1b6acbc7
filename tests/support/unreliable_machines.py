"""A broker that drops, repeats, reorders and delays, and workers that die and lose answers.

Both are in this process, and so is the server that they talk to: its services and its daemons on a
SQLite database, with a clock that only the caller moves.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from app.daemons.dispatcher import DispatchError
from app.domain.errors import ConflictError
from app.services.attempts import claims
from app.services.jobs.dispatch_plan import AssignedJob
from palestra.contract.states import Cause, Order, Outcome
from palestra.contract.work_order import Claim
from tests.support.server_fixture import World

ENDS: Final = {
    "succeeded": (Outcome.SUCCEEDED, Cause.BUDGET),
    "user's fault": (Outcome.FAILED, Cause.USER_EXCEPTION),
    "killed": (Outcome.FAILED, Cause.HOST_OUT_OF_MEMORY),
    "lost": (Outcome.LOST, Cause.TRAINER_KILLED),
    "drained": (Outcome.DRAINED, Cause.DRAIN),
}
"""How an attempt may end by itself."""
_ORDERED: Final = {
    Order.PAUSE: (Outcome.PAUSED, Cause.USER),
    Order.CANCEL: (Outcome.CANCELLED, Cause.USER),
    Order.DRAIN: (Outcome.DRAINED, Cause.DRAIN),
}


class UnreliableBroker:
    """Keeps messages until the test delivers them, in any order and any number of times."""

    def __init__(self) -> None:
        self.messages: list[AssignedJob] = []
        self.is_reachable = True

    def send(self, job: AssignedJob) -> None:
        """Keeps a dispatch message.

        Raises:
            DispatchError: While the broker is not reachable.
        """
        if not self.is_reachable:
            raise DispatchError("the broker cannot be reached")
        self.messages.append(job)


@dataclass
class LocalAttempt:
    """An attempt as its machine sees it."""

    attempt_id: str
    slot: int
    is_supervised: bool = True


@dataclass
class Machine:
    """A worker with the attempts that it knows of."""

    world: World
    worker_id: str
    queue: str
    slots: int
    attempts: list[LocalAttempt] = field(default_factory=list)
    asking: dict[int, Claim] = field(default_factory=dict)
    """Claims whose answer was lost, by the slot that each holds meanwhile."""

    async def answer(self, message: AssignedJob, *, loses_answer: bool) -> None:
        """Claims the job of a message on a free slot, if there is one."""
        busy = {one.slot for one in self.attempts} | set(self.asking)
        free = [slot for slot in range(self.slots) if slot not in busy]
        if free:
            claim = Claim(
                job_id=message.job_id,
                expected_attempt=message.expected_attempt,
                worker_id=self.worker_id,
                slot=free[0],
            )
            await self._claim(claim, loses_answer=loses_answer)

    async def repeat_claim(self, slot: int, *, loses_answer: bool) -> None:
        """Sends a claim again whose answer was lost."""
        await self._claim(self.asking.pop(slot), loses_answer=loses_answer)

    async def _claim(self, claim: Claim, *, loses_answer: bool) -> None:
        world = self.world
        try:
            async with world.database.write() as session:
                found = await claims.claim(
                    session, world.own[self.worker_id], claim, world.settings
                )
        except ConflictError:
            return
        if loses_answer:
            self.asking[claim.slot] = claim
        else:
            self.attempts.append(LocalAttempt(found.work_order.attempt_id, claim.slot))

    async def renew(self, attempt: LocalAttempt) -> None:
        """Renews a lease, and does what the answer orders."""
        order = (await self.world.renew(attempt.attempt_id)).order
        if order is Order.STALE:
            self.attempts.remove(attempt)
        elif order in _ORDERED:
            await self.end(attempt, *_ORDERED[order])

    async def end(self, attempt: LocalAttempt, outcome: Outcome, cause: Cause) -> None:
        """Releases an attempt, twice, as if the first answer had been lost."""
        self.attempts.remove(attempt)
        for _ in range(2):
            try:
                await self.world.release(attempt.attempt_id, outcome, cause)
            except ConflictError as refused:
                assert refused.code == "stale_attempt"  # noqa: PT017 - the code is what counts

    async def send_heartbeat(self) -> None:
        """Tells the server which attempts are supervised and which have lost their supervisor."""
        live = [one.attempt_id for one in self.attempts if one.is_supervised]
        dead = [one.attempt_id for one in self.attempts if not one.is_supervised]
        busy = [*(one.slot for one in self.attempts), *self.asking]
        await self.world.send_heartbeat(self.worker_id, live=live, dead=dead, busy=busy)
        self.attempts = [one for one in self.attempts if one.is_supervised]

    def restart(self) -> None:
        """Ends the worker's own process: claims without an answer are forgotten."""
        self.asking.clear()

    def supervised(self) -> Iterator[LocalAttempt]:
        """Yields the attempts that have a supervisor."""
        yield from [one for one in self.attempts if one.is_supervised]

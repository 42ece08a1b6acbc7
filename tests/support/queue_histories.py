"""Histories of the queue, drawn by Hypothesis: what holds in each of them.

At most one attempt per run is live; an ended job never changes; what was answered with 201 has
rows; fences only rise; and once the faults are over, every job that has not ended does.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from sqlalchemy import event, func, select, text

from app.daemons import uptime
from app.daemons.dispatcher import Dispatcher, DispatchError
from app.daemons.reaper import Reaper
from app.db.clock import SKEW
from app.db.engine import Database
from app.db.models import AttemptRow, AttemptRunRow, Base, JobRow, RunRow
from app.domain.errors import DomainError
from app.services.queue.dispatcher_lease import LeaseLostError
from palestra.contract.states import FINAL_JOB_STATES, JobState
from tests.support.server_fixture import World, advance_clock, make_definition, make_world
from tests.support.unreliable_machines import ENDS, LocalAttempt, Machine, UnreliableBroker

Value = TypeVar("Value")
LIVE: Final = ("starting", "running")
RECLAIM_SECONDS: Final = 20.0
_STEP_SECONDS: Final = 5.0
_CALM_ROUNDS: Final = 60
_NUMBER: Final = st.integers(0, 1_000)
_END: Final = st.sampled_from(sorted(ENDS))


class Installation:
    """The database of all histories of a process, and the loop on which it is used."""

    def __init__(self, url: str) -> None:
        self.runner = asyncio.Runner()
        self.database = Database(url)
        # Nothing here survives the process, so nothing has to reach the disk.
        event.listen(self.database.writer.sync_engine, "connect", _do_not_sync)

    def run(self, work: Coroutine[Any, Any, Value]) -> Value:
        """Runs a coroutine to its end."""
        return self.runner.run(work)

    async def clear(self) -> None:
        """Deletes all rows."""
        async with self.database.write() as session:
            await session.execute(text("PRAGMA defer_foreign_keys=ON"))
            for table in reversed(Base.metadata.sorted_tables):
                await session.execute(table.delete())

    def close(self) -> None:
        """Closes the database."""
        self.run(self.database.dispose())
        self.runner.close()


def _do_not_sync(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA synchronous=OFF")


class Clock:
    """Monotonic time of the daemons, which advances together with the database's."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds

    def advance(self, seconds: float) -> None:
        """Lets time pass."""
        self.seconds += seconds
        advance_clock(seconds)


class QueueHistory(RuleBasedStateMachine):
    """One history; `installation` is set by whoever runs it."""

    installation: Installation

    world: World
    machines: list[Machine]

    def __init__(self) -> None:
        super().__init__()
        SKEW.seconds = 0.0
        self.clock = Clock()
        self.broker = UnreliableBroker()
        self.created: dict[str, int] = {}
        """Number of jobs of each experiment that was answered with 201."""
        self.ended: dict[str, str] = {}
        self.fences: dict[str, int] = {}

    @initialize(slots=st.lists(st.integers(1, 2), min_size=2, max_size=2))
    def start(self, slots: list[int]) -> None:
        """Starts with a project of two persons and two machines."""
        self._run(self._start(slots))

    # What persons do

    @rule(seeds=st.integers(1, 3), person=st.booleans(), priority=st.integers(-1, 1))
    def submit(self, seeds: int, person: bool, priority: int) -> None:
        """Submits an experiment."""
        if len(self.created) < 6:
            self._run(self._submit(seeds, person, priority))

    @rule(verb=st.sampled_from(["pause", "resume", "cancel"]), which=_NUMBER)
    def ask(self, verb: str, which: int) -> None:
        """Pauses, resumes or cancels a job, where its state permits it."""
        if jobs := self._read_jobs():
            job_id = sorted(jobs)[which % len(jobs)]
            self._try(getattr(self.world, verb)(job_id))

    # What the server does

    @rule()
    def dispatch(self) -> None:
        """Lets the dispatcher decide once."""
        self._run(self._dispatch())

    @rule()
    def restart_daemons(self) -> None:
        """Ends the daemons, and starts others."""
        self._start_daemons()

    @rule(reachable=st.booleans())
    def set_broker(self, reachable: bool) -> None:
        """Makes the broker unreachable for the dispatcher, or reachable."""
        self.broker.is_reachable = reachable

    @rule(steps=st.integers(1, 8), beats=st.booleans())
    def pass_time(self, steps: int, beats: bool) -> None:
        """Lets time pass, with the machines' heartbeats or in silence."""
        self._run(self._pass_time(steps, beats))

    # What the broker does

    @precondition(lambda self: self.broker.messages)
    @rule(which=_NUMBER, keeps=st.booleans(), loses_answer=st.booleans())
    def deliver(self, which: int, keeps: bool, loses_answer: bool) -> None:
        """Delivers any message; with `keeps` it is delivered again later."""
        messages = self.broker.messages
        message = messages[which % len(messages)]
        if not keeps:
            messages.remove(message)
        machine = next(one for one in self.machines if one.queue == message.queue)
        self._run(machine.answer(message, loses_answer=loses_answer))

    @precondition(lambda self: self.broker.messages)
    @rule(which=_NUMBER)
    def drop(self, which: int) -> None:
        """Loses a message."""
        self.broker.messages.pop(which % len(self.broker.messages))

    # What the machines do

    @precondition(lambda self: any(one.asking for one in self.machines))
    @rule(loses_answer=st.booleans())
    def repeat_claim(self, loses_answer: bool) -> None:
        """Repeats a claim whose answer was lost."""
        machine = next(one for one in self.machines if one.asking)
        slot = next(iter(machine.asking))
        self._run(machine.repeat_claim(slot, loses_answer=loses_answer))

    @rule(which=_NUMBER)
    def renew(self, which: int) -> None:
        """Renews the lease of an attempt."""
        self._with_attempt(which, lambda machine, attempt: machine.renew(attempt))

    @rule(which=_NUMBER, how=_END)
    def end_attempt(self, which: int, how: str) -> None:
        """Ends an attempt."""
        self._with_attempt(which, lambda machine, attempt: machine.end(attempt, *ENDS[how]))

    @rule(which=_NUMBER)
    def kill_supervisor(self, which: int) -> None:
        """Kills the supervisor of an attempt, which its machine reports later."""
        if found := self._list_supervised():
            found[which % len(found)][1].is_supervised = False

    @rule(which=st.integers(0, 1))
    def send_heartbeat(self, which: int) -> None:
        """Sends the heartbeat of a machine."""
        self._run(self.machines[which].send_heartbeat())

    @rule(which=st.integers(0, 1))
    def restart_worker(self, which: int) -> None:
        """Restarts the process of a worker; its supervisors go on."""
        self.machines[which].restart()

    # What holds at any time

    @invariant()
    def check(self) -> None:
        """Checks what holds after each step."""
        if hasattr(self, "world"):
            self._run(self._check())

    def teardown(self) -> None:
        """Ends all faults: every job that has not ended makes progress until it has."""
        try:
            if hasattr(self, "world"):
                self._run(self._calm_down())
                self._run(self._check())
        finally:
            SKEW.seconds = 0.0

    # Private

    def _run(self, work: Coroutine[Any, Any, Value]) -> Value:
        return self.installation.run(work)

    def _try(self, work: Coroutine[Any, Any, object]) -> None:
        try:
            self._run(work)
        except DomainError as refusal:
            assert refusal.code in {"already_final", "invalid_transition"}, refusal  # noqa: PT017

    def _start_daemons(self) -> None:
        self.dispatcher = Dispatcher(self.installation.database, self.broker, assignment_seconds=30)
        self.reaper = Reaper(
            self.installation.database, reclaim_seconds=RECLAIM_SECONDS, monotonic=self.clock
        )

    async def _start(self, slots: list[int]) -> None:
        await self.installation.clear()
        self.world = await make_world(self.installation.database)
        self._start_daemons()
        self.machines = []
        for number, count in enumerate(slots):
            answer = await self.world.register(name=f"w{number}", slots=count)
            self.machines.append(Machine(self.world, answer.worker_id, answer.queue, count))

    async def _submit(self, seeds: int, person: bool, priority: int) -> None:
        number = len(self.created)
        detail, is_new = await self.world.submit(
            make_definition(loop={"env_steps": 10_000 + number}),
            by=self.world.other if person else self.world.admin,
            seeds=list(range(seeds)),
            priority=priority,
            resources={"pack": "off"},
        )
        assert is_new
        self.created[detail.id] = seeds

    async def _dispatch(self) -> None:
        try:
            await self.dispatcher.tick()
        except (DispatchError, LeaseLostError):
            return

    async def _pass_time(self, steps: int, beats: bool) -> None:
        for _ in range(steps):
            self.clock.advance(_STEP_SECONDS)
            await uptime.count_once(self.installation.database, _STEP_SECONDS)
            if beats:
                for machine in self.machines:
                    await machine.send_heartbeat()
            await self.reaper.tick()

    def _list_supervised(self) -> list[tuple[Machine, LocalAttempt]]:
        return [(machine, one) for machine in self.machines for one in machine.supervised()]

    def _with_attempt(
        self, which: int, act: Callable[[Machine, LocalAttempt], Coroutine[Any, Any, None]]
    ) -> None:
        if found := self._list_supervised():
            self._run(act(*found[which % len(found)]))

    def _read_jobs(self) -> dict[str, str]:
        return self._run(self._load_jobs())

    async def _load_jobs(self) -> dict[str, str]:
        async with self.installation.database.read() as session:
            return dict((await session.execute(select(JobRow.id, JobRow.state))).all())

    async def _check(self) -> None:
        async with self.installation.database.read() as session:
            live = (
                select(AttemptRunRow.run_id)
                .join(AttemptRow, AttemptRow.id == AttemptRunRow.attempt_id)
                .where(AttemptRow.state.in_(LIVE))
            )
            twice = live.group_by(AttemptRunRow.run_id).having(func.count() > 1)
            assert (await session.scalars(twice)).all() == []
            rows = select(RunRow.id, RunRow.experiment_id, RunRow.fence)
            runs = (await session.execute(rows)).all()
        states = await self._load_jobs()
        for experiment_id, seeds in self.created.items():
            assert sum(row.experiment_id == experiment_id for row in runs) == seeds
        assert len(states) == sum(self.created.values())
        for job_id, state in self.ended.items():
            assert states[job_id] == state, f"{job_id} had ended as {state}"
        self.ended = {one: state for one, state in states.items() if state in FINAL_JOB_STATES}
        for row in runs:
            assert row.fence >= self.fences.get(row.id, 0)
            self.fences[row.id] = row.fence

    async def _calm_down(self) -> None:
        self.broker.is_reachable = True
        for _ in range(_CALM_ROUNDS):
            states = await self._load_jobs()
            for job_id, state in states.items():
                if state == JobState.PAUSED:
                    await self.world.resume(job_id)
            if set(states.values()) <= FINAL_JOB_STATES:
                return
            await self._work_once()
        raise AssertionError(f"jobs make no progress: {await self._load_jobs()}")

    async def _work_once(self) -> None:
        await self._dispatch()
        for machine in self.machines:
            for slot in tuple(machine.asking):
                await machine.repeat_claim(slot, loses_answer=False)
        while self.broker.messages:
            message = self.broker.messages.pop(0)
            machine = next(one for one in self.machines if one.queue == message.queue)
            await machine.answer(message, loses_answer=False)
        for machine, attempt in self._list_supervised():
            await machine.renew(attempt)
            if attempt in machine.attempts:
                await machine.end(attempt, *ENDS["succeeded"])
        await self._pass_time(8, beats=True)

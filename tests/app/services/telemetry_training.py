"""A run with a running attempt, and helpers that send its telemetry and read it back."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import select

from app.db.engine import Database
from app.domain.errors import (
    DomainError,
)
from app.services.telemetry import batches
from tests.support.records import Json, make_delivery
from tests.support.server_fixture import World
from tests.support.stored_points import read_columns


@dataclass
class Training:
    """A run with a running attempt, whose telemetry a test sends and reads back."""

    world: World
    database: Database
    run_id: str
    job_id: str
    worker_id: str
    attempt_id: str

    async def send(
        self, first_seq: int, content: Sequence[Json], *, attempt_id: str | None = None
    ) -> int:
        async with self.database.write() as session:
            return await batches.take(
                session, make_delivery(attempt_id or self.attempt_id, first_seq, content)
            )

    async def send_refused(
        self, first_seq: int, content: Sequence[Json], **options: Any
    ) -> DomainError:
        with pytest.raises(DomainError) as caught:
            await self.send(first_seq, content, **options)
        return caught.value

    async def read_values(self, name: str, *, run_id: str | None = None) -> list[float]:
        async with self.database.read() as session:
            found = await read_columns(session, run_id or self.run_id, name)
            return [value for columns in found for value in columns.value.tolist()]

    async def count(self, model: Any) -> int:
        async with self.database.read() as session:
            return len((await session.scalars(select(model))).all())


@pytest.fixture
async def training(world: World, database: Database) -> Training:
    registered = await world.register()
    job = await world.submit_one_job()
    claimed = await world.start(job.id, registered.worker_id)
    order = claimed.work_order
    return Training(
        world, database, order.runs[0].run_id, job.id, registered.worker_id, order.attempt_id
    )


async def get_acked_seq(training: Training) -> int:
    return (await training.world.run(training.run_id)).attempts[0].acked_seq

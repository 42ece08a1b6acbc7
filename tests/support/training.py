"""Runs whose attempts send scripted records, without a trainer."""

from collections.abc import Sequence

from app.services.telemetry import batches
from palestra.contract.resources import JobView
from palestra.contract.states import Cause, Outcome
from tests.support import records
from tests.support.records import Json, make_delivery
from tests.support.server_fixture import World

End = tuple[Outcome, Cause]


async def train(
    world: World,
    job: JobView,
    place: tuple[str, int],
    content: Sequence[Json],
    end: End | None = None,
) -> str:
    """Starts a job of one run, sends records and ends the attempt.

    Args:
        world: The project.
        job: A queued job.
        place: Worker ID and slot.
        content: Records without a run ID, which is added.
        end: Outcome and cause of the attempt; `None` leaves it running.
    """
    order = (await world.start(job.id, place[0], slot=place[1])).work_order
    run_id = order.runs[0].run_id
    sent = [{**record, "run": run_id} for record in content]
    async with world.database.write() as session:
        await batches.take(session, make_delivery(order.attempt_id, 1, sent))
    if end is not None:
        await world.release(order.attempt_id, *end, last_seq=len(sent))
    return run_id


def make_evaluations(*means: float, every: int = 10) -> list[Json]:
    """Returns evaluations of one episode each, at multiples of `every` env_steps."""
    return [records.make_evaluation("", every * (i + 1), mean) for i, mean in enumerate(means)]

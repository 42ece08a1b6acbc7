"""A task that does nothing with a dispatch message, for a bare Celery worker and for `rq`."""

import os
import time
from pathlib import Path

ENDS_VARIABLE = "BARE_TASKS_ENDS"
BROKER_VARIABLE = "BARE_TASKS_BROKER"
TASK = "bare.task"
QUEUE = "bare"


def end(*, job_id: str, expected_attempt: int) -> None:
    """Appends the time of its end to a file."""
    assert job_id
    assert expected_attempt > 0
    with Path(os.environ[ENDS_VARIABLE]).open("ab", buffering=0) as file:
        file.write(f"{time.monotonic()}\n".encode())


def make_app() -> object:
    """Returns a Celery application with the settings of Palestra's workers."""
    from celery import Celery

    from workers.host.broker import SETTINGS

    app = Celery("bare", broker=os.environ[BROKER_VARIABLE], set_as_current=False)
    app.conf.update(SETTINGS, task_default_queue=QUEUE)
    app.task(name=TASK, ignore_result=True)(end)
    return app


def main() -> None:
    """Runs a Celery worker."""
    app = make_app()
    app.Worker(  # type: ignore[attr-defined]
        pool="prefork",
        concurrency=4,
        optimization="fair",
        loglevel="WARNING",
        quiet=True,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        task_events=False,
        hostname=f"bare@{os.getpid()}",
    ).start()


if __name__ == "__main__":
    # Under its own name, so that the functions are those that `rq` imports too.
    from benchmarks._queue.bare_tasks import main as run

    run()

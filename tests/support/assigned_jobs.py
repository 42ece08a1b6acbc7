"""Assigns jobs in the SQLite database of a server that runs without a dispatcher."""

import sqlite3
from pathlib import Path

from tests.support.waiting import PATIENCE_SECONDS


def assign_job(directory: Path, job_id: str, worker_id: str) -> None:
    """Assigns a queued job to a worker, so that the worker may claim it.

    Args:
        directory: Data directory of the server.
        job_id: The job.
        worker_id: The worker.
    """
    with sqlite3.connect(directory / "palestra.db", timeout=PATIENCE_SECONDS) as connection:
        connection.execute(
            "UPDATE jobs SET assigned_worker_id = ?, charged_weight = 1.0 WHERE id = ?",
            (worker_id, job_id),
        )
    connection.close()

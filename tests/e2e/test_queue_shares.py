"""A short run of `python -m benchmarks.queue_shares`: real workers, attempts that hold a slot."""

import pytest

from benchmarks import queue_shares
from benchmarks.queue_shares import SHARES
from tests.support.postgres import PostgresServer
from tests.support.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.processes


def test_all_jobs_end_and_who_submits_one_job_after_many_is_next(
    postgres_server: PostgresServer, worker_id: str
) -> None:
    url = postgres_server.create_migrated_database(f"shares_{worker_id}")
    with queue_shares.run_installation(url, slots=5, hold_seconds=(0.1, 0.4)) as installation:
        stack = installation.stack
        queue_shares.queue_all(installation, jobs=50, trainings=3)
        queued = int(stack.query("SELECT count(*) FROM jobs")[0][0])
        assert queue_shares.wait_for_ends(stack, PATIENCE_SECONDS) == queued
        assert {one.project for one in queue_shares.read_intervals(stack)} == set(SHARES)
        assert queue_shares.report_later_person(installation, jobs=40, later=0)

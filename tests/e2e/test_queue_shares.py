"""A short run of `python -m benchmarks.queue_shares`: real workers, attempts that hold a slot."""

import pytest

from benchmarks import queue_shares
from benchmarks.queue_shares import SHARES

pytestmark = pytest.mark.processes


def test_all_jobs_end_and_who_submits_one_job_after_many_is_next() -> None:
    with queue_shares.run_installation(slots=5) as installation:
        stack = installation.stack
        queue_shares.queue_all(installation, jobs=100, trainings=5)
        queued = int(stack.query("SELECT count(*) FROM jobs")[0][0])
        assert queue_shares.wait_for_ends(stack, 240) == queued
        assert {one.project for one in queue_shares.read_intervals(stack)} == set(SHARES)
        assert queue_shares.report_later_person(installation, jobs=40, later=3)

"""A network that loses answers and packets between a worker and its server."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.histories import cartpole, succeeds
from tests.support.proxy import Proxy, running_proxy
from tests.support.stack import Stack, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.timeout(300)]

QUICK = {"PALESTRA_HEARTBEAT_SECONDS": "0.5"}


@pytest.fixture
def proxied() -> Iterator[tuple[Stack, Proxy]]:
    """A stack whose worker reaches the server through a proxy."""
    directory = Path(tempfile.mkdtemp(prefix="plr-", dir="/tmp"))
    stack = Stack(directory, settings=QUICK)
    try:
        with running_proxy(stack.port) as proxy:
            stack.worker_url = proxy.url
            with stack:
                yield stack, proxy
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def test_lost_claim_answers_cost_no_attempt_and_a_claim_given_up_is_queued_within_seconds(
    proxied: tuple[Stack, Proxy],
) -> None:
    """Line 15.2: no job stays `starting` because the answer to its claim was cut."""
    stack, proxy = proxied
    proxy.answers_to_lose = 2
    (run,) = stack.submit(cartpole(1_000))
    done = succeeds(stack, run["id"])
    assert (proxy.lost_answers, len(done["attempts"])) == (2, 1)
    proxy.answers_to_lose = 1_000
    (other,) = stack.submit(cartpole(1_000), seeds=[7])[-1:]
    wait_for(lambda: "doorbell.server_away" in stack.log("worker"), 60, "the worker gives the claim up")
    proxy.answers_to_lose = 0
    queued = stack.wait_for_run(other["id"], lambda run: run["attempts"][0]["state"] == "lost", 10, "the claim is given up")
    assert queued["attempts"][0]["cause"] == "worker_lost"
    assert len(succeeds(stack, other["id"])["attempts"]) == 2

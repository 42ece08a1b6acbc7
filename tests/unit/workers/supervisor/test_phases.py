"""The phases that a supervisor states before its trainer trains."""

import pytest

from tests.support.waiting import wait_for

pytestmark = pytest.mark.processes


def test_the_server_hears_at_once_of_starting_and_compiling(start_supervisor, server):
    """The renewals come early: within the test none is due by its time."""
    supervised = start_supervisor("compile:5", renew_seconds=3_600)
    for phase, mode in (("starting", None), ("compiling", "compiled"), (None, "compiled")):
        wait_for(
            lambda stated=(phase, mode): (
                server.renewals
                and (server.renewals[-1].get("phase"), server.renewals[-1].get("compile")) == stated
            ),
            f"a renewal of the phase {phase}",
        )
        (supervised.directory.root / "next").touch()
    assert supervised.wait_for_end()["outcome"] == "succeeded"
    assert server.renewals[-1].get("phase") is None


def test_only_a_training_states_a_phase(start_supervisor, server):
    supervised = start_supervisor("train:5", schedule="test")
    supervised.wait_for_end()
    assert [renewal for renewal in server.renewals if "phase" in renewal] == []

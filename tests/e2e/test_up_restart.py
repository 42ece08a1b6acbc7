"""`palestra up` on a data directory that was used before: queued and running jobs continue."""

from pathlib import Path

import psutil
import pytest

from palestra.cli.embedded.child_processes import find_marked
from palestra.client import Client
from tests.e2e.palestra_up import UpProcess, has_ended_cleanly
from tests.e2e.run_history import make_cartpole_definition
from tests.support.waiting import wait_for

pytestmark = pytest.mark.processes


@pytest.mark.slow
def test_the_processes_of_a_killed_instance_end_and_the_next_one_has_its_data(
    up_process: UpProcess, directory: Path
) -> None:
    from palestra.contract.definition import read_definition
    from palestra.contract.documents import encode_canonical_json

    told = up_process.wait_until_ready()
    with Client(told["url"], up_process.data.user_token.read_text().strip()) as client:
        experiment = client.submit(
            read_definition(encode_canonical_json(make_cartpole_definition(200)))
        )
    up_process.process.kill()
    up_process.process.communicate()
    wait_for(
        lambda: (
            not [
                pid
                for pid in find_marked(up_process.data.root)
                if "workers.host" in _read_arguments(pid)
            ]
        ),
        "the worker ends",
    )
    second = UpProcess(directory)
    again = second.wait_until_ready()
    assert again["url"] == told["url"]
    with Client(again["url"], second.data.user_token.read_text().strip()) as client:
        assert client.experiment(experiment.id).id == experiment.id
        wait_for(
            lambda: all(run.state == "succeeded" for run in client.runs(experiment.id)),
            "the job that was queued ends",
        )
    assert second.stop()[0] == 130
    assert has_ended_cleanly(second)


def _read_arguments(pid: int) -> list[str]:
    try:
        return psutil.Process(pid).cmdline()
    except psutil.NoSuchProcess:
        return []


LONG = 60_000
"""env_steps of a training that does not end while `palestra up` is stopped."""


@pytest.mark.slow
def test_ctrl_c_saves_a_running_training_which_the_next_start_resumes(
    up_process: UpProcess, directory: Path
) -> None:
    from palestra.contract.definition import read_definition
    from palestra.contract.documents import encode_canonical_json

    told = up_process.wait_until_ready()
    with Client(told["url"], up_process.data.user_token.read_text().strip()) as client:
        experiment = client.submit(
            read_definition(encode_canonical_json(make_cartpole_definition(LONG)))
        )
        (run,) = client.runs(experiment.id)
        wait_for(lambda: client.run(run.id).progress.env_step > 500, "the run trains")
    assert up_process.stop()[0] == 130
    assert has_ended_cleanly(up_process)
    second = UpProcess(directory)
    again = second.wait_until_ready()
    with Client(again["url"], second.data.user_token.read_text().strip()) as client:
        wait_for(lambda: client.run(run.id).state == "succeeded", "the run ends")
        done = client.run(run.id)
    assert (done.resume_quality, done.progress.env_step, len(done.attempts)) == ("exact", LONG, 2)
    assert second.stop()[0] == 130
    assert has_ended_cleanly(second)

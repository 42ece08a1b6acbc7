"""Short runs of `python -m benchmarks.chaos` with faults that take only seconds.

Curves of trainings with faults equal those of trainings without.
"""

import shutil
import tempfile
from pathlib import Path

import pytest

from benchmarks._chaos.curves import list_differences, read_history
from benchmarks._chaos.installation import run_installation
from benchmarks.chaos import inject_faults

pytestmark = pytest.mark.processes
QUICK = ("trainer killed", "connections cut")
ALL = (*QUICK, "worker killed", "server killed", "broker killed", "answer to a claim lost")


@pytest.mark.parametrize(
    ("faults", "env_steps"),
    [
        pytest.param(QUICK, 3_000, id="two faults"),
        pytest.param(ALL, 9_000, id="six faults", marks=pytest.mark.extended),
    ],
)
def test_trainings_with_faults_equal_trainings_without(
    faults: tuple[str, ...], env_steps: int
) -> None:
    directory = Path(tempfile.mkdtemp(prefix="plr-", dir="/tmp"))
    try:
        with run_installation(directory, env_steps=env_steps, seed=3) as installation:
            injected = inject_faults(installation, len(faults), faults)
            assert installation.violations == []
            assert set(injected) == set(faults)
            dqn, ppo = (
                read_history(
                    installation.stack,
                    next(
                        training.run_id
                        for training in installation.trainings
                        if training.kind == kind
                    ),
                )
                for kind in ("dqn", "ppo")
            )
            assert list_differences(dqn, dqn) == []
            assert {"the series episode/return", "evaluations"} <= set(
                list_differences(dqn, ppo)
            ), "the comparison sees nothing"
    finally:
        shutil.rmtree(directory, ignore_errors=True)

"""Seeds trained as a pack have the same distribution of returns as seeds trained singly."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks._train_in_process import EvaluationSink, open_pack, open_training
from palestra.contract.job_options import Submission
from tests.learning.trainings import make_example_submission
from workers.trainer_process.schedules.native import train, train_pack

SHORT = {
    "loop": {"env_steps": 15_360},
    "evaluation": {"every_env_steps": None, "episodes": 20},
    "stop": {"success_score": None},
}


def make_submission(name: str, compile_mode: str) -> Submission:
    short = make_example_submission(name, **SHORT)
    options = short.options.model_copy(
        update={"resources": short.options.resources.model_copy(update={"compile": compile_mode})}
    )
    return short.model_copy(update={"options": options})


def compute_distance(one: list[float], other: list[float]) -> float:
    """Returns the Kolmogorov-Smirnov statistic of two samples.

    It is the greatest difference of their empirical distribution functions.
    """
    edges = np.sort(np.concatenate((one, other)))
    first, second = (
        np.searchsorted(np.sort(sample), edges, side="right") / len(sample)
        for sample in (one, other)
    )
    return float(np.abs(first - second).max())


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("name", ["cartpole-dqn.yaml", "cartpole-ppo.yaml"])
def test_twenty_seeds_of_a_pack_have_the_returns_of_twenty_seeds_alone(
    tmp_path: Path, name: str
) -> None:
    packed, alone = EvaluationSink(), EvaluationSink()
    with open_pack(
        make_submission(name, "compiled"), range(20), tmp_path / "pack", [packed] * 20
    ) as pack:
        train_pack(pack, lambda index: None)
    # Other seeds: with the same ones equal returns would always pass the test.
    for seed in range(20, 40):
        with open_training(
            make_submission(name, "eager"), seed, tmp_path / str(seed), alone
        ) as training:
            train(training)
    ours, theirs = [one.mean for one in packed.kept], [one.mean for one in alone.kept]
    assert (len(ours), len(theirs)) == (20, 20)
    assert np.ptp(ours) > 20, "returns that hardly differ tell nothing"
    # Two samples of 20 from one distribution are farther apart than 0.515 once in a hundred times.
    assert compute_distance(ours, theirs) < 0.515, (sorted(ours), sorted(theirs))

import pytest
import torch

from tests.learning.trainings import (
    TrainingResult,
    make_example_definition,
    make_example_submission,
    train_seeds,
)
from workers.core.types import StopReason


@pytest.mark.slow
def test_dqn_improves_on_cartpole_and_the_same_seed_gives_the_same_weights() -> None:
    definition = make_example_definition(
        "cartpole-dqn.yaml",
        loop={"env_steps": 5_120},
        evaluation={"every_env_steps": None},
        stop={"success_score": None},
    )
    first, again = TrainingResult(definition, 0), TrainingResult(definition, 0)
    assert first.mean > 60, "a random policy has 22"
    assert first.mean == again.mean
    assert all(
        torch.equal(tensor, again.parameters[name]) for name, tensor in first.parameters.items()
    )


def test_ppo_improves_on_cartpole() -> None:
    definition = make_example_definition(
        "cartpole-ppo.yaml",
        loop={"env_steps": 12_288},
        evaluation={"every_env_steps": None},
        stop={"success_score": None},
    )
    assert TrainingResult(definition, 0).mean > 100


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("name", ["cartpole-dqn.yaml", "cartpole-ppo.yaml"])
def test_eighteen_of_twenty_seeds_balance_the_pole_on_unseen_episodes(name, tmp_path) -> None:
    # The examples were chosen by the seeds below 50.
    outcomes = train_seeds(make_example_submission(name), range(100, 120), tmp_path)
    solved = [
        one
        for one in outcomes
        if one.reason is StopReason.SUCCESS_SCORE and one.mean >= 475 and one.fresh_mean >= 450
    ]
    assert len(solved) >= 18, outcomes
    assert max(one.env_steps for one in solved) <= 150_000


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_four_of_five_seeds_of_qr_dqn_balance_the_pole(tmp_path) -> None:
    """When the limits were set, all five seeds reached 500 within 49,152 env_steps."""
    # The preset was measured with the seeds below 5.
    outcomes = train_seeds(
        make_example_submission("learning/cartpole-qr-dqn.yaml"), range(100, 105), tmp_path
    )
    solved = [
        one
        for one in outcomes
        if one.reason is StopReason.SUCCESS_SCORE and one.mean >= 475 and one.fresh_mean >= 450
    ]
    assert len(solved) >= 4, outcomes
    assert max(one.env_steps for one in solved) <= 100_000

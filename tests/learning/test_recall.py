"""Recurrent agents remember an observation from twelve steps ago."""

import pytest

from tests.learning.trainings import TrainingResult, make_example_definition


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_drqn_names_a_cue_that_it_saw_twelve_steps_ago(seed) -> None:
    changes = {
        "env": {"kwargs": {"delay": 12}},
        "loop": {"env_steps": 40_000},
        "evaluation": {"every_env_steps": None},
        "stop": {"success_score": None},
    }
    definition = make_example_definition("learning/recall-drqn.yaml", **changes)
    assert TrainingResult(definition, seed).mean >= 0.95, "without a memory it is 0.25"

import pytest

from tests.learning.trainings import TrainingResult, make_example_definition


@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_only_hindsight_finds_goals_that_chance_does_not() -> None:
    changes = {
        "loop": {"env_steps": 20_000},
        "evaluation": {"every_env_steps": None},
        "stop": {"success_score": None},
    }
    means = {"with": [], "without": []}
    for name, hindsight in (("with", {"ratio": 4}), ("without", None)):
        definition = make_example_definition(
            "learning/bitflip-hindsight-dqn.yaml", agent={"hindsight": hindsight}, **changes
        )
        means[name] = [TrainingResult(definition, seed).mean for seed in range(3)]
    assert min(means["with"]) > -6, means
    assert max(means["without"]) < -9, means

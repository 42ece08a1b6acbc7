import json
from pathlib import Path

import pytest

from palestra.contract.definition import RlDefinition
from palestra.contract.job_options import Resources
from palestra.contract.states import Outcome
from tests.support.trainings import make_definition, make_work_order
from tests.unit.workers.trainer_process.test_attempt import execute, read_records
from workers.assembly.compile_mode import WORTH_UPDATES, compile_mode, max_updates
from workers.core.errors import DefinitionError
from workers.core.types import LearnSchedule


@pytest.fixture(autouse=True)
def no_compile_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PALESTRA_WORKER_COMPILE")


@pytest.mark.parametrize(
    ("updates", "mode"),
    [(WORTH_UPDATES, "compiled"), (WORTH_UPDATES - 1, "eager"), (float("inf"), "compiled")],
)
def test_auto_compiles_if_the_training_is_long_enough(updates: float, mode: str) -> None:
    assert compile_mode("auto", "cpu", updates) == mode


def test_auto_runs_eagerly_without_a_compiler_or_if_the_worker_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PALESTRA_WORKER_COMPILE", "eager")
    assert compile_mode("auto", "cpu", 1e9) == "eager"
    assert compile_mode("compiled", "cpu", 0) == "compiled"
    monkeypatch.delenv("PALESTRA_WORKER_COMPILE")
    monkeypatch.setenv("PATH", "/nowhere")
    assert compile_mode("auto", "cpu", 1e9) == "eager"


def test_a_cuda_graph_needs_a_gpu() -> None:
    with pytest.raises(DefinitionError, match="needs a GPU"):
        compile_mode("cudagraph", "cpu", 1e9)
    assert compile_mode("cudagraph", "cuda", 1) == "cudagraph"


@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        ({"env_steps": 1_060}, 250),
        ({"env_steps": 1_060, "updates": 9}, 9),
        ({"episodes": 4}, float("inf")),
    ],
)
def test_updates_follow_from_budget_and_schedule(loop: dict[str, int], expected: float) -> None:
    document = RlDefinition.model_validate_json(json.dumps(make_definition(loop=loop)))
    assert (
        max_updates(document, LearnSchedule(every_env_steps=8, updates=2, warmup_env_steps=60))
        == expected
    )


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["dqn", "ppo"])
def test_a_job_compiles_and_records_the_same_evaluations_within_roundings(
    tmp_path: Path, agent: str
) -> None:
    scores = []
    for compiled in ("compiled", "eager"):
        order = make_work_order(make_definition(agent, num_envs=2)).model_copy(
            update={"resources": Resources(compile=compiled)}
        )
        directory, report = execute(tmp_path, order)
        assert report.outcome is Outcome.SUCCEEDED
        scores.append([one["mean"] for one in read_records(directory, "evaluation")])
    assert len(scores[0]) == len(scores[1])
    assert scores[0][0] == pytest.approx(scores[1][0], abs=20)

import json
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces

from benchmarks.compilation import list_cases
from palestra.contract.agents import BUILTIN_AGENTS
from palestra.contract.definition import RlDefinition
from palestra.contract.job_options import Resources
from palestra.contract.states import Outcome
from tests.support.trainings import make_definition, make_work_order
from tests.unit.workers.acceleration.test_library_cache import UNCOMPILED
from tests.unit.workers.rl.agents.test_agent_contract import CASES
from tests.unit.workers.trainer_process.test_attempt import execute, read_records
from workers.assembly import rl_parts
from workers.assembly.compile_mode import (
    UpdateCost,
    choose_compile_mode,
    find_update_cost,
    max_updates,
    update_costs,
)
from workers.core.errors import DefinitionError
from workers.core.types import LearnSchedule


@pytest.fixture(autouse=True)
def no_compile_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PALESTRA_WORKER_COMPILE")


COST = UpdateCost(first_seconds=20, stored_seconds=0.1, eager_ms=3, compiled_ms=1)
VECTOR = spaces.Box(-1, 1, (4,), np.float32)
IMAGE = spaces.Box(0, 255, (84, 84, 4), np.uint8)


@pytest.mark.parametrize(
    ("updates", "mode"), [(10_000, "compiled"), (9_999, "eager"), (float("inf"), "compiled")]
)
def test_auto_compiles_where_the_updates_gain_more_than_compilation_costs(
    updates: float, mode: str
) -> None:
    assert choose_compile_mode("auto", "cpu", updates, COST) == mode


def test_auto_compiles_no_update_that_is_not_faster_or_was_not_measured() -> None:
    slower = COST.model_copy(update={"compiled_ms": 3.5})
    assert choose_compile_mode("auto", "cpu", 1e12, slower) == "eager"
    assert choose_compile_mode("auto", "cpu", 1e12, None) == "eager"
    assert choose_compile_mode("compiled", "cpu", 0, None) == "compiled"


def test_auto_runs_eagerly_without_a_compiler_or_if_the_worker_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PALESTRA_WORKER_COMPILE", "eager")
    assert choose_compile_mode("auto", "cpu", 1e9, COST) == "eager"
    assert choose_compile_mode("compiled", "cpu", 0, COST) == "compiled"
    monkeypatch.delenv("PALESTRA_WORKER_COMPILE")
    monkeypatch.setenv("PATH", "/nowhere")
    assert choose_compile_mode("auto", "cpu", 1e9, COST) == "eager"


def test_a_cuda_graph_needs_a_gpu() -> None:
    with pytest.raises(DefinitionError, match="needs a GPU"):
        choose_compile_mode("cudagraph", "cpu", 1e9, COST)
    assert choose_compile_mode("cudagraph", "cuda", 1, COST) == "cudagraph"


def test_the_table_has_every_kind_of_update_that_the_benchmark_measures() -> None:
    measured = {(case.agent, case.kind) for case in list_cases()}
    assert measured == {(agent, kind) for agent, kinds in update_costs().items() for kind in kinds}
    for kinds in update_costs().values():
        for cost in kinds.values():
            assert min(cost.first_seconds, cost.eager_ms, cost.compiled_ms) > 0


def test_agents_that_compile_are_in_the_table_and_no_others() -> None:
    compiled = {hyper.name for name, (_, hyper, _) in CASES.items() if name not in UNCOMPILED}
    compiled.add("a3c")  # It compiles in processes of its own.
    assert set(update_costs()) == compiled
    assert set(BUILTIN_AGENTS) - compiled == UNCOMPILED - {"a3c"} | {"sb3"}


def test_the_cost_is_that_of_the_agent_and_of_what_it_observes() -> None:
    costs = update_costs()
    assert find_update_cost("dqn", VECTOR) == costs["dqn"]["vector"]
    assert find_update_cost("dqn", IMAGE) == costs["dqn"]["image"]
    assert find_update_cost("sac", IMAGE) == costs["sac"]["vector"], "it flattens images"
    assert find_update_cost("trpo", VECTOR) is None
    assert find_update_cost("an-agent-of-the-team", VECTOR) is None


@pytest.mark.parametrize(("env_steps", "mode"), [(20_000, "compiled"), (200, "eager")])
def test_a_training_is_built_as_decided_by_all_of_its_updates(
    monkeypatch: pytest.MonkeyPatch, env_steps: int, mode: str
) -> None:
    """The processes of A3C make their updates themselves, every 5 env_steps of each."""
    cost = COST.model_copy(update={"first_seconds": 2})  # Worth it from 1,000 updates.
    monkeypatch.setattr(rl_parts, "find_update_cost", lambda agent, space: cost)
    for agent in ("dqn", "a3c"):
        document = make_definition(agent, loop={"env_steps": env_steps})
        definition = RlDefinition.model_validate_json(json.dumps(document))
        with ExitStack() as stack:
            parts = rl_parts.build_set(definition, 0, "cpu", stack, Resources())
            assert parts.compile == mode


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

"""Packs of agents compared with the same agents trained singly, with batches and in engines."""

from collections.abc import Iterator, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from palestra.contract.agents import (
    PACKABLE_AGENTS,
    PARAMETER_MODELS,
    DqnParameters,
    PpoParameters,
)
from palestra.contract.envs import EnvDefinition
from palestra.contract.names import CompileMode
from tests.support.trainer_fakes import (
    FakeControl,
    FakeEvaluator,
    FakeRecorder,
    FakeSnapshotter,
    make_cadence,
)
from tests.unit.workers.rl.agents.agent_kit import (
    assert_same_state,
    make_context,
    make_experience,
    make_parameters,
)
from workers.acceleration import update_runner
from workers.acceleration.nested_tensors import map_tensors
from workers.acceleration.update_runner import eager_gradient, make_stacked_runner
from workers.assembly.registry import agent_factory
from workers.core.types import AgentContext, StopReason, Unit
from workers.engine.engine import Engine
from workers.engine.lockstep import run_in_lockstep
from workers.engine.parts import Parts
from workers.rl.agents import dqn, ppo
from workers.rl.agents.packs import pack
from workers.rl.agents.packs.pack import Pack
from workers.rl.agents.shells.replay_agent import SampledBatch
from workers.rl.collect.pack_collector import PackCollector
from workers.rl.collect.vector_collector import VectorCollector
from workers.rl.envs.factory import make_vector

SEEDS = (3, 1, 4)
SMALL = {
    "learning_starts": 20,
    "batch_size": 16,
    "hidden_sizes": (16,),
    "buffer_size": 500,
    "target_update_every": 7,
    "epsilon_decay_steps": 100,
}
ROLLOUT: Any = {"rollout_steps": 16, "minibatch_size": 16, "passes": 2}
PACKABLE: dict[str, Any] = {
    name: (agent_factory(name), make_parameters(name, **SMALL, **ROLLOUT, quantiles=16, cosines=8))
    for name in sorted(PACKABLE_AGENTS)
    if "discrete" in PARAMETER_MODELS[name].action_spaces
} | {
    "ppo-kl-normalised": (
        ppo.build,
        PpoParameters(
            **ROLLOUT,
            hidden_sizes=(16,),
            target_kl=1e-3,
            normalize_observations=True,
            normalize_rewards=True,
        ),
    ),
    "a2c-small-steps": (
        agent_factory("a2c"),
        make_parameters("a2c", **SMALL, **ROLLOUT, learning_rate=7e-5),
    ),
    "dqn-every-4": (dqn.build, DqnParameters(**SMALL, train_every=4, updates_per_train=2)),
}
"""Factory and parameters of every agent that can be packed and supports CartPole, with variants.

Agents for continuous actions only are in `test_continuous_packs.py`.
"""

ON_ENGINES = {"dqn", "ppo"}
"""Cases whose runs in engines are compared in every test run.

For the others this is a slow test; their updates are always compared.
"""


@pytest.fixture(
    params=[
        pytest.param(name, marks=[] if name in ON_ENGINES else [pytest.mark.slow])
        for name in PACKABLE
    ]
)
def case(request) -> Any:
    return PACKABLE[request.param]


@pytest.fixture
def default_dtype() -> Iterator[Any]:
    before = torch.get_default_dtype()
    yield torch.set_default_dtype
    torch.set_default_dtype(before)


def get_batch(drawn: Any) -> Any:
    """Returns the batch in an item of an agent's `batches`."""
    return drawn.batch if isinstance(drawn, SampledBatch) else drawn


def make_states_and_batches(
    case, count: int, dtype: torch.dtype
) -> tuple[list[Any], list[list[Any]]]:
    """Returns learning states of three agents and `count` batches for each, in `dtype`."""
    build, hyper = case

    def cast(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(dtype) if tensor.is_floating_point() else tensor

    states, streams = [], []
    for seed in SEEDS:
        agent = build(hyper, make_context(seed=seed))
        agent.observe(make_experience(agent, 100, 2, np.random.default_rng(seed)))
        states.append(map_tensors(cast, agent.learning_state))
        drawn = [map_tensors(cast, get_batch(one)) for one in agent.batches(count)]
        streams.append([drawn[i % len(drawn)] for i in range(count)])
    return states, streams


QUICK: Any = (torch.float32, 20, 1e-4)
LONG: Any = (torch.float64, 1_000, 1e-6)
# The third argument is the number of rows from which on the update is stacked.
STREAMS = [
    *(pytest.param(name, QUICK, 0, id=f"{name}-float32") for name in PACKABLE if "kl" not in name),
    *(
        pytest.param(name, QUICK, len(SEEDS) + 1, id=f"{name}-one-by-one")
        for name in ("dqn", "ppo")
    ),
    *(
        pytest.param(name, (torch.float64, 30, 1e-6), 0, id=f"{name}-float64")
        for name in ("dqn", "ppo")
    ),
    *(
        pytest.param(name, LONG, 0, id=f"{name}-float64-long", marks=pytest.mark.slow)
        for name in PACKABLE
        if "kl" not in name and name != "a2c"
    ),
]
"""Cases of the comparison of updates.

A2C with its default step size is left out of the long ones. Nothing bounds its loss on one rollout,
and from about update 650 on each update enlarges any difference: a single run and a copy of it
whose parameters differ by 1e-15 are 3e-4 apart after 1,000 updates, as a pack and a single run are.
With a tenth of the step size they stay within 1e-15.
"""


@pytest.mark.parametrize(("name", "how", "few"), STREAMS)
def test_a_pack_learns_the_same_from_batches_as_single_agents(
    name: str, how: Any, few: int, default_dtype, monkeypatch
) -> None:
    dtype, count, rtol = how
    monkeypatch.setattr(update_runner, "ROWS_WORTH_STACKING", few)
    case = PACKABLE[name]
    default_dtype(dtype)
    build, hyper = case
    algorithm = build(hyper, make_context()).algorithm
    states, streams = make_states_and_batches(case, count, dtype)
    together, update = (
        map_tensors(lambda *rows: torch.stack(rows), *states),
        make_stacked_runner(algorithm.update, mode="eager"),
    )
    for batches in zip(*streams, strict=True):
        together, _, _ = update(together, map_tensors(lambda *rows: torch.stack(rows), *batches))
    for row, (state, stream) in enumerate(zip(states, streams, strict=True)):
        alone = state
        with torch.no_grad():
            for batch in stream:
                alone, _, _ = algorithm.update(eager_gradient, alone, batch)
        own = map_tensors(lambda leaf, row=row: leaf[row], together)
        torch.testing.assert_close(
            own, alone, rtol=rtol, atol=rtol * 1e-2 if dtype is torch.float64 else 1e-6
        )


class ThreeRuns:
    """Engines of three runs on CartPole, as single runs or as a pack."""

    def __init__(
        self,
        case,
        *,
        together: bool,
        budgets: tuple[int, ...] = (96, 96, 96),
        num_envs: int = 2,
        mode: CompileMode = "eager",
    ) -> None:
        build, hyper = case
        self.envs = [make_vector(EnvDefinition(id="CartPole-v1", num_envs=num_envs)) for _ in SEEDS]
        space = gym.make("CartPole-v1")
        self.agents = [
            build(hyper, AgentContext(space.observation_space, space.action_space, num_envs, seed))
            for seed in SEEDS
        ]
        collectors: list[Any] = [
            VectorCollector(env, agent, seed)
            for env, agent, seed in zip(self.envs, self.agents, SEEDS, strict=True)
        ]
        faces: list[Any] = list(self.agents)
        if together:
            self.pack = Pack(self.agents, mode)
            collectors, faces = PackCollector(self.pack, collectors).members, self.pack.members
        self.traces: list[list[Any]] = [[] for _ in SEEDS]
        self.recorders = [FakeRecorder(trace) for trace in self.traces]
        self.engines = [
            Engine(
                Parts(
                    agent=face,
                    collector=collector,
                    recorder=recorder,
                    snapshotter=FakeSnapshotter(trace),
                    control=FakeControl(trace),
                    evaluator=FakeEvaluator(trace),
                ),
                make_cadence({Unit.ENV_STEPS: budget}),
                lambda: 0.0,
            )
            for face, collector, recorder, trace, budget in zip(
                faces, collectors, self.recorders, self.traces, budgets, strict=True
            )
        ]

    def run(self, *, together: bool) -> list[Any]:
        if together:
            return run_in_lockstep(self.engines, self.pack.leave)
        return [engine.run() for engine in self.engines]


def list_states(runs: ThreeRuns) -> list[Any]:
    return [engine.state_dict() for engine in runs.engines]


def assert_close(one: Any, other: Any) -> None:
    """Asserts equality up to the rounding differences of stacked arithmetic."""
    if isinstance(one, Mapping):
        assert one.keys() == other.keys()
        for key in one:
            assert_close(one[key], other[key])
    elif isinstance(one, torch.Tensor):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)
    elif isinstance(one, np.ndarray) and one.dtype.kind == "f":
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
    elif isinstance(one, np.ndarray):
        assert np.array_equal(one, other)


def test_runs_of_a_pack_equal_single_runs(case) -> None:
    together, alone = (
        ThreeRuns(case, together=True, budgets=(192, 192, 192)),
        ThreeRuns(case, together=False, budgets=(192, 192, 192)),
    )
    assert [result.reason for result in together.run(together=True)] == [StopReason.BUDGET] * 3
    alone.run(together=False)
    for packed, lone in zip(list_states(together), list_states(alone), strict=True):
        assert_close(
            {**packed, "clock": {**packed["clock"], "wall_seconds": 0}},
            {**lone, "clock": {**lone["clock"], "wall_seconds": 0}},
        )
        assert packed["clock"]["updates"] == lone["clock"]["updates"] > 5
        assert packed["clock"]["episodes"] == lone["clock"]["episodes"] > 2


@pytest.mark.parametrize(
    ("is_compiled", "worth", "rows"),
    [(False, 0, 1), (True, 1, 1), (True, 10**9, 3)],
    ids=["eager", "small", "kept"],
)
def test_members_that_end_early_leave_and_the_others_continue(
    case, is_compiled: bool, worth: int, rows: int, monkeypatch
) -> None:
    monkeypatch.setattr(pack, "WORTH_CODE", worth)
    together, alone = (
        ThreeRuns(case, together=True, budgets=(32, 96, 64)),
        ThreeRuns(case, together=False, budgets=(32, 96, 64)),
    )
    together.pack._is_compiled = is_compiled
    together.run(together=True)
    alone.run(together=False)
    assert [engine.clock.env_steps for engine in together.engines] == [32, 96, 64]
    assert len(together.pack._rows) == rows
    for packed, lone in zip(list_states(together), list_states(alone), strict=True):
        assert_close(packed["agent"], lone["agent"])
        assert_close(packed["memory"], lone["memory"])


@pytest.mark.parametrize("name", ["dqn", "ppo"])
def test_members_that_leave_a_pack_whose_state_is_written_to_keep_what_they_learnt(
    name: str, traced_examples
) -> None:
    case, budgets = PACKABLE[name], (32, 96, 64)
    together, alone = (
        ThreeRuns(case, together=True, budgets=budgets, mode="compiled"),
        ThreeRuns(case, together=False, budgets=budgets),
    )
    together.run(together=True)
    alone.run(together=False)
    assert len(together.pack._rows) == 3
    assert traced_examples
    for packed, lone in zip(list_states(together), list_states(alone), strict=True):
        assert_close(packed["agent"], lone["agent"])


def test_a_run_goes_on_alone_from_its_state_in_a_pack(case) -> None:
    together, whole = (
        ThreeRuns(case, together=True, budgets=(48, 48, 48)),
        ThreeRuns(case, together=False),
    )
    together.run(together=True)
    rest = ThreeRuns(case, together=False)
    for engine, state in zip(rest.engines, list_states(together), strict=True):
        engine.restore(state)
    rest.run(together=False)
    whole.run(together=False)
    for packed, lone in zip(list_states(rest), list_states(whole), strict=True):
        assert_close(packed["agent"], lone["agent"])


def test_a_pack_goes_on_from_states_of_runs_alone(case) -> None:
    alone = ThreeRuns(case, together=False, budgets=(48, 48, 48))
    alone.run(together=False)
    together, whole = ThreeRuns(case, together=True), ThreeRuns(case, together=False)
    for engine, state in zip(together.engines, list_states(alone), strict=True):
        engine.restore(state)
    together.run(together=True)
    whole.run(together=False)
    for packed, lone in zip(list_states(together), list_states(whole), strict=True):
        assert_close(packed["agent"], lone["agent"])


def test_one_member_has_a_learning_rate_of_its_own(case) -> None:
    together = ThreeRuns(case, together=True)
    faces = together.pack.members
    faces[1].learning_rate = 0.0
    before = [face.state_dict()["learning"]["parameters"] for face in faces]
    together.run(together=True)
    after = [face.state_dict()["learning"]["parameters"] for face in faces]
    assert_same_state(before[1], after[1])
    assert not all(torch.equal(before[0][name], after[0][name]) for name in before[0])
    assert faces[1].learning_rate == 0.0
    assert faces[0].learning_rate > 0.0


def test_an_error_in_one_member_saves_all(case) -> None:
    runs = ThreeRuns(case, together=True)

    def fail(*_: Any) -> None:
        raise ValueError("broken")

    runs.recorders[1].record_iteration = fail  # type: ignore[method-assign]
    with pytest.raises(ValueError, match="broken"):
        runs.run(together=True)
    assert [
        sum(str(entry).startswith("snapshot exception") for entry in trace) for trace in runs.traces
    ] == [1, 1, 1]


def test_members_with_different_step_counts_are_refused(case) -> None:
    runs = ThreeRuns(case, together=True)
    runs.engines[0].collect()
    with pytest.raises(RuntimeError, match="out of step"):
        runs.engines[0].collect()

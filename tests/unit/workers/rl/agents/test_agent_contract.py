"""The contract between the engine and every built-in agent."""

import json

import numpy as np
import pytest
import structlog
import torch
from gymnasium import spaces

from palestra.contract.agents import (
    PARAMETER_MODELS,
    A2cParameters,
    A3cParameters,
    C51Parameters,
    CemParameters,
    DqnParameters,
    DrqnParameters,
    PpoParameters,
    RecurrentPpoParameters,
    ReinforceParameters,
    Td3Parameters,
    TrpoParameters,
)
from palestra.contract.agents.common import PrioritizedReplay
from tests.unit.workers.rl.agents.agent_kit import (
    ACTIONS,
    BOX,
    assert_same_state,
    list_leaves,
    make_context,
    make_experience,
    make_parameters,
)
from workers.assembly.registry import agent_factory
from workers.core.protocols import Stateful, TrainableAgent
from workers.core.rng import global_state
from workers.core.types import StateTree
from workers.rl.agents import a2c, c51, cem, dqn, drqn, ppo, recurrent_ppo, reinforce, td3, trpo
from workers.rl.agents.a3c import A3c
from workers.rl.agents.a3c_shared import SharedA3c
from workers.rl.agents.a3c_shared import build as build_shared_a3c
from workers.rl.agents.shared_tensors import adopt

PARTICULAR = {
    "dqn-noisy": (
        dqn.build,
        DqnParameters(batch_size=16, dueling=True, noisy=True, prioritized=PrioritizedReplay()),
        spaces.Discrete(4),
    ),
    "c51": (c51.build, C51Parameters(batch_size=16), spaces.Discrete(4, start=1)),
    "drqn": (
        drqn.build,
        DrqnParameters(batch_size=16, sequence_length=4, memory_units=8),
        spaces.Discrete(4, start=2),
    ),
    "ppo": (
        ppo.build,
        PpoParameters(rollout_steps=20, minibatch_size=20),
        spaces.Discrete(4, start=2),
    ),
    "ppo-box": (
        ppo.build,
        PpoParameters(rollout_steps=20, minibatch_size=20),
        spaces.Box(-2, 2, (2,), np.float32),
    ),
    "ppo-box-double": (
        ppo.build,
        PpoParameters(rollout_steps=20, minibatch_size=20),
        spaces.Box(-2, 2, (1, 2), np.float64),
    ),
    "ppo-normalising": (
        ppo.build,
        PpoParameters(
            rollout_steps=20, minibatch_size=20, normalize_observations=True, normalize_rewards=True
        ),
        spaces.MultiDiscrete([2, 3], start=[0, 4]),
    ),
    "a2c": (a2c.build, A2cParameters(rollout_steps=20), spaces.MultiBinary((2, 2))),
    "a3c": (build_shared_a3c, A3cParameters(rollout_steps=20), spaces.Discrete(4, start=1)),
    "reinforce": (reinforce.build, ReinforceParameters(episodes=2), spaces.Discrete(3)),
    "trpo": (
        trpo.build,
        TrpoParameters(rollout_steps=20, value_minibatch_size=20),
        spaces.Box(-2, 2, (2,), np.float32),
    ),
    "recurrent_ppo": (
        recurrent_ppo.build,
        RecurrentPpoParameters(rollout_steps=20, minibatch_envs=1, memory_units=8),
        spaces.Box(-2, 2, (2,), np.float32),
    ),
    "td3": (
        td3.build,
        Td3Parameters(batch_size=16, hidden_sizes=(16,), learning_starts=8),
        spaces.Box(-2, 3, (1, 2), np.float64),
    ),
    "cem": (
        cem.build,
        CemParameters(population_size=2, elite_fraction=0.5, hidden_sizes=(16,)),
        spaces.Discrete(4, start=2),
    ),
}
"""Variants of agents, and agents that need other parameters or spaces than those in `FOUND`."""

SMALL = {"batch_size": 16, "hidden_sizes": (16,), "learning_starts": 8}
FOUND = {
    name: (agent_factory(name), make_parameters(name, **SMALL), ACTIONS[model.action_spaces[0]])
    for name, model in PARAMETER_MODELS.items()
    # Stable-Baselines3 trains its agents; `tests/unit/workers/rl/agents/sb3` tests them.
    if name != "sb3"
}
"""Factory, parameters and action space of every built-in agent, by its name."""
CASES = FOUND | PARTICULAR


TRACED = {"dqn", "ppo-box", "sac", "recurrent_ppo"}
"""Cases that are traced in every test run.

Tracing the others is a slow test: each takes one or two seconds.
"""


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


@pytest.fixture(
    params=[pytest.param(name, marks=() if name in TRACED else pytest.mark.slow) for name in CASES]
)
def traced_case(request):
    return CASES[request.param]


@pytest.fixture
def learner_case(case):
    return _skip_without_own_learner(case)


def _skip_without_own_learner(case):
    if case[0] is build_shared_a3c:
        pytest.skip("explores and learns in processes of its own")
    return case


def train_agent(case, seed=0, **more) -> TrainableAgent:
    build, hyper, space = case
    agent = build(hyper, make_context(space, seed=seed, **more))
    rng = np.random.default_rng(0)
    for _ in range(2):
        learn_once(agent, 3, rng)
    return agent


def learn_once(agent: TrainableAgent, updates: int, rng: np.random.Generator) -> None:
    """Collects until the agent learns.

    Only agents that learn from whole episodes may need several rounds.
    """
    for _ in range(3):
        if made := collect_and_count_updates(agent, rng) + agent.learn(updates).updates:
            break
    assert 1 <= made <= updates


def test_reports_of_updates_on_the_cpu_contain_numbers(case) -> None:
    """If the recorder's thread freed tensors, it would compete for the interpreter lock."""
    agent, rng = train_agent(case), np.random.default_rng(1)
    for _ in range(3):
        if collect_and_count_updates(agent, rng) or (report := agent.learn(1)).updates:
            break
    else:
        pytest.fail("nothing was learnt")
    if not isinstance(agent, SharedA3c):
        assert not isinstance(report.values, torch.Tensor)
        assert all(np.isscalar(value) for value in report.values)


def collect_and_count_updates(agent: TrainableAgent, rng: np.random.Generator) -> int:
    """Collects, and returns the number of updates made meanwhile.

    Only A3C updates while it collects, as each of its processes does.
    """
    if not isinstance(agent, SharedA3c):
        agent.observe(make_experience(agent, 20, 2, rng))
        return 0
    _, hyper, space = CASES["a3c"]
    process = A3c(hyper, BOX, space)
    adopt(process, agent.shared)
    process.learning_rate = agent.learning_rate
    for row in rng.uniform(-1, 1, (20, 3)).astype(np.float32):
        process.act(row)
        process.observe(row, float(rng.normal()), False, False)
    return process.report().updates


def get_parameters(agent: TrainableAgent) -> StateTree:
    state = agent.state_dict()
    learning = state.get("learning", state)
    # The learning rate does not scale the policy step of TRPO, so its values come first.
    field = next(name for name in ("values", "actor", "parameters") if name in learning)
    return learning[field]


def test_the_agent_implements_the_protocol(case) -> None:
    agent: TrainableAgent = train_agent(case)
    assert isinstance(agent, Stateful)
    assert isinstance(agent.memory, Stateful)
    assert agent.memory.capacity >= len(agent.memory)
    assert any(name.startswith("loss/") for name in agent.report_names)


def test_the_same_seed_gives_the_same_history_and_another_does_not(case) -> None:
    one, other, third = train_agent(case), train_agent(case), train_agent(case, seed=1)
    assert_same_state(one.state_dict(), other.state_dict())
    with pytest.raises(AssertionError):
        assert_same_state(one.state_dict(), third.state_dict())


def test_no_global_generator_is_used(case) -> None:
    before = global_state()
    train_agent(case)
    assert_same_state(before, global_state())


def test_actions_are_of_the_space(case) -> None:
    agent, space = train_agent(case), case[2]
    for explore in (False,) if isinstance(agent, SharedA3c) else (True, False):
        actions = agent.act(np.stack([BOX.sample() for _ in range(5)]), explore=explore)
        assert actions.shape == (5, *space.shape)
        assert actions.dtype == space.dtype
        assert all(space.contains(action) for action in actions)


def test_greedy_acting_changes_nothing(case) -> None:
    agent = train_agent(case)
    before = {
        path: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf
        for path, leaf in list_leaves(agent.state_dict()).items()
    }
    observation = np.stack([BOX.sample() for _ in range(7)])
    first = agent.act(observation, explore=False)
    assert np.array_equal(first, agent.act(observation, explore=False))
    assert_same_state(before, list_leaves(agent.state_dict()))


def test_the_state_holds_arrays_and_json_only_and_shares_nothing_that_an_update_writes(
    case,
) -> None:
    agent = train_agent(case)
    state = agent.state_dict()
    kept = {
        path: leaf.clone()
        for path, leaf in list_leaves(state).items()
        if isinstance(leaf, torch.Tensor)
    }
    json.dumps(
        {
            path: leaf
            for path, leaf in list_leaves(state).items()
            if not isinstance(leaf, torch.Tensor | np.ndarray)
        }
    )
    collect_and_count_updates(agent, np.random.default_rng(0))
    agent.learn(3)
    assert all(
        torch.equal(kept[path], leaf)
        for path, leaf in list_leaves(state).items()
        if isinstance(leaf, torch.Tensor)
    )


def test_a_state_of_another_network_is_refused(case) -> None:
    build, hyper, space = case
    other = build(hyper.model_copy(update={"hidden_sizes": (5,)}), make_context(space))
    with pytest.raises(ValueError, match="do not fit"):
        other.load_state_dict(train_agent(case).state_dict())


def test_eval_mode_learns_nothing_and_ends_after_an_exception(learner_case) -> None:
    agent = train_agent(learner_case)
    before, kept = get_parameters(agent), len(agent.memory)

    def raise_in_eval_mode() -> None:
        with agent.eval_mode():
            agent.observe(make_experience(agent, 20, 2, np.random.default_rng(0)))
            assert agent.learn(5).updates == 0
            raise RuntimeError

    with pytest.raises(RuntimeError):
        raise_in_eval_mode()
    assert len(agent.memory) == kept
    assert_same_state(before, get_parameters(agent))
    learn_once(agent, 2, np.random.default_rng(0))


def test_the_learning_rate_of_zero_stops_the_parameters(case) -> None:
    agent = train_agent(case)
    agent.learning_rate = 0.0
    before = get_parameters(agent)
    collect_and_count_updates(agent, np.random.default_rng(0))
    agent.learn(3)
    assert_same_state(before, get_parameters(agent))
    assert agent.learning_rate == 0.0


@pytest.fixture
def exportable_case(case):
    return _skip_unless_exportable(case)


def _skip_unless_exportable(case):
    if not getattr(case[0](case[1], make_context(case[2])), "exportable", True):
        pytest.skip("acts on more than one observation")
    return case


def test_the_acting_module_acts_like_the_agent_and_keeps_a_copy(exportable_case) -> None:
    agent = train_agent(exportable_case)
    observation = np.stack([BOX.sample() for _ in range(6)])
    module, expected = agent.acting_module(), agent.act(observation, explore=False)
    collect_and_count_updates(agent, np.random.default_rng(0))
    agent.learn(3)
    assert isinstance(module, torch.nn.Module)
    assert not module.training
    np.testing.assert_allclose(
        module(torch.from_numpy(observation)).numpy(), expected, rtol=1e-4, atol=1e-6
    )


def test_the_acting_module_can_be_exported_with_any_batch_size(traced_case) -> None:
    module = train_agent(_skip_unless_exportable(traced_case)).acting_module()
    program = torch.export.export(
        module, (torch.zeros(2, 3),), dynamic_shapes=({0: torch.export.Dim("N")},)
    )
    observation = torch.rand(9, 3)
    torch.testing.assert_close(program.module()(observation), module(observation))


def test_without_a_compiler_the_agent_learns_eagerly(traced_case, monkeypatch) -> None:
    learner = _skip_without_own_learner(traced_case)

    def raise_without_compiler(*arguments, **options):
        raise RuntimeError("no C++ compiler")

    monkeypatch.setattr("torch._inductor.aot_compile", raise_without_compiler)
    assert_same_state(
        train_agent(learner, compile="compiled").state_dict(), train_agent(learner).state_dict()
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_compiled_agent_learns_the_same(learner_case) -> None:
    if learner_case[0] is cem.build:
        pytest.skip("nothing to compile")
    with structlog.testing.capture_logs() as logs:
        compiled, eager = train_agent(learner_case, compile="compiled"), train_agent(learner_case)
    assert not logs, "this machine has no compiler"
    for path, leaf in list_leaves(get_parameters(eager)).items():
        torch.testing.assert_close(
            list_leaves(get_parameters(compiled))[path], leaf, rtol=1e-3, atol=1e-4
        )

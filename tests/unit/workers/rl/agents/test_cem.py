import json

import numpy as np
import pytest
import torch
from gymnasium import spaces

from palestra.contract.agents import CemParameters
from tests.unit.workers.rl.agents.agent_kit import BOX, assert_same_state, list_leaves, make_context
from workers.core.errors import DefinitionError
from workers.core.protocols import Stateful, TrainableAgent
from workers.core.types import CollectPlan, Experience
from workers.rl.agents.cem import added_variance, build, elites_of
from workers.rl.agents.cem_candidates import Candidates

HYPER = CemParameters(
    population_size=6, elite_fraction=0.34, initial_std=1.0, noise=0.5, noise_generations=4
)


def make_rewards(lengths: list[int], num_envs: int, value: float = 1.0):
    """Returns rewards, episode ends and active slots of one episode per environment."""
    steps = max(lengths)
    active = np.arange(steps)[:, None] < np.array(lengths)
    ended = np.arange(steps)[:, None] == np.array(lengths) - 1
    return np.where(active, value, 99.0).reshape(steps, num_envs), ended, active


def make_episode(agent, lengths, num_envs=2, value=1.0) -> Experience:
    reward, ended, active = make_rewards(lengths, num_envs, value)
    observation = (
        np.random.default_rng(0).uniform(-1, 1, (len(reward), num_envs, 3)).astype(np.float32)
    )
    action = np.stack([agent.act(rows, explore=True) for rows in observation])
    flags = ended, np.zeros_like(ended)
    return Experience(
        observation, action, reward, *flags, observation, active=active, env_steps=int(active.sum())
    )


def run_generation(agent, seed=0) -> None:
    rng = np.random.default_rng(seed)
    while not agent.memory.is_complete:
        agent.observe(make_episode(agent, rng.integers(1, 6, 2).tolist()))


def test_candidates_take_turns_and_their_returns_are_summed() -> None:
    memory = Candidates(count=3, episodes=1, num_envs=2)
    assert memory.assigned.tolist() == [0, 1]
    memory.extend(*make_rewards([3, 5], 2))
    assert memory.assigned.tolist() == [2, 0]
    assert (len(memory), memory.is_complete, memory.capacity) == (2, False, 3)
    memory.extend(*make_rewards([2, 7], 2))
    assert memory.is_complete
    assert memory.scores.tolist() == [(3 + 7) / 2, 5.0, 2.0]


def test_episodes_in_pieces_count_once_and_keep_their_candidate() -> None:
    memory = Candidates(count=4, episodes=1, num_envs=2)
    pieces = np.array([[1.0, 10.0], [2.0, 20.0], [4.0, 40.0], [8.0, 80.0]])
    ended = np.array([[False, False], [True, False], [False, True], [False, True]])
    for reward, over in zip(pieces, ended, strict=True):
        memory.extend(reward[None], over[None], None)
    assert memory.assigned.tolist() == [2, 0]
    assert memory._totals.tolist() == [3.0, 70.0, 0.0, 80.0]
    together = Candidates(count=4, episodes=1, num_envs=2)
    together.extend(pieces, ended, None)
    assert together._totals.tolist() == [3.0, 150.0, 0.0, 0.0], (
        "nobody could give it another candidate in between"
    )
    assert together._played.tolist() == [1, 2, 0, 0]
    assert together.assigned.tolist() == [0, 2], (
        "the first environment is in the middle of an episode"
    )


def test_episodes_that_run_while_a_generation_begins_count_for_nobody() -> None:
    memory = Candidates(count=2, episodes=1, num_envs=2)
    memory.extend(np.array([[5.0, 1.0]]), np.array([[False, True]]), None)
    memory.begin()
    memory.extend(np.array([[5.0, 2.0]]), np.array([[True, True]]), None)
    assert memory._totals.tolist() == [0.0, 2.0]
    memory.extend(np.array([[7.0, 7.0]]), np.array([[True, True]]), None)
    assert memory.scores.tolist() == [7.0, 4.5]


def test_elites_equal_a_choice_by_hand() -> None:
    assert elites_of(np.array([1.0, 5.0, 3.0, 5.0, 2.0]), 0.5).tolist() == [1, 3]
    assert elites_of(np.array([1.0, np.nan, 3.0]), 0.7).tolist() == [2, 0]
    assert elites_of(np.array([1.0, 2.0]), 0.1).tolist() == [1]


def test_the_added_variance_is_that_of_the_paper_with_the_defaults() -> None:
    for t in (0, 7, 50, 80):
        assert added_variance(CemParameters(), t) == pytest.approx(max(5 - t / 10, 0))


@pytest.mark.parametrize("rate", [1.0, 0.25])
def test_a_generation_equals_a_calculation_by_hand(rate) -> None:
    agent = build(HYPER.model_copy(update={"learning_rate": rate}), make_context())
    lengths = [3, 9, 4, 1, 8, 2]
    for begin in (0, 2, 4):
        agent.observe(make_episode(agent, lengths[begin : begin + 2]))
    population = agent._population.astype(np.float64)
    elites = population[[1, 4]]
    report = agent.learn(5)
    assert report.updates == 1
    np.testing.assert_allclose(agent._mean, rate * elites.mean(0), rtol=1e-6)
    np.testing.assert_allclose(
        agent._variance, (1 - rate) + rate * (elites.var(0) + 0.5), rtol=1e-6
    )
    assert report.values[:3].tolist() == [-8.5, 4.5, 9.0]
    assert report.values[3] == pytest.approx(np.sqrt(agent._variance.mean()))
    assert agent._population.shape == population.shape
    assert not np.array_equal(agent._population, population)
    assert len(agent.memory) == 0
    assert agent.learn(1).updates == 0


def test_each_environment_is_played_by_its_candidate() -> None:
    agent = build(HYPER, make_context(spaces.Box(-1, 1, (2,), np.float32), num_envs=3))
    agent.memory.extend(*make_rewards([1, 1, 1], 3))
    observation = np.random.default_rng(0).normal(size=(3, 3)).astype(np.float32)
    actions = agent.act(observation, explore=True)
    for slot, candidate in enumerate([3, 4, 5]):
        parameters = agent._layout.split(torch.from_numpy(agent._population[candidate]))
        expected = agent._policy(parameters, torch.from_numpy(observation[slot : slot + 1])).tanh()[
            0
        ]
        np.testing.assert_allclose(actions[slot], expected.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "space", [spaces.Discrete(4, start=2), spaces.Box(-2, 2, (1, 2), np.float64)]
)
def test_a_generation_is_learnt_at_episode_ends(space) -> None:
    agent: TrainableAgent = build(
        HYPER.model_copy(update={"hidden_sizes": (5,)}), make_context(space)
    )
    assert isinstance(agent, Stateful)
    assert isinstance(agent.memory, Stateful)
    assert agent.collect_plan == CollectPlan(episodes=2)
    assert agent.learn_schedule.learns_at_episode_end
    run_generation(agent)
    report = agent.learn(1)
    assert len(report.values) == len(agent.report_names)
    assert np.isfinite(report.values).all()
    observation = np.stack([BOX.sample() for _ in range(5)])
    greedy = agent.act(observation, explore=False)
    assert all(space.contains(action) for action in greedy)
    assert all(space.contains(action) for action in agent.act(observation[:2], explore=True))
    module = agent.acting_module()
    np.testing.assert_allclose(
        module(torch.from_numpy(observation)).numpy(), greedy, rtol=1e-5, atol=1e-6
    )
    program = torch.export.export(
        module, (torch.zeros(2, 3),), dynamic_shapes=({0: torch.export.Dim("N")},)
    )
    torch.testing.assert_close(
        program.module()(torch.from_numpy(observation)), module(torch.from_numpy(observation))
    )
    json.dumps(
        {
            path: leaf
            for path, leaf in list_leaves(agent.state_dict()).items()
            if not isinstance(leaf, torch.Tensor | np.ndarray)
        }
    )


def test_a_state_in_mid_generation_continues_bit_exactly() -> None:
    first = build(HYPER, make_context(seed=3))
    run_generation(first)
    first.learn(1)
    first.observe(make_episode(first, [3, 5]))
    second = build(HYPER, make_context(seed=99))
    second.load_state_dict(first.state_dict())
    second.memory.load_state_dict(first.memory.state_dict())
    observation = np.ones((2, 3), np.float32)
    for agent in (first, second):
        run_generation(agent, seed=1)
        agent.learn(1)
    assert np.array_equal(
        first.act(observation, explore=True), second.act(observation, explore=True)
    )
    assert_same_state(first.state_dict(), second.state_dict())
    assert_same_state(first.memory.state_dict(), second.memory.state_dict())


def test_another_network_and_another_number_of_environments_are_refused() -> None:
    agent = build(HYPER, make_context())
    with pytest.raises(ValueError, match="do not fit"):
        build(HYPER.model_copy(update={"hidden_sizes": (5,)}), make_context()).load_state_dict(
            agent.state_dict()
        )
    with pytest.raises(ValueError, match="in 2 environments, this one of 6 in 3"):
        build(HYPER, make_context(num_envs=3)).memory.load_state_dict(agent.memory.state_dict())


def test_nothing_is_counted_in_eval_mode_and_a_rate_of_zero_stops_the_mean() -> None:
    agent = build(HYPER, make_context())
    with agent.eval_mode():
        agent.observe(make_episode(agent, [2, 2]))
        assert agent.learn(1).updates == 0
    assert len(agent.memory) == 0
    agent.learning_rate = 0.0
    run_generation(agent)
    assert agent.learn(1).updates == 1
    assert not agent._mean.any()


def test_unreadable_actions_and_too_small_a_population_are_refused_with_a_remedy() -> None:
    with pytest.raises(DefinitionError, match="cem needs a Discrete"):
        build(HYPER, make_context(spaces.MultiDiscrete([2, 2])))
    with pytest.raises(ValueError, match="less than one candidate: raise one"):
        CemParameters(population_size=4, elite_fraction=0.1)


def test_cem_finds_a_linear_policy() -> None:
    """The return increases as the action approaches a linear function of the observation."""
    agent = build(
        HYPER.model_copy(update={"population_size": 40, "noise": 0.1}),
        make_context(spaces.Box(-1, 1, (1,), np.float32), num_envs=40),
    )
    rng, wanted = np.random.default_rng(0), np.array([0.5, -1.0, 0.2])
    for _ in range(25):
        observation = rng.uniform(-1, 1, (10, 40, 3)).astype(np.float32)
        action = np.stack([agent.act(rows, explore=True) for rows in observation])
        reward = -np.square(action[..., 0] - np.tanh(observation @ wanted))
        over = np.arange(10)[:, None] == np.full(40, 9)
        agent.observe(
            Experience(
                observation, action, reward, over, np.zeros_like(over), observation, env_steps=400
            )
        )
        assert agent.learn(1).updates == 1
    np.testing.assert_allclose(
        agent._layout.split(torch.from_numpy(agent._mean))["policy.0.weight"][0], wanted, atol=0.25
    )

"""A3C: gradient compared with independent computations, shared updates, training in
two processes.
"""

import json
import math
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces

from palestra.contract.agents import A3cParameters
from tests.unit.workers.rl.agents.agent_kit import BOX, assert_same_state
from workers.acceleration.update_runner import eager_gradient, functional_gradient
from workers.core.types import AgentContext, LearnReport
from workers.entrypoints.async_training.train_agent_async import train_agent_async
from workers.rl.agents.a3c import (
    REPORT_NAMES,
    A3c,
    A3cMath,
    PaddedRollout,
    returns,
    update_shared_rmsprop,
)
from workers.rl.agents.a3c_shared import SharedA3c
from workers.rl.agents.common.optimizers import RmspropState, rmsprop
from workers.rl.agents.shared_tensors import adopt, share
from workers.rl.agents.shells.rollout_statistics import ValueFit

HYPER = A3cParameters(hidden_sizes=(8,), rollout_steps=4, learning_rate=0.01)
TORQUE = spaces.Box(-2, 2, (2,), np.float32)


def make_a3c(index: int = 0, action_space=None, **more) -> A3c:
    return A3c(
        HYPER.model_copy(update=more),
        BOX,
        action_space or spaces.Discrete(3),
        seed=5,
        process_idx=index,
    )


def run_randomly(agent: A3c, steps: int, rng: np.random.Generator) -> None:
    """Lets the agent act and observe in an environment with random observations and rewards."""
    observation = rng.uniform(-1, 1, 3).astype(np.float32)
    for _ in range(steps):
        agent.act(observation)
        observation, done = rng.uniform(-1, 1, 3).astype(np.float32), bool(rng.random() < 0.1)
        agent.observe(observation, float(rng.normal()), done, bool(rng.random() < 0.1))


def test_returns_equal_a_calculation_by_hand() -> None:
    assert returns([1.0, 2.0, 4.0], 8.0, 0.5) == [1 + 1 + 1 + 1, 2 + 2 + 2, 4 + 4]
    assert returns([1.0], 0.0, 0.9) == [1.0]


def test_shared_rmsprop_is_that_with_epsilon_under_the_root_in_place() -> None:
    generator = torch.Generator().manual_seed(0)
    parameters, gradient = torch.randn(2, 9, generator=generator)
    expected, state = rmsprop(
        parameters,
        gradient,
        RmspropState(torch.zeros(9), torch.tensor(0.01)),
        epsilon=0.1,
        uses_inner_epsilon=True,
    )
    squares, shared = torch.zeros(9), parameters.clone()
    update_shared_rmsprop(shared, squares, gradient, HYPER, 0.01)
    torch.testing.assert_close(shared, expected)
    torch.testing.assert_close(squares, state.square)


def test_the_gradient_equals_the_sums_of_the_paper_and_padding_adds_nothing() -> None:
    agent = make_a3c(max_grad_norm=None, entropy_coefficient=0.02, value_coefficient=0.7)
    named = {name: tensor.clone().requires_grad_() for name, tensor in agent._named.items()}
    rows, actions, returned = (
        torch.rand(3, 3),
        torch.tensor([2, 0, 1]),
        torch.tensor([1.0, -2.0, 0.5]),
    )

    def compute_network(prefix):
        hidden = torch.tanh(rows @ named[f"{prefix}.0.weight"].T + named[f"{prefix}.0.bias"])
        return hidden @ named[f"{prefix}.1.weight"].T + named[f"{prefix}.1.bias"]

    chosen, value = (
        torch.distributions.Categorical(logits=compute_network("policy")),
        compute_network("value").squeeze(1),
    )
    policy_sum = (
        chosen.log_prob(actions) * (returned - value).detach() + 0.02 * chosen.entropy()
    ).sum()
    (0.7 * (returned - value).square().sum() - policy_sum).backward()
    expected = torch.cat([tensor.grad.reshape(-1) for tensor in named.values()])
    steps = PaddedRollout(
        torch.cat((rows, rows[:1])),
        torch.cat((actions, actions[:1])),
        torch.cat((returned, returned[:1])),
        torch.tensor([1.0, 1, 1, 0]),
    )
    for gradient in (eager_gradient, functional_gradient):
        slope, means = A3cMath(agent._model, agent._hyper).clipped_gradient(
            gradient, agent.parameters, steps
        )
        torch.testing.assert_close(slope, expected, rtol=1e-4, atol=1e-5)
        losses = torch.stack(
            (
                -(chosen.log_prob(actions) * (returned - value)).mean(),
                (returned - value).square().mean(),
            )
        )
        told = torch.stack(
            (
                losses[0] + 0.7 * losses[1] - 0.02 * chosen.entropy().mean(),
                *losses,
                chosen.entropy().mean(),
                value.mean(),
            )
        )
        torch.testing.assert_close(means, torch.cat((told.detach(), expected.norm().unsqueeze(0))))


def test_a_rollout_ends_after_t_max_or_with_the_episode_and_bootstraps_if_truncated() -> None:
    agent, row = make_a3c(), np.ones(3, np.float32)
    seen = []
    agent._learn = lambda bootstrap_value: (
        seen.append((len(agent._rewards), bootstrap_value)),
        agent._rewards.clear(),
    )
    for done, reset in [(False, False)] * 4 + [(False, False), (True, False), (False, True)]:
        agent.act(row)
        agent.observe(row, 1.0, done, reset)
    value = agent._value(row)
    assert seen == [(4, value), (2, 0.0), (1, value)]


def test_a_process_reads_the_shared_parameters_after_its_next_update() -> None:
    one, other = make_a3c(0), make_a3c(1)
    adopt(other, share(one))
    assert torch.equal(one._own, other._own)
    begin = one.parameters.clone()
    run_randomly(one, 4, np.random.default_rng(0))
    assert not torch.equal(begin, one.parameters)
    assert torch.equal(other.parameters, one.parameters)
    assert torch.equal(other._own, begin)
    run_randomly(other, 4, np.random.default_rng(1))
    assert torch.equal(other._own, one.parameters)
    assert not torch.equal(one._own, one.parameters)


def test_processes_have_different_random_streams() -> None:
    row = np.ones(3, np.float32)
    drawn = [
        [int(agent.act(row)) for _ in range(40)]
        for agent in (make_a3c(0), make_a3c(1), make_a3c(0))
    ]
    assert drawn[0] == drawn[2]
    assert drawn[0] != drawn[1]


@pytest.mark.parametrize("space", [spaces.Discrete(3), TORQUE])
def test_a_state_in_mid_rollout_continues_bit_exactly(space) -> None:
    first, second = make_a3c(0, space), make_a3c(0, space, learning_rate=0.01)
    run_randomly(first, 10, np.random.default_rng(0))
    shared = second.parameters
    second.load_state_dict(first.state_dict())
    assert second.parameters is shared
    for agent in (first, second):
        run_randomly(agent, 10, np.random.default_rng(1))
    assert_same_state(first.state_dict(), second.state_dict())


def test_a_report_has_the_explained_variance_over_all_steps_of_its_updates() -> None:
    agent, rng = make_a3c(gamma=0.5), np.random.default_rng(0)
    observations = rng.uniform(-1, 1, (13, 3)).astype(np.float32)
    rewards = rng.normal(size=12)
    targets, values = list[float](), list[float]()
    for update in range(3):
        rows = observations[4 * update : 4 * update + 5]
        own = agent._model.values(agent._named, torch.from_numpy(rows)).tolist()
        targets += returns(rewards[4 * update : 4 * update + 4].tolist(), own[-1], 0.5)
        values += own[:-1]
        for step in range(4 * update, 4 * update + 4):
            agent.act(observations[step])
            agent.observe(observations[step + 1], rewards[step], False, False)
    found = agent.report()
    named = dict(zip(REPORT_NAMES, found.values, strict=True))
    assert found.updates == 3
    assert named["value/mean"] == pytest.approx(np.mean(values), rel=1e-5)
    wanted = 1 - np.var(np.subtract(targets, values)) / np.var(targets)
    assert named["value/explained_variance"] == pytest.approx(wanted, rel=1e-4)
    assert agent.report() == LearnReport(0)


def test_equal_returns_explain_nothing() -> None:
    fit = ValueFit()
    fit.note([2.0, 2.0])
    assert fit.explained_variance(1.0, 1.5) == 0.0


def test_the_largest_reward_is_that_of_all_processes_and_is_restored() -> None:
    space = spaces.Discrete(3)
    main = SharedA3c(HYPER, AgentContext(BOX, space, 1, 5))
    one, other = make_a3c(0), make_a3c(1)
    for agent in (one, other):
        adopt(agent, main.shared)
    assert main.metrics() == {}
    row = np.ones(3, np.float32)

    def learn(agent: A3c, *rewards: float) -> None:
        for reward in rewards:
            agent.act(row)
            agent.observe(row, reward, False, False)

    learn(one, 1.0, -7.0, math.nan, 2.0)
    learn(other, 3.0, 3.0, 3.0, 3.0)
    assert main.metrics() == {"reward/largest": 7.0}
    # The other process read the tensor before 7 was written, and writes its own afterwards.
    main.largest_reward.fill_(3.0)
    learn(one, 0.0, 0.0, 0.0, 0.0)
    assert main.metrics() == {"reward/largest": 7.0}
    again = SharedA3c(HYPER, AgentContext(BOX, space, 1, 6))
    again.load_state_dict(main.state_dict())
    assert again.metrics() == {"reward/largest": 7.0}


def test_files_hold_the_shared_tensors(tmp_path) -> None:
    first, second = make_a3c(), make_a3c()
    run_randomly(first, 10, np.random.default_rng(0))
    first.save(str(tmp_path))
    second.load(str(tmp_path))
    assert torch.equal(first.parameters, second.parameters)
    assert torch.equal(first.squares, second.squares)


def test_an_evaluation_takes_the_likeliest_actions_and_learns_nothing() -> None:
    agent, row = make_a3c(), np.ones(3, np.float32)
    before = agent.parameters.clone()
    with agent.eval_mode():
        assert len({int(agent.act(row)) for _ in range(20)}) == 1
        for _ in range(10):
            agent.observe(row, 1.0, False, False)
    assert torch.equal(agent.parameters, before)
    assert dict(agent.get_statistics()).keys() == {"average_value", "average_entropy"}


def make_cart_pole(process_idx: int, test: bool) -> gym.Env:
    del process_idx, test
    return gym.make("CartPole-v1")


def make_agent(hyper: A3cParameters, process_idx: int) -> A3c:
    env = make_cart_pole(process_idx, test=False)
    return A3c(hyper, env.observation_space, env.action_space, process_idx=process_idx)


@pytest.mark.slow
def test_two_processes_train_the_same_parameters(tmp_path) -> None:
    make = partial(make_agent, A3cParameters(rollout_steps=5))
    agent = train_agent_async(
        str(tmp_path),
        2,
        make_cart_pole,
        steps=3_000,
        eval_interval=None,
        make_agent=make,
        random_seeds=[1, 2],
    )
    assert not torch.equal(agent.parameters, make(0).parameters)
    assert agent.squares.any()
    assert json.loads((tmp_path / "outcome.json").read_text())["env_steps"] >= 3_000

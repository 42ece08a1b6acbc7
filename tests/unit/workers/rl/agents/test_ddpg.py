import math

import numpy as np
import pytest
import torch

from palestra.contract.agents import DdpgParameters
from tests.unit.workers.rl.agents.continuous_kit import (
    flatten,
    follow,
    make_algorithm,
    make_modules,
    make_random_batch,
    make_replay_agent,
    make_state,
    measure_gradient,
)
from workers.acceleration.update_runner import eager_gradient
from workers.rl.agents.ddpg import build

HYPER = DdpgParameters(
    hidden_sizes=(8, 8),
    batch_size=16,
    learning_rate=1e-2,
    actor_learning_rate=5e-3,
    tau=0.1,
    critic_weight_decay=0.05,
    learning_starts=0,
)


def test_td_targets_equal_a_calculation_by_hand() -> None:
    math_ = make_algorithm(build, HYPER.model_copy(update={"hidden_sizes": ()}), actions=1)
    actor = {
        "policy.0.weight": torch.tensor([[0.0, 0.0, 1.0]]),
        "policy.0.bias": torch.tensor([0.5]),
    }
    critic = {"q.0.weight": torch.tensor([[1.0, 0.0, 0.0, 2.0]]), "q.0.bias": torch.tensor([0.25])}
    batch = make_random_batch(3, actions=1)._replace(discount=torch.tensor([0.9, 0.0, 0.81]))
    successor = batch.next_observation
    value = successor[:, 0] + 2 * torch.tanh(successor[:, 2] + 0.5) + 0.25
    torch.testing.assert_close(
        math_.td_targets(actor, critic, batch), batch.reward + batch.discount * value
    )


def test_update_equals_modules_with_optimizers() -> None:
    math_ = make_algorithm(build, HYPER)
    state = make_state(math_)
    (actor,), (actor_target,) = (
        make_modules(state.actor, (3, 8, 8, 2)),
        make_modules(state.actor_targets, (3, 8, 8, 2)),
    )
    (critic,), (target,) = (
        make_modules(vector, (5, 8, 8, 1)) for vector in (state.critics, state.critic_targets)
    )
    actor_step = torch.optim.Adam(actor.parameters(), lr=5e-3)
    critic_step = torch.optim.Adam(critic.parameters(), lr=1e-2, weight_decay=0.05)
    for step in range(30):
        batch = make_random_batch(seed=step)
        state, report, error = math_.update(eager_gradient, state, batch)
        with torch.no_grad():
            action = actor_target(batch.next_observation).tanh()
            value = target(torch.cat((batch.next_observation, action), 1)).squeeze(1)
            wanted = batch.reward + batch.discount * value
        value = critic(torch.cat((batch.observation, batch.action), 1)).squeeze(1)
        critic_loss = torch.nn.functional.mse_loss(value, wanted)
        critic_step.zero_grad()
        critic_loss.backward()
        norm = measure_gradient(critic.parameters())
        critic_step.step()
        actor_loss = -critic(
            torch.cat((batch.observation, actor(batch.observation).tanh()), 1)
        ).mean()
        actor_step.zero_grad()
        actor_loss.backward()
        actor_step.step()
        follow(target, critic, 0.1)
        follow(actor_target, actor, 0.1)
        expected = torch.stack((critic_loss, actor_loss, value.mean(), norm)).detach()
        torch.testing.assert_close(report, expected, rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(error, (value - wanted).abs().detach(), rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(state.actor, flatten([actor]), rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(state.critics, flatten([critic]), rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(state.actor_targets, flatten([actor_target]), rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(state.critic_targets, flatten([target]), rtol=1e-3, atol=1e-3)


def test_the_last_layers_begin_near_zero() -> None:
    math_ = make_algorithm(build, DdpgParameters())
    state = math_.start(torch.Generator().manual_seed(0))
    for layout, vector, last in (
        ("actor", state.actor, "policy.2"),
        ("critics", state.critics, "q.2"),
    ):
        parameters = math_.layouts[layout].split(vector)
        assert 2e-3 < float(parameters[f"{last}.weight"].abs().max()) <= 3e-3
    assert state.actor_targets is state.actor
    assert state.critic_targets is state.critics


def test_both_step_sizes_move_in_proportion() -> None:
    agent = make_replay_agent(build, HYPER)
    agent.learning_rate = 1e-3
    state = agent.learning_state
    assert float(state.critic_optimizer.learning_rate) == pytest.approx(1e-3)
    assert float(state.actor_optimizer.learning_rate) == pytest.approx(5e-4)


@pytest.mark.parametrize("noise", ["ornstein_uhlenbeck", "gaussian"])
def test_exploration_noise_is_correlated_or_not(noise) -> None:
    agent = make_replay_agent(
        build, HYPER.model_copy(update={"noise": noise, "noise_scale": 0.1}), num_envs=200
    )
    observation = np.zeros((200, 3), np.float32)
    greedy = agent.act(observation, explore=False)
    drawn = np.stack([agent.act(observation, explore=True) - greedy for _ in range(30)])[10:]
    together = np.corrcoef(drawn[:-1].ravel(), drawn[1:].ravel())[0, 1]
    assert together == pytest.approx(0.85 if noise == "ornstein_uhlenbeck" else 0.0, abs=0.06)


def test_a_non_finite_target_network_never_reaches_terminal_targets() -> None:
    math_ = make_algorithm(build, HYPER)
    state, batch = make_state(math_), make_random_batch()._replace(discount=torch.zeros(16))
    broken = math_.layouts["critics"].split(torch.full_like(state.critics, math.nan))
    assert torch.equal(
        math_.td_targets(math_.layouts["actor"].split(state.actor), broken, batch), batch.reward
    )

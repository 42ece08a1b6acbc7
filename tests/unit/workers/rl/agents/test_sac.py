import math

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch.distributions import Independent, Normal, TanhTransform, TransformedDistribution

from palestra.contract.agents import SacParameters
from tests.unit.workers.rl.agents.agent_kit import make_context
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
from workers.acceleration.update_runner import eager_gradient, make_runner
from workers.core.errors import DefinitionError
from workers.rl.agents.sac import build

HYPER = SacParameters(
    hidden_sizes=(8, 8), batch_size=16, learning_rate=1e-2, tau=0.1, initial_temperature=0.3
)


def make_batch(seed=0, size=16):
    return make_random_batch(size, seed=seed, noises=2)


def sample_action(actor, observation, noise):
    mean, log_std = actor(observation).chunk(2, -1)
    distribution = Independent(
        TransformedDistribution(
            Normal(mean, log_std.clamp(-20, 2).exp()), TanhTransform(cache_size=1)
        ),
        1,
    )
    action = torch.tanh(mean + log_std.clamp(-20, 2).exp() * noise)
    return action, distribution.log_prob(action)


def test_td_targets_equal_a_calculation_by_hand() -> None:
    math_ = make_algorithm(build, SacParameters(hidden_sizes=()), actions=1)
    actor = {
        "policy.0.weight": torch.zeros(2, 3),
        "policy.0.bias": torch.tensor([0.5, math.log(0.2)]),
    }
    weight = torch.tensor([[[1.0, 0.0, 0.0, 2.0]], [[0.0, 1.0, 0.0, -1.0]]])
    targets = {"q.0.weight": weight, "q.0.bias": torch.tensor([[0.25], [0.0]])}
    batch = make_random_batch(3, actions=1, noises=2)._replace(
        discount=torch.tensor([0.9, 0.0, 0.81])
    )
    raw = 0.5 + 0.2 * batch.noise[0][:, 0]
    action = raw.tanh()
    log_density = Normal(0.5, 0.2).log_prob(raw) - torch.log(1 - action**2)
    successor = batch.next_observation
    least = torch.minimum(successor[:, 0] + 2 * action + 0.25, successor[:, 1] - action)
    expected = batch.reward + batch.discount * (least - 0.3 * log_density)
    torch.testing.assert_close(
        math_.td_targets(actor, targets, torch.tensor(0.3), batch), expected, rtol=1e-5, atol=1e-5
    )


def test_losses_equal_a_calculation_by_hand() -> None:
    math_ = make_algorithm(build, SacParameters(hidden_sizes=()), actions=1)
    critics = {"q.0.weight": torch.zeros(2, 1, 4), "q.0.bias": torch.tensor([[1.0], [3.0]])}
    batch = make_random_batch(2, actions=1, noises=2)
    loss, (mean, error) = math_.critic_loss(critics, batch, torch.tensor([0.0, 2.0]))
    assert float(loss) == pytest.approx(0.5 * (1 + 1) / 2 + 0.5 * (9 + 1) / 2)
    assert float(mean) == pytest.approx(2.0)
    assert error.tolist() == [2.0, 1.0]
    actor = {"policy.0.weight": torch.zeros(2, 3), "policy.0.bias": torch.tensor([0.0, 0.0])}
    loss, (log_density,) = math_.actor_loss(actor, critics, torch.tensor(0.5), batch)
    raw = batch.noise[1][:, 0]
    expected = (Normal(0.0, 1.0).log_prob(raw) - torch.log(1 - raw.tanh() ** 2)).mean()
    assert float(log_density) == pytest.approx(float(expected), abs=1e-5)
    assert float(loss) == pytest.approx(0.5 * float(expected) - 1.0, abs=1e-5)


def test_the_slope_of_the_temperature_is_the_derivative_of_its_loss() -> None:
    math_ = make_algorithm(build, HYPER)
    log_alpha, densities = torch.tensor(-0.7, requires_grad=True), torch.tensor([0.5, -3.0, 1.2])
    assert math_.target_entropy == -2.0
    loss = (-log_alpha.exp() * (densities - 2.0)).mean()
    (expected,) = torch.autograd.grad(loss, log_alpha)
    slope = math_.temperature_gradient(log_alpha.detach().exp(), densities.mean())
    torch.testing.assert_close(slope, expected)
    assert math_.temperature_gradient(torch.tensor(1.0), torch.tensor(5.0)) < 0, (
        "too little entropy: the temperature rises"
    )
    assert (
        make_algorithm(build, HYPER.model_copy(update={"target_entropy": -0.5})).target_entropy
        == -0.5
    )


@pytest.mark.parametrize("learn_temperature", [True, False])
def test_update_equals_modules_with_optimizers(learn_temperature) -> None:
    math_ = make_algorithm(build, HYPER.model_copy(update={"learn_temperature": learn_temperature}))
    state = make_state(math_)
    (actor,) = make_modules(state.actor, (3, 8, 8, 4))
    critics, targets = (
        make_modules(vector, (5, 8, 8, 1), copies=2)
        for vector in (state.critics, state.critic_targets)
    )
    log_alpha = state.log_temperature.clone().requires_grad_()
    actor_step = torch.optim.Adam(actor.parameters(), lr=1e-2)
    critic_step = torch.optim.Adam(
        [parameter for critic in critics for parameter in critic.parameters()], lr=1e-2
    )
    alpha_step = torch.optim.Adam([log_alpha], lr=1e-2)

    def compute_minimum(made, observation, action):
        return torch.minimum(*(one(torch.cat((observation, action), 1)).squeeze(1) for one in made))

    for step in range(30):
        batch = make_batch(step)
        state, report, error = math_.update(eager_gradient, state, batch)
        alpha = log_alpha.detach().exp()
        with torch.no_grad():
            action, log_density = sample_action(actor, batch.next_observation, batch.noise[0])
            value = compute_minimum(targets, batch.next_observation, action) - alpha * log_density
            wanted = batch.reward + batch.discount * value
        values = [
            critic(torch.cat((batch.observation, batch.action), 1)).squeeze(1) for critic in critics
        ]
        critic_loss = sum(0.5 * (value - wanted).square().mean() for value in values)
        critic_step.zero_grad()
        critic_loss.backward()
        norm = measure_gradient(one for critic in critics for one in critic.parameters())
        critic_step.step()
        action, log_density = sample_action(actor, batch.observation, batch.noise[1])
        actor_loss = (
            alpha * log_density - compute_minimum(critics, batch.observation, action)
        ).mean()
        actor_step.zero_grad()
        actor_loss.backward()
        actor_step.step()
        alpha_loss = -(log_alpha.exp() * (log_density.detach() - 2.0)).mean()
        if learn_temperature:
            alpha_step.zero_grad()
            alpha_loss.backward()
            alpha_step.step()
        for target, critic in zip(targets, critics, strict=True):
            follow(target, critic, 0.1)
        mean = torch.stack(values).mean()
        expected = [critic_loss, actor_loss, mean, -log_density.mean(), alpha, norm]
        torch.testing.assert_close(
            report, torch.stack([one.detach() for one in expected]), rtol=1e-3, atol=1e-4
        )
        torch.testing.assert_close(
            error, (torch.stack(values) - wanted).detach().abs().mean(0), rtol=1e-3, atol=1e-3
        )
    torch.testing.assert_close(state.actor, flatten([actor]), rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(state.critics, flatten(critics), rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(state.critic_targets, flatten(targets), rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(state.log_temperature, log_alpha.detach(), rtol=1e-4, atol=1e-5)


def test_target_networks_are_updated_by_tau() -> None:
    math_ = make_algorithm(build, HYPER)
    state = make_state(math_)
    after = math_.update(eager_gradient, state, make_batch()).state
    torch.testing.assert_close(
        after.critic_targets, 0.9 * state.critic_targets + 0.1 * after.critics
    )


def test_a_non_finite_target_network_never_reaches_terminal_targets() -> None:
    math_ = make_algorithm(build, HYPER)
    state, batch = make_state(math_), make_batch()._replace(discount=torch.zeros(16))
    broken = math_.layouts["critics"].split(torch.full_like(state.critics, math.nan))
    wanted = math_.td_targets(
        math_.layouts["actor"].split(state.actor), broken, torch.tensor(1.0), batch
    )
    assert torch.equal(wanted, batch.reward)


def test_exploring_actions_are_drawn_from_the_policy_after_the_random_ones() -> None:
    agent = make_replay_agent(build, HYPER.model_copy(update={"learning_starts": 40}), num_envs=20)
    observation = np.zeros((20, 3), np.float32)
    random = np.concatenate([agent.act(observation, explore=True) for _ in range(2)])
    assert random.max() > 0.8
    assert random.min() < -0.8
    exploring = np.concatenate([agent.act(observation, explore=True) for _ in range(100)])
    outputs = agent.algorithm.policy.forward_numpy(agent._arrays, observation[:1])[0]
    raw = np.arctanh(exploring.astype(np.float64))
    np.testing.assert_allclose(raw.mean(0), outputs[:2], atol=0.1)
    np.testing.assert_allclose(raw.std(0), np.exp(outputs[2:]), rtol=0.1)
    np.testing.assert_allclose(
        agent.act(observation[:1], explore=False)[0], np.tanh(outputs[:2]), rtol=1e-6
    )


def test_acting_in_numpy_equals_acting_in_torch() -> None:
    agent = make_replay_agent(build, HYPER)
    rng = np.random.default_rng(0)
    observation, noise = rng.normal(size=(5, 3)).astype(np.float32), agent.acting_noise(5)
    agent.act(observation, explore=False)
    for more in ((), noise):
        slow = agent.algorithm.act(
            agent.named_parameters(),
            torch.from_numpy(observation),
            tuple(torch.from_numpy(one) for one in more),
        )
        np.testing.assert_allclose(
            agent.algorithm.act_arrays(agent._arrays, observation, more),
            slow.numpy(),
            rtol=1e-5,
            atol=1e-6,
        )


def test_unbounded_actions_are_refused() -> None:
    with pytest.raises(DefinitionError, match="sac needs finite bounds on every action"):
        build(HYPER, make_context(spaces.Box(-np.inf, 1, (2,), np.float32)))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_compiled_update_equals_the_eager_one() -> None:
    math_ = make_algorithm(build, HYPER)
    compiled, eager = (make_runner(math_.update, mode=mode) for mode in ("compiled", "eager"))
    one = other = make_state(math_)
    for step in range(5):
        one, other = compiled(one, make_batch(step)).state, eager(other, make_batch(step)).state
    assert compiled._function is not compiled._fallback, "this machine has no compiler"
    torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)

"""A2C and REINFORCE, and the code shared by all on-policy agents.

Updates are compared with calculations by hand and with independent implementations.
"""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from palestra.contract.agents import (
    A2cParameters,
    PpoParameters,
    ReinforceParameters,
    TrpoParameters,
)
from tests.unit.workers.rl.agents.agent_kit import assert_same_state, make_context, make_experience
from workers.acceleration.nested_tensors import map_tensors
from workers.acceleration.update_runner import eager_gradient, functional_gradient
from workers.core.errors import DefinitionError
from workers.core.types import Experience
from workers.rl.agents import a2c, ppo, reinforce, trpo
from workers.rl.agents.common.on_policy import episode_ends, generalised_advantages

AGENTS = {
    "ppo": (ppo.build, PpoParameters(rollout_steps=8, minibatch_size=16, entropy_coefficient=0.01)),
    "a2c": (a2c.build, A2cParameters(rollout_steps=8)),
    "reinforce": (reinforce.build, ReinforceParameters(episodes=2)),
    "trpo": (trpo.build, TrpoParameters(rollout_steps=8, value_minibatch_size=8)),
}


def compute_n_step_naively(reward, value, behind, flags, successor_value, gamma) -> np.ndarray:
    """Returns the n-step advantage of each step.

    It is the discounted rewards to the end of episode or rollout, plus the value of the last
    successor, minus the value of the step.
    """
    (terminated, truncated), (steps, envs) = flags, reward.shape
    result = np.zeros((steps, envs))
    for b in range(envs):
        for t in range(steps):
            total, factor, k = 0.0, 1.0, t
            while True:
                total += factor * reward[k, b]
                factor *= gamma
                if terminated[k, b]:
                    break
                if truncated[k, b]:
                    total += factor * successor_value[k, b]
                    break
                if k == steps - 1:
                    total += factor * behind[b]
                    break
                k += 1
            result[t, b] = total - value[t, b]
    return result


def test_with_lambda_one_advantages_are_those_of_n_steps() -> None:
    rng = np.random.default_rng(0)
    reward, value, successor = rng.normal(size=(3, 9, 4)).astype(np.float32)
    terminated = rng.random((9, 4)) < 0.2
    truncated = (rng.random((9, 4)) < 0.2) & ~terminated
    rollout = {
        "terminated": terminated,
        "truncated": truncated,
        "active": np.ones((9, 4), np.bool_),
    }
    ends = episode_ends(rollout)
    got = generalised_advantages(
        reward, value, successor[ends.bootstrap_mask], ends, gamma=0.9, gae_lambda=1.0
    )
    wanted = compute_n_step_naively(
        reward, value, successor[-1], (terminated, truncated), successor, 0.9
    )
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def test_a2c_equals_an_independent_implementation_over_thirty_updates() -> None:
    hyper = A2cParameters(
        rollout_steps=5, hidden_sizes=(8,), entropy_coefficient=0.02, learning_rate=0.01
    )
    agent, rng = a2c.build(hyper, make_context()), np.random.default_rng(0)
    module = torch.nn.ModuleDict(
        {
            name: torch.nn.Sequential(
                torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, size)
            )
            for name, size in (("policy", 4), ("value", 1))
        }
    )
    named = agent.named_parameters()
    module.load_state_dict(
        {
            f"{net}.{place}.{kind}": named[f"{net}.{layer}.{kind}"]
            for net in ("policy", "value")
            for layer, place in ((0, 0), (1, 2))
            for kind in ("weight", "bias")
        }
    )
    optimizer = torch.optim.RMSprop(module.parameters(), lr=0.01, alpha=0.99, eps=1e-5)
    for _ in range(30):
        gathered = make_experience(agent, 5, 2, rng)
        agent.observe(gathered)
        rows, successor = (
            torch.from_numpy(array) for array in (gathered.observation, gathered.next_observation)
        )
        value = module["value"](rows).squeeze(-1)
        later = module["value"](successor).squeeze(-1).detach().numpy()
        # Observations are random, so a row differs from the `next_observation` before it: the
        # reference uses the value of the next row wherever the agent does.
        behind = later[-1]
        flags = gathered.terminated, gathered.truncated
        wanted = compute_n_step_naively(
            gathered.reward, value.detach().numpy(), behind, flags, later, 0.99
        )
        advantage = torch.from_numpy(wanted.astype(np.float32))
        chosen = torch.distributions.Categorical(logits=module["policy"](rows))
        policy_loss = -(chosen.log_prob(torch.from_numpy(gathered.action)) * advantage).mean()
        value_loss = (value - (advantage + value.detach())).square().mean()
        optimizer.zero_grad()
        (policy_loss + 0.5 * value_loss - 0.02 * chosen.entropy().mean()).backward()
        torch.nn.utils.clip_grad_norm_(module.parameters(), 0.5)
        optimizer.step()
        assert agent.learn(1).updates == 1
    torch.testing.assert_close(
        agent.named_parameters()["policy.1.weight"],
        module["policy"][2].weight.detach(),
        rtol=1e-3,
        atol=1e-5,
    )
    torch.testing.assert_close(
        agent.named_parameters()["value.0.bias"],
        module["value"][0].bias.detach(),
        rtol=1e-3,
        atol=1e-5,
    )


def test_the_gradient_of_reinforce_on_a_bandit_equals_a_calculation_by_hand() -> None:
    hyper = ReinforceParameters(
        episodes=4, hidden_sizes=(), baseline=False, normalize_advantages=False, max_grad_norm=None
    )
    agent = reinforce.build(
        hyper, make_context(spaces.Discrete(2), spaces.Box(-1, 1, (1,), np.float32), num_envs=4)
    )
    agent.learning_state = agent.learning_state._replace(
        parameters=torch.zeros_like(agent.learning_state.parameters)
    )
    arms, rewards = np.array([[0, 1, 1, 0]]), np.array([[1.0, 3.0, 5.0, 2.0]])
    ones, observation = np.ones((1, 4), np.bool_), np.ones((1, 4, 1), np.float32)
    agent.observe(Experience(observation, arms, rewards, ones, ~ones, observation, env_steps=4))
    algorithm = agent.algorithm
    batch = algorithm.prepare(agent.learning_state, agent.memory.contents())
    split = algorithm.model.layout.split
    slope, _, _ = eager_gradient(
        lambda vector: algorithm.loss(split(vector), batch), agent.learning_state.parameters
    )
    # d ln pi(a) / d logit i = 1[i = a] - 1/2; the loss is minus the mean of reward times log
    # probability
    by_hand = -np.mean(
        [
            [1.0 * 0.5, 1.0 * -0.5],
            [3.0 * -0.5, 3.0 * 0.5],
            [5.0 * -0.5, 5.0 * 0.5],
            [2.0 * 0.5, 2.0 * -0.5],
        ],
        axis=0,
    )
    np.testing.assert_allclose(split(slope)["policy.0.bias"].numpy(), by_hand, rtol=1e-5)
    np.testing.assert_allclose(split(slope)["policy.0.weight"].numpy()[:, 0], by_hand, rtol=1e-5)
    assert not split(slope)["value.0.bias"].any()


def test_reinforce_learns_from_whole_episodes_and_their_returns_to_go_only() -> None:
    agent = reinforce.build(
        ReinforceParameters(gamma=0.5, baseline=False), make_context(num_envs=2)
    )
    gathered = make_experience(agent, 4, 2, np.random.default_rng(0))
    gathered.terminated[:], gathered.truncated[:] = False, False
    gathered.terminated[1, 0] = gathered.truncated[2, 1] = True
    gathered.reward[:] = [[1, 1], [2, 2], [4, 4], [8, 8]]
    agent.observe(gathered)
    batch = agent.algorithm.prepare(agent.learning_state, agent.memory.contents())
    np.testing.assert_allclose(batch.value_target.numpy(), [1 + 1, 1 + 1 + 1, 2, 2 + 2, 4])
    assert agent.learn_schedule.learns_at_episode_end
    assert agent.collect_plan.episodes == 8


def test_reinforce_makes_no_update_without_a_whole_episode() -> None:
    agent = reinforce.build(ReinforceParameters(), make_context())
    gathered = make_experience(agent, 3, 2, np.random.default_rng(0))
    gathered.terminated[:], gathered.truncated[:] = False, False
    agent.observe(gathered)
    assert agent.learn(1).updates == 0


@pytest.mark.parametrize("name", ["a2c", "reinforce", "trpo"])
def test_both_gradients_and_vmap_give_the_same_update_and_nothing_is_written(name) -> None:
    build, hyper = AGENTS[name]
    agents = [build(hyper, make_context(seed=seed)) for seed in range(4)]
    algorithm, batches = agents[0].algorithm, []
    for agent in agents:
        gathered = make_experience(agent, 8, 2, np.random.default_rng(7))
        gathered.terminated[-1] = True
        gathered.truncated[-1] = False
        agent.observe(gathered)
        batches.append(next(iter(agent.batches(1))))
    states = [agent.learning_state for agent in agents]
    kept = [map_tensors(torch.clone, state) for state in states]

    def stack_rows(*tensors):
        return torch.stack(tensors)

    together = torch.func.vmap(lambda *arguments: algorithm.update(functional_gradient, *arguments))
    stacked = together(map_tensors(stack_rows, *states), map_tensors(stack_rows, *batches))
    for seed in range(4):
        eager, functional = (
            algorithm.update(gradient, states[seed], batches[seed])
            for gradient in (eager_gradient, functional_gradient)
        )
        torch.testing.assert_close(eager, functional, rtol=1e-3, atol=1e-5)
        torch.testing.assert_close(stacked.report[seed], eager.report, rtol=1e-3, atol=1e-5)
        torch.testing.assert_close(
            stacked.state.parameters[seed], eager.state.parameters, rtol=1e-3, atol=2e-4
        )
        torch.testing.assert_close(states[seed], kept[seed], rtol=0, atol=0)


@pytest.mark.parametrize("name", AGENTS)
def test_a_state_in_mid_rollout_continues_bit_exactly(name) -> None:
    build, hyper = AGENTS[name]
    hyper = hyper.model_copy(update={"normalize_observations": True, "normalize_rewards": True})
    first, rng = build(hyper, make_context(seed=3)), np.random.default_rng(0)
    for steps in (8, 5):
        first.observe(make_experience(first, steps, 2, rng))
        if steps == 8:
            first.learn(100)
    second = build(hyper, make_context(seed=99))
    second.load_state_dict(first.state_dict())
    second.memory.load_state_dict(first.memory.state_dict())
    for agent in (first, second):
        agent.observe(make_experience(agent, 30, 2, np.random.default_rng(1)))
        assert agent.learn(100).updates
    assert_same_state(first.state_dict(), second.state_dict())


def test_policy_and_value_share_one_image_encoder() -> None:
    space = spaces.Box(0, 255, (36, 36, 1), np.uint8)
    agent = ppo.build(
        PpoParameters(rollout_steps=2, minibatch_size=4, passes=1, hidden_sizes=(16,)),
        make_context(observation_space=space),
    )
    names = agent.named_parameters()
    assert {"features.conv.0.weight", "policy.0.weight", "value.0.weight"} <= names.keys()
    rng = np.random.default_rng(0)
    observation, successor = rng.integers(0, 256, (2, 2, 2, 36, 36, 1)).astype(np.uint8)
    action = np.stack([agent.act(row, explore=True) for row in observation])
    flags = np.zeros((2, 2), np.bool_)
    agent.observe(
        Experience(observation, action, np.ones((2, 2)), flags, flags, successor, env_steps=4)
    )
    assert np.isfinite(agent.learn(1).values).all()
    with pytest.raises(DefinitionError, match="reads no images"):
        trpo.build(TrpoParameters(), make_context(observation_space=space))


@pytest.mark.parametrize("name", ["a2c", "reinforce", "trpo"])
def test_a_bandit_is_learnt(name) -> None:
    """Only arm 2 of 4 is rewarded; every step ends the episode."""
    build, hyper = AGENTS[name]
    if name == "trpo":
        hyper = hyper.model_copy(update={"value_minibatch_size": 128, "value_passes": 1})
    agent = build(
        hyper.model_copy(update={"gamma": 0.0, "learning_rate": 0.01}), make_context(num_envs=16)
    )
    ones, observation = np.ones((8, 16), np.bool_), np.zeros((8, 16, 3), np.float32)
    for _ in range(30):
        action = np.stack([agent.act(row, explore=True) for row in observation])
        agent.observe(
            Experience(
                observation,
                action,
                (action == 2).astype(np.float64),
                ones,
                ~ones,
                observation,
                env_steps=128,
            )
        )
        agent.learn(1)
    assert (agent.act(observation[0], explore=False) == 2).all()
    drawn = np.stack([agent.act(row, explore=True) for row in observation])
    assert (drawn == 2).mean() > 0.5

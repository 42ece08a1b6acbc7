import json

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from palestra.contract.agents import PpoParameters
from palestra.contract.upgrade import load_definition
from tests.support.api_samples import make_definition
from tests.unit.workers.rl.agents.agent_kit import (
    BOX,
    assert_same_state,
    make_context,
    make_experience,
)
from workers.acceleration.nested_tensors import map_tensors
from workers.acceleration.update_runner import eager_gradient, functional_gradient
from workers.core.errors import DefinitionError
from workers.core.types import Experience
from workers.rl.agents.common.on_policy import PolicyState, RolloutBatch, discounted_sums
from workers.rl.agents.common.optimizers import adam_start
from workers.rl.agents.ppo import REPORT_NAMES, build
from workers.rl.agents.shells.rollout_agent import RolloutAgent

TORQUE = spaces.Box(np.float32([-2, 0]), np.float32([2, 10]), dtype=np.float32)


def compute_advantages_naively(delta, ended, decay) -> np.ndarray:
    """Returns generalised advantages by definition.

    They are discounted sums of temporal-difference errors to the end of the episode.
    """
    steps, envs = delta.shape
    result = np.zeros((steps, envs))
    for b in range(envs):
        for t in range(steps):
            weight = 1.0
            for k in range(t, steps):
                result[t, b] += weight * delta[k, b]
                weight *= decay
                if ended[k, b]:
                    break
    return result


@given(
    st.integers(1, 12),
    st.integers(1, 3),
    st.floats(0, 1),
    st.floats(0, 1),
    st.integers(0, 2**32 - 1),
)
def test_advantages_equal_the_naive_sum(steps, envs, gamma, lambda_, seed) -> None:
    rng = np.random.default_rng(seed)
    reward, value, next_value = rng.normal(size=(3, steps, envs)).astype(np.float32)
    terminated, truncated = rng.random((2, steps, envs)) < 0.2
    ended = terminated | truncated
    delta = reward + gamma * np.where(terminated, 0, next_value) - value
    got = discounted_sums(delta.astype(np.float32), ended, gamma * lambda_)
    wanted = compute_advantages_naively(delta, ended, gamma * lambda_)
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("with_waiting_slots", [False, True])
def test_a_rollout_becomes_advantages_with_the_values_of_true_successors(
    with_waiting_slots,
) -> None:
    hyper = PpoParameters(gamma=0.9, gae_lambda=0.8, rollout_steps=12, minibatch_size=4)
    agent, rng = build(hyper, make_context()), np.random.default_rng(5)
    gathered = make_experience(agent, 12, 2, rng)
    over = gathered.terminated | gathered.truncated
    assert gathered.truncated.any()
    assert gathered.terminated.any()
    # The next row is the successor, except where the episode ended.
    for t in range(11):
        gathered.next_observation[t, ~over[t]] = gathered.observation[t + 1, ~over[t]]
    if with_waiting_slots:
        gathered.active = np.ones((12, 2), np.bool_)
        gathered.active[8:, 1] = False
        gathered.terminated[7, 1], gathered.truncated[7, 1] = False, True
        gathered.env_steps = 20
    agent.observe(gathered)
    model, named = agent.algorithm.model, agent.named_parameters()
    contents = agent.memory.contents()
    batch = agent.algorithm.prepare(agent.learning_state, contents)
    value, next_value = (
        model.values(named, torch.from_numpy(contents[name]).flatten(0, 1)).view(12, 2).numpy()
        for name in ("observation", "next_observation")
    )
    active = contents["active"]
    ended = gathered.terminated | gathered.truncated | ~active
    delta = gathered.reward + 0.9 * np.where(gathered.terminated, 0, next_value) - value
    wanted = compute_advantages_naively(delta, ended, 0.72)
    np.testing.assert_allclose(batch.advantage.numpy(), wanted[active], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        batch.value_target.numpy(), (wanted + value)[active], rtol=1e-4, atol=1e-5
    )
    assert len(batch.advantage) == gathered.env_steps


def make_uniform_agent(**hyper) -> RolloutAgent:
    """Returns an agent with zero parameters.

    Both actions have probability one half and every value is 0.
    """
    agent = build(
        PpoParameters(normalize_advantages=False, **hyper), make_context(spaces.Discrete(2))
    )
    agent.learning_state = agent.learning_state._replace(
        parameters=torch.zeros_like(agent.learning_state.parameters)
    )
    return agent


def make_clipping_batch(ratios: list[float], advantage: list[float]) -> RolloutBatch:
    count = len(ratios)
    old = torch.log(torch.tensor([0.5 / ratio for ratio in ratios]))
    return RolloutBatch(
        torch.zeros(count, 3),
        torch.zeros(count, dtype=torch.int64),
        old,
        torch.tensor(advantage),
        torch.full((count,), 2.0),
    )


def test_the_clipped_loss_equals_a_calculation_by_hand() -> None:
    """The value loss is the squared error, as in Stable-Baselines3 and PFRL."""
    agent = make_uniform_agent(value_coefficient=0.5, entropy_coefficient=0.1)
    batch = make_clipping_batch([1.0, 1.5, 0.5, 1.5, 0.5], [1.0, 1.0, 1.0, -1.0, -1.0])
    total, (report,) = agent.algorithm.loss(agent.named_parameters(), batch)
    policy_loss = -(1.0 + 1.2 + 0.5 - 1.5 - 0.8) / 5
    value_loss, entropy = 4.0, np.log(2)
    ratios = np.array([1.0, 1.5, 0.5, 1.5, 0.5])
    expected = [
        policy_loss + 0.5 * value_loss - 0.1 * entropy,
        policy_loss,
        value_loss,
        entropy,
        (ratios - 1 - np.log(ratios)).mean(),
        0.8,
    ]
    np.testing.assert_allclose(report.numpy(), expected, rtol=1e-5)
    assert float(total) == pytest.approx(expected[0], rel=1e-5)


@pytest.mark.parametrize("coefficient", [0.5, 0.3, 1.7])
def test_an_upgraded_definition_of_version_1_learns_the_same(coefficient) -> None:
    """The weights are equal bit for bit.

    Half the coefficient times the squared error equals the coefficient times half of it.
    """
    document = make_definition(
        schema_version=1,
        agent={"name": "ppo", "normalize_advantages": False, "value_coefficient": coefficient},
    )
    agent = build(load_definition(json.dumps(document)).agent, make_context(spaces.Discrete(2)))
    batch = make_clipping_batch([1.0, 1.5, 0.5, 1.5, 0.5], [1.0, 1.0, 1.0, -1.0, -1.0])._replace(
        observation=torch.randn(5, 3)
    )
    split = agent.algorithm.model.layout.split

    def compute_loss_of_version_1(vector: torch.Tensor) -> tuple[torch.Tensor, tuple[()]]:
        parameters = split(vector)
        outputs, value = agent.algorithm.model(parameters, batch.observation)
        ratio = (
            outputs.log_softmax(1).gather(1, batch.action[:, None])[:, 0] - batch.log_probability
        ).exp()
        policy_loss = -torch.minimum(
            ratio * batch.advantage, ratio.clamp(1 - 0.2, 1 + 0.2) * batch.advantage
        ).mean()
        return policy_loss + coefficient * (0.5 * (value - batch.value_target).square().mean()), ()

    vector = agent.learning_state.parameters
    slope, _, _ = eager_gradient(lambda vector: agent.algorithm.loss(split(vector), batch), vector)
    assert torch.equal(slope, eager_gradient(compute_loss_of_version_1, vector)[0])


@pytest.mark.parametrize(
    ("ratio", "advantage", "moves"),
    [(1.5, 1.0, False), (0.5, -1.0, False), (0.5, 1.0, True), (1.5, -1.0, True), (1.1, 1.0, True)],
)
def test_the_gradient_is_zero_exactly_where_the_ratio_is_clipped(ratio, advantage, moves) -> None:
    agent = make_uniform_agent(value_coefficient=0.0)
    split, batch = agent.algorithm.model.layout.split, make_clipping_batch([ratio], [advantage])
    slope, _, _ = eager_gradient(
        lambda vector: agent.algorithm.loss(split(vector), batch), agent.learning_state.parameters
    )
    bias = split(slope)["policy.2.bias"].numpy()
    # d(-ratio * A)/d logit 0 = -ratio * A * (1 - p)
    np.testing.assert_allclose(
        bias, [-ratio * advantage * 0.5, ratio * advantage * 0.5] if moves else [0, 0], atol=1e-6
    )


def test_the_learner_keeps_raw_actions_beyond_the_bounds() -> None:
    agent = build(PpoParameters(rollout_steps=50, minibatch_size=20), make_context(TORQUE))
    agent.observe(make_experience(agent, 50, 2, np.random.default_rng(0)))
    raw = agent.memory.contents()["action"]
    assert raw.shape == (50, 2, 2)
    assert (np.abs(raw) > 1).any()


def test_experience_of_another_origin_is_read_back_from_its_actions() -> None:
    agent = build(PpoParameters(rollout_steps=4, minibatch_size=4), make_context(TORQUE))
    gathered = make_experience(agent, 4, 2, np.random.default_rng(0))
    agent._raw_actions.clear()
    agent.observe(gathered)
    np.testing.assert_allclose(
        agent.memory.contents()["action"],
        agent.policy.from_space(gathered.action.reshape(8, 2)).reshape(4, 2, 2),
    )


@pytest.mark.parametrize("space", [spaces.Discrete(4), TORQUE])
def test_both_gradients_and_vmap_give_the_same_update(space) -> None:
    agents = [
        build(
            PpoParameters(entropy_coefficient=0.01, rollout_steps=8, minibatch_size=8),
            make_context(space, seed=seed),
        )
        for seed in range(4)
    ]
    algorithm = agents[0].algorithm
    batches = []
    for agent in agents:
        agent.observe(make_experience(agent, 8, 2, np.random.default_rng(7)))
        batches.append(algorithm.prepare(agent.learning_state, agent.memory.contents()))
    vectors = [agent.learning_state.parameters for agent in agents]
    states = [PolicyState(vector, adam_start(vector, 1e-3)) for vector in vectors]

    def stack_rows(*tensors):
        return torch.stack(tensors)

    stacked = torch.func.vmap(lambda *arguments: algorithm.update(functional_gradient, *arguments))(
        map_tensors(stack_rows, *states), map_tensors(stack_rows, *batches)
    )
    for seed in range(4):
        eager, functional = (
            algorithm.update(gradient, states[seed], batches[seed])
            for gradient in (eager_gradient, functional_gradient)
        )
        torch.testing.assert_close(eager, functional, rtol=1e-5, atol=1e-7)
        # Adam's first step is the sign of the gradient, so its input, the gradient, is compared.
        torch.testing.assert_close(
            stacked.state.optimizer.first[seed], eager.state.optimizer.first, rtol=1e-4, atol=1e-7
        )
        torch.testing.assert_close(stacked.report[seed], eager.report, rtol=1e-4, atol=1e-6)


def test_the_first_update_of_a_rollout_has_ratio_one() -> None:
    agent = build(PpoParameters(rollout_steps=16, passes=1, minibatch_size=32), make_context())
    agent.observe(make_experience(agent, 16, 2, np.random.default_rng(0)))
    report = dict(zip(REPORT_NAMES, agent.learn(1).values, strict=True))
    assert report["policy/kl"] == pytest.approx(0, abs=1e-6)
    assert report["policy/clip_fraction"] == 0


@pytest.mark.parametrize(("allowed", "expected"), [(100, 3 * 4), (7, 7), (1, 1), (0, 0)])
def test_updates_are_passes_over_even_minibatches_within_what_is_allowed(allowed, expected) -> None:
    agent = build(PpoParameters(rollout_steps=25, passes=3, minibatch_size=15), make_context())
    assert agent.learn_schedule.every_env_steps == 50
    assert agent.learn_schedule.updates == 12
    agent.observe(make_experience(agent, 25, 2, np.random.default_rng(0)))
    sizes = []
    update = agent._update
    agent._update = lambda state, batch: (sizes.append(len(batch.advantage)), update(state, batch))[
        1
    ]
    assert agent.learn(allowed).updates == expected
    assert len(sizes) == expected
    assert set(sizes) <= {12, 13}
    assert len(agent.memory) == (0 if allowed else 50)


def test_each_pass_sees_every_transition_once() -> None:
    agent = build(PpoParameters(rollout_steps=25, passes=2, minibatch_size=15), make_context())
    batch = RolloutBatch(*(torch.arange(50.0) for _ in range(5)))
    for minibatches in (agent._pass(batch, 50, 4) for _ in range(2)):
        assert sorted(
            torch.cat([minibatch.advantage for minibatch in minibatches]).tolist()
        ) == list(range(50))


def test_target_kl_ends_the_passes() -> None:
    agent = build(
        PpoParameters(
            rollout_steps=32, passes=50, minibatch_size=32, learning_rate=0.05, target_kl=1e-3
        ),
        make_context(),
    )
    agent.observe(make_experience(agent, 32, 2, np.random.default_rng(0)))
    assert 2 <= agent.learn(100).updates < 20


def test_minibatches_of_one_transition_are_finite() -> None:
    agent = build(PpoParameters(rollout_steps=2, passes=1, minibatch_size=1), make_context())
    agent.observe(make_experience(agent, 2, 2, np.random.default_rng(0)))
    assert np.isfinite(agent.learn(4).values).all()


def test_spaces_without_a_policy_are_refused() -> None:
    with pytest.raises(
        DefinitionError, match="Discrete, MultiDiscrete, MultiBinary or a floating Box"
    ):
        build(PpoParameters(), make_context(spaces.Box(0, 9, (2,), np.int64)))


@pytest.mark.parametrize("space", [spaces.Discrete(4), TORQUE])
def test_a_state_in_mid_rollout_continues_bit_exactly(space) -> None:
    hyper = PpoParameters(rollout_steps=20, passes=2, minibatch_size=16)
    first, rng = build(hyper, make_context(space, seed=3)), np.random.default_rng(0)
    first.observe(make_experience(first, 20, 2, rng))
    first.learn(100)
    first.observe(make_experience(first, 7, 2, rng))
    second = build(hyper, make_context(space, seed=99))
    second.load_state_dict(first.state_dict())
    second.memory.load_state_dict(first.memory.state_dict())
    for agent in (first, second):
        agent.observe(make_experience(agent, 13, 2, np.random.default_rng(1)))
        agent.learn(100)
    assert_same_state(first.state_dict(), second.state_dict())


def test_ppo_learns_the_identity() -> None:
    """The reward decreases with the distance between action and observation."""
    hyper = PpoParameters(
        gamma=0.0,
        learning_rate=1e-2,
        rollout_steps=8,
        passes=4,
        minibatch_size=64,
        hidden_sizes=(16,),
    )
    agent = build(
        hyper,
        make_context(
            spaces.Box(-1, 1, (1,), np.float32), spaces.Box(-1, 1, (1,), np.float32), num_envs=16
        ),
    )
    rng = np.random.default_rng(0)
    for _ in range(40):
        observation, successor = rng.uniform(-1, 1, (2, 8, 16, 1)).astype(np.float32)
        action = np.stack([agent.act(row, explore=True) for row in observation])
        reward = -np.square(action - observation)[..., 0]
        flags = np.ones((8, 16), np.bool_), np.zeros((8, 16), np.bool_)
        agent.observe(Experience(observation, action, reward, *flags, successor, env_steps=128))
        agent.learn(100)
    points = np.linspace(-0.8, 0.8, 9, dtype=np.float32)[:, None]
    np.testing.assert_allclose(agent.act(points, explore=False), points, atol=0.2)


def test_box_observations_of_the_kit_have_the_inputs_of_the_agent() -> None:
    assert build(PpoParameters(), make_context()).act(
        np.stack([BOX.sample()] * 2), explore=True
    ).shape == (2,)

"""Recurrent PPO: its training data compared with naive unrolling, and its acting states."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from palestra.contract.agents import RecurrentPpoParameters
from tests.unit.workers.rl.agents.agent_kit import assert_same_state, make_context, make_experience
from workers.acceleration.update_runner import eager_gradient, functional_gradient
from workers.core.types import Experience
from workers.rl.agents.recurrent_ppo import build

HYPER = RecurrentPpoParameters(
    rollout_steps=6,
    minibatch_envs=1,
    passes=2,
    hidden_sizes=(5,),
    memory_units=4,
    gamma=0.9,
    gae_lambda=0.8,
    learning_rate=0.01,
)
COLUMNS = ("observation", "action", "reward", "terminated", "truncated", "next_observation")


def make_steps(agent, steps: int, rng: np.random.Generator, num_envs: int = 2) -> list[Experience]:
    """Lets the agent act and observe one vector step after the other; returns the transitions."""
    pieces = []
    for _ in range(steps):
        pieces.append(make_experience(agent, 1, num_envs, rng))
        agent.observe(pieces[-1])
    return pieces


def compute_states_naively(agent, pieces, state) -> tuple[list, list]:
    """Returns the recurrent state after each step and the values of the true successors.

    They are computed one environment and one step at a time.
    """
    model, named = agent.algorithm.model, agent.named_parameters()
    states, successors = [], []
    for piece in pieces:
        state = model.step(named, torch.from_numpy(piece.observation[0]), state)
        states.append(state)
        after = model.step(named, torch.from_numpy(piece.next_observation[0]), state)
        successors.append(model.heads(named, after)[1])
        ended = torch.from_numpy(piece.terminated[0] | piece.truncated[0])
        state = torch.where(ended.unsqueeze(1), 0.0, state)
    return states, successors


def test_training_data_equal_naive_unrolling_through_ends_of_episodes() -> None:
    agent, rng = build(HYPER, make_context()), np.random.default_rng(3)
    first = make_steps(agent, 6, rng)
    agent.learn(1)
    start = torch.from_numpy(agent.state_dict()["recurrent"]["training"].copy())
    pieces = make_steps(agent, 6, rng)
    assert any((piece.truncated | piece.terminated).any() for piece in (*first, *pieces[:-1]))
    # The next row is the successor, except where the episode ended.
    for t in range(5):
        over = (pieces[t].terminated | pieces[t].truncated)[0]
        pieces[t].next_observation[0, ~over] = pieces[t + 1].observation[0, ~over]
    batch = agent.algorithm.prepare(agent.learning_state, agent.memory.contents())
    model, named = agent.algorithm.model, agent.named_parameters()
    states, successors = compute_states_naively(agent, pieces, start)
    torch.testing.assert_close(batch.state, start)
    advantage = np.zeros((6, 2))
    for b in range(2):
        for t in range(6):
            outputs, value = model.heads(named, states[t])
            chosen = torch.distributions.Categorical(logits=outputs).log_prob(
                torch.from_numpy(pieces[t].action[0])
            )
            torch.testing.assert_close(batch.log_probability[b, t], chosen[b])
            weight = 1.0
            for k in range(t, 6):
                piece, seen = pieces[k], model.heads(named, states[k])[1][b].item()
                later = 0.0 if piece.terminated[0, b] else successors[k][b].item()
                advantage[t, b] += weight * (piece.reward[0, b] + 0.9 * later - seen)
                weight *= 0.72
                if piece.terminated[0, b] or piece.truncated[0, b]:
                    break
            np.testing.assert_allclose(batch.advantage[b, t], advantage[t, b], rtol=1e-3, atol=1e-5)
            np.testing.assert_allclose(
                batch.value_target[b, t], advantage[t, b] + value[b].item(), rtol=1e-3, atol=1e-5
            )


@pytest.mark.parametrize("space", [spaces.Discrete(4), spaces.Box(-2, 2, (2,), np.float32)])
def test_the_first_update_has_ratio_one_and_both_gradients_agree(space) -> None:
    agent = build(HYPER.model_copy(update={"minibatch_envs": 2}), make_context(space))
    make_steps(agent, 6, np.random.default_rng(0))
    batch = next(iter(agent.batches(1)))
    state = agent.learning_state
    eager, functional = (
        agent.algorithm.update(gradient, state, batch)
        for gradient in (eager_gradient, functional_gradient)
    )
    torch.testing.assert_close(eager, functional, rtol=1e-4, atol=1e-5)
    assert dict(zip(agent.report_names, eager.report.tolist(), strict=True))[
        "policy/kl"
    ] == pytest.approx(0, abs=1e-6)


def test_updates_are_passes_over_environments() -> None:
    agent = build(HYPER, make_context())
    assert agent.learn_schedule.every_env_steps == 12
    assert agent.learn_schedule.updates == 4
    make_steps(agent, 6, np.random.default_rng(0))
    assert agent.learn(100).updates == 4


def test_a_state_in_mid_rollout_continues_bit_exactly() -> None:
    hyper = HYPER.model_copy(update={"normalize_observations": True, "normalize_rewards": True})
    first, rng = build(hyper, make_context(seed=3)), np.random.default_rng(0)
    make_steps(first, 6, rng)
    first.learn(100)
    make_steps(first, 3, rng)
    second = build(hyper, make_context(seed=99))
    second.load_state_dict(first.state_dict())
    second.memory.load_state_dict(first.memory.state_dict())
    for agent in (first, second):
        make_steps(agent, 3, np.random.default_rng(1))
        assert agent.learn(100).updates == 4
    assert_same_state(first.state_dict(), second.state_dict())


def test_evaluations_have_a_separate_recurrent_state() -> None:
    agent = build(HYPER, make_context())
    make_steps(agent, 3, np.random.default_rng(0))
    before = agent.state_dict()["recurrent"]["training"].copy()
    row = np.ones((2, 3), np.float32)
    with agent.eval_mode():
        one = agent.act(row, explore=False)
        assert np.array_equal(one, agent.act(row, explore=False))
        agent.observe_evaluation(row, np.zeros(2), np.zeros(2, np.bool_), np.zeros(2, np.bool_))
        assert agent._recurrent.read(2, explore=False).any()
        agent.observe_evaluation(row, np.zeros(2), np.zeros(2, np.bool_), np.ones(2, np.bool_))
    np.testing.assert_array_equal(agent.state_dict()["recurrent"]["training"], before)


def test_a_recurrent_agent_cannot_be_exported() -> None:
    agent = build(HYPER, make_context())
    assert not agent.exportable
    with pytest.raises(TypeError, match="cannot be exported"):
        agent.acting_module()

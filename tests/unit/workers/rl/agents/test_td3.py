import math

import numpy as np
import pytest
import torch

from palestra.contract.agents import Td3Parameters
from tests.unit.workers.rl.agents.agent_kit import assert_same_state, make_experience
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
from workers.rl.agents.td3 import build

HYPER = Td3Parameters(
    hidden_sizes=(8, 8),
    batch_size=16,
    learning_rate=1e-2,
    tau=0.1,
    policy_delay=3,
    target_noise=0.4,
    target_noise_clip=0.3,
)


def make_batch(seed=0, size=16):
    return make_random_batch(size, seed=seed, noises=1)


def test_smoothing_clips_the_noise_and_then_the_action() -> None:
    math_ = make_algorithm(build, HYPER)
    normal = torch.tensor([[0.5, -0.5], [5.0, -5.0], [1.0, -1.0]])
    action = torch.tensor([[0.0, 0.0], [0.0, 0.5], [0.9, -0.95]])
    expected = torch.tensor([[0.2, -0.2], [0.3, 0.2], [1.0, -1.0]])
    torch.testing.assert_close(math_.smooth_action(action, normal), expected)


def test_td_targets_equal_a_calculation_by_hand() -> None:
    math_ = make_algorithm(build, HYPER.model_copy(update={"hidden_sizes": ()}), actions=1)
    actor = {"policy.0.weight": torch.zeros(1, 3), "policy.0.bias": torch.tensor([0.5])}
    weight = torch.tensor([[[1.0, 0.0, 0.0, 2.0]], [[0.0, 1.0, 0.0, -1.0]]])
    targets = {"q.0.weight": weight, "q.0.bias": torch.tensor([[0.25], [0.0]])}
    batch = make_random_batch(3, actions=1, noises=1)._replace(
        discount=torch.tensor([0.9, 0.0, 0.81])
    )
    action = (math.tanh(0.5) + (0.4 * batch.noise[0][:, 0]).clamp(-0.3, 0.3)).clamp(-1, 1)
    successor = batch.next_observation
    least = torch.minimum(successor[:, 0] + 2 * action + 0.25, successor[:, 1] - action)
    torch.testing.assert_close(
        math_.td_targets(actor, targets, batch), batch.reward + batch.discount * least
    )


def test_the_policy_and_the_targets_move_at_every_third_update_only() -> None:
    math_ = make_algorithm(build, HYPER)
    cycle, state = math_.cycle, make_state(math_)
    assert cycle == (math_.update_critics, math_.update_critics, math_.update)
    slow = ("actor", "actor_targets", "critic_targets", "actor_optimizer")
    for step in range(7):
        after = cycle[step % 3](eager_gradient, state, make_batch(step)).state
        assert not torch.equal(after.critics, state.critics)
        moved = {name: getattr(after, name) is not getattr(state, name) for name in slow}
        assert set(moved.values()) == {step % 3 == 2}
        state = after
    assert (int(state.critic_optimizer.step), int(state.actor_optimizer.step)) == (7, 2)


def test_the_agent_alternates_its_updates_and_continues_the_order_after_a_resume() -> None:
    hyper = HYPER.model_copy(update={"learning_starts": 0, "buffer_size": 64})
    first, rng = make_replay_agent(build, hyper, seed=3), np.random.default_rng(0)
    first.observe(make_experience(first, 20, 2, rng))
    first.learn(4)
    assert first.counters.updates % 3 == 1
    second = make_replay_agent(build, hyper, seed=99)
    second.load_state_dict(first.state_dict())
    second.memory.load_state_dict(first.memory.state_dict())
    for agent in (first, second):
        rng = np.random.default_rng(1)
        agent.observe(make_experience(agent, 20, 2, rng))
        agent.learn(2)
        assert int(agent.learning_state.actor_optimizer.step) == 2
        agent.learn(7)
    assert_same_state(first.state_dict(), second.state_dict())
    assert_same_state(first.memory.state_dict(), second.memory.state_dict())
    assert int(first.learning_state.actor_optimizer.step) == 13 // 3


def test_updates_equal_modules_with_optimizers() -> None:
    math_ = make_algorithm(build, HYPER)
    state = make_state(math_)
    (actor,), (actor_target,) = (
        make_modules(state.actor, (3, 8, 8, 2)),
        make_modules(state.actor_targets, (3, 8, 8, 2)),
    )
    critics, targets = (
        make_modules(vector, (5, 8, 8, 1), copies=2)
        for vector in (state.critics, state.critic_targets)
    )
    actor_step = torch.optim.Adam(actor.parameters(), lr=1e-2)
    critic_step = torch.optim.Adam(
        [parameter for critic in critics for parameter in critic.parameters()], lr=1e-2
    )

    def compute_values(made, observation, action):
        return [one(torch.cat((observation, action), 1)).squeeze(1) for one in made]

    last = torch.tensor(0.0)
    for step in range(30):
        batch = make_batch(step)
        state, report, _ = math_.cycle[step % 3](eager_gradient, state, batch)
        with torch.no_grad():
            noise = (0.4 * batch.noise[0]).clamp(-0.3, 0.3)
            action = (actor_target(batch.next_observation).tanh() + noise).clamp(-1, 1)
            wanted = batch.reward + batch.discount * torch.minimum(
                *compute_values(targets, batch.next_observation, action)
            )
        loss = sum(
            torch.nn.functional.mse_loss(value, wanted)
            for value in compute_values(critics, batch.observation, batch.action)
        )
        critic_step.zero_grad()
        loss.backward()
        norm = measure_gradient(one for critic in critics for one in critic.parameters())
        critic_step.step()
        if step % 3 == 2:
            last = -compute_values(critics, batch.observation, actor(batch.observation).tanh())[
                0
            ].mean()
            actor_step.zero_grad()
            last.backward()
            actor_step.step()
            for target, online in zip([*targets, actor_target], [*critics, actor], strict=True):
                follow(target, online, 0.1)
        torch.testing.assert_close(
            report[[0, 1, 3]], torch.stack((loss, last, norm)).detach(), rtol=1e-3, atol=1e-4
        )
    torch.testing.assert_close(state.actor, flatten([actor]), rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(state.critics, flatten(critics), rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(state.actor_targets, flatten([actor_target]), rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(state.critic_targets, flatten(targets), rtol=1e-3, atol=1e-3)


def test_exploring_actions_have_normal_noise() -> None:
    agent = make_replay_agent(
        build,
        HYPER.model_copy(update={"learning_starts": 0, "exploration_noise": 0.05}),
        num_envs=500,
    )
    observation = np.zeros((500, 3), np.float32)
    noise = agent.act(observation, explore=True) - agent.act(observation, explore=False)
    assert np.std(noise) == pytest.approx(0.05, rel=0.1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_compiled_updates_equal_the_eager_ones() -> None:
    math_ = make_algorithm(build, HYPER)
    compiled, eager = (
        [make_runner(update, mode=mode) for update in math_.cycle[1:]]
        for mode in ("compiled", "eager")
    )
    one = other = make_state(math_)
    for step in range(6):
        one, other = (
            compiled[step % 2](one, make_batch(step)).state,
            eager[step % 2](other, make_batch(step)).state,
        )
    assert all(update._function is not update._fallback for update in compiled), (
        "this machine has no compiler"
    )
    torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)

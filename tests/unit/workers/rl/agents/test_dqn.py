import math

import numpy as np
import pytest
import torch
from gymnasium import spaces

from palestra.contract.agents import DqnParameters
from tests.unit.workers.rl.agents.agent_kit import assert_same_state, make_context, make_experience
from workers.acceleration.nested_tensors import map_tensors
from workers.acceleration.update_runner import eager_gradient, functional_gradient
from workers.core.errors import DefinitionError
from workers.core.types import CollectPlan, Experience
from workers.rl.agents.common.algorithm import ReplayBatch
from workers.rl.agents.common.optimizers import adam_start
from workers.rl.agents.common.q_learning import QState
from workers.rl.agents.dqn import Dqn, build
from workers.rl.networks.action_values import make_action_values


def make_algorithm(inputs=3, actions=4, **hyper) -> Dqn:
    options = {"hidden_sizes": (8,)} | hyper
    space = spaces.Box(-1, 1, (inputs,), np.float32)
    network = make_action_values(
        space,
        actions,
        hidden=options["hidden_sizes"],
        is_dueling=options.get("dueling", False),
        is_noisy=options.get("noisy", False),
    )
    return Dqn(network, DqnParameters(**options))


def make_table_parameters(math_: Dqn, values: list[list[float]]) -> dict[str, torch.Tensor]:
    """Returns parameters of a linear network that gives `values[state]` for a one-hot state."""
    weight = torch.tensor(values).T.contiguous()
    return {"q.0.weight": weight, "q.0.bias": torch.zeros(len(weight))}


def make_random_batch(size=16, inputs=3, actions=4, seed=0) -> ReplayBatch:
    g = torch.Generator().manual_seed(seed)
    draw = (
        torch.randn(size, inputs, generator=g),
        torch.randint(actions, (size,), generator=g),
        torch.randn(size, generator=g),
    )
    return make_batch(
        *draw, torch.randn(size, inputs, generator=g), torch.rand(size, generator=g) < 0.2
    )


def make_batch(observation, action, reward, successor, terminated, gamma=0.99) -> ReplayBatch:
    return ReplayBatch(
        observation,
        action,
        reward,
        successor,
        gamma * (~terminated).float(),
        torch.ones(len(reward)),
        (),
    )


def make_state(math_: Dqn, seed=0) -> QState:
    g = torch.Generator().manual_seed(seed)
    parameters = math_.layout.join(math_.network.draw_uniform(g))
    return QState(
        parameters,
        math_.layout.join(math_.network.draw_uniform(g)),
        adam_start(parameters, 1e-2),
    )


@pytest.mark.parametrize(
    ("double", "expected"),
    [(True, [1 + 0.5 * 10.0, 2.0, 3 + 0.5 * 40.0]), (False, [1 + 0.5 * 20.0, 2.0, 3 + 0.5 * 40.0])],
)
def test_td_targets_equal_a_calculation_by_hand(double, expected) -> None:
    math_ = make_algorithm(inputs=2, actions=2, hidden_sizes=(), gamma=0.5, double=double)
    online, target = (
        make_table_parameters(math_, [[2.0, 1.0], [0.0, 3.0]]),
        make_table_parameters(math_, [[10.0, 20.0], [30.0, 40.0]]),
    )
    successor = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    reward, terminated = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([False, True, False])
    batch = make_batch(
        successor, torch.zeros(3, dtype=torch.int64), reward, successor, terminated, gamma=0.5
    )
    torch.testing.assert_close(math_.td_targets(online, target, batch), torch.tensor(expected))


@pytest.mark.parametrize(("loss", "expected"), [("huber", [0.125, 4.5]), ("mse", [0.25, 25.0])])
def test_the_loss_equals_a_calculation_by_hand(loss, expected) -> None:
    math_ = make_algorithm(inputs=2, actions=2, hidden_sizes=(), loss=loss)
    parameters = make_table_parameters(math_, [[1.0, 7.0], [8.0, 2.0]])
    batch = make_batch(
        torch.eye(2),
        torch.tensor([0, 1]),
        torch.zeros(2),
        torch.eye(2),
        torch.zeros(2, dtype=torch.bool),
    )
    value, (mean, error) = math_.loss(parameters, batch, torch.tensor([0.5, -3.0]))
    assert float(value) == pytest.approx(sum(expected) / 2)
    assert float(mean) == pytest.approx(1.5)
    assert error.tolist() == [0.5, 5.0]
    weighted, _ = math_.loss(
        parameters, batch._replace(weight=torch.tensor([0.0, 0.5])), torch.tensor([0.5, -3.0])
    )
    assert float(weighted) == pytest.approx(expected[1] / 4)


def test_a_non_finite_target_network_never_reaches_terminal_targets() -> None:
    math_ = make_algorithm(inputs=2, actions=2, hidden_sizes=())
    broken = make_table_parameters(math_, [[math.nan, math.inf], [math.nan, math.inf]])
    batch = make_random_batch(4, 2, 2)._replace(discount=torch.zeros(4))
    assert torch.equal(math_.td_targets(broken, broken, batch), batch.reward)


@pytest.mark.parametrize("loss", ["huber", "mse"])
@pytest.mark.parametrize("double", [True, False])
def test_update_equals_a_module_with_an_optimizer(loss, double) -> None:
    math_ = make_algorithm(loss=loss, double=double, target_update_every=7, max_grad_norm=0.3)
    state = make_state(math_)
    online, target = (
        torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4))
        for _ in range(2)
    )
    torch.nn.utils.vector_to_parameters(state.parameters, online.parameters())
    torch.nn.utils.vector_to_parameters(state.targets, target.parameters())
    reference = torch.optim.Adam(online.parameters(), lr=1e-2)
    for step in range(1, 31):
        batch = make_random_batch(seed=step)
        state, report, _ = math_.update(eager_gradient, state, batch)
        state = math_.copy_targets(state, step)
        with torch.no_grad():
            best = (online if double else target)(batch.next_observation).argmax(1)
            bootstrap = target(batch.next_observation)[torch.arange(16), best]
            wanted = batch.reward + batch.discount * bootstrap
        error = torch.nn.functional.huber_loss if loss == "huber" else torch.nn.functional.mse_loss
        value = error(online(batch.observation)[torch.arange(16), batch.action], wanted)
        reference.zero_grad()
        value.backward()
        torch.nn.utils.clip_grad_norm_(online.parameters(), 0.3)
        reference.step()
        if step % 7 == 0:
            target.load_state_dict(online.state_dict())
        torch.testing.assert_close(report[0], value.detach(), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(
        state.parameters,
        torch.nn.utils.parameters_to_vector(online.parameters()),
        rtol=1e-3,
        atol=1e-4,
    )
    torch.testing.assert_close(
        state.targets,
        torch.nn.utils.parameters_to_vector(target.parameters()),
        rtol=1e-3,
        atol=1e-4,
    )


def test_both_gradients_give_the_same_update() -> None:
    math_ = make_algorithm()
    state = make_state(math_)
    eager, functional = (
        math_.update(gradient, state, make_random_batch())
        for gradient in (eager_gradient, functional_gradient)
    )
    torch.testing.assert_close(eager, functional, rtol=1e-6, atol=1e-7)


def test_update_is_pure() -> None:
    math_ = make_algorithm()
    state, batch = make_state(math_), make_random_batch()
    before = map_tensors(torch.clone, state), map_tensors(torch.clone, batch)
    first, second = (
        math_.update(eager_gradient, state, batch),
        math_.update(eager_gradient, state, batch),
    )
    torch.testing.assert_close((state, batch), before, rtol=0, atol=0)
    torch.testing.assert_close(first, second, rtol=0, atol=0)


def test_vmap_over_four_seeds_equals_four_updates() -> None:
    math_ = make_algorithm(target_update_every=3)
    states, batches = (
        [make_state(math_, seed) for seed in range(4)],
        [make_random_batch(seed=seed) for seed in range(4)],
    )
    stack = map_tensors(lambda *leaves: torch.stack(leaves), *states)
    stacked_batch = map_tensors(lambda *leaves: torch.stack(leaves), *batches)
    stacked = torch.func.vmap(lambda state, batch: math_.update(functional_gradient, state, batch))
    report = torch.empty(0)
    for _ in range(5):
        stack, report, _ = stacked(stack, stacked_batch)
    for seed in range(4):
        state, alone = states[seed], torch.empty(0)
        for _ in range(5):
            state, alone, _ = math_.update(eager_gradient, state, batches[seed])
        torch.testing.assert_close(
            map_tensors(lambda leaf, seed=seed: leaf[seed], stack), state, rtol=1e-5, atol=1e-6
        )
        torch.testing.assert_close(report[seed], alone, rtol=1e-5, atol=1e-6)


def test_plan_and_schedule_come_from_the_definition() -> None:
    agent = build(
        DqnParameters(train_every=16, updates_per_train=3, learning_starts=50), make_context()
    )
    assert agent.collect_plan == CollectPlan(env_steps=16)
    assert (
        agent.learn_schedule.every_env_steps,
        agent.learn_schedule.updates,
        agent.learn_schedule.warmup_env_steps,
    ) == (16, 3, 50)


def test_epsilon_counts_the_env_steps_of_the_running_collect_and_only_those() -> None:
    hyper = DqnParameters(epsilon_decay_steps=100, epsilon_end=0.0)
    agent = build(hyper, make_context())
    seen = []
    explorer = agent.parts.explorer
    explore = explorer.explore
    explorer.explore = lambda greedy, env_steps: (
        seen.append(env_steps),
        explore(greedy, env_steps),
    )[1]
    rng = np.random.default_rng(0)
    for _ in range(2):
        agent.observe(make_experience(agent, 3, 2, rng))
    agent.act(np.zeros((5, 3), np.float32), explore=False)
    agent.act(np.zeros((2, 3), np.float32), explore=True)
    assert seen == [0, 2, 4, 6, 8, 10, 12]
    found = dict(agent.metrics())
    assert found.pop("reward/largest") > 0
    assert found == {"explore/epsilon": pytest.approx(0.88), "memory/size": 12.0}


def test_truncation_bootstraps_and_termination_does_not() -> None:
    agent = build(DqnParameters(batch_size=4), make_context())
    gathered = make_experience(agent, 40, 2, np.random.default_rng(0))
    agent.observe(gathered)
    sample = agent.memory.sample(1, 500)
    terminated, truncated = (
        flags.reshape(-1)[sample.places[0]] for flags in (gathered.terminated, gathered.truncated)
    )
    assert np.array_equal(sample.discount[0], np.where(terminated, np.float32(0), np.float32(0.99)))
    assert terminated.any()
    assert truncated.any()


def test_learn_waits_for_one_batch_and_reports_the_mean() -> None:
    agent = build(DqnParameters(batch_size=20), make_context())
    rng = np.random.default_rng(0)
    agent.observe(make_experience(agent, 9, 2, rng))
    assert agent.learn(3).updates == 0
    agent.observe(make_experience(agent, 1, 2, rng))
    report = agent.learn(3)
    assert report.updates == 3
    assert len(report.values) == len(agent.report_names)
    assert np.isfinite(report.values).all()
    kept = list(report.values)
    agent.learn(3)
    assert report.values == kept


def test_actions_begin_at_the_start_of_their_space() -> None:
    agent = build(DqnParameters(batch_size=2), make_context(spaces.Discrete(3, start=5)))
    gathered = make_experience(agent, 50, 2, np.random.default_rng(0))
    agent.observe(gathered)
    assert set(np.unique(gathered.action)) == {5, 6, 7}
    sample = agent.memory.sample(1, 200)
    assert np.array_equal(sample.action[0], gathered.action.reshape(-1)[sample.places[0]] - 5)
    assert agent.learn(1).updates == 1
    observation = torch.from_numpy(gathered.observation[0])
    assert np.array_equal(
        agent.acting_module()(observation).numpy(),
        agent.act(gathered.observation[0], explore=False),
    )


def test_box_actions_are_refused_with_a_remedy() -> None:
    with pytest.raises(DefinitionError, match=r"a2c, .*, which take Box"):
        build(DqnParameters(), make_context(spaces.Box(-1, 1, (2,), np.float32)))


def test_a_state_in_mid_training_continues_bit_exactly() -> None:
    hyper = DqnParameters(batch_size=8, target_update_every=5, buffer_size=64)
    first, rng = build(hyper, make_context(seed=3)), np.random.default_rng(0)
    first.observe(make_experience(first, 20, 2, rng))
    first.learn(13)
    first.learning_rate = 5e-4
    second = build(hyper, make_context(seed=99))
    second.load_state_dict(first.state_dict())
    second.memory.load_state_dict(first.memory.state_dict())
    assert second.learning_rate == 5e-4
    for agent in (first, second):
        rng = np.random.default_rng(1)
        agent.observe(make_experience(agent, 20, 2, rng))
        agent.learn(9)
    assert_same_state(first.state_dict(), second.state_dict())
    assert_same_state(first.memory.state_dict(), second.memory.state_dict())


def test_dqn_learns_the_identity() -> None:
    """Observations are discrete; the reward is 1 if action and observation are equal."""
    hyper = DqnParameters(gamma=0.0, learning_rate=1e-2, batch_size=32, hidden_sizes=(16,))
    agent = build(hyper, make_context(spaces.Discrete(5), spaces.Discrete(5), num_envs=100, seed=1))
    rng = np.random.default_rng(0)
    for _ in range(10):
        observation, successor = rng.integers(5, size=(1, 100)), rng.integers(5, size=(1, 100))
        action = agent.act(observation[0], explore=True)[None]
        reward = (action == observation).astype(np.float32)
        flags = np.ones((1, 100), np.bool_), np.zeros((1, 100), np.bool_)
        agent.observe(Experience(observation, action, reward, *flags, successor, env_steps=100))
        agent.learn(30)
    assert np.array_equal(agent.act(np.arange(5), explore=False), np.arange(5))

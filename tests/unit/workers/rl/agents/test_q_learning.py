"""Tests of every agent of the deep Q-network family."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from palestra.contract.agents import (
    C51Parameters,
    DqnParameters,
    DrqnParameters,
    IqnParameters,
    RainbowParameters,
)
from palestra.contract.agents.common import PrioritizedReplay
from tests.unit.workers.rl.agents.agent_kit import assert_same_state, make_context, make_experience
from tests.unit.workers.rl.agents.q_kit import (
    Q_LEARNERS,
    make_algorithm,
    make_random_batch,
    make_random_sequences,
    make_state,
)
from workers.acceleration.nested_tensors import map_tensors
from workers.acceleration.update_runner import eager_gradient, functional_gradient
from workers.assembly.registry import make_agent
from workers.core.errors import DefinitionError
from workers.core.types import Experience
from workers.rl.agents.common.q_learning import gather_actions
from workers.rl.agents.drqn import Drqn
from workers.rl.memory.frame_replay import FrameReplay
from workers.rl.memory.replay import Replay
from workers.rl.memory.sampling_rules import PrioritizedRule, UniformRule

SMALL = {"batch_size": 8, "hidden_sizes": (12, 8), "target_update_every": 3}
PRIORITIZED = PrioritizedReplay()
CASES = {name: model(**SMALL) for name, model in Q_LEARNERS.items()} | {
    "dueling": DqnParameters(**SMALL, dueling=True, double=False),
    "noisy": DqnParameters(**SMALL, noisy=True),
    "everything": DqnParameters(
        **SMALL, dueling=True, noisy=True, n_step=3, prioritized=PRIORITIZED
    ),
    "c51": C51Parameters(**SMALL, atoms=11, v_min=-5, v_max=5),
    "c51-double": C51Parameters(
        **SMALL, atoms=11, v_min=-5, v_max=5, double=True, prioritized=PRIORITIZED
    ),
    "rainbow": RainbowParameters(**SMALL, atoms=11, v_min=-5, v_max=5),
    "iqn-double": IqnParameters(
        **SMALL, fractions=4, target_fractions=6, double=True, prioritized=PRIORITIZED, n_step=2
    ),
    "drqn": DrqnParameters(**SMALL, memory_units=6, sequence_length=6, burn_in=2),
    "drqn-gru": DrqnParameters(
        **SMALL, memory_units=6, sequence_length=6, cell="gru", double=False
    ),
}
QUICK = [name for name in CASES if not name.startswith("drqn")]


@pytest.fixture(params=CASES)
def hyper(request):
    return CASES[request.param]


@pytest.fixture
def algorithm(hyper):
    return make_algorithm(hyper)


def make_batch(algorithm, seed=0):
    return (
        make_random_sequences(seed=seed)
        if isinstance(algorithm, Drqn)
        else make_random_batch(algorithm, seed=seed)
    )


def test_both_gradients_give_the_same_update(algorithm) -> None:
    state, batch = make_state(algorithm), make_batch(algorithm)
    eager, functional = (
        algorithm.update(gradient, state, batch)
        for gradient in (eager_gradient, functional_gradient)
    )
    torch.testing.assert_close(eager, functional, rtol=1e-4, atol=1e-5)


def test_update_is_pure(algorithm) -> None:
    state, batch = make_state(algorithm), make_batch(algorithm)
    before = torch.utils._pytree.tree_map(torch.clone, (state, batch))
    first, second = (
        algorithm.update(eager_gradient, state, batch),
        algorithm.update(eager_gradient, state, batch),
    )
    torch.testing.assert_close((state, batch), before, rtol=0, atol=0)
    torch.testing.assert_close(first, second, rtol=0, atol=0)


def test_vmap_over_four_seeds_equals_four_updates(algorithm) -> None:
    states, batches = (
        [make_state(algorithm, seed) for seed in range(4)],
        [make_batch(algorithm, seed) for seed in range(4)],
    )
    flat = [torch.utils._pytree.tree_flatten(batch) for batch in batches]
    columns = [torch.stack(leaves) for leaves in zip(*(leaves for leaves, _ in flat), strict=True)]
    stacked_batch = torch.utils._pytree.tree_unflatten(columns, flat[0][1])
    stack = map_tensors(lambda *leaves: torch.stack(leaves), *states)
    stacked = torch.func.vmap(
        lambda state, batch: algorithm.update(functional_gradient, state, batch)
    )
    for _ in range(4):
        stack, report, error = stacked(stack, stacked_batch)
    for seed in range(4):
        state = states[seed]
        for _ in range(4):
            state, alone, alone_error = algorithm.update(eager_gradient, state, batches[seed])
        torch.testing.assert_close(
            map_tensors(lambda leaf, seed=seed: leaf[seed], stack), state, rtol=1e-3, atol=1e-4
        )
        torch.testing.assert_close(
            (report[seed], error[seed]), (alone, alone_error), rtol=1e-3, atol=1e-4
        )


def test_the_target_network_is_copied_after_so_many_updates(algorithm) -> None:
    state = make_state(algorithm)
    for step in range(1, 7):
        before = state.targets
        state, _, error = algorithm.update(eager_gradient, state, make_batch(algorithm, step))
        assert torch.equal(state.targets, before), "compiled code has no part in it"
        state = algorithm.copy_targets(state, step)
        assert torch.equal(state.targets, state.parameters if step % 3 == 0 else before)
        assert (error >= 0).all()


def test_a_state_in_mid_training_continues_bit_exactly(hyper) -> None:
    first, rng = make_agent(hyper, make_context(seed=3)), np.random.default_rng(0)
    first.observe(make_experience(first, 20, 2, rng))
    first.learn(5)
    second = make_agent(hyper, make_context(seed=99))
    second.load_state_dict(first.state_dict())
    second.memory.load_state_dict(first.memory.state_dict())
    for agent in (first, second):
        rng = np.random.default_rng(1)
        agent.observe(make_experience(agent, 20, 2, rng))
        assert agent.learn(4).updates == 4
    assert_same_state(first.state_dict(), second.state_dict())
    assert_same_state(first.memory.state_dict(), second.memory.state_dict())


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("perturbed", [True, False])
def test_arrays_act_as_tensors_do_and_stacked_ones_too(name, perturbed) -> None:
    algorithm, rng = make_algorithm(CASES[name]), np.random.default_rng(0)
    vectors = np.stack([make_state(algorithm, seed).targets.numpy() for seed in range(3)])
    observations = rng.normal(size=(3, 5, 3)).astype(np.float32)
    noises = [algorithm.acting_noise(rng, 5) if perturbed else () for _ in range(3)]
    alone = []
    for vector, observation, noise in zip(vectors, observations, noises, strict=True):
        parameters = algorithm.layout.split(torch.from_numpy(vector))
        expected = algorithm.act(
            parameters, torch.from_numpy(observation), tuple(map(torch.from_numpy, noise))
        ).numpy()
        alone.append(algorithm.act_arrays(algorithm.layout.split_array(vector), observation, noise))
        assert np.array_equal(alone[-1], expected)
    stacked_noise = tuple(np.stack(one) for one in zip(*noises, strict=True))
    assert np.array_equal(
        algorithm.act_arrays(algorithm.layout.split_array(vectors), observations, stacked_noise),
        np.stack(alone),
    )


@pytest.mark.parametrize("name", ["everything", *Q_LEARNERS])
def test_stacks_of_images_pass_convolutions_and_share_their_frames(name) -> None:
    space = spaces.Box(0, 255, (2, 36, 36), np.uint8)
    agent = make_agent(
        CASES[name].model_copy(update={"batch_size": 2}),
        make_context(observation_space=space, num_envs=1),
    )
    assert isinstance(agent.memory, FrameReplay)
    rng = np.random.default_rng(0)
    frames = rng.integers(256, size=(9, 36, 36), dtype=np.uint8)
    for t in range(7):
        now, then = frames[None, None, t : t + 2], frames[None, None, t + 1 : t + 3]
        action = agent.act(now[0], explore=True)[None]
        flags = np.zeros((1, 1), np.bool_), np.zeros((1, 1), np.bool_)
        agent.observe(Experience(now, action, np.ones((1, 1)), *flags, then, env_steps=1))
    report = agent.learn(2)
    assert report.updates == 2
    assert np.isfinite(report.values).all()


def test_images_with_their_channels_last_are_kept_whole() -> None:
    agent = make_agent(
        DqnParameters(),
        make_context(observation_space=spaces.Box(0, 255, (36, 40, 3), np.uint8), num_envs=1),
    )
    assert type(agent.memory) is Replay
    assert agent.act(np.zeros((2, 36, 40, 3), np.uint8), explore=False).shape == (2,)


def test_memory_and_rule_follow_the_definition() -> None:
    even, uneven = (
        make_agent(CASES[name], make_context()).memory for name in ("dqn", "everything")
    )
    assert isinstance(even.rule, UniformRule)
    assert isinstance(uneven.rule, PrioritizedRule)
    assert (even.spec.n_step, uneven.spec.n_step) == (1, 3)
    assert uneven.rule._constants.alpha == 0.6


def test_priorities_are_the_errors_of_the_last_update() -> None:
    agent = make_agent(CASES["everything"], make_context())
    agent.observe(make_experience(agent, 20, 2, np.random.default_rng(0)))
    drawn = next(iter(agent.batches(1)))
    _, report, error = agent._update(agent.learning_state, drawn.batch)
    agent.note(drawn, report, error)
    last = dict(zip(drawn.places.tolist(), error.tolist(), strict=True))
    kept = agent.memory.rule._tree.values
    assert kept[list(last)] == pytest.approx([(one + 1e-6) ** 0.6 for one in last.values()])


def test_noise_is_drawn_apart_for_each_network_and_update() -> None:
    algorithm = make_algorithm(CASES["noisy"])
    size = algorithm.network.noise_size
    noise = algorithm.noise(np.random.default_rng(0), (5, 16))
    assert [one.shape for one in noise] == [(5, size)] * 3
    assert len(np.unique(np.stack(noise))) == 3 * 5 * size
    assert [one.shape for one in algorithm.acting_noise(np.random.default_rng(0), 7)] == [(7, size)]
    plain = make_algorithm(CASES["noisy"].model_copy(update={"noisy": False}))
    assert (
        plain.noise(np.random.default_rng(0), (5, 16))
        == plain.acting_noise(np.random.default_rng(0), 7)
        == ()
    )


def test_a_noisy_agent_explores_and_its_greedy_actions_are_those_of_the_mean() -> None:
    agent = make_agent(
        CASES["noisy"].model_copy(update={"epsilon_start": 0.0, "epsilon_end": 0.0}), make_context()
    )
    observation = np.random.default_rng(0).normal(size=(200, 3)).astype(np.float32)
    greedy = agent.act(observation, explore=False)
    explored = [agent.act(observation, explore=True) for _ in range(2)]
    assert not np.array_equal(*explored)
    assert np.mean(explored[0] == greedy) > 0.25
    silenced = agent.algorithm.layout.join(
        {k: v * 0 if k.endswith("sigma") else v for k, v in agent.named_parameters().items()}
    )
    agent.learning_state = agent.learning_state._replace(parameters=silenced)
    assert np.array_equal(agent.act(observation, explore=True), greedy)


def test_gathered_values_are_those_of_each_action() -> None:
    values = torch.arange(24.0).view(2, 3, 4)
    assert gather_actions(values, torch.tensor([2, 0])).tolist() == [
        [8, 9, 10, 11],
        [12, 13, 14, 15],
    ]
    assert gather_actions(values[..., 0], torch.tensor([2, 0])).tolist() == [8, 12]


@pytest.mark.parametrize("name", Q_LEARNERS)
def test_box_actions_are_refused_with_the_name_of_the_agent(name) -> None:
    with pytest.raises(DefinitionError, match=f"{name} needs a Discrete"):
        make_agent(Q_LEARNERS[name](), make_context(spaces.Box(-1, 1, (2,), np.float32)))


LEARNERS = {name: model() for name, model in Q_LEARNERS.items()} | {
    "everything": DqnParameters(
        dueling=True,
        noisy=True,
        n_step=2,
        prioritized=PRIORITIZED,
        epsilon_start=0.0,
        epsilon_end=0.0,
    ),
    "c51": C51Parameters(v_min=-1, v_max=2, atoms=16),
    "rainbow": RainbowParameters(v_min=-1, v_max=2, atoms=16),
    "drqn": DrqnParameters(sequence_length=1, memory_units=16),
    "qr_dqn": Q_LEARNERS["qr_dqn"](quantiles=16),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_agents_learn_the_identity(name) -> None:
    """Observations are discrete; the reward is 1 if action and observation are equal."""
    hyper = LEARNERS[name].model_copy(
        update={"gamma": 0.0, "learning_rate": 1e-2, "batch_size": 32, "hidden_sizes": (16,)}
    )
    agent = make_agent(
        hyper, make_context(spaces.Discrete(5), spaces.Discrete(5), num_envs=100, seed=1)
    )
    rng = np.random.default_rng(0)
    for _ in range(10):
        observation, successor = rng.integers(5, size=(1, 100)), rng.integers(5, size=(1, 100))
        action = agent.act(observation[0], explore=True)[None]
        reward = (action == observation).astype(np.float32)
        flags = np.ones((1, 100), np.bool_), np.zeros((1, 100), np.bool_)
        agent.observe(Experience(observation, action, reward, *flags, successor, env_steps=100))
        agent.learn(15)
    assert np.array_equal(agent.act(np.arange(5), explore=False), np.arange(5))

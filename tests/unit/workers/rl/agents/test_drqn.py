import numpy as np
import pytest
import torch
from gymnasium import spaces
from pydantic import ValidationError
from torch import nn

from palestra.contract.agents import DrqnParameters
from tests.unit.workers.rl.agents.agent_kit import assert_same_state, make_context, make_experience
from tests.unit.workers.rl.agents.q_kit import make_algorithm, make_random_sequences, make_state
from workers.acceleration.update_runner import eager_gradient
from workers.assembly.registry import make_agent
from workers.core.types import CollectPlan, Experience
from workers.rl.agents.drqn import DrqnAgent

HYPER = DrqnParameters(
    hidden_sizes=(5,),
    memory_units=4,
    sequence_length=6,
    burn_in=2,
    batch_size=4,
    target_update_every=7,
    max_grad_norm=0.3,
)


class Module(nn.Module):
    """The network as torch modules; the LSTM state is reset explicitly."""

    def __init__(self) -> None:
        super().__init__()
        self.torso, self.memory, self.head = nn.Linear(3, 5), nn.LSTMCell(5, 4), nn.Linear(4, 4)

    def load(self, named: dict[str, torch.Tensor]) -> None:
        cell = {
            "weight_ih": "inputs.weight",
            "bias_ih": "inputs.bias",
            "weight_hh": "state.weight",
            "bias_hh": "state.bias",
        }
        state = {f"memory.{ours}": named[f"memory.{theirs}"] for ours, theirs in cell.items()}
        for kind in ("weight", "bias"):
            state |= {
                f"torso.{kind}": named[f"torso.0.{kind}"],
                f"head.{kind}": named[f"q.0.{kind}"],
            }
        self.load_state_dict(state)

    def compute_step(
        self, observation: torch.Tensor, state: tuple[torch.Tensor, torch.Tensor]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return self.memory(torch.relu(self.torso(observation)), state)

    def compute_values_of_sequence(
        self, batch, n: int, burn_in: int
    ) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """Returns the values [A] of each step of sequence n and of each step's successor."""
        state = torch.zeros(4), torch.zeros(4)
        values, following = [], []
        for t in range(len(batch.action)):
            if batch.begins[t, n]:
                state = torch.zeros(4), torch.zeros(4)
            if t == burn_in:
                state = state[0].detach(), state[1].detach()
            state = self.compute_step(batch.observation[t, n], state)
            values.append(self.head(state[0]))
            following.append(self.head(self.compute_step(batch.next_observation[t, n], state)[0]))
        return values, following


@pytest.mark.parametrize("double", [True, False])
def test_update_equals_a_module_with_an_optimizer(double) -> None:
    algorithm = make_algorithm(HYPER.model_copy(update={"double": double}))
    state, online, target = make_state(algorithm), Module(), Module()
    online.load(algorithm.layout.split(state.parameters))
    target.load(algorithm.layout.split(state.targets))
    reference = torch.optim.Adam(online.parameters(), lr=1e-3)
    for step in range(1, 16):
        batch = make_random_sequences(seed=step)
        state, report, _ = algorithm.update(eager_gradient, state, batch)
        state = algorithm.copy_targets(state, step)
        total = torch.zeros(())
        for n in range(5):
            values, of_online = online.compute_values_of_sequence(batch, n, 2)
            _, of_target = target.compute_values_of_sequence(batch, n, 2)
            for t in range(2, 6):
                best = (of_online if double else of_target)[t].argmax()
                wanted = (batch.reward[t, n] + batch.discount[t, n] * of_target[t][best]).detach()
                total = total + batch.weight[t, n] * nn.functional.huber_loss(
                    values[t][batch.action[t, n]], wanted
                )
        loss = total / batch.weight[2:].sum()
        reference.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(online.parameters(), 0.3)
        reference.step()
        if step % 7 == 0:
            target.load_state_dict(online.state_dict())
        torch.testing.assert_close(report[0], loss.detach(), rtol=1e-3, atol=1e-4)
    learnt = Module()
    learnt.load(algorithm.layout.split(state.parameters))
    torch.testing.assert_close(
        dict(learnt.named_parameters()), dict(online.named_parameters()), rtol=1e-3, atol=1e-4
    )


def test_padding_and_steps_before_an_episode_do_not_count() -> None:
    algorithm = make_algorithm(HYPER)
    state, batch = make_state(algorithm), make_random_sequences()
    plain = algorithm.update(eager_gradient, state, batch).report
    reward = torch.where(batch.weight == 0, 99.0, batch.reward)
    assert torch.equal(
        plain, algorithm.update(eager_gradient, state, batch._replace(reward=reward)).report
    )
    begins = batch.begins.clone()
    begins[3] = True
    cut = batch._replace(begins=begins, weight=torch.cat((torch.zeros(3, 5), torch.ones(3, 5))))
    other = cut._replace(observation=torch.cat((torch.randn(3, 5, 3), batch.observation[3:])))
    values_of_sequence, two = (
        algorithm.update(eager_gradient, state, each).report for each in (cut, other)
    )
    torch.testing.assert_close(values_of_sequence, two)


def test_batches_are_sequences_of_the_memory() -> None:
    agent = make_agent(HYPER, make_context())
    gathered = make_experience(agent, 30, 2, np.random.default_rng(0))
    agent.observe(gathered)
    (drawn,) = agent.batches(1)
    batch = drawn.batch
    assert batch.observation.shape == (6, 4, 3)
    assert batch.action.shape == batch.begins.shape == batch.weight.shape == (6, 4)
    ended = gathered.terminated | gathered.truncated
    for n in range(4):
        (t,), (b,) = (
            (index[0],)
            for index in np.nonzero(
                (gathered.observation == batch.observation[0, n].numpy()).all(-1)
            )
        )
        assert np.array_equal(batch.observation[:, n].numpy(), gathered.observation[t : t + 6, b])
        assert np.array_equal(
            batch.next_observation[:, n].numpy(), gathered.next_observation[t : t + 6, b]
        )
        assert np.array_equal(batch.begins[1:, n].numpy(), ended[t : t + 5, b])
        assert np.array_equal(
            batch.discount[:, n].numpy(),
            np.where(gathered.terminated[t : t + 6, b], 0, np.float32(0.99)),
        )


def copy_recurrent_state(agent: DrqnAgent) -> np.ndarray:
    return agent.state_dict()["recurrent"]["training"].copy()


def test_the_recurrent_state_is_kept_until_the_episode_ends() -> None:
    agent = make_agent(HYPER, make_context())
    rng, step = (
        np.random.default_rng(0),
        make_experience(make_agent(HYPER, make_context()), 1, 2, np.random.default_rng(0)),
    )
    assert agent.collect_plan == CollectPlan(vector_steps=1)
    first, second = rng.normal(size=(2, 2, 3)).astype(np.float32)
    agent.act(first, explore=True)
    after_one = copy_recurrent_state(agent)
    step.terminated[:], step.truncated[:] = [[True, False]], False
    agent.observe(step)
    assert np.array_equal(
        copy_recurrent_state(agent), np.stack((np.zeros(8, np.float32), after_one[1]))
    )
    agent.act(second, explore=True)
    network, parameters = agent.algorithm.network, agent.named_parameters()
    begun = torch.from_numpy(np.stack((np.zeros(8, np.float32), after_one[1])))
    _, expected = network.step(parameters, torch.from_numpy(second), begun)
    assert np.array_equal(copy_recurrent_state(agent), expected.detach().numpy())


def test_evaluations_have_a_separate_recurrent_state() -> None:
    agent = make_agent(HYPER, make_context())
    rng = np.random.default_rng(0)
    agent.act(rng.normal(size=(2, 3)).astype(np.float32), explore=True)
    before = agent.state_dict()
    observation, nothing = rng.normal(size=(50, 3)).astype(np.float32), np.zeros(50)
    with agent.eval_mode():
        first = agent.act(observation, explore=False)
        assert np.array_equal(first, agent.act(observation, explore=False))
        for _ in range(3):
            agent.observe_evaluation(observation, nothing, nothing > 0, nothing > 0)
            later = agent.act(observation, explore=False)
        assert not np.array_equal(first, later)
        agent.observe_evaluation(observation, nothing, nothing == 0, nothing == 0)
        assert np.array_equal(first, agent.act(observation, explore=False))
        agent.observe_evaluation(observation, nothing, nothing > 0, nothing > 0)
    assert_same_state(before, agent.state_dict())
    with agent.eval_mode():
        assert np.array_equal(first, agent.act(observation, explore=False))


def test_a_recurrent_agent_cannot_be_exported() -> None:
    agent = make_agent(HYPER, make_context())
    assert not agent.exportable
    with pytest.raises(TypeError, match="cannot be exported"):
        agent.acting_module()


def test_a_state_of_another_number_of_environments_is_refused() -> None:
    values_of_sequence, other = (
        make_agent(HYPER, make_context()),
        make_agent(HYPER, make_context(num_envs=3)),
    )
    with pytest.raises(ValueError, match="do not fit"):
        other.load_state_dict(values_of_sequence.state_dict())


def test_a_burn_in_must_be_shorter_than_the_sequence() -> None:
    with pytest.raises(ValidationError, match="leaves nothing"):
        DrqnParameters(sequence_length=4, burn_in=4)


def test_drqn_learns_to_remember_a_cue() -> None:
    """The first observation is one of two cues, the second is the same in all episodes.

    The reward is for naming the cue in the second step.
    """
    hyper = DrqnParameters(
        hidden_sizes=(),
        memory_units=8,
        sequence_length=2,
        batch_size=32,
        learning_rate=2e-2,
        target_update_every=20,
        epsilon_decay_steps=1_000,
    )
    box = spaces.Box(0, 1, (3,), np.float32)
    agent, rng = (
        make_agent(hyper, make_context(spaces.Discrete(2), box, num_envs=16)),
        np.random.default_rng(0),
    )
    for _ in range(40):
        cue = rng.integers(2, size=16)
        seen = np.stack(
            (np.eye(3, dtype=np.float32)[cue], np.tile(np.eye(3, dtype=np.float32)[2], (16, 1)))
        )
        for t in range(2):
            action = agent.act(seen[t], explore=True)
            reward = (action == cue).astype(np.float32) * t
            flags = np.full((1, 16), t == 1), np.zeros((1, 16), np.bool_)
            agent.observe(
                Experience(
                    seen[t : t + 1], action[None], reward[None], *flags, seen[1:2], env_steps=16
                )
            )
        agent.learn(6)
    both, asked = np.eye(3, dtype=np.float32)[:2], np.eye(3, dtype=np.float32)[[2, 2]]
    with agent.eval_mode():
        agent.act(both, explore=False)
        agent.observe_evaluation(both, np.zeros(2), np.zeros(2, np.bool_), np.zeros(2, np.bool_))
        assert agent.act(asked, explore=False).tolist() == [0, 1]

"""Adapters between Palestra and Stable-Baselines3: environment, observations, state and acting."""

import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.spaces.utils import flatten

from palestra.contract.definition import read_definition
from tests.support.trainings import make_definition
from tests.unit.workers.rl.agents.agent_kit import assert_same_state
from tests.unit.workers.rl.agents.sb3.sb3_kit import ALGORITHMS, make_document, make_sb3_agent
from workers.core.rng import global_state
from workers.core.types import AgentContext, EpisodeEnd, Experience
from workers.rl.agents.sb3.environment import LoopEnv
from workers.rl.agents.sb3.observations import Observations

BOX = spaces.Box(-1.0, 1.0, (3,), np.float32)
ARM = spaces.Box(np.array([-2.0, 0.0], np.float32), np.array([1.0, 5.0], np.float32))
NARROW = {"policy_kwargs": {"net_arch": [8]}}
SMALL = {**NARROW, "buffer_size": 20}


def make_context(action=ARM, observation=BOX, num_envs=2, **more) -> AgentContext:
    return AgentContext(observation, action, num_envs, 3, **more)


class ScriptedVector:
    """Two environments whose episodes end at fixed steps.

    The first is truncated in step 1 and terminated in step 2; the second is both in step 2.
    """

    def __init__(self) -> None:
        self.at = 0
        self.current = np.zeros((2, 3), np.float32)

    def begin(self) -> np.ndarray:
        return self.current

    def step(self, actions: np.ndarray) -> Experience:
        self.at += 1
        successor = np.full((1, 2, 3), float(self.at), np.float32)
        terminated = np.array([[self.at == 2, self.at == 2]])
        truncated = np.array([[self.at == 1, self.at == 2]])
        ended = terminated | truncated
        self.current = np.where(ended[0][:, None], -1.0, successor[0]).astype(np.float32)
        ends = [
            EpisodeEnd(int(i), 0, 1.0, 1, bool(terminated[0, i])) for i in np.flatnonzero(ended)
        ]
        reward = np.array([[0.5, 1.5]])
        return Experience(
            successor, actions[None], reward, terminated, truncated, successor, ends, env_steps=2
        )


def test_the_environment_has_the_librarys_interface() -> None:
    env, told = LoopEnv(2, Observations(BOX, has_several_inputs=False), spaces.Discrete(2)), []
    env.attach(ScriptedVector(), lambda: told.append(1) or len(told) < 3)
    assert env.reset().shape == (2, 3)
    observation, reward, done, infos = env.step(np.zeros(2, np.int64))
    assert told == [], "nothing is over before the first step"
    assert (reward.dtype, reward.tolist(), done.tolist()) == (np.float32, [0.5, 1.5], [True, False])
    assert observation[:, 0].tolist() == [-1.0, 1.0]
    assert infos[0]["TimeLimit.truncated"] is True
    assert infos[0]["terminal_observation"].tolist() == [1.0, 1.0, 1.0]
    assert infos[1] == {}
    observation, _, done, infos = env.step(np.zeros(2, np.int64))
    assert done.tolist() == [True, True]
    assert [info["TimeLimit.truncated"] for info in infos] == [False, False]
    kept = observation.copy()
    env.step(np.zeros(2, np.int64))
    assert np.array_equal(observation, kept), "what it gave is not used again"
    _, reward, done, infos = env.step(np.zeros(2, np.int64))
    assert env.is_over
    assert (reward.tolist(), done.tolist(), infos) == ([0.0, 0.0], [False, False], [{}, {}])
    with pytest.raises(AttributeError, match="spaces"):
        env.get_attr("spec")
    with pytest.raises(AttributeError, match="cannot set attributes"):
        env.set_attr("gravity", 0.0)
    with pytest.raises(AttributeError, match="can only step"):
        env.env_method("render")
    assert env.env_is_wrapped(object) == [False, False]


PARTS = spaces.Dict(
    {
        "image": spaces.Box(0, 255, (36, 40, 3), np.uint8),
        "kind": spaces.Discrete(3),
        "place": spaces.Box(-1, 1, (2, 2), np.float32),
        "pair": spaces.MultiDiscrete([2, 4]),
    }
)


def sample_rows(space: spaces.Space, count: int) -> tuple[list, np.ndarray]:
    space.seed(0)
    elements = [space.sample() for _ in range(count)]
    if isinstance(space, spaces.Dict):
        return elements, np.stack([flatten(space, one) for one in elements]).astype(np.float32)
    return elements, np.stack(elements)


def test_composite_observations_are_restored_from_the_flat_vector() -> None:
    elements, flat = sample_rows(PARTS, 5)
    parts = Observations(PARTS, has_several_inputs=True)(flat)
    for key, space in PARTS.spaces.items():
        assert parts[key].dtype == space.dtype
        np.testing.assert_array_equal(parts[key], np.stack([one[key] for one in elements]))
    alone = Observations(PARTS, has_several_inputs=False)
    assert isinstance(alone.space, spaces.Box)
    assert alone.space.shape == flat.shape[1:]


ACTORS = {
    "A2C": ("A2C", "MlpPolicy", ARM, BOX, NARROW),
    "A2C-binary": ("A2C", "MlpPolicy", spaces.MultiBinary(3), BOX, NARROW),
    "A2C-several": ("A2C", "MlpPolicy", spaces.MultiDiscrete([2, 3]), BOX, NARROW),
    "A2C-gsde": ("A2C", "MlpPolicy", ARM, BOX, {**NARROW, "use_sde": True}),
    "DQN": ("DQN", "MlpPolicy", spaces.Discrete(3), BOX, SMALL),
    "DQN-image": (
        "DQN",
        "CnnPolicy",
        spaces.Discrete(3),
        spaces.Box(0, 255, (36, 40, 3), np.uint8),
        {"buffer_size": 20},
    ),
    "DDPG": ("DDPG", "MlpPolicy", ARM, BOX, SMALL),
    "PPO": ("PPO", "MlpPolicy", spaces.Discrete(4), spaces.Discrete(6), NARROW),
    "PPO-parts": ("PPO", "MultiInputPolicy", spaces.Discrete(4), PARTS, {}),
    "PPO-vector": (
        "PPO",
        "MlpPolicy",
        ARM,
        spaces.Dict({"a": BOX, "b": spaces.Discrete(2)}),
        NARROW,
    ),
    "PPO-squashed": (
        "PPO",
        "MlpPolicy",
        ARM,
        BOX,
        {"use_sde": True, "policy_kwargs": {"net_arch": [8], "squash_output": True}},
    ),
    "SAC": ("SAC", "MlpPolicy", ARM, BOX, SMALL),
    "SAC-gsde": ("SAC", "MlpPolicy", ARM, BOX, {**SMALL, "use_sde": True}),
    "TD3": ("TD3", "MlpPolicy", ARM, BOX, SMALL),
}


@pytest.mark.parametrize("case", ACTORS)
def test_the_exported_policy_acts_like_the_algorithm(case) -> None:
    algorithm, policy, action, observation, parameters = ACTORS[case]
    made = make_sb3_agent(make_context(action, observation), algorithm, policy, **parameters)
    _, given = sample_rows(observation, 4)
    actions = made.act(given, explore=False)
    assert len(actions) == 4
    assert actions.dtype == (action.dtype if isinstance(action, spaces.Box) else np.int64)
    module = made.acting_module()
    found = module(torch.from_numpy(given)).detach().numpy()
    np.testing.assert_allclose(found, actions, rtol=1e-5, atol=1e-6)
    shared = {one.data_ptr() for one in module.parameters()} & {
        one.data_ptr() for one in made._model.policy.parameters()
    }
    assert not shared


@pytest.mark.parametrize("case", ["A2C", "PPO-parts", "DQN-image", "SAC"])
def test_the_exported_policy_becomes_a_program(case) -> None:
    from workers.export.tracing import trace_module

    algorithm, policy, action, observation, parameters = ACTORS[case]
    module = make_sb3_agent(
        make_context(action, observation), algorithm, policy, **parameters
    ).acting_module()
    _, given = sample_rows(observation, 5)
    program = trace_module(module, (torch.from_numpy(given[:2]),))
    torch.testing.assert_close(
        program.module()(torch.from_numpy(given)), module(torch.from_numpy(given))
    )


def test_greedy_actions_draw_no_random_numbers_and_keep_the_mode() -> None:
    made = make_sb3_agent(make_context(spaces.Discrete(3)), "DQN", **SMALL)
    made._model.policy.set_training_mode(True)
    before = global_state()
    with made.eval_mode():
        made.act(np.zeros((7, 3), np.float32), explore=False)
    assert_same_state(before, global_state())
    assert made._model.policy.training


def test_states_of_other_networks_are_refused() -> None:
    one, other = (
        make_sb3_agent(make_context(), "SAC", **SMALL),
        make_sb3_agent(make_context(), "SAC", buffer_size=20, policy_kwargs={"net_arch": [9]}),
    )
    with pytest.raises(ValueError, match="do not fit"):
        other.load_state_dict(one.state_dict())
    smaller = make_sb3_agent(make_context(), "SAC", **{**SMALL, "buffer_size": 4})
    one._model.replay_buffer.pos = 9
    with pytest.raises(ValueError, match="does not fit"):
        smaller.memory.load_state_dict(one.memory.state_dict())


def test_a_memory_of_shared_observations_keeps_the_newest_one() -> None:
    options = {
        **SMALL,
        "optimize_memory_usage": True,
        "replay_buffer_kwargs": {"handle_timeout_termination": False},
    }
    one, other = (
        make_sb3_agent(make_context(spaces.Discrete(2)), "DQN", **options) for _ in range(2)
    )
    buffer = one._model.replay_buffer
    for number in range(3):
        now, after = np.full((2, 3), number, np.float32), np.full((2, 3), number + 1, np.float32)
        buffer.add(now, after, np.zeros((2, 1)), np.zeros(2), np.zeros(2), [{}, {}])
    assert (len(one.memory), one.memory.capacity) == (6, 20)
    other.memory.load_state_dict(one.memory.state_dict())
    assert len(other.memory) == 6
    np.testing.assert_array_equal(
        other._model.replay_buffer.observations[:4], buffer.observations[:4]
    )


def test_parameters_and_moments_are_restored() -> None:
    for algorithm in ALGORITHMS:
        made = make_sb3_agent(
            make_context(spaces.Discrete(2) if algorithm in {"A2C", "PPO", "DQN"} else ARM),
            algorithm,
            **NARROW,
        )
        for optimizer in _find_optimizers(made):
            for group in optimizer.param_groups:
                for value in group["params"]:
                    value.grad = torch.ones_like(value)
            optimizer.step()
        other = make_sb3_agent(make_context(made._model.action_space), algorithm, **NARROW)
        other.load_state_dict(made.state_dict())
        for one, two in zip(_find_optimizers(made), _find_optimizers(other), strict=True):
            for first, second in zip(
                one.state_dict()["state"].values(), two.state_dict()["state"].values(), strict=True
            ):
                for name, value in first.items():
                    assert torch.equal(torch.as_tensor(value), torch.as_tensor(second[name]))
        for name, value in made._model.policy.state_dict().items():
            assert torch.equal(value, other._model.policy.state_dict()[name])


def _find_optimizers(made) -> list[torch.optim.Optimizer]:
    from stable_baselines3.common.save_util import recursive_getattr

    names = made._model._get_torch_save_params()[0]
    return [
        one
        for one in (recursive_getattr(made._model, name) for name in names)
        if isinstance(one, torch.optim.Optimizer)
    ]


def test_the_definition_says_where_schedules_end() -> None:
    import json

    from pydantic import ValidationError

    with pytest.raises(ValidationError, match=r"needs loop\.env_steps"):
        read_definition(json.dumps(make_document("DQN", loop={"updates": 5})))
    plain = read_definition(
        json.dumps({**make_definition(), "agent": {"name": "sb3", "algorithm": "PPO"}})
    )
    assert plain.agent.model_dump() == {
        "name": "sb3",
        "algorithm": "PPO",
        "policy": "MlpPolicy",
        "parameters": {},
    }

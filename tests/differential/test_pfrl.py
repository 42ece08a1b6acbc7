"""Palestra's training functions compared with PFRL's: same agent, same environment, many settings.

The comparison covers PFRL's intended behaviour. It leaves out its faults: PFRL does not evaluate at
the end of training, a batch always makes one vector step, and a batch without evaluation
environments is evaluated on the training environments.
"""

import random
import warnings
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.acceptance.functional_kit import list_directories, read_scores
from tests.support.pfrl_agents import ScriptedAgent, ScriptedBatch
from tests.support.recording_env import EpisodeLengthsEnv
from workers.entrypoints import functional

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pfrl = pytest.importorskip("pfrl")


@pytest.fixture(autouse=True)
def _no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.snapshot.snapshot_directory.sync_file", lambda path: None)


class OldGym:
    """A Gymnasium environment with the interface of the older gym."""

    def __init__(self, env: EpisodeLengthsEnv) -> None:
        self.env = env
        self.action_space, self.observation_space, self.spec = (
            env.action_space,
            env.observation_space,
            None,
        )

    def reset(self) -> Any:
        return self.env.reset()[0]

    def step(self, action: Any) -> Any:
        observation, reward, terminated, _, info = self.env.step(action)
        return observation, reward, terminated, info

    def close(self) -> None:
        self.env.close()


class Case(NamedTuple):
    """One combination of settings."""

    lengths: tuple[int, ...]
    steps: int
    offset: int
    interval: int
    longest: int | None
    checkpoint: int | None
    success: float | None
    needs_reset_at: int = 0
    during_episode: bool = False
    num_envs: int = 1
    eval_steps: int | None = None

    def make_env(self) -> EpisodeLengthsEnv:
        return EpisodeLengthsEnv(self.lengths, 1.0, needs_reset_at=self.needs_reset_at)

    def make_options(self, calls: list[Any], agent: Any) -> dict[str, Any]:
        return {
            "eval_n_steps": self.eval_steps,
            "eval_n_episodes": 2 if self.eval_steps is None else None,
            "eval_interval": self.interval,
            "checkpoint_freq": self.checkpoint,
            "step_offset": self.offset,
            "successful_score": self.success,
            "step_hooks": [lambda env, given, step: calls.append((step, given is agent, agent.t))],
        }


def draw_cases(count: int, **more: Any) -> list[Case]:
    """Returns a fixed sample of all combinations."""
    lengths = ((3,), (1, 4, 2), (7,), (9, 2))
    every = product(
        lengths, (12, 20, 23), (0, 5), (3, 5, 8), (None, 2, 5), (None, 4, 5), (None, 3.0), (0, 4)
    )
    return [
        Case(*one)._replace(
            **{name: options[number % len(options)] for name, options in more.items()}
        )
        for number, one in enumerate(random.Random(0).sample(list(every), count))
    ]


def get_arguments_of_calls(agent: Any, name: str) -> list[Any]:
    """Returns the arguments that a training passed to an agent, as plain lists."""
    return [[np.asarray(value).tolist() for value in call[2:]] for call in agent.list_calls(name)]


def train_serially(module: Any, case: Case, outdir: Path, wrap: Any) -> tuple[Any, list[Any]]:
    agent, calls = ScriptedAgent(), []
    eval_env = {"eval_env": wrap(case.make_env())} if case.during_episode else {}
    options = {
        **case.make_options(calls, agent),
        "train_max_episode_len": case.longest,
        "eval_during_episode": case.during_episode,
    }
    module.train_agent_with_evaluation(
        agent, wrap(case.make_env()), case.steps, outdir=str(outdir), **options, **eval_env
    )
    return agent, calls


def train_batch(module: Any, case: Case, outdir: Path, wrap: Any) -> tuple[Any, list[Any]]:
    agent, calls = ScriptedBatch(), []
    options = {**case.make_options(calls, agent), "max_episode_len": case.longest}
    envs = wrap([case.make_env() for _ in range(case.num_envs)])
    eval_env = wrap([EpisodeLengthsEnv(case.lengths[:1], 1.0) for _ in range(case.num_envs)])
    module.train_agent_batch_with_evaluation(
        agent, envs, case.steps, outdir=str(outdir), eval_env=eval_env, **options
    )
    return agent, calls


def compare(ours: Path, theirs: Path) -> None:
    """Compares records, directories and the agent's files.

    Palestra may have one more evaluation, at the end of training.
    """
    our_rows, their_rows = read_scores(ours), read_scores(theirs)
    extra = our_rows[len(their_rows) :]
    assert list(our_rows[0]) == list(their_rows[0] if their_rows else our_rows[0])
    for our, their in zip(our_rows, their_rows, strict=False):
        del our["elapsed"], their["elapsed"]
        assert {name: float(cell) for name, cell in our.items()} == pytest.approx(
            {name: float(cell) for name, cell in their.items()}
        )
    (finish,) = (name for name in list_directories(theirs) if name.endswith("_finish"))
    assert [row["steps"] for row in extra] == [finish.removesuffix("_finish")][: len(extra)]
    evaluated = {"best"} if extra else set()
    assert list_directories(ours) - evaluated == list_directories(theirs) - evaluated
    for name in list_directories(theirs) - evaluated:
        assert (ours / name / "model.txt").read_text() == (theirs / name / "model.txt").read_text()


@pytest.mark.parametrize(
    "case",
    draw_cases(20, during_episode=(False, True, False), eval_steps=(None, None, None, 9)),
    ids=str,
)
def test_a_serial_training_equals_that_of_pfrl(tmp_path: Path, case: Case) -> None:
    theirs, their_calls = train_serially(pfrl.experiments, case, tmp_path / "theirs", OldGym)
    ours, our_calls = train_serially(functional, case, tmp_path / "ours", lambda env: env)
    assert our_calls == their_calls
    assert ours.t == theirs.t
    assert get_arguments_of_calls(ours, "observe") == get_arguments_of_calls(theirs, "observe")
    assert [call[2].tolist() for call in ours.list_calls("act")] == [
        call[2].tolist() for call in theirs.list_calls("act")
    ]
    compare(tmp_path / "ours", tmp_path / "theirs")


@pytest.mark.parametrize(
    "case", draw_cases(20, num_envs=(1, 2, 3, 4), eval_steps=(None, None, None, 9)), ids=str
)
def test_a_batch_training_equals_that_of_pfrl(tmp_path: Path, case: Case) -> None:
    theirs, their_calls = train_batch(
        pfrl.experiments,
        case,
        tmp_path / "theirs",
        lambda envs: pfrl.envs.SerialVectorEnv([OldGym(one) for one in envs]),
    )
    ours, our_calls = train_batch(functional, case, tmp_path / "ours", lambda envs: envs)
    assert our_calls == their_calls
    assert ours.t == theirs.t
    assert get_arguments_of_calls(ours, "batch_observe") == get_arguments_of_calls(
        theirs, "batch_observe"
    )
    compare(tmp_path / "ours", tmp_path / "theirs")


def test_the_agent_observes_the_same_in_evaluations(tmp_path: Path) -> None:
    case = Case((3,), 12, 0, 4, None, None, None)
    theirs, _ = train_serially(pfrl.experiments, case, tmp_path / "theirs", OldGym)
    ours, _ = train_serially(functional, case, tmp_path / "ours", lambda env: env)

    def list_observe_calls(agent: Any) -> list[Any]:
        return [
            [np.asarray(value).tolist() for value in call[2:]]
            for call in agent.list_calls("observe", training=False)
        ]

    assert list_observe_calls(ours) == list_observe_calls(theirs)


def test_parameters_have_the_names_order_and_defaults_of_pfrl() -> None:
    import inspect

    for name in (
        "train_agent",
        "train_agent_with_evaluation",
        "train_agent_batch",
        "train_agent_batch_with_evaluation",
    ):
        ours = [
            one
            for one in inspect.signature(getattr(functional, name)).parameters.values()
            if one.kind is not one.KEYWORD_ONLY
        ]
        theirs = inspect.signature(getattr(pfrl.experiments, name)).parameters.values()
        assert [(one.name, one.default) for one in ours] == [
            (one.name, one.default) for one in theirs
        ]


def test_an_exception_leaves_the_same_directory(tmp_path: Path) -> None:
    for module, wrap, name in (
        (pfrl.experiments, OldGym, "theirs"),
        (functional, lambda env: env, "ours"),
    ):
        (tmp_path / name).mkdir()
        with pytest.raises(ValueError, match="fell over"):
            module.train_agent(
                ScriptedAgent(), wrap(EpisodeLengthsEnv((4,), fail_at=7)), 20, str(tmp_path / name)
            )
    assert (
        list_directories(tmp_path / "ours") == list_directories(tmp_path / "theirs") == {"6_except"}
    )


def test_a_dqn_agent_of_pfrl_trains_the_same(tmp_path: Path) -> None:
    import gymnasium as gym
    import torch

    def make_dqn_agent() -> Any:
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Linear(4, 16),
            torch.nn.ReLU(),
            torch.nn.Linear(16, 2),
            pfrl.q_functions.DiscreteActionValueHead(),
        )
        explorer = pfrl.explorers.ConstantEpsilonGreedy(0.1, lambda: random.randrange(2))
        buffer = pfrl.replay_buffers.ReplayBuffer(1_000)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        return pfrl.agents.DoubleDQN(
            model,
            optimizer,
            buffer,
            0.99,
            explorer,
            replay_start_size=100,
            minibatch_size=8,
            gpu=None,
        )

    trained, fresh, steps = make_dqn_agent(), make_dqn_agent(), 600
    functional.train_agent_with_evaluation(
        trained,
        gym.make("CartPole-v1"),
        steps,
        None,
        2,
        300,
        tmp_path,
        checkpoint_freq=500,
        seed=1,
        save_memory=True,
    )
    assert trained.t == steps
    assert trained.optim_t > 400
    fresh.load(str(tmp_path / "best"))
    functional.train_agent(
        fresh,
        gym.make("CartPole-v1"),
        steps + 100,
        tmp_path,
        resume=tmp_path / f"{steps}_finish",
        save_memory=True,
    )
    assert (fresh.t, fresh.optim_t, len(fresh.replay_buffer)) == (
        steps + 100,
        trained.optim_t + 100,
        700,
    )

"""Rows P26 to P49: train_agent_batch and train_agent_batch_with_evaluation."""

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from tests.acceptance.functional_kit import (
    FakeEvaluator,
    RecordingLogger,
    list_directories,
    read_evaluation_steps,
    read_manifest,
    read_scores,
)
from tests.support.pfrl_agents import ScriptedBatch
from tests.support.recording_env import EpisodeLengthsEnv, StatisticsEnv, make_envs
from workers.entrypoints.functional import train_agent_batch, train_agent_batch_with_evaluation
from workers.entrypoints.functional_parts import batch_training
from workers.hooks import EvaluationHook


def train_batch_with_evaluation(
    agent: Any,
    env: Any,
    steps: int,
    outdir: Path,
    interval: int = 4,
    episodes: int | None = 1,
    **options: Any,
) -> list[Any]:
    """Trains a batch with evaluation and returns the history."""
    options = {
        "eval_n_steps": None,
        "eval_n_episodes": episodes,
        "eval_interval": interval,
        "outdir": outdir,
        **options,
    }
    trained, history = train_agent_batch_with_evaluation(agent, env, steps, **options)
    assert trained is agent
    return history


def test_P26_train_agent_batch(tmp_path: Path) -> None:
    agent = ScriptedBatch()
    assert train_agent_batch(agent, make_envs(4), 10, tmp_path) == []
    assert len(agent.list_calls("batch_act")) == len(agent.list_calls("batch_observe")) == 3
    assert list_directories(tmp_path) == {"12_finish"}


def test_P27_agent_and_env(tmp_path: Path) -> None:
    agent, envs = ScriptedBatch(action=2), make_envs(4, (2,), reward=0.1)
    train_agent_batch(agent, envs, 12, tmp_path)
    assert [len(call[2]) for call in agent.list_calls("batch_act")] == [4, 4, 4]
    _, _, observations, rewards, dones, resets = agent.list_calls("batch_observe")[1]
    assert len(observations) == 4
    assert list(rewards) == [0.1] * 4
    assert list(dones) == [True] * 4
    assert list(resets) == [False] * 4
    assert [env.steps for env in envs] == [3] * 4
    with pytest.raises(TypeError, match="no method batch_act"):
        train_agent_batch(object(), envs, 12, tmp_path)


def test_P27_vector_environments(tmp_path: Path) -> None:
    def make(mode: AutoresetMode) -> SyncVectorEnv:
        return SyncVectorEnv([lambda: EpisodeLengthsEnv((2,))] * 3, autoreset_mode=mode)

    agent = ScriptedBatch()
    train_agent_batch(agent, make(AutoresetMode.DISABLED), 9, tmp_path)
    assert [call[2][0].tolist() for call in agent.list_calls("batch_observe")] == [
        [1, 1],
        [2, 1],
        [1, 2],
    ]
    with pytest.raises(
        ValueError, match=r"env: autoreset_mode is NextStep.*AutoresetMode.DISABLED"
    ):
        train_agent_batch(agent, make(AutoresetMode.NEXT_STEP), 9, tmp_path)
    with pytest.raises(TypeError, match=r"env: a str is no gymnasium\.Env"):
        train_agent_batch(agent, "CartPole-v1", 9, tmp_path)  # type: ignore[arg-type]


def test_P28_steps(tmp_path: Path) -> None:
    agent = ScriptedBatch()
    train_agent_batch(agent, make_envs(4), 8, tmp_path, step_offset=8)
    assert agent.list_calls("batch_act") == []
    assert list_directories(tmp_path) == {"8_finish"}


def test_P29_outdir(tmp_path: Path) -> None:
    train_agent_batch(ScriptedBatch(), make_envs(4), 12, tmp_path / "a" / "b", checkpoint_freq=8)
    assert list_directories(tmp_path / "a" / "b") == {"8_checkpoint", "12_finish"}
    assert list_directories(tmp_path) == {"a"}


def test_P30_checkpoint_freq(tmp_path: Path) -> None:
    train_agent_batch(ScriptedBatch(), make_envs(4), 12, tmp_path, checkpoint_freq=5)
    assert list_directories(tmp_path) == {"5_checkpoint", "10_checkpoint", "12_finish"}
    assert [
        read_manifest(tmp_path / name)["env_step"] for name in ("5_checkpoint", "10_checkpoint")
    ] == [8, 12]
    agent = ScriptedBatch()
    train_agent_batch(
        agent, make_envs(4), 12, tmp_path, checkpoint_freq=5, resume=tmp_path / "5_checkpoint"
    )
    assert agent.t == 12
    assert len(agent.list_calls("batch_act")) == 1


def test_P31_log_interval(tmp_path: Path) -> None:
    log = RecordingLogger()
    train_agent_batch(
        ScriptedBatch(), make_envs(4, (2,)), 20, tmp_path, log_interval=6, logger=log.logger
    )
    found = [line for line in log.lines if "average_R" in line]
    assert [line.split()[1] for line in found] == ["step:8", "step:12", "step:20"]
    assert "last_R:2.0 average_R:2.0" in found[0]
    silent = RecordingLogger()
    train_agent_batch(ScriptedBatch(), make_envs(4), 20, tmp_path, logger=silent.logger)
    assert not [line for line in silent.lines if "average_R" in line]


def test_P32_max_episode_len(tmp_path: Path) -> None:
    agent = ScriptedBatch()
    train_agent_batch(
        agent, [EpisodeLengthsEnv((0,)), EpisodeLengthsEnv((2,))], 16, tmp_path, max_episode_len=3
    )
    calls = agent.list_calls("batch_observe")
    assert [[bool(flag) for flag in call[5]] for call in calls] == [
        [index % 3 == 2, False] for index in range(8)
    ]
    assert [[bool(flag) for flag in call[4]] for call in calls] == [
        [False, index % 2 == 1] for index in range(8)
    ]


def test_P33_step_offset(tmp_path: Path) -> None:
    agent, seen = ScriptedBatch(), []
    train_agent_batch(
        agent,
        make_envs(4),
        108,
        tmp_path,
        step_offset=100,
        step_hooks=[lambda env, agent, step: seen.append((step, agent.t))],
    )
    assert [step for step, _ in seen] == list(range(101, 109))
    assert [t for _, t in seen] == [104] * 4 + [108] * 4
    assert list_directories(tmp_path) == {"108_finish"}


def test_P34_evaluator(tmp_path: Path) -> None:
    evaluator = FakeEvaluator(interval=8)
    history = train_agent_batch(
        ScriptedBatch(), make_envs(4, (2,)), 16, tmp_path, evaluator=evaluator
    )
    assert evaluator.asked == [(4, 0), (8, 4), (12, 4), (16, 8)]
    assert [(entry["eval_score"], entry["step"]) for entry in history] == [(1.0, 8), (2.0, 16)]
    with pytest.raises(TypeError, match="evaluate_if_necessary"):
        train_agent_batch(ScriptedBatch(), make_envs(4), 16, tmp_path, evaluator=object())


def test_P35_successful_score(tmp_path: Path) -> None:
    agent = ScriptedBatch()
    history = train_agent_batch(
        agent,
        make_envs(4),
        100,
        tmp_path,
        evaluator=FakeEvaluator(interval=4),
        successful_score=2.0,
    )
    assert len(history) == len(agent.list_calls("batch_act")) == 2
    assert list_directories(tmp_path) == {"8_finish"}
    assert read_manifest(tmp_path / "8_finish")["stop"] == "success_score"


def test_P36_step_hooks(tmp_path: Path) -> None:
    envs, agent, calls = make_envs(3), ScriptedBatch(), []

    def hook(env: Any, agent: Any, step: int) -> None:
        calls.append((env, agent, step, len(agent.list_calls("batch_observe"))))

    train_agent_batch(agent, envs, 9, tmp_path, step_hooks=(hook,))
    assert [step for _, _, step, _ in calls] == list(range(1, 10))
    assert [observed for *_, observed in calls] == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert all(env is envs and given is agent for env, given, *_ in calls)


def test_P37_return_window_size(tmp_path: Path) -> None:
    log = RecordingLogger()
    train_agent_batch(
        ScriptedBatch(),
        make_envs(1, (1, 2, 3, 4)),
        10,
        tmp_path,
        return_window_size=2,
        log_interval=10,
        logger=log.logger,
    )
    assert "last_R:4.0 average_R:3.5" in next(line for line in log.lines if "average_R" in line)
    with pytest.raises(ValueError, match="return_window_size"):
        train_agent_batch(ScriptedBatch(), make_envs(1), 10, tmp_path, return_window_size=0)


def test_P38_logger(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = RecordingLogger()
    with caplog.at_level("INFO"):
        train_agent_batch(
            ScriptedBatch(),
            make_envs(4),
            12,
            tmp_path,
            log_interval=4,
            checkpoint_freq=4,
            logger=log.logger,
        )
    assert len([line for line in log.lines if "last_R" in line]) == 3
    assert [line for line in log.lines if "12_finish" in line]
    assert caplog.messages == []


def test_P39_return_value(tmp_path: Path) -> None:
    history = train_agent_batch(
        ScriptedBatch(), make_envs(4), 12, tmp_path, evaluator=FakeEvaluator(interval=4)
    )
    assert [(entry["eval_score"], entry["step"], entry["updates"]) for entry in history] == [
        (1.0, 4, 1),
        (2.0, 8, 2),
        (3.0, 12, 3),
    ]


def test_P40_train_agent_batch_with_evaluation(tmp_path: Path) -> None:
    history = train_batch_with_evaluation(ScriptedBatch(), make_envs(4), 18, tmp_path, interval=8)
    assert [entry["step"] for entry in history] == read_evaluation_steps(tmp_path) == [8, 16, 20]
    assert [entry["eval_score"] for entry in history] == [3.0] * 3


def test_P41_evaluation_budget(tmp_path: Path) -> None:
    given = {"eval_interval": 4, "outdir": tmp_path}
    both = pytest.raises(ValueError, match="exactly one of eval_n_steps and eval_n_episodes")
    with both:
        train_agent_batch_with_evaluation(ScriptedBatch(), make_envs(4), 4, 5, 5, **given)
    with both:
        train_agent_batch_with_evaluation(ScriptedBatch(), make_envs(4), 4, None, None, **given)
    _, history = train_agent_batch_with_evaluation(
        ScriptedBatch(), make_envs(4), 4, eval_n_steps=None, eval_n_runs=5, **given
    )  # type: ignore[call-arg]
    assert history[0]["episodes"] == 5
    _, history = train_agent_batch_with_evaluation(
        ScriptedBatch(), make_envs(4), 4, None, None, 4, tmp_path, eval_n_runs=2
    )  # type: ignore[call-arg]
    assert history[0]["episodes"] == 2
    with pytest.raises(ValueError, match="eval_n_runs is another name of eval_n_episodes"):
        train_agent_batch_with_evaluation(
            ScriptedBatch(), make_envs(4), 4, None, 5, eval_n_runs=5, **given
        )  # type: ignore[call-arg]
    _, history = train_agent_batch_with_evaluation(
        ScriptedBatch(), make_envs(4), 4, 8, None, **given
    )
    # Each episode has 3 steps; a third one would exceed 8.
    assert history[0]["episodes"] == 2
    with pytest.raises(ValueError, match="eval_n_steps must be a whole number"):
        train_agent_batch_with_evaluation(ScriptedBatch(), make_envs(4), 4, 0, None, **given)


def test_P42_eval_interval(tmp_path: Path) -> None:
    train_batch_with_evaluation(ScriptedBatch(), make_envs(4, (7,)), 120, tmp_path, interval=40)
    assert read_evaluation_steps(tmp_path) == [40, 80, 120]
    with pytest.raises(
        ValueError, match="eval_interval must be a whole number of at least 1, not None"
    ):
        train_batch_with_evaluation(ScriptedBatch(), make_envs(4), 120, tmp_path, interval=None)  # type: ignore[arg-type]


def test_P43_forwarded_parameters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(batch_training, "run_call", lambda call: calls.append(call) or [])
    shared = {
        "outdir": str(tmp_path),
        "log_interval": 3,
        "checkpoint_freq": 5,
        "max_episode_len": 7,
        "step_offset": 2,
        "return_window_size": 11,
        "step_hooks": (print,),
        "logger": RecordingLogger().logger,
        "successful_score": 4.0,
    }
    train_batch_with_evaluation(ScriptedBatch(), make_envs(2), 9, **{**shared, "outdir": tmp_path})  # type: ignore[arg-type]
    train_agent_batch(ScriptedBatch(), make_envs(2), 9, **shared)  # type: ignore[arg-type]
    for call in calls:
        assert {name: getattr(call, name) for name in shared} == shared
        assert (call.is_batch, call.steps) == (True, 9)


@pytest.mark.parametrize(("limit", "longest"), [(None, 5.0), (7, 7.0)])
def test_P44_eval_max_episode_len(tmp_path: Path, limit: int | None, longest: float) -> None:
    agent = ScriptedBatch()
    history = train_batch_with_evaluation(
        agent, make_envs(2, (0,)), 4, tmp_path, max_episode_len=5, eval_max_episode_len=limit
    )
    assert history[-1]["length_max"] == longest
    last = agent.list_calls("batch_observe", training=False)[-1]
    assert (bool(last[4][0]), bool(last[5][0])) == (False, True)


def test_P45_eval_env(tmp_path: Path) -> None:
    envs = make_envs(4, (5,))
    agent = ScriptedBatch()
    train_batch_with_evaluation(agent, envs, 40, tmp_path, interval=8, episodes=3)
    assert [env.steps for env in envs] == [10] * 4
    assert [env.closed for env in envs] == [False] * 4
    # The evaluation disturbed no episode.
    assert [call[2][0][0] for call in agent.list_calls("batch_observe")] == [
        1,
        2,
        3,
        4,
        5,
    ] * 2

    class UncopyableEnv(EpisodeLengthsEnv):
        def __deepcopy__(self, memo: Any) -> Any:
            raise TypeError("a robot cannot be copied")

    with pytest.raises(ValueError, match="eval_env: give an environment of its own"):
        train_batch_with_evaluation(agent, [UncopyableEnv()], 8, tmp_path)
    own = make_envs(2, (5,))
    train_batch_with_evaluation(agent, [UncopyableEnv()], 8, tmp_path, eval_env=own)
    assert own[0].steps > 0


def test_P45_a_recipe_is_followed(tmp_path: Path) -> None:
    envs = [gym.make("CartPole-v1") for _ in range(2)]
    history = train_batch_with_evaluation(ScriptedBatch(), envs, 8, tmp_path, eval_env=envs)
    assert len(history) == 2


def test_P46_successful_score(tmp_path: Path) -> None:
    history = train_batch_with_evaluation(
        ScriptedBatch(), make_envs(3), 100, tmp_path, interval=4, successful_score=3.0
    )
    assert len(history) == 1
    assert list_directories(tmp_path) == {"best", "6_finish"}


def test_P47_evaluation_hooks(tmp_path: Path) -> None:
    class SerialEvaluationHook(EvaluationHook):
        support_train_agent = True

        def __call__(self, **_: Any) -> None:
            raise AssertionError

    class BatchEvaluationHook(EvaluationHook):
        support_train_agent_batch = True
        steps: tuple[int, ...] = ()

        def __call__(self, *, step: int, **_: Any) -> None:
            self.steps += (step,)

    with pytest.raises(
        ValueError, match="SerialEvaluationHook does not support train_agent_batch_with_evaluation"
    ):
        train_batch_with_evaluation(
            ScriptedBatch(),
            make_envs(4),
            8,
            tmp_path / "new",
            evaluation_hooks=[SerialEvaluationHook()],
        )
    assert not (tmp_path / "new").exists()
    hook = BatchEvaluationHook()
    train_batch_with_evaluation(ScriptedBatch(), make_envs(4), 8, tmp_path, evaluation_hooks=[hook])
    assert hook.steps == (4, 8)


def test_P48_save_best_and_tensorboard(tmp_path: Path) -> None:
    train_batch_with_evaluation(
        ScriptedBatch(), make_envs(4), 8, tmp_path / "with", use_tensorboard=True
    )
    train_batch_with_evaluation(
        ScriptedBatch(), make_envs(4), 8, tmp_path / "without", save_best_so_far_agent=False
    )
    assert list_directories(tmp_path / "with") == {"best", "8_finish"}
    assert list_directories(tmp_path / "without") == {"8_finish"}
    # The second mean equals the first, which stays the best.
    assert read_manifest(tmp_path / "with" / "best")["env_step"] == 4
    assert list((tmp_path / "with").glob("events.out.tfevents.*"))
    assert not list((tmp_path / "without").glob("events*"))


def test_P49_vector_evaluation_fairness(tmp_path: Path) -> None:
    short, long = EpisodeLengthsEnv((1,)), EpisodeLengthsEnv((100,))
    history = train_batch_with_evaluation(
        ScriptedBatch(), make_envs(2), 4, tmp_path, episodes=4, eval_env=[short, long]
    )
    assert history[0]["mean"] == (1 + 100 + 1 + 1) / 4
    assert (history[0]["min"], history[0]["max"]) == (1.0, 100.0)


def test_P49_statistics_of_several_environments(tmp_path: Path) -> None:
    envs = [StatisticsEnv((2,)), StatisticsEnv((2,))]
    train_batch_with_evaluation(
        ScriptedBatch(), make_envs(2), 4, tmp_path, episodes=4, eval_env=envs
    )
    assert float(read_scores(tmp_path)[0]["laps"]) == np.mean([2, 2])
    assert [env.cleared for env in envs] == [1, 1]

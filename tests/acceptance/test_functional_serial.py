"""Rows P50 to P71: train_agent, train_agent_with_evaluation, hooks and records."""

import logging
import os
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tests.acceptance.functional_kit import (
    FakeEvaluator,
    RecordingLogger,
    list_directories,
    read_evaluation_steps,
    read_manifest,
    read_scores,
)
from tests.support.pfrl_agents import ScriptedAgent
from tests.support.recording_env import EpisodeLengthsEnv, RepeatingEnv, StatisticsEnv, make_envs
from workers.core.errors import NumericalFailureError
from workers.entrypoints.functional import train_agent, train_agent_with_evaluation
from workers.hooks import (
    EvaluationHook,
    FiniteStatisticsHook,
    LinearInterpolationHook,
    OptunaPrunerHook,
    StepHook,
    learning_rate_setter,
    set_learning_rate,
)


def train_with_evaluation(
    agent: Any, env: Any, steps: int, outdir: Path, interval: int = 4, **options: Any
) -> list[Any]:
    """Trains with evaluation and returns the history."""
    options = {
        "eval_n_steps": None,
        "eval_n_episodes": 1,
        "eval_interval": interval,
        "outdir": outdir,
        **options,
    }
    trained, history = train_agent_with_evaluation(agent, env, steps, **options)
    assert trained is agent
    return history


def test_P50_train_agent_with_evaluation(tmp_path: Path) -> None:
    agent, evaluator = ScriptedAgent(), FakeEvaluator()
    train_agent(agent, EpisodeLengthsEnv((3,)), 5, tmp_path, evaluator=evaluator)
    assert len(agent.list_calls("act")) == len(agent.list_calls("observe")) == 5
    assert evaluator.asked == [(3, 1), (5, 2)]
    again = ScriptedAgent()
    train_with_evaluation(again, EpisodeLengthsEnv((3,)), 5, tmp_path / "own", interval=1)
    assert read_evaluation_steps(tmp_path / "own") == [3, 5]
    assert [row["episodes"] for row in read_scores(tmp_path / "own")] == ["1", "2"]


def test_P51_agent_env_steps_outdir(tmp_path: Path) -> None:
    agent, env = ScriptedAgent(), EpisodeLengthsEnv((3,))
    train_agent(agent, env, 7, tmp_path / "new")
    assert agent.t == 7
    assert len(env.resets) == 3
    assert list_directories(tmp_path / "new") == {"7_finish"}
    assert (tmp_path / "new" / "7_finish" / "model.txt").read_text() == "7"
    fresh = ScriptedAgent()
    fresh.load(str(tmp_path / "new" / "7_finish"))
    assert fresh.updates == 7
    for wrong in (-1, 1.5, True):
        with pytest.raises(ValueError, match="steps must be a whole number"):
            train_agent(agent, env, wrong, tmp_path)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="train_agent takes one"):
        train_agent(agent, make_envs(2), 4, tmp_path)


def test_P51_seed_decides_the_episodes(tmp_path: Path) -> None:
    def list_seeds(**options: Any) -> list[int | None]:
        env = EpisodeLengthsEnv((3,))
        train_agent(ScriptedAgent(), env, 9, tmp_path, **options)
        return env.resets

    assert list_seeds(seed=1) == list_seeds(seed=1) != list_seeds(seed=2)
    np.random.seed(5)  # noqa: NPY002 - that of a caller
    first, second = list_seeds(), list_seeds()
    np.random.seed(5)  # noqa: NPY002
    assert list_seeds() == first != second
    assert len(set(first)) == 3


def test_P52_evaluation_budget(tmp_path: Path) -> None:
    for steps, episodes in ((5, 5), (None, None)):
        with pytest.raises(ValueError, match="exactly one of eval_n_steps and eval_n_episodes"):
            train_agent_with_evaluation(
                ScriptedAgent(), EpisodeLengthsEnv(), 5, steps, episodes, 5, tmp_path / "new"
            )
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("budget", "length", "episodes", "mean"), [(7, 3, 2, 3.0), (6, 3, 2, 3.0), (5, 9, 1, 5.0)]
)
def test_P52_steps_of_an_evaluation(
    tmp_path: Path, budget: int, length: int, episodes: int, mean: float
) -> None:
    agent = ScriptedAgent()
    history = train_with_evaluation(
        agent,
        EpisodeLengthsEnv((4,)),
        4,
        tmp_path,
        eval_n_steps=budget,
        eval_n_episodes=None,
        eval_env=EpisodeLengthsEnv((length,)),
    )
    assert (history[0]["episodes"], history[0]["mean"]) == (episodes, mean)
    assert len(agent.list_calls("act", training=False)) == budget
    # The agent observes that the budget cut the episode off.
    assert agent.list_calls("observe", training=False)[-1][-1] is True


def test_P53_eval_interval(tmp_path: Path) -> None:
    train_with_evaluation(
        ScriptedAgent(),
        EpisodeLengthsEnv((7,)),
        40,
        tmp_path,
        interval=10,
        eval_env=EpisodeLengthsEnv((7,)),
        eval_during_episode=True,
    )
    assert read_evaluation_steps(tmp_path) == [10, 20, 30, 40]
    train_with_evaluation(
        ScriptedAgent(), EpisodeLengthsEnv((7,)), 40, tmp_path / "late", interval=10
    )
    assert read_evaluation_steps(tmp_path / "late") == [14, 21, 35, 40]


def test_P54_checkpoint_freq(tmp_path: Path) -> None:
    train_with_evaluation(
        ScriptedAgent(),
        EpisodeLengthsEnv((3,)),
        12,
        tmp_path,
        checkpoint_freq=4,
        save_best_so_far_agent=False,
    )
    assert list_directories(tmp_path) == {"4_checkpoint", "8_checkpoint", "12_finish"}
    train_agent(
        ScriptedAgent(),
        EpisodeLengthsEnv((3,)),
        12,
        tmp_path / "few",
        checkpoint_freq=2,
        keep_checkpoints=2,
    )
    assert list_directories(tmp_path / "few") == {"8_checkpoint", "10_checkpoint", "12_finish"}


def test_P55_train_max_episode_len(tmp_path: Path) -> None:
    agent = ScriptedAgent()
    train_with_evaluation(agent, EpisodeLengthsEnv((0,)), 8, tmp_path, train_max_episode_len=3)
    flags = [(call[4], call[5]) for call in agent.list_calls("observe")]
    assert flags == [(False, False), (False, False), (False, True)] * 2 + [(False, False)] * 2
    asking = ScriptedAgent()
    train_agent(asking, EpisodeLengthsEnv((0,), needs_reset_at=2), 4, tmp_path / "asks")
    assert [(call[4], call[5]) for call in asking.list_calls("observe")] == [
        (False, False),
        (False, True),
    ] * 2
    with pytest.raises(ValueError, match="maximum episode length"):
        train_agent(asking, EpisodeLengthsEnv(), 4, tmp_path, max_episode_len=0)


def test_P56_step_offset(tmp_path: Path) -> None:
    agent, seen = ScriptedAgent(), []
    train_with_evaluation(
        agent,
        EpisodeLengthsEnv((7,)),
        1_250,
        tmp_path,
        interval=300,
        step_offset=1_000,
        step_hooks=[lambda env, agent, step: seen.append(agent.t)],
    )
    assert seen[0] == 1_001
    assert read_evaluation_steps(tmp_path)[0] == 1_203
    assert list_directories(tmp_path) == {"best", "1250_finish"}


@pytest.mark.parametrize(("limit", "longest"), [(None, 3.0), (5, 5.0)])
def test_P57_eval_max_episode_len(tmp_path: Path, limit: int | None, longest: float) -> None:
    agent = ScriptedAgent()
    history = train_with_evaluation(
        agent,
        EpisodeLengthsEnv((0,)),
        6,
        tmp_path,
        train_max_episode_len=3,
        eval_max_episode_len=limit,
        eval_env=EpisodeLengthsEnv((0,)),
    )
    assert history[0]["length_max"] == longest
    assert agent.list_calls("observe", training=False)[int(longest) - 1][4:] == (False, True)


def test_P58_eval_env(tmp_path: Path) -> None:
    env = EpisodeLengthsEnv((5,))
    agent = ScriptedAgent()
    train_with_evaluation(agent, env, 15, tmp_path, interval=1)
    assert [call[2][0] for call in agent.list_calls("observe")] == [1, 2, 3, 4, 5] * 3
    assert read_evaluation_steps(tmp_path) == [5, 10, 15]
    assert env.steps == 15 + 15
    own = EpisodeLengthsEnv((2,))
    train_with_evaluation(agent, env, 15, tmp_path, interval=1, eval_env=own)
    assert (env.steps, own.steps) == (45, 6)


def test_P59_successful_score(tmp_path: Path) -> None:
    history = train_with_evaluation(
        ScriptedAgent(), EpisodeLengthsEnv((3,)), 100, tmp_path, interval=4, successful_score=3.0
    )
    assert [entry["step"] for entry in history] == [6]
    assert list_directories(tmp_path) == {"best", "6_finish"}
    assert read_manifest(tmp_path / "6_finish")["stop"] == "success_score"


def test_P60_step_hooks(tmp_path: Path) -> None:
    agent, env, calls = ScriptedAgent(), EpisodeLengthsEnv((3,)), []

    def hook(given_env: Any, given_agent: Any, step: int) -> None:
        calls.append(
            (given_env is env, given_agent is agent, step, len(agent.list_calls("observe")))
        )

    train_agent(agent, env, 14, tmp_path, step_offset=10, step_hooks=[hook])
    assert calls == [(True, True, 10 + number, number) for number in range(1, 5)]


class RecordingHook(EvaluationHook):
    """An evaluation hook that records its arguments.

    It also records whether a best agent was already saved.
    """

    support_train_agent = True

    def __init__(self, outdir: Path, error: BaseException | None = None) -> None:
        self.outdir = outdir
        self.error = error
        self.calls: list[dict[str, Any]] = []

    def __call__(self, **given: Any) -> None:
        rows = len(read_scores(self.outdir))
        self.calls.append(
            {
                **given,
                "best": (self.outdir / "best").exists(),
                "max": given["evaluator"].max_score,
                "rows": rows,
            }
        )
        if self.error is not None:
            raise self.error


def test_P61_evaluation_hooks(tmp_path: Path) -> None:
    agent, env, hook = ScriptedAgent(), StatisticsEnv((3,)), RecordingHook(tmp_path)
    train_with_evaluation(agent, env, 12, tmp_path, interval=6, evaluation_hooks=[hook])
    first, second = hook.calls
    assert (first["best"], first["max"], first["rows"]) == (False, -np.inf, 1)
    assert (second["best"], second["max"], second["rows"]) == (True, 3.0, 2)
    assert (first["env"], first["agent"], first["step"]) == (env, agent, 6)
    assert (
        first["eval_stats"]["mean"],
        first["eval_stats"]["episodes"],
        first["eval_stats"]["length_mean"],
    ) == (3.0, 1, 3.0)
    assert first["agent_stats"] == [("updates", 6)]
    assert first["env_stats"] == [("laps", 3.0)]


def test_P61_a_pruned_trial(tmp_path: Path) -> None:
    optuna = pytest.importorskip("optuna")
    hook = RecordingHook(tmp_path, optuna.TrialPruned())
    with pytest.raises(optuna.TrialPruned):
        train_with_evaluation(
            ScriptedAgent(),
            EpisodeLengthsEnv((3,)),
            12,
            tmp_path,
            interval=6,
            evaluation_hooks=[hook],
        )
    assert list_directories(tmp_path) == {"6_except"}
    assert read_evaluation_steps(tmp_path) == [6]


def test_P61_optuna(tmp_path: Path) -> None:
    optuna = pytest.importorskip("optuna")
    study = optuna.create_study(
        direction="maximize", pruner=optuna.pruners.ThresholdPruner(lower=4.0, n_warmup_steps=7)
    )
    trial = study.ask()
    with pytest.raises(optuna.TrialPruned, match="pruned at step 9"):
        train_with_evaluation(
            ScriptedAgent(),
            EpisodeLengthsEnv((3,)),
            30,
            tmp_path,
            interval=3,
            evaluation_hooks=[OptunaPrunerHook(trial)],
        )
    assert study.trials[0].intermediate_values == {3: 3.0, 6: 3.0, 9: 3.0}
    assert "9_except" in list_directories(tmp_path)


def test_P62_save_best_so_far_agent(tmp_path: Path) -> None:
    env = EpisodeLengthsEnv((1, 1, 2, 2, 2, 3, 3))
    agent = ScriptedAgent()
    train_with_evaluation(agent, env, 12, tmp_path, interval=1)
    saved = [call[2] for call in agent.calls if call[0] == "save"]
    means = [float(row["mean"]) for row in read_scores(tmp_path)]
    improvements = sum(
        mean > max(means[:index], default=-np.inf) for index, mean in enumerate(means)
    )
    assert len([path for path in saved if "/best." in path]) == improvements < len(means)
    train_with_evaluation(
        ScriptedAgent(),
        EpisodeLengthsEnv((3,)),
        12,
        tmp_path / "never",
        save_best_so_far_agent=False,
    )
    assert "best" not in list_directories(tmp_path / "never")


def test_P63_use_tensorboard(tmp_path: Path) -> None:
    train_with_evaluation(
        ScriptedAgent(), StatisticsEnv((3,)), 12, tmp_path, interval=6, use_tensorboard=True
    )
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    tags = set(events.Tags()["scalars"])
    assert {"agent/updates", "env/laps", "extras/meanplusstdev", "extras/meanminusstdev"} <= tags
    assert {f"eval/{name}" for name in ("mean", "median", "max", "min", "stdev")} <= tags
    assert [(event.step, event.value) for event in events.Scalars("eval/mean")] == [
        (6, 3.0),
        (12, 3.0),
    ]


def test_P63_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torch.utils.tensorboard", None)
    with pytest.raises(ImportError, match="pip install tensorboard"):
        train_with_evaluation(
            ScriptedAgent(), EpisodeLengthsEnv(), 12, tmp_path, use_tensorboard=True
        )


def test_P64_eval_during_episode(tmp_path: Path) -> None:
    env = EpisodeLengthsEnv((5,))
    for eval_env in (None, env):
        with pytest.raises(ValueError, match="eval_during_episode: give an eval_env"):
            train_with_evaluation(
                ScriptedAgent(),
                env,
                12,
                tmp_path / "new",
                eval_during_episode=True,
                eval_env=eval_env,
            )
    assert not (tmp_path / "new").exists()
    evaluator = FakeEvaluator(interval=3)
    train_agent(ScriptedAgent(), env, 7, tmp_path, evaluator=evaluator, eval_during_episode=True)
    assert evaluator.asked == [(1, 0), (2, 0), (3, 0), (4, 0), (5, 1), (6, 1), (7, 2)]


def test_P65_logger(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = RecordingLogger()
    with caplog.at_level("INFO"):
        train_with_evaluation(
            ScriptedAgent(), EpisodeLengthsEnv((3,)), 12, tmp_path, interval=6, logger=log.logger
        )
    assert caplog.messages == []
    assert f"outdir:{tmp_path} step:6 episode:1 R:3.0" in next(
        line for line in log.lines if "step:6" in line
    )
    assert len([line for line in log.lines if "statistics" in line]) == 4
    assert len([line for line in log.lines if line.startswith("evaluation episode")]) == 2
    with caplog.at_level(logging.INFO):
        train_agent(ScriptedAgent(), EpisodeLengthsEnv(), 3, tmp_path)
    assert "R:3.0" in caplog.text


def test_P66_return_value(tmp_path: Path) -> None:
    agent = ScriptedAgent()
    trained, history = train_agent_with_evaluation(
        agent, EpisodeLengthsEnv((3,)), 9, None, 2, 3, tmp_path
    )
    assert trained is agent
    assert [entry["step"] for entry in history] == [3, 6, 9]
    spread = {"mean": 3.0, "median": 3.0, "stdev": 0.0, "max": 3.0, "min": 3.0}
    expected = {
        "updates": 3,
        "eval_score": 3.0,
        "step": 3,
        "training_episodes": 1,
        "episodes": 2,
        **spread,
    }
    expected |= {f"length_{name}": value for name, value in spread.items()}
    assert history[0] == expected | {name: history[0][name] for name in ("elapsed", "wall_time")}


def test_P67_scores(tmp_path: Path) -> None:
    train_with_evaluation(ScriptedAgent(), StatisticsEnv((3,)), 12, tmp_path, interval=6)
    header = (tmp_path / "scores.txt").read_text().splitlines()[0].split("\t")
    assert header == [
        "steps",
        "episodes",
        "elapsed",
        "mean",
        "median",
        "stdev",
        "max",
        "min",
        "updates",
        "laps",
    ]

    class AgentWithMoreStatistics(ScriptedAgent):
        def get_statistics(self) -> list[tuple[str, Any]]:
            return [("entropy", 0.5), *super().get_statistics()]

    train_with_evaluation(
        AgentWithMoreStatistics(), StatisticsEnv((3,)), 18, tmp_path, interval=6, step_offset=12
    )
    rows = read_scores(tmp_path)
    assert [(row["steps"], row["entropy"], row["updates"]) for row in rows] == [
        ("6", "", "6"),
        ("12", "", "12"),
        ("18", "0.5", "6"),
    ]


def test_P67_a_resume_appends(tmp_path: Path) -> None:
    train_with_evaluation(
        ScriptedAgent(), RepeatingEnv((3,)), 12, tmp_path, interval=3, checkpoint_freq=7
    )
    history = train_with_evaluation(
        ScriptedAgent(),
        RepeatingEnv((3,)),
        18,
        tmp_path,
        interval=3,
        resume=tmp_path / "7_checkpoint",
    )
    assert read_evaluation_steps(tmp_path) == [3, 6, 9, 12, 15, 18]
    assert [entry["step"] for entry in history] == [3, 6, 9, 12, 15, 18]
    train_with_evaluation(ScriptedAgent(), RepeatingEnv((3,)), 3, tmp_path, interval=3)
    assert read_evaluation_steps(tmp_path) == [3]
    # The file of the earlier training keeps its rows.
    assert len((tmp_path / "scores.1.txt").read_text().splitlines()) == 7


@pytest.mark.parametrize(
    "error", [ValueError("the robot fell over"), KeyboardInterrupt(), OSError(5, "gone")]
)
def test_P68_exception(tmp_path: Path, error: BaseException) -> None:
    agent = ScriptedAgent()
    with pytest.raises(type(error)) as caught:
        train_agent(agent, EpisodeLengthsEnv((4,), fail_at=7, error=error), 20, tmp_path)
    assert caught.value is error
    assert list_directories(tmp_path) == {"6_except"}
    assert read_manifest(tmp_path / "6_except")["reason"] == "exception"
    again = ScriptedAgent()
    train_agent(again, EpisodeLengthsEnv((4,)), 20, tmp_path, resume="latest")
    assert (again.t, len(again.list_calls("act"))) == (20, 14)


def test_P68_sigterm(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)

    def hook(env: Any, agent: Any, step: int) -> None:
        if step == 5:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(KeyboardInterrupt):
        train_agent(ScriptedAgent(), EpisodeLengthsEnv((3,)), 20, tmp_path, step_hooks=[hook])
    assert list_directories(tmp_path) == {"5_except"}
    assert read_manifest(tmp_path / "5_except")["stop"] == "drain"
    assert signal.getsignal(signal.SIGTERM) is before


def test_P68_sigterm_during_an_evaluation(tmp_path: Path) -> None:
    class KillingEnv(EpisodeLengthsEnv):
        def step(self, action: Any) -> Any:
            if self.steps == 10:
                os.kill(os.getpid(), signal.SIGTERM)
            return super().step(action)

    with pytest.raises(KeyboardInterrupt):
        train_with_evaluation(
            ScriptedAgent(),
            EpisodeLengthsEnv((3,)),
            20,
            tmp_path,
            interval=3,
            eval_env=KillingEnv((1_000_000,)),
        )
    assert list_directories(tmp_path) == {"3_except"}


def test_P68_sigterm_is_not_handled_in_threads(tmp_path: Path) -> None:
    thread = threading.Thread(
        target=train_agent, args=(ScriptedAgent(), EpisodeLengthsEnv(), 3, tmp_path)
    )
    thread.start()
    thread.join()
    assert list_directories(tmp_path) == {"3_finish"}


def test_P69_step_hook(tmp_path: Path) -> None:
    class StatefulStepHook(StepHook):
        def __init__(self) -> None:
            self.steps: list[int] = []

        def __call__(self, env: Any, agent: Any, step: int) -> None:
            self.steps.append(step)

    kept, plain = StatefulStepHook(), []
    train_agent(
        ScriptedAgent(),
        EpisodeLengthsEnv(),
        3,
        tmp_path,
        step_hooks=(kept, lambda env, agent, step: plain.append(step)),
    )
    assert kept.steps == plain == [1, 2, 3]
    with pytest.raises(TypeError, match="step_hooks: a int cannot be called"):
        train_agent(ScriptedAgent(), EpisodeLengthsEnv(), 3, tmp_path, step_hooks=(3,))  # type: ignore[arg-type]


def test_P70_linear_interpolation_hook() -> None:
    calls: list[Any] = []
    hook = LinearInterpolationHook(100, 1.0, 0.0, lambda *given: calls.append(given))
    for step in (1, 100, 500):
        hook("env", "agent", step)
    assert calls == [("env", "agent", 1.0), ("env", "agent", 0.0), ("env", "agent", 0.0)]
    for step in (0, 1, 17, 50, 99, 100, 101):
        assert hook.value(step) == pytest.approx(np.interp(step, [1, 100], [1.0, 0.0]), abs=1e-15)
    assert LinearInterpolationHook(1, 1.0, 0.0, print).value(1) == 0.0
    with pytest.raises(ValueError, match="total_steps"):
        LinearInterpolationHook(0, 1.0, 0.0, print)


@pytest.mark.parametrize("setter", [set_learning_rate, learning_rate_setter("optimizer")])
def test_P71_setter_on_torch_lr(tmp_path: Path, setter: Any) -> None:
    agent = ScriptedAgent()
    agent.optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=9.0)  # type: ignore[attr-defined]
    hook = LinearInterpolationHook(11, 1.0, 0.0, setter)
    train_agent(agent, EpisodeLengthsEnv(), 6, tmp_path, step_hooks=[hook])
    assert agent.optimizer.param_groups[0]["lr"] == hook.value(6) == 0.5  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="ScriptedAgent has no torch optimiser"):
        set_learning_rate(None, ScriptedAgent(), 1.0)


def test_statistics_that_diverge_end_training(tmp_path: Path) -> None:
    class DivergingAgent(ScriptedAgent):
        def get_statistics(self) -> list[tuple[str, Any]]:
            return [("loss", float("nan") if self.t < 2 or self.t > 5 else 1.0)]

    with pytest.raises(NumericalFailureError, match="loss is nan at step 6"):
        train_agent(
            DivergingAgent(),
            EpisodeLengthsEnv(),
            20,
            tmp_path,
            step_hooks=[FiniteStatisticsHook(every=1)],
        )
    assert list_directories(tmp_path) == {"6_except"}

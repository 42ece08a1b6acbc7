"""Hooks, sessions, specs and checkpoints beyond the acceptance rows."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.acceptance.estimator_kit import (
    CallLog,
    CountingEstimator,
    FakeTime,
    are_equal,
    make_agent,
    read_state,
)
from tests.acceptance.estimator_models import QUIET, CountingInputs, ScriptedEnv, regression
from workers.core.errors import NumericalFailureError
from workers.core.null_parts import NoOrders
from workers.core.types import StopReason
from workers.estimators.agents import Agent
from workers.estimators.basic_hooks import (
    FinalOpsHook,
    GlobalStepWaiterHook,
    NanTensorHook,
    StopAfterNEvalsHook,
)
from workers.estimators.checkpoints import all_checkpoints, has_training_ended, load_checkpoint
from workers.estimators.cluster import SharedStepHook, address_of
from workers.estimators.counter_hooks import (
    EpisodeCheckpointSaverHook,
    EpisodeCounterHook,
    EpisodeLoggingTensorHook,
    EpisodeSummarySaverHook,
    StepCheckpointSaverHook,
    StepCounterHook,
    StepLoggingTensorHook,
    StepSummarySaverHook,
    StopAtEpisodeHook,
    StopAtStepHook,
)
from workers.estimators.estimator import Estimator
from workers.estimators.memories import Memory
from workers.estimators.run_config import RunConfig
from workers.estimators.summaries import SUMMARIES_FILE, SummaryWriter
from workers.estimators.training_services import Services
from workers.supervised.modes import Modes
from workers.supervised.run_session import RunSession, RunValues, SessionRunHook
from workers.supervised.spec import EstimatorSpec
from workers.supervised.variables import Variables, get_module, minimize


def run_update(session: RunSession, loss: float = 1.0) -> None:
    def op() -> RunValues:
        session.variables.global_step += 1
        return RunValues(loss=torch.tensor(loss), has_learned=True)

    session.run(op)


def start_session(
    *hooks: SessionRunHook, directory: str = "", time: FakeTime | None = None
) -> RunSession:
    session = RunSession(Variables(), hooks, directory, (time or FakeTime()).now)
    session.start()
    return session


def test_a_spec_without_the_members_of_its_mode_is_refused() -> None:
    loss = torch.zeros(())
    EstimatorSpec(Modes.TRAIN, loss=loss, train_op=lambda: None)
    for mode, given in (
        (Modes.TRAIN, {"loss": loss}),
        (Modes.TRAIN, {"train_op": lambda: None}),
        (Modes.EVAL, {}),
        (Modes.PREDICT, {}),
        (Modes.GENERATE, {"loss": loss}),
        (Modes.ENCODE, {}),
    ):
        with pytest.raises(ValueError, match="missing"):
            EstimatorSpec(mode, **given)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="one number"):
        EstimatorSpec(Modes.EVAL, loss=torch.zeros(2))


def test_a_loss_that_is_not_finite_raises_or_ends_the_training() -> None:
    session = start_session(NanTensorHook())
    run_update(session)
    with pytest.raises(NumericalFailureError, match="nan at global_step 2"):
        run_update(session, float("nan"))
    session = start_session(NanTensorHook(fail_on_nan_loss=False))
    run_update(session, float("inf"))
    assert session.stop_reason is StopReason.DIVERGED


def test_a_diverged_training_is_not_resumed(tmp_path: Path) -> None:
    def model(features: Any, labels: Any, mode: Modes) -> EstimatorSpec:
        spec = regression(features, labels, mode)
        broken = mode is Modes.TRAIN and get_step() == 4
        return EstimatorSpec(
            mode,
            spec.predictions,
            spec.loss * float("nan") if broken and spec.loss is not None else spec.loss,
            spec.train_op,
        )

    from workers.supervised.variables import global_step as get_step

    estimator = Estimator(model, tmp_path, RunConfig(**QUIET, save_checkpoints_steps=2))
    with pytest.raises(NumericalFailureError):
        estimator.train(CountingInputs(), max_steps=9)
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["ckpt-2", "ckpt-4", "failed-4"]
    assert estimator.global_step == 4
    assert not has_training_ended(tmp_path)
    Estimator(model, tmp_path, RunConfig(**QUIET)).train(
        CountingInputs(), max_steps=9, hooks=[NanTensorHook(fail_on_nan_loss=False)]
    )
    assert has_training_ended(tmp_path), "a hook of the caller's stands in for the default one"
    assert estimator.global_step == 4


def test_step_hooks_fire_at_multiples_by_steps_or_seconds(tmp_path: Path) -> None:
    time = FakeTime()
    hooks = [
        StepCheckpointSaverHook(save_steps=3),
        StepSummarySaverHook(2),
        StepLoggingTensorHook(1),
        StepCounterHook(4),
    ]
    session = start_session(*hooks, directory=str(tmp_path), time=time)
    asked = []
    for _ in range(8):
        time.at += 0.5
        run_update(session)
        asked.append(session.is_checkpoint_requested)
        session.is_checkpoint_requested = False
    assert [step for step, one in enumerate(asked, 1) if one] == [3, 6]
    rows = [json.loads(line) for line in (tmp_path / SUMMARIES_FILE).read_text().splitlines()]
    assert [row["global_step"] for row in rows if "loss" in row] == [2, 4, 6, 8]
    assert [row["global_step/sec"] for row in rows if "global_step/sec" in row] == [2.0, 2.0]
    session = start_session(StepCheckpointSaverHook(save_secs=10), time=time)
    asked = []
    for _ in range(8):
        time.at += 4
        run_update(session)
        asked.append(session.is_checkpoint_requested)
        session.is_checkpoint_requested = False
    assert [step for step, one in enumerate(asked, 1) if one] == [3, 6]
    for wrong in ({}, {"save_secs": 1, "save_steps": 1}, {"save_steps": 0}):
        with pytest.raises(ValueError):
            StepCheckpointSaverHook(**wrong)


@pytest.mark.parametrize(
    "hook", [StepSummarySaverHook, StepCounterHook, EpisodeSummarySaverHook, EpisodeCounterHook]
)
def test_hooks_that_write_summaries_close_their_files(hook: Any, tmp_path: Path) -> None:
    closed = []

    class Writer(SummaryWriter):
        def close(self) -> None:
            closed.append(True)

    start_session(hook(writer=Writer(tmp_path))).end()
    assert closed == [True]


def test_episode_hooks_fire_at_ends_of_episodes(tmp_path: Path) -> None:
    counter = EpisodeCounterHook(2)
    hooks = [
        counter,
        EpisodeSummarySaverHook(2),
        EpisodeLoggingTensorHook(3),
        EpisodeCheckpointSaverHook(save_episodes=3),
    ]
    agent = make_agent(tmp_path, save_checkpoints_episodes=2, keep_checkpoint_max=None)
    agent.train(ScriptedEnv(), 4, 5, max_episodes=7, hooks=hooks)
    rows = [json.loads(line) for line in (tmp_path / SUMMARIES_FILE).read_text().splitlines()]
    assert [row["global_episode"] for row in rows if "total_reward" in row] == [2, 4, 6]
    assert [row["global_episode/steps"] for row in rows if "global_episode/steps" in row] == [
        10.0
    ] * 3
    saved = [
        load_checkpoint(tmp_path, path).manifest.episode
        for path in all_checkpoints(tmp_path).values()
    ]  # type: ignore[union-attr]
    assert saved == [3, 6, 7], "a hook of the caller's stands in for the default one"
    for wrong in ({}, {"num_episodes": 1, "last_episode": 2}):
        with pytest.raises(ValueError, match="StopAtEpisodeHook"):
            StopAtEpisodeHook(**wrong)
    with pytest.raises(ValueError, match="StopAtStepHook"):
        StopAtStepHook()


def test_stop_hooks_count_from_where_the_training_stands(tmp_path: Path) -> None:
    make_agent(tmp_path).train(ScriptedEnv(), 4, 5, max_episodes=2)
    agent = make_agent(tmp_path).train(
        ScriptedEnv(), 4, 5, hooks=[StopAtEpisodeHook(num_episodes=3)]
    )
    assert load_checkpoint(tmp_path).manifest.episode == 5  # type: ignore[union-attr]
    agent.train(ScriptedEnv(), 4, 5, hooks=[StopAtEpisodeHook(last_episode=6)])
    assert load_checkpoint(tmp_path).manifest.episode == 6  # type: ignore[union-attr]
    step = agent.global_step
    assert (
        agent.train(ScriptedEnv(), 4, 5, hooks=[StopAtStepHook(num_steps=3)]).global_step
        == step + 3
    )


def test_evaluations_wait_run_final_ops_and_keep_their_bounds() -> None:
    time, shared = FakeTime(), iter([0, 1, 2, 3])
    hook = GlobalStepWaiterHook(2, lambda: next(shared), time.sleep)
    session = start_session(hook)
    run_update(session)
    run_update(session)
    assert len(time.slept) == 2, "it waits once"
    final = FinalOpsHook({"answer": lambda: 42})
    session = start_session(final)
    assert final.final_ops_values == {}
    session.end()
    assert final.final_ops_values == {"answer": 42}
    with pytest.raises(ValueError, match="num_evals"):
        StopAfterNEvalsHook(0)


def test_a_training_continues_without_its_server() -> None:
    def raise_lost_connection(updates: int) -> int:
        added.append(updates)
        raise RuntimeError("connection reset")

    added: list[int] = []
    session = start_session(SharedStepHook(raise_lost_connection))
    run_update(session)
    run_update(session)
    assert (added, session.stop_reason) == ([1], None)


def test_state_of_hooks_is_saved(tmp_path: Path) -> None:
    class CountingHook(SessionRunHook):
        def __init__(self) -> None:
            self.runs = 0

        def after_run(self, run_context: Any, run_values: Any) -> None:
            self.runs += 1

        def state_dict(self) -> dict[str, Any]:
            return {"runs": self.runs}

        def load_state_dict(self, state: dict[str, Any]) -> None:
            self.runs = state["runs"]

    for total in (4, 8):
        hooks = [CountingHook(), CountingHook()]
        Estimator(regression, tmp_path, RunConfig(**QUIET)).train(
            CountingInputs(), steps=4, hooks=hooks
        )
        assert [hook.runs for hook in hooks] == [total, total]
    third = [CountingHook(), CountingHook(), CountingHook()]
    Estimator(regression, tmp_path, RunConfig(**QUIET)).train(
        CountingInputs(), steps=1, hooks=third
    )
    assert [hook.runs for hook in third] == [9, 9, 1], "one that is new begins anew"


def test_an_order_from_outside_pauses(tmp_path: Path) -> None:
    class PauseOrder(NoOrders):
        looks = 0

        @property
        def order(self) -> StopReason | None:  # type: ignore[override]
            self.looks += 1
            return StopReason.PAUSE if self.looks >= 5 else None

    estimator = CountingEstimator(tmp_path, CallLog())
    estimator.services = Services(control=PauseOrder())
    estimator.train(CountingInputs(), max_steps=50)
    assert estimator.global_step == 5
    assert not estimator.has_training_ended()
    straight = CountingEstimator(tmp_path / "straight", CallLog()).train(
        CountingInputs(), max_steps=12
    )
    again = CountingEstimator(tmp_path, CallLog()).train(CountingInputs(), max_steps=12)
    assert are_equal(read_state(again), read_state(straight))


def test_modules_belong_to_model_functions_and_come_before_the_optimiser() -> None:
    with pytest.raises(RuntimeError, match="model function"):
        get_module("a", lambda: torch.nn.Linear(1, 1))
    variables = Variables()

    def sgd(parameters: Any) -> torch.optim.Optimizer:
        return torch.optim.SGD(parameters, lr=0.1)

    with variables.activate(Modes.TRAIN):
        with pytest.raises(ValueError, match="trainable"):
            minimize(torch.zeros(()), sgd)
        network = get_module("a", lambda: torch.nn.Linear(1, 1))
        assert get_module("a", lambda: torch.nn.Linear(9, 9)) is network
        minimize(network(torch.ones(1, 1)).mean(), sgd)()
        get_module("b", lambda: torch.nn.Linear(1, 1))
        with pytest.raises(ValueError, match="after optimiser"):
            minimize(network(torch.ones(1, 1)).mean(), sgd)
    other = Variables()
    other.load_state_dict(variables.state_dict())
    with other.activate(Modes.PREDICT), pytest.raises(ValueError, match="'a' does not fit"):
        get_module("a", lambda: torch.nn.Linear(3, 3))


def test_cluster_addresses_are_parsed() -> None:
    assert address_of("grpc://host:12") == ("host", 12)
    for wrong in ("host", ":1", "host:x", ""):
        with pytest.raises(ValueError, match="host:port"):
            address_of(wrong)


def test_events_are_written_when_asked(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    config = RunConfig(tensorboard=True, save_summary_steps=2, log_step_count_steps=0)
    estimator = Estimator(regression, tmp_path, config).train(CountingInputs(), max_steps=6)
    estimator.evaluate(CountingInputs(2), name="one_pass")

    def list_steps(directory: Path, tag: str) -> list[int]:
        events = EventAccumulator(str(directory))
        events.Reload()
        return [event.step for event in events.Scalars(tag)]

    assert list_steps(tmp_path, "loss") == [2, 4, 6]
    assert list_steps(tmp_path / "eval_one_pass", "loss") == [6]


def test_unknown_prediction_keys_are_refused(tmp_path: Path) -> None:
    """Regression: an unknown key returned empty rows."""
    estimator = Estimator(regression, tmp_path, RunConfig(**QUIET))
    estimator.train(CountingInputs(2), steps=1)
    with pytest.raises(ValueError, match="predicts nothing called 'typo'; it predicts results"):
        next(estimator.predict(CountingInputs(1), ["typo"]))
    with pytest.raises(ValueError, match="'typo'"):
        next(estimator.predict(CountingInputs(1), ["results", "typo"]))
    with pytest.raises(TypeError, match="must be a list of names"):
        next(estimator.predict(CountingInputs(1), "results"))


@pytest.mark.parametrize(
    "name", ["global_step", "global_timestep", "global_episode", "loss", "wall"]
)
def test_metrics_with_reserved_names_are_refused(name: str) -> None:
    """Regression: such a metric was overwritten without an error."""
    with pytest.raises(ValueError, match=f"an entry '{name}' of its own"):
        EstimatorSpec(Modes.EVAL, loss=torch.tensor(1.0), metrics={name: 1.0})


@pytest.mark.parametrize(
    "kind", [Estimator, lambda model_fn, **given: Agent(model_fn, Memory(8, 2), **given)]
)
def test_arguments_of_a_wrong_type_are_named(kind: Any, tmp_path: Path) -> None:
    """Regression: a configuration given as a string caused an unrelated AttributeError."""
    with pytest.raises(TypeError, match="config must be a RunConfig or None, not a str"):
        kind(regression, model_dir=tmp_path, config="x")
    with pytest.raises(
        TypeError, match="params must be a mapping of names to values or None, not a list"
    ):
        kind(regression, model_dir=tmp_path, params=[1])
    with pytest.raises(
        TypeError, match="model_fn must be a function of features and labels, not a str"
    ):
        kind("regression", model_dir=tmp_path)


def test_predictions_come_row_by_row(tmp_path: Path) -> None:
    estimator = Estimator(regression, tmp_path, RunConfig(**QUIET)).train(
        CountingInputs(), max_steps=3
    )
    rows = list(estimator.predict(CountingInputs(2, rows=3)))
    assert len(rows) == 6
    assert rows[0]["results"].shape == (1,)
    assert list(estimator.predict(CountingInputs(1), predict_keys=[])) == [{}] * 4

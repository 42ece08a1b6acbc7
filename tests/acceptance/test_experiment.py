"""Experiment: what it is made of, train and evaluate (rows E1 to E8)."""

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.acceptance.estimator_kit import (
    CLUSTER,
    CallLog,
    CountingEstimator,
    FakeServer,
    KillHook,
    SimulatedKill,
    TracingHook,
    are_equal,
    make_agent,
    make_experiment,
    read_state,
    set_fake_clock,
)
from tests.acceptance.estimator_models import CountingInputs
from workers.core.types import StopReason
from workers.entrypoints.experiment_parts.supervised_experiment import Experiment
from workers.estimators.basic_hooks import GlobalStepWaiterHook
from workers.estimators.checkpoints import all_checkpoints, has_training_ended
from workers.estimators.evaluation_results import read_results
from workers.estimators.export_strategies import ExportStrategy
from workers.estimators.model_owner import EstimatorNotTrainedError
from workers.snapshot.manifest import read_manifest
from workers.supervised.inputs import ArrayBatches


def test_E1_constructor(tmp_path: Path) -> None:
    class Untouchable:
        model_dir = "x"

        def _never(self, *args: Any, **options: Any) -> Any:
            raise AssertionError

        train = evaluate = latest_checkpoint = has_training_ended = _never

    class BeginHook(TracingHook):
        def begin(self) -> None:
            raise AssertionError

    untouched = Untouchable()
    never = untouched._never
    made = Experiment(untouched, never, never, train_hooks=[BeginHook()], eval_hooks=[BeginHook()])
    assert made.estimator is untouched
    parameters = inspect.signature(Experiment).parameters
    assert list(parameters) == [
        *(
            "estimator",
            "train_input_fn",
            "eval_input_fn",
            "train_steps",
            "eval_steps",
            "train_hooks",
            "eval_hooks",
            "eval_delay_secs",
        ),
        *(
            "continuous_eval_throttle_secs",
            "eval_every_n_steps",
            "delay_workers_by_global_step",
            "export_strategies",
        ),
        "train_steps_per_iteration",
    ]
    assert [one.default for one in parameters.values()][3:] == [
        None,
        10,
        None,
        None,
        0,
        60,
        1,
        False,
        None,
        100,
    ]
    for wrong in ("estimator", make_agent(tmp_path)):
        with pytest.raises(ValueError, match="estimator"):
            Experiment(wrong, never, never)  # type: ignore[arg-type]


def test_E2_estimator(tmp_path: Path) -> None:
    estimator = CountingEstimator(tmp_path, CallLog())
    made = Experiment(estimator, CountingInputs(), CountingInputs())
    assert made.estimator is estimator
    with pytest.raises(AttributeError):
        made.estimator = None  # type: ignore[misc]


def test_E3_input_fns(tmp_path: Path) -> None:
    train, evaluate = CountingInputs(), CountingInputs(7)
    made = make_experiment(
        tmp_path, train_input_fn=train, eval_input_fn=evaluate, train_steps=5, eval_steps=None
    )
    made.train()
    assert (train.calls, train.drawn, evaluate.calls) == (1, 5, 0)
    hook = TracingHook()
    made.extend_eval_hooks([hook])
    made.evaluate()
    assert (train.calls, evaluate.calls, evaluate.drawn) == (1, 1, 7), "a finite set once"
    assert hook.events.count("after") == 7
    x = np.ones((3, 1), np.float32)
    pair = make_experiment(
        tmp_path / "pair",
        train_input_fn=lambda: ({"x": x}, 2 * x),
        eval_input_fn=lambda: ({"x": x}, 2 * x),
        train_steps=4,
    )
    assert pair.train().global_step == 4, "one pair of features and labels comes again and again"
    assert set(pair.evaluate()) == {"loss", "error", "global_step"}


def test_E3_means_are_over_examples(tmp_path: Path) -> None:
    def yield_uneven_batches() -> Any:
        for rows, value in ((3, 1.0), (1, 5.0)):
            x = np.zeros((rows, 1), np.float32)
            yield {"x": x}, x + value

    made = make_experiment(
        tmp_path,
        train_input_fn=lambda: [
            ({"x": np.zeros((1, 1), np.float32)}, np.zeros((1, 1), np.float32))
        ],
        eval_steps=None,
    )
    made.train()
    made = make_experiment(tmp_path, eval_input_fn=yield_uneven_batches, eval_steps=None)
    bias = float(read_state(made.estimator)["agent"]["variables"]["modules"]["line"]["bias"])
    assert made.evaluate()["error"] == pytest.approx(
        (3 * abs(1 - bias) + abs(5 - bias)) / 4, rel=1e-5
    ), "not over batches"


def test_E4_train_steps_and_eval_steps(tmp_path: Path) -> None:
    made = make_experiment(tmp_path, train_steps=6, eval_steps=3)
    assert (made.train_steps, made.eval_steps) == (6, 3)
    assert made.train().global_step == 6
    hook = TracingHook()
    made.extend_eval_hooks([hook])
    made.evaluate()
    assert hook.events.count("after") == 3
    for wrong in (0, -2):
        with pytest.raises(ValueError, match="steps"):
            make_experiment(tmp_path, eval_steps=wrong).evaluate()
    finite = tmp_path / "finite"
    ended = make_experiment(finite, train_input_fn=CountingInputs(8), train_steps=100).train()
    assert ended.global_step == 8
    assert read_manifest(ended.latest_checkpoint()).stop == StopReason.INPUT_EXHAUSTED
    assert has_training_ended(finite)


def test_E4_train_steps_after_a_kill_at_any_update(tmp_path: Path) -> None:
    def make_batches() -> Any:
        x = np.arange(50, dtype=np.float32)[:, None] / 50
        return ArrayBatches(x, 2 * x + 1, batch_size=8, seed=4)

    for name, input_fn in (("replayed", CountingInputs), ("saved", lambda: make_batches)):

        def run(
            directory: str,
            every: int = 1000,
            *,
            input_fn: Any = input_fn,
            name: str = name,
            **options: Any,
        ) -> Any:
            config = {"save_checkpoints_steps": every, "seed": 9}
            return make_experiment(
                tmp_path / name / directory,
                config=config,
                train_input_fn=input_fn(),
                train_steps=30,
                **options,
            ).train()

        straight = run("straight")
        for kill in (1, 2, 7, 14, 19, 29):
            with pytest.raises(SimulatedKill):
                run(f"kill{kill}", kill, train_hooks=[KillHook(kill)])
            assert (
                list(all_checkpoints(tmp_path / name / f"kill{kill}"))[-1] == kill
                if kill > 29 // 2
                else True
            )
            assert are_equal(read_state(run(f"kill{kill}")), read_state(straight)), (
                f"{name}: killed at update {kill}"
            )


def test_E5_options(tmp_path: Path) -> None:
    first, late = TracingHook(), TracingHook()
    hooks = [first]
    made = make_experiment(tmp_path / "hooks", train_steps=3, train_hooks=hooks, eval_hooks=hooks)
    hooks.append(late)
    made.train()
    assert (first.learned, late.events) == (3, [])
    for phase in ("train", "eval"):
        wrong = make_experiment(tmp_path / "hooks", train_steps=9, **{f"{phase}_hooks": ["hook"]})
        with pytest.raises(TypeError, match="SessionRunHook"):
            wrong.train() if phase == "train" else wrong.evaluate()
    made.estimator.train(CountingInputs(), steps=1)
    recorded = CallLog()
    delayed = make_experiment(
        tmp_path / "hooks", recorded, eval_delay_secs=4, continuous_eval_throttle_secs=9
    )
    delayed.evaluate()
    assert recorded.times == [4]
    again = recorded.time.at
    delayed.continuous_eval(
        evaluate_checkpoint_only_once=False,
        continuous_eval_predicate_fn=lambda _: len(recorded.times) < 3,
    )
    assert [at - again for at in recorded.times[1:]] == [4, 13]
    for every, steps in ((10, [10, 20, 25]), (0, [25]), (None, [25])):
        directory = tmp_path / f"every{every}"
        make_experiment(
            directory,
            config={"save_checkpoints_steps": 5},
            train_steps=25,
            eval_every_n_steps=every,
        ).train_and_evaluate()
        assert [row["global_step"] for row in read_results(directory, None)] == steps
    for wrong_strategies in ("policy", [3]):
        with pytest.raises(ValueError, match="export_strategies"):
            make_experiment(tmp_path, export_strategies=wrong_strategies)
    for wrong_size in (0.5, "1", True):
        with pytest.raises(ValueError, match="train_steps_per_iteration"):
            make_experiment(tmp_path, train_steps_per_iteration=wrong_size)
    _check_delays_by_global_step(tmp_path / "cluster")


def _check_delays_by_global_step(directory: Path) -> None:
    class FakeStepCounter:
        at = 0

        def read(self) -> int:
            self.at += 1000
            return self.at

        def add(self, updates: int) -> int:
            return updates

    for task, step in ((1, 5545), (2, 8788)):
        recorded = CallLog()
        made = make_experiment(
            directory,
            recorded,
            config={**CLUSTER, "task_id": task},
            train_steps=1,
            delay_workers_by_global_step=True,
        )
        set_fake_clock(made, recorded, make_counter=lambda _: FakeStepCounter()).train()
        waiter = next(
            hook
            for hook in recorded.get_calls("train")[0]["hooks"]
            if isinstance(hook, GlobalStepWaiterHook)
        )
        assert waiter.wait_until_step == step
        assert len(recorded.time.slept) == step // 1000


def test_E6_members(tmp_path: Path) -> None:
    one = ExportStrategy("one", lambda *_: None)
    made = make_experiment(tmp_path, export_strategies=one, train_steps=2)
    assert made.reset_export_strategies() == (one,)
    assert made.reset_export_strategies([one]) == ()
    assert made.export_strategies == (one,)
    train, evaluate = TracingHook(), TracingHook()
    made.extend_train_hooks([train])
    made.extend_eval_hooks([evaluate])
    made.train()
    assert (train.learned, evaluate.events) == (2, [])
    made.evaluate()
    assert (train.learned, evaluate.events.count("after")) == (2, 10)


def test_E7_train(tmp_path: Path) -> None:
    recorded = CallLog()
    made = make_experiment(tmp_path, recorded, train_steps=4)
    assert made.train() is made.estimator
    call = recorded.get_calls("train")
    assert [(one["max_steps"], one["steps"]) for one in call] == [(4, None)]
    for delay in (0, 1, 3):
        recorded = CallLog()
        make_experiment(tmp_path, recorded, train_steps=4).train(delay_secs=delay)
        assert recorded.times == [delay]
    for task, seconds in ((0, 0.0), (2, 10.0)):
        recorded = CallLog()
        config = {**CLUSTER, "task_id": task}
        made = make_experiment(tmp_path / str(task), recorded, config=config, train_steps=1)
        set_fake_clock(made, recorded, make_counter=lambda _: FakeServer([])).train()
        assert recorded.times == [seconds]
    begun: list[str] = []
    recorded = CallLog()

    class SlowServer:
        def __init__(self, _: Any) -> None: ...

        def start(self) -> None:
            begun.append("start")
            recorded.time.at += 4

        def stop(self) -> None:
            begun.append("stop")

        def join(self) -> None: ...

    config = {**CLUSTER, "master": "c:1", "task_id": 2}
    made = make_experiment(tmp_path / "server", recorded, config=config, train_steps=1)
    set_fake_clock(
        made, recorded, make_server=SlowServer, make_counter=lambda _: FakeServer([])
    ).train()
    assert (begun, recorded.times) == (["start", "stop"], [10.0]), (
        "the start of the server counts as part of the delay"
    )


def test_E8_evaluate(tmp_path: Path) -> None:
    with pytest.raises(EstimatorNotTrainedError, match=str(tmp_path)):
        make_experiment(tmp_path).evaluate()
    hook = TracingHook()
    recorded = CallLog()
    made = make_experiment(tmp_path, recorded, train_steps=4, eval_steps=5, eval_hooks=[hook])
    made.train()
    result = made.evaluate(delay_secs=6)
    (call,) = recorded.get_calls("evaluate")
    assert (call["steps"], call["hooks"], call["name"]) == (5, [hook], "one_pass")
    assert recorded.times[-1] == 6
    assert set(result) == {"loss", "error", "global_step"}
    assert result["global_step"] == 4
    assert read_results(tmp_path, "one_pass") == [result]
    assert (tmp_path / "eval_one_pass").is_dir()
    assert not (tmp_path / "eval").exists()

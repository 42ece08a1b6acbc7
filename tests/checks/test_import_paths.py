"""The documented import paths of Palestra.

Scripts, documents and snapshots contain these names, so they stay valid when the code is moved.
"""

import importlib
import inspect
import subprocess
import sys

import pytest

from workers.core.recipes import is_rebuildable

NAMES: dict[str, tuple[str, ...]] = {
    "workers.entrypoints.functional": (
        "train_agent",
        "train_agent_with_evaluation",
        "train_agent_batch",
        "train_agent_batch_with_evaluation",
        "train_agent_async",
        "read_history",
    ),
    "workers.entrypoints.trainer": (
        "Trainer",
        "TorchTrainer",
        "EnvSpec",
        "EpisodeBatch",
        "ExperimentStats",
        "NotSetupError",
        "StepType",
        "TrainArgs",
    ),
    "workers.entrypoints.experiment": (
        "Experiment",
        "RLExperiment",
        "create_experiment",
        "create_rl_experiment",
        "run_experiment",
    ),
    "workers.entrypoints.agent_algorithm": ("AgentAlgorithm",),
    "workers.entrypoints.resume": ("main",),
    "workers.hooks": (
        "EvaluationHook",
        "FiniteStatisticsHook",
        "LearningRateHook",
        "LinearInterpolationHook",
        "NanGuardHook",
        "OptunaPrunerHook",
        "StepHook",
        "SuccessHook",
        "SuccessScoreHook",
        "VideoHook",
        "learning_rate_setter",
        "set_learning_rate",
    ),
    "workers.snapshot": ("SnapshotConfig",),
    "workers.estimators": (
        "Agent",
        "BatchMemory",
        "EpisodeCheckpointSaverHook",
        "EpisodeCounterHook",
        "EpisodeLoggingTensorHook",
        "EpisodeRecord",
        "EpisodeSummarySaverHook",
        "Estimator",
        "EstimatorSpec",
        "ExportStrategy",
        "FinalOpsHook",
        "GlobalStepWaiterHook",
        "Memory",
        "Modes",
        "NanTensorHook",
        "PGAgent",
        "RunConfig",
        "SessionRunHook",
        "StepCheckpointSaverHook",
        "StepCounterHook",
        "StepLoggingTensorHook",
        "StepSummarySaverHook",
        "StopAfterNEvalsHook",
        "StopAtEpisodeHook",
        "StopAtStepHook",
        "copy_every",
        "explore",
        "get_module",
        "global_step",
        "make_export_strategy",
        "minimize",
        "sequence",
    ),
    "workers.supervised.models": ("classifier", "dqn", "vpg", "model_function"),
    "workers.core.recipes": ("rebuildable",),
    "workers.rl.envs.builtin": ("register_own",),
}
"""Documented modules with their documented members."""

PROGRAMS = ("workers.supervisor", "workers.entrypoints.resume")
"""Modules that `python -m` starts.

Their names are documented, or stored by workers that are still running.
"""


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, names in NAMES.items() for name in names]
)
def test_documented_names_can_be_imported(module: str, name: str) -> None:
    found = getattr(importlib.import_module(module), name)
    assert callable(found)
    assert found.__name__ == name
    assert found.__module__.startswith("workers."), "not another package's by accident"
    assert inspect.getdoc(found)


def test_two_documented_paths_give_the_same_object() -> None:
    paths = ("workers.supervised.models", "workers.snapshot", "workers.entrypoints.trainer")
    models, snapshot, trainer = map(importlib.import_module, paths)
    assert [models.model_function(name) for name in ("classifier", "dqn", "vpg")] == [
        models.classifier,
        models.dqn,
        models.vpg,
    ]
    assert trainer.SnapshotConfig is snapshot.SnapshotConfig
    assert trainer.TFTrainer is trainer.TorchTrainer


def test_classes_in_recipes_are_marked_under_their_documented_path() -> None:
    found = importlib.import_module("workers.entrypoints.agent_algorithm").AgentAlgorithm
    assert is_rebuildable(found)
    assert found.__module__ == "workers.entrypoints.agent_algorithm", (
        "a recipe written today is read by the version before, too"
    )


def test_own_environments_are_registered_by_their_documented_module() -> None:
    code = (
        "import gymnasium; print(*(gymnasium.make('workers.rl.envs.builtin:palestra/' + name)"
        ".spec.id for name in ('BitFlip-v0', 'Recall-v0')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["palestra/BitFlip-v0", "palestra/Recall-v0"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_documented_programs_start(program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", program, "--help"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert program in done.stdout

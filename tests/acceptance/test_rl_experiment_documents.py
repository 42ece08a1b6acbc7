"""Experiments from documents: create_rl_experiment (row R29)."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.estimator_kit import make_agent
from tests.acceptance.estimator_models import ScriptedEnv
from workers.core.errors import PartNotFoundError
from workers.entrypoints.experiment_parts.documents import RLExperimentConfig, create_rl_experiment
from workers.estimators.agents import Agent, PGAgent
from workers.estimators.checkpoints import all_checkpoints

CONFIG: dict[str, Any] = {
    "model": {"name": "dqn", "params": {"actions": 2, "hidden_sizes": [8], "learning_rate": 0.01}},
    "memory": {"name": "memory", "params": {"size": 200, "batch_size": 8}},
    "env": {"id": "CartPole-v1", "params": {"sutton_barto_reward": False}},
    "run": {"seed": 5, "save_checkpoints_steps": 50, "save_summary_steps": 0},
    "train_steps": 4,
    "first_update": 10,
    "update_frequency": 3,
    "eval_steps": 1,
    "train_hooks": [{"name": "StopAtStepHook", "params": {"last_step": 3}}],
    "eval_hooks": [{"name": "StopAfterNEvalsHook", "params": {"num_evals": 1}}],
    "export_strategies": [{"name": "policy", "formats": ["weights"]}],
}


def test_R29_create_rl_experiment(tmp_path: Path) -> None:
    document = {**CONFIG, "model_dir": str(tmp_path)}
    for form in (
        document,
        json.dumps(document),
        RLExperimentConfig.model_validate_json(json.dumps(document)),
    ):
        made = create_rl_experiment(experiment_config=form)
        assert isinstance(made.agent, Agent)
        assert (made.train_steps, made.eval_steps, made.first_update, made.update_frequency) == (
            4,
            1,
            10,
            3,
        )
        assert (made.agent.memory.size, made.agent.memory.batch_size) == (200, 8)
        assert (made.agent.config.seed, made.agent.model_dir) == (5, str(tmp_path))
    result, exports = made.train_and_evaluate()
    assert result is not None
    assert result["global_step"] == 3, "the hook of the document stops it"
    assert (Path(exports[0]) / "weights.safetensors").exists()
    gradient = {
        **CONFIG,
        "kind": "pg_agent",
        "memory": {"name": "batch_memory"},
        "model": {"name": "vpg", "params": {"actions": 2}},
    }
    assert isinstance(create_rl_experiment(gradient).agent, PGAgent)
    wrong: dict[str, Any] = {
        "sarsa": {"kind": "sarsa"},
        "Nowhere-v0": {"env": {"id": "Nowhere-v0"}},
        "attic": {"memory": {"name": "attic"}},
        "NoHook": {"train_hooks": [{"name": "NoHook"}]},
        "NoEvalHook": {"eval_hooks": [{"name": "NoEvalHook"}]},
        "oracle": {"model": {"name": "oracle"}},
    }
    for name, change in wrong.items():
        with pytest.raises(PartNotFoundError, match=name):
            create_rl_experiment({**document, **change})
    with pytest.raises(ValueError, match="train_stepz"):
        create_rl_experiment({**document, "train_stepz": 1})
    with pytest.raises(ValueError, match="train_hooks"):
        create_rl_experiment({**document, "train_hooks": [7]})


def test_R29_every_hook_has_a_name() -> None:
    from workers.estimators.hook_registry import HOOKS

    assert {"EpisodeCheckpointSaverHook", "EpisodeCounterHook"} <= set(HOOKS)
    assert len(HOOKS) == 14


def test_R29_checkpoints_are_found_by_number(tmp_path: Path) -> None:
    agent = make_agent(tmp_path, save_checkpoints_steps=1, keep_checkpoint_max=4).train(
        ScriptedEnv(), 4, 2, max_steps=11
    )
    assert list(all_checkpoints(tmp_path)) == [8, 9, 10, 11]
    assert agent.latest_checkpoint().name == "ckpt-11"

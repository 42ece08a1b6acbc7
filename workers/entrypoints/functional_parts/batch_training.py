"""The training functions of `pfrl.experiments` for several environments at once."""

import logging
import os
from collections.abc import Sequence

from workers.entrypoints.functional_parts.evaluation_records import History
from workers.entrypoints.functional_parts.evaluator import EvaluationSettings
from workers.entrypoints.functional_parts.parameter_aliases import alias_parameters
from workers.entrypoints.functional_parts.training_arguments import (
    ALL,
    EvaluationCall,
    StrPath,
    TrainingCall,
    path_text,
)
from workers.entrypoints.functional_parts.training_call import run_call
from workers.hooks.step_hooks import StepCallable
from workers.rl.envs.caller_envs import CallerEnvs


def train_agent_batch(  # noqa: PLR0917 - PFRL's parameters
    agent: object,
    env: CallerEnvs,
    steps: int,
    outdir: StrPath,
    checkpoint_freq: int | None = None,
    log_interval: int | None = None,
    max_episode_len: int | None = None,
    step_offset: int = 0,
    evaluator: object = None,
    successful_score: float | None = None,
    step_hooks: Sequence[StepCallable] = (),
    return_window_size: int = 100,
    logger: logging.Logger | None = None,
    *,
    seed: int | None = None,
    resume: StrPath | None = None,
    resume_parts: str | Sequence[str] = ALL,
    time_limit: float | None = None,
    keep_checkpoints: int | None = None,
    save_memory: bool = False,
) -> History:
    """Trains an agent in several environments at once.

    Args:
        agent: An agent with `batch_act`, `batch_observe`, `save`, `load`, `get_statistics` and
            `eval_mode`.
        env: A list of `gymnasium.Env`, or a `gymnasium.vector.VectorEnv` with autoreset disabled.
        steps: Env_step, summed over the environments, at which training ends; the last vector step
            may exceed it.
        outdir: See `train_agent`.
        checkpoint_freq: Env_steps between two snapshots. A snapshot is named by the multiple that
            was crossed; its manifest holds the actual env_step.
        log_interval: Env_steps between two lines of the log; `None` logs none.
        max_episode_len: See `train_agent`.
        step_offset: See `train_agent`.
        evaluator: See `train_agent`; called after each vector step.
        successful_score: See `train_agent`.
        step_hooks: See `train_agent`; called once for each env_step of a vector step.
        return_window_size: Number of newest training episodes over which the log averages the
            return.
        logger: Receives the lines of the log.
        seed: See `train_agent`.
        resume: See `train_agent`.
        resume_parts: See `train_agent`.
        time_limit: See `train_agent`.
        keep_checkpoints: See `train_agent`.
        save_memory: See `train_agent`.

    Returns:
        One dictionary per evaluation.

    Raises:
        TypeError: See `train_agent`.
        ValueError: If a parameter is out of range, or the vector environment has autoreset enabled.
        SnapshotUnreadableError: See `train_agent`.
    """
    return run_call(
        TrainingCall(
            agent=agent,
            env=env,
            steps=steps,
            outdir=os.fspath(outdir),
            is_batch=True,
            function="train_agent_batch",
            checkpoint_freq=checkpoint_freq,
            log_interval=log_interval,
            max_episode_len=max_episode_len,
            step_offset=step_offset,
            evaluator=evaluator,
            successful_score=successful_score,
            step_hooks=step_hooks,
            return_window_size=return_window_size,
            evaluates_during_episode=True,
            logger=logger,
            seed=seed,
            resume=path_text(resume),
            resume_parts=resume_parts,
            time_limit=time_limit,
            keep_checkpoints=keep_checkpoints,
            save_memory=save_memory,
        )
    )


@alias_parameters(eval_n_runs="eval_n_episodes")
def train_agent_batch_with_evaluation(  # noqa: PLR0917 - PFRL's parameters
    agent: object,
    env: CallerEnvs,
    steps: int,
    eval_n_steps: int | None,
    eval_n_episodes: int | None,
    eval_interval: int,
    outdir: StrPath,
    checkpoint_freq: int | None = None,
    max_episode_len: int | None = None,
    step_offset: int = 0,
    eval_max_episode_len: int | None = None,
    return_window_size: int = 100,
    eval_env: CallerEnvs | None = None,
    log_interval: int | None = None,
    successful_score: float | None = None,
    step_hooks: Sequence[StepCallable] = (),
    evaluation_hooks: Sequence[object] = (),
    save_best_so_far_agent: bool = True,
    use_tensorboard: bool = False,
    logger: logging.Logger | None = None,
    *,
    seed: int | None = None,
    resume: StrPath | None = None,
    resume_parts: str | Sequence[str] = ALL,
    time_limit: float | None = None,
    keep_checkpoints: int | None = None,
    save_memory: bool = False,
) -> tuple[object, History]:
    """Trains an agent in several environments at once, and evaluates it regularly and at the end.

    Args:
        agent: See `train_agent_batch`.
        env: See `train_agent_batch`.
        steps: See `train_agent_batch`.
        eval_n_steps: See `train_agent_with_evaluation`.
        eval_n_episodes: See `train_agent_with_evaluation`; the episodes that started first count.
        eval_interval: Env_steps between evaluations. An evaluation is made after the vector step
            that crosses a multiple.
        outdir: See `train_agent_with_evaluation`.
        checkpoint_freq: See `train_agent_batch`.
        max_episode_len: Longest training episode in env_steps.
        step_offset: See `train_agent`.
        eval_max_episode_len: Longest evaluation episode in env_steps; `None` uses
            `max_episode_len`.
        return_window_size: See `train_agent_batch`.
        eval_env: Environments of evaluations; `None` copies `env` and closes the copies at the end.
        log_interval: See `train_agent_batch`.
        successful_score: See `train_agent_with_evaluation`.
        step_hooks: See `train_agent_batch`.
        evaluation_hooks: See `train_agent_with_evaluation`.
        save_best_so_far_agent: See `train_agent_with_evaluation`.
        use_tensorboard: See `train_agent_with_evaluation`.
        logger: See `train_agent_batch`.
        seed: See `train_agent`.
        resume: See `train_agent`.
        resume_parts: See `train_agent`.
        time_limit: See `train_agent`.
        keep_checkpoints: See `train_agent`.
        save_memory: See `train_agent`.

    Returns:
        The agent, and one dictionary per evaluation: `eval_score`, `step` and all statistics.

    Raises:
        TypeError: See `train_agent`.
        ValueError: See `train_agent_batch` and `train_agent_with_evaluation`; or if `env` cannot be
            copied and there is no `eval_env`.
        SnapshotUnreadableError: See `train_agent`.
    """
    settings = EvaluationSettings(
        interval=eval_interval,
        n_steps=eval_n_steps,
        n_episodes=eval_n_episodes,
        max_episode_len=max_episode_len if eval_max_episode_len is None else eval_max_episode_len,
        outdir=os.fspath(outdir),
    )
    history = run_call(
        TrainingCall(
            agent=agent,
            env=env,
            steps=steps,
            outdir=os.fspath(outdir),
            is_batch=True,
            function="train_agent_batch_with_evaluation",
            checkpoint_freq=checkpoint_freq,
            log_interval=log_interval,
            max_episode_len=max_episode_len,
            step_offset=step_offset,
            evaluation=EvaluationCall(
                settings=settings,
                env=eval_env,
                hooks=evaluation_hooks,
                saves_best=save_best_so_far_agent,
                writes_events=use_tensorboard,
            ),
            successful_score=successful_score,
            step_hooks=step_hooks,
            return_window_size=return_window_size,
            evaluates_during_episode=True,
            logger=logger,
            seed=seed,
            resume=path_text(resume),
            resume_parts=resume_parts,
            time_limit=time_limit,
            keep_checkpoints=keep_checkpoints,
            save_memory=save_memory,
        )
    )
    return agent, history

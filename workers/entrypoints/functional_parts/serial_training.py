"""The training functions of `pfrl.experiments` for one environment."""

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


def train_agent(  # noqa: PLR0917 - PFRL's parameters
    agent: object,
    env: CallerEnvs,
    steps: int,
    outdir: StrPath,
    checkpoint_freq: int | None = None,
    max_episode_len: int | None = None,
    step_offset: int = 0,
    evaluator: object = None,
    successful_score: float | None = None,
    step_hooks: Sequence[StepCallable] = (),
    eval_during_episode: bool = False,
    logger: logging.Logger | None = None,
    *,
    seed: int | None = None,
    resume: StrPath | None = None,
    resume_parts: str | Sequence[str] = ALL,
    time_limit: float | None = None,
    keep_checkpoints: int | None = None,
    save_memory: bool = False,
) -> History:
    """Trains an agent in one environment.

    Args:
        agent: An agent with `act`, `observe`, `save`, `load`, `get_statistics` and `eval_mode`; its
            attribute `t`, if any, is set to `step_offset`.
        env: A `gymnasium.Env`. Every episode is reset with a seed of its own.
        steps: Env_step at which training ends, `step_offset` included.
        outdir: Output directory; created if it does not exist.
        checkpoint_freq: Env_steps between two snapshots `<t>_checkpoint`; `None` or 0 writes none.
        max_episode_len: Time limit of an episode in env_steps; `None` for no limit.
        step_offset: Env_step at which counting begins. No state is loaded.
        evaluator: An object with `evaluate_if_necessary(t, episodes)`, which returns a score or
            `None`, and `max_score`.
        successful_score: Training ends when `evaluator.max_score` is at least this value.
        step_hooks: Called as `hook(env, agent, step)` after each env_step; see
            `workers.hooks.StepHook`.
        eval_during_episode: Whether the evaluator is called after each env_step; if false, it is
            called at the end of each episode.
        logger: Receives a line per episode.
        seed: Seed from which the seeds of episodes derive; `None` draws one from numpy's global
            generator.
        resume: Path of a snapshot, or `"latest"` for the newest one in `outdir`; if there is none,
            training starts from the beginning. Counters, records, best score, the episode in
            progress and random generators are restored, and `step_offset` is ignored.
        resume_parts: `"all"`; `"weights"` loads only the networks, and training starts at
            `step_offset`; a list of names loads only those parts of the agent.
        time_limit: Seconds after which this call saves `<t>_finish` and returns.
        keep_checkpoints: Number of newest `<t>_checkpoint` of this call to keep; `None` keeps all.
        save_memory: Whether snapshots contain the files of the agent's `save_snapshot`, if it has
            this method, for example its replay memory. If false, they contain the files of its
            `save`, as in PFRL; an agent whose `save` omits the memory then resumes with an empty
            memory.

    Returns:
        One dictionary per evaluation.

    Raises:
        TypeError: If `agent` or `env` lacks a required method.
        ValueError: If a parameter is out of range.
        SnapshotUnreadableError: If the snapshot to resume from is incomplete or not a snapshot of
            this program.
    """
    return run_call(
        TrainingCall(
            agent=agent,
            env=env,
            steps=steps,
            outdir=os.fspath(outdir),
            is_batch=False,
            function="train_agent",
            checkpoint_freq=checkpoint_freq,
            max_episode_len=max_episode_len,
            step_offset=step_offset,
            evaluator=evaluator,
            successful_score=successful_score,
            step_hooks=step_hooks,
            evaluates_during_episode=eval_during_episode,
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
def train_agent_with_evaluation(  # noqa: PLR0917 - PFRL's parameters
    agent: object,
    env: CallerEnvs,
    steps: int,
    eval_n_steps: int | None,
    eval_n_episodes: int | None,
    eval_interval: int,
    outdir: StrPath,
    checkpoint_freq: int | None = None,
    train_max_episode_len: int | None = None,
    step_offset: int = 0,
    eval_max_episode_len: int | None = None,
    eval_env: CallerEnvs | None = None,
    successful_score: float | None = None,
    step_hooks: Sequence[StepCallable] = (),
    evaluation_hooks: Sequence[object] = (),
    save_best_so_far_agent: bool = True,
    use_tensorboard: bool = False,
    eval_during_episode: bool = False,
    logger: logging.Logger | None = None,
    *,
    seed: int | None = None,
    resume: StrPath | None = None,
    resume_parts: str | Sequence[str] = ALL,
    time_limit: float | None = None,
    keep_checkpoints: int | None = None,
    save_memory: bool = False,
) -> tuple[object, History]:
    """Trains an agent in one environment and evaluates it regularly, and once at the end.

    Args:
        agent: See `train_agent`.
        env: See `train_agent`.
        steps: See `train_agent`.
        eval_n_steps: Env_steps of an evaluation; the unfinished last episode does not count, unless
            it is the only one.
        eval_n_episodes: Episodes of an evaluation; `eval_n_runs` is an alias. Exactly one of
            `eval_n_steps` and `eval_n_episodes` is not `None`.
        eval_interval: Env_steps between evaluations. An evaluation is due at each multiple, and is
            made when the current episode ends.
        outdir: See `train_agent`; evaluations are written to `scores.txt`, training episodes to
            `episodes.csv`.
        checkpoint_freq: See `train_agent`.
        train_max_episode_len: Longest training episode in env_steps.
        step_offset: See `train_agent`.
        eval_max_episode_len: Longest evaluation episode in env_steps; `None` uses
            `train_max_episode_len`.
        eval_env: Environment of evaluations; `None` uses `env` itself, between two episodes.
        successful_score: Training ends when a mean return is at least this value.
        step_hooks: See `train_agent`.
        evaluation_hooks: Called after each evaluation; see `workers.hooks.EvaluationHook`.
        save_best_so_far_agent: Whether to write the snapshot `best` when a mean return exceeds all
            earlier ones.
        use_tensorboard: Whether to also write evaluations as TensorBoard events; needs the package
            `tensorboard`.
        eval_during_episode: Whether to evaluate exactly at a multiple, within a training episode;
            needs an `eval_env`.
        logger: Receives a line per episode and per evaluation.
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
        ValueError: If a parameter is out of range, or an evaluation hook does not support this
            function.
        SnapshotUnreadableError: See `train_agent`.
    """
    settings = EvaluationSettings(
        interval=eval_interval,
        n_steps=eval_n_steps,
        n_episodes=eval_n_episodes,
        max_episode_len=train_max_episode_len
        if eval_max_episode_len is None
        else eval_max_episode_len,
        outdir=os.fspath(outdir),
    )
    history = run_call(
        TrainingCall(
            agent=agent,
            env=env,
            steps=steps,
            outdir=os.fspath(outdir),
            is_batch=False,
            function="train_agent_with_evaluation",
            checkpoint_freq=checkpoint_freq,
            max_episode_len=train_max_episode_len,
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
            evaluates_during_episode=eval_during_episode,
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

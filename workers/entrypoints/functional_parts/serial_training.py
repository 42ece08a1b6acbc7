"""The training functions of `pfrl.experiments` for one environment."""

import logging
import os
from collections.abc import Sequence

from workers.entrypoints.functional_parts.evaluation_records import History
from workers.entrypoints.functional_parts.evaluator import EvaluationSettings
from workers.entrypoints.functional_parts.parameter_aliases import other_name
from workers.entrypoints.functional_parts.training_arguments import (
    ALL,
    EvaluationCall,
    StrPath,
    TrainingCall,
    path_text,
)
from workers.entrypoints.functional_parts.training_call import run_call
from workers.hooks.step_hooks import StepCallable
from workers.rl.envs.caller_envs import Given


def train_agent(  # noqa: PLR0917 - PFRL's parameters
    agent: object,
    env: Given,
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
        agent: Has `act`, `observe`, `save`, `load`, `get_statistics` and `eval_mode`; its attribute
            `t`, if any, is set to `step_offset`.
        env: A `gymnasium.Env`. Every episode is begun with a seed of its own.
        steps: Final env_step, `step_offset` included.
        outdir: Directory of everything that is written; created.
        checkpoint_freq: Env_steps between two snapshots `<t>_checkpoint`; `None` (or 0) writes
            none.
        max_episode_len: Longest episode in env_steps; a longer one is reset.
        step_offset: Env_step at which counting begins. Loads nothing.
        evaluator: Has `evaluate_if_necessary(t, episodes)`, which returns a score or `None`, and
            `max_score`.
        successful_score: Training ends where `evaluator.max_score` is at least this.
        step_hooks: Called as `hook(env, agent, step)` after each env_step; see
            `workers.hooks.StepHook`.
        eval_during_episode: Ask the evaluator after each env_step instead of where an episode
            ended.
        logger: Gets a line per episode.
        seed: Episodes derive from it; `None` draws one from numpy's global generator.
        resume: `"latest"` of the snapshots in `outdir` (none there begins anew), or the path of
            one. Counters, records, best score, running episode and generators go on from it,
            `step_offset` does not count.
        resume_parts: `"all"`; `"weights"` takes the networks alone and begins anew at
            `step_offset`; names take those parts.
        time_limit: Seconds after which this call saves `<t>_finish` and returns.
        keep_checkpoints: Newest `<t>_checkpoint` of this call that are kept; `None` keeps all.
        save_memory: Snapshots hold what the agent's `save_snapshot` writes, if it has one, its
            replay memory for example. Without it they hold what its `save` writes, as those of
            PFRL, and an agent whose `save` leaves the memory out resumes with an empty one.

    Returns:
        One dictionary per evaluation.

    Raises:
        TypeError: If `agent` or `env` lacks something.
        ValueError: If a parameter is out of range.
        SnapshotUnreadableError: If the snapshot to resume from is torn or foreign.
    """
    return run_call(
        TrainingCall(
            agent=agent,
            env=env,
            steps=steps,
            outdir=os.fspath(outdir),
            batch=False,
            function="train_agent",
            checkpoint_freq=checkpoint_freq,
            max_episode_len=max_episode_len,
            step_offset=step_offset,
            evaluator=evaluator,
            successful_score=successful_score,
            step_hooks=step_hooks,
            during_episode=eval_during_episode,
            logger=logger,
            seed=seed,
            resume=path_text(resume),
            resume_parts=resume_parts,
            time_limit=time_limit,
            keep_checkpoints=keep_checkpoints,
            save_memory=save_memory,
        )
    )


@other_name(eval_n_runs="eval_n_episodes")
def train_agent_with_evaluation(  # noqa: PLR0917 - PFRL's parameters
    agent: object,
    env: Given,
    steps: int,
    eval_n_steps: int | None,
    eval_n_episodes: int | None,
    eval_interval: int,
    outdir: StrPath,
    checkpoint_freq: int | None = None,
    train_max_episode_len: int | None = None,
    step_offset: int = 0,
    eval_max_episode_len: int | None = None,
    eval_env: Given | None = None,
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
        eval_n_episodes: Episodes of an evaluation, also called `eval_n_runs`. Exactly one of these
            two is not `None`.
        eval_interval: Env_steps between evaluations. One is due at each multiple, and made where
            the next episode ends.
        outdir: See `train_agent`; evaluations go to `scores.txt` there, training episodes to
            `episodes.csv`.
        checkpoint_freq: See `train_agent`.
        train_max_episode_len: Longest training episode in env_steps.
        step_offset: See `train_agent`.
        eval_max_episode_len: Longest evaluation episode; `None` takes that of training.
        eval_env: Environment of evaluations; `None` takes `env` itself, between two episodes.
        successful_score: Training ends where a mean return is at least this.
        step_hooks: See `train_agent`.
        evaluation_hooks: Called after each evaluation; see `workers.hooks.EvaluationHook`.
        save_best_so_far_agent: Write the snapshot `best` where a mean return exceeds all before.
        use_tensorboard: Write evaluations as TensorBoard events, too; needs the package
            `tensorboard`.
        eval_during_episode: Evaluate at the very multiple; needs an `eval_env`.
        logger: Gets a line per episode and evaluation.
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
            batch=False,
            function="train_agent_with_evaluation",
            checkpoint_freq=checkpoint_freq,
            max_episode_len=train_max_episode_len,
            step_offset=step_offset,
            evaluation=EvaluationCall(
                settings=settings,
                env=eval_env,
                hooks=evaluation_hooks,
                save_best=save_best_so_far_agent,
                tensorboard=use_tensorboard,
            ),
            successful_score=successful_score,
            step_hooks=step_hooks,
            during_episode=eval_during_episode,
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

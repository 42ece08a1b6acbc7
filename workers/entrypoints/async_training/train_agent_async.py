"""`train_agent_async`: several processes train one agent, each with its own environment.

Each process runs one engine; the engines share a clock. Unlike in PFRL, processes are spawned,
counting begins at `step_offset`, an exception of a process is raised in the caller, and no process
outlives the call.
"""

import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from workers.entrypoints.async_training.async_call import AsyncCall
from workers.entrypoints.async_training.coordinator import run_async
from workers.entrypoints.async_training.messages import AsyncSettings, UserParts
from workers.entrypoints.functional_parts.evaluator import EvaluationSettings
from workers.entrypoints.functional_parts.training_arguments import StrPath, path_text
from workers.hooks.step_hooks import StepCallable


def train_agent_async(  # noqa: PLR0917 - names and order are those of PFRL
    outdir: StrPath,
    processes: int,
    make_env: Callable[..., object],
    profile: bool = False,
    steps: int = 8 * 10**7,
    eval_interval: int | None = 10**6,
    eval_n_steps: int | None = None,
    eval_n_episodes: int | None = 10,
    eval_success_threshold: float = 0.0,
    max_episode_len: int | None = None,
    step_offset: int = 0,
    successful_score: float | None = None,
    agent: object = None,
    make_agent: Callable[[int], object] | None = None,
    global_step_hooks: Sequence[StepCallable] = [],
    evaluation_hooks: Sequence[object] = (),
    save_best_so_far_agent: bool = True,
    use_tensorboard: bool = False,
    logger: logging.Logger | None = None,
    random_seeds: Sequence[int] | None = None,
    stop_event: object = None,
    exception_event: object = None,
    use_shared_memory: bool = True,
    *,
    resume: StrPath | None = None,
    start_method: str = "spawn",
    save_memory: bool = False,
) -> object:
    """Trains an agent in several processes at once, and evaluates it regularly and once at the end.

    `make_env`, `make_agent`, hooks and agents are pickled for new processes: they must be functions
    and instances of classes that are defined in modules, or `functools.partial` of such functions.
    A script must call this function under `if __name__ == "__main__":`. With `start_method="fork"`
    nothing is pickled, but forking is not safe once threads or CUDA have been started.

    All processes count their env_steps in one shared counter. At most `processes - 1` env_steps are
    made beyond `steps`, because each other process completes the step that it has begun.
    `outcome.json` in `outdir` holds the number of env_steps and why training ended; `history.jsonl`
    has one entry per evaluation (see `read_history`). `scores.txt`, `episodes.csv` and snapshots
    have the format of `train_agent_with_evaluation`.

    Args:
        outdir: Output directory; created if it does not exist.
        processes: Number of training processes, at least 1.
        make_env: Called in each process as `make_env(process_idx, test=False)`, and with
            `test=True` if there are evaluations.
        profile: Whether each process writes `profile_<process_idx>.prof`, which `pstats` reads.
        steps: Env_step of all processes together at which training ends, `step_offset` included.
        eval_interval: Env_steps between evaluations. A multiple is evaluated by the process that
            made that env_step. `None` disables evaluation.
        eval_n_steps: Env_steps of an evaluation; the unfinished last episode does not count, unless
            it is the only one.
        eval_n_episodes: Episodes of an evaluation. Exactly one of `eval_n_steps` and
            `eval_n_episodes` is not `None`.
        eval_success_threshold: The column `success_rate` is the fraction of an evaluation's returns
            that are at least this value.
        max_episode_len: Time limit of training and evaluation episodes in env_steps; `None` for no
            limit.
        step_offset: Env_step at which counting begins. No state is loaded.
        successful_score: Training ends when a mean return is at least this value; the agent is
            saved as `successful`.
        agent: The agent to train. All processes share its parameters; see `use_shared_memory`.
        make_agent: Called in each process as `make_agent(process_idx)`; without `agent` also once
            in the caller, with 0, for the agent that is returned. At least one of `agent` and
            `make_agent` must be given.
        global_step_hooks: Called as `hook(env, agent, step)` after each env_step, in the process
            that made it, exactly once per env_step.
        evaluation_hooks: Called after each evaluation, in the process that made it; see
            `workers.hooks.EvaluationHook`.
        save_best_so_far_agent: Whether to write the snapshot `best` when a mean return exceeds all
            earlier ones of all processes.
        use_tensorboard: Whether to also write evaluations as TensorBoard events; needs the package
            `tensorboard`.
        logger: Receives, in the caller's process, a line per episode of process 0 and the lines of
            evaluations.
        random_seeds: One seed per process, for its environment's episodes and its global random
            generators; `None` uses 0, 1, ...
        stop_event: An event of multiprocessing or threading. Once it is set, training ends and is
            saved as usual. This function sets it when training ends.
        exception_event: Once it is set, training ends and is saved as `<t>_except`, and the agent
            is returned; no exception is raised for it. If it is set before the processes have
            begun, they make no env_step.
        use_shared_memory: Whether the processes share the attributes that the agent's
            `shared_attributes` names (without this attribute: its torch modules, optimisers and
            tensors). If false, each process trains its own agent, and the agent of the process that
            reached `successful_score` is returned, otherwise that of process 0.
        resume: Path of a snapshot, or `"latest"` for the newest one in `outdir`; if there is none,
            training starts from the beginning. A resumed run ignores `step_offset`. With one
            process the resume is bit-exact, if the agent has `state_dict` and `load_state_dict`;
            with several, all processes but the first begin new episodes.
        start_method: How processes are started: `"spawn"`, `"forkserver"` or `"fork"`.
        save_memory: Whether snapshots contain the files of the agent's `save_snapshot`, if it has
            this method, in place of those of its `save`.

    Returns:
        `agent`, or the agent that `make_agent` returned in the caller's process, with the state of
        the last snapshot.

    Raises:
        TypeError: If an argument cannot be pickled for a new process, or an agent or environment
            lacks a required method.
        ValueError: If a parameter is out of range, or an evaluation hook does not support this
            function.
        ProcessFailedError: If a process was killed or ended without a message.
        SnapshotUnreadableError: If the snapshot to resume from is incomplete or not a snapshot of
            this program.
        Exception: The exception that a process raised, after a snapshot `<t>_except`; its cause
            holds the traceback of that process.
    """
    directory = os.fspath(outdir)
    evaluation = None
    if eval_interval is not None:
        evaluation = EvaluationSettings(
            interval=eval_interval,
            n_steps=eval_n_steps,
            n_episodes=eval_n_episodes,
            max_episode_len=max_episode_len,
            outdir=directory,
        )
    return run_async(
        AsyncCall(
            settings=AsyncSettings(
                outdir=Path(directory),
                steps=steps,
                evaluation=evaluation,
                max_episode_len=max_episode_len,
                successful_score=successful_score,
                saves_best=save_best_so_far_agent,
                profile=profile,
                save_memory=save_memory,
            ),
            user=UserParts(
                make_env=make_env,
                make_agent=make_agent,
                agent=agent,
                tensors={},
                step_hooks=tuple(global_step_hooks),
                evaluation_hooks=tuple(evaluation_hooks),
                stop_event=stop_event,
            ),
            processes=processes,
            success_threshold=eval_success_threshold,
            step_offset=step_offset,
            tensorboard=use_tensorboard,
            logger=logger or logging.getLogger(__name__),
            random_seeds=random_seeds,
            exception_event=exception_event,
            shares_tensors=use_shared_memory,
            resume=path_text(resume),
            start_method=start_method,
        )
    )

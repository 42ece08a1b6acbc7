"""`train_agent_async`: several processes train one agent, each with an environment of its own.

Each process runs one ordinary engine; what makes them one run is a shared clock. Corrected are
PFRL's faults: processes are spawned, counting begins at `step_offset`, whatever fails in a process
is raised in the caller, and nothing is left running.
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

    `make_env`, `make_agent`, hooks and agents cross to new processes: they are functions and
    classes of modules, or `functools.partial` of such. A script calls this under `if __name__ ==
    "__main__":`. With `start_method="fork"` anything will do, but fork after threads or CUDA were
    started is not safe.

    Every process claims the numbers of its env_steps from one count. At most `processes - 1`
    env_steps are made beyond `steps`: those that were under way. `outcome.json` in `outdir`
    holds their number and why training ended; `history.jsonl` has one entry per evaluation (see
    `read_history`);
    `scores.txt`, `episodes.csv` and snapshots are those of `train_agent_with_evaluation`.

    Args:
        outdir: Directory of everything that is written; created.
        processes: How many train, at least 1.
        make_env: Called in each process as `make_env(process_idx, test=False)`, and with
            `test=True` if there are evaluations.
        profile: Leave `profile_<process_idx>.prof`, which `pstats` reads, for each process.
        steps: Final env_step of all processes together, `step_offset` included.
        eval_interval: Env_steps between evaluations. The process that makes the env_step of a
            multiple evaluates; `None` never does.
        eval_n_steps: Env_steps of an evaluation; the unfinished last episode does not count, unless
            it is the only one.
        eval_n_episodes: Episodes of an evaluation. Exactly one of these two is not `None`.
        eval_success_threshold: The column `success_rate` is the share of an evaluation's returns
            that are at least this.
        max_episode_len: Longest episode in env_steps, in training and evaluation; a longer one is
            reset.
        step_offset: Env_step at which counting begins. Loads nothing.
        successful_score: Training ends where a mean return is at least this; the agent is saved as
            `successful`.
        agent: Trained: its own parameters are those that all processes share. See
            `use_shared_memory`.
        make_agent: Called in each process as `make_agent(process_idx)`; without `agent` also once
            in the caller, with 0, for the agent that is returned. At least one of the two is given.
        global_step_hooks: Called as `hook(env, agent, step)` after each env_step, in the process
            that made it: each step exactly once.
        evaluation_hooks: Called after each evaluation, in the process that made it; see
            `workers.hooks.EvaluationHook`.
        save_best_so_far_agent: Write the snapshot `best` where a mean return exceeds all before, of
            any process.
        use_tensorboard: Write evaluations as TensorBoard events, too; needs the package
            `tensorboard`.
        logger: Gets, in the caller, a line per episode of process 0 and lines of evaluations.
        random_seeds: One per process, for its environment's episodes and its global generators;
            `None` takes 0, 1, ...
        stop_event: An event of multiprocessing or threading. Once set, training ends and is saved
            as usual. It is set at the end anyway.
        exception_event: Once set, training ends and is saved as `<t>_except`, and the agent is
            returned; who set it knows the exception.
        use_shared_memory: Share what the agent's `shared_attributes` name (without them: its torch
            modules, optimisers and tensors). With false each process trains alone; returned is the
            agent of the one that reached `successful_score`, else that of process 0.
        resume: `"latest"` of the snapshots in `outdir` (none there begins anew), or the path of
            one; `step_offset` does not count then. With one process it goes on bit by bit, if the
            agent hands out its state; with more, the others begin new episodes.
        start_method: How processes are started: `"spawn"`, `"forkserver"` or `"fork"`.
        save_memory: Snapshots hold what the agent's `save_snapshot` writes, if it has one, in place
            of what its `save` writes.

    Returns:
        `agent`, or the caller's agent by `make_agent`, as it was saved last.

    Raises:
        TypeError: If something cannot be given to a new process, or an agent or environment lacks
            something.
        ValueError: If a parameter is out of range, or an evaluation hook does not support this
            function.
        ProcessFailedError: If a process was killed or vanished.
        SnapshotUnreadableError: If the snapshot to resume from is torn or foreign.
        Exception: What a process raised, after a snapshot `<t>_except`; its traceback there is the
            cause.
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
                save_best=save_best_so_far_agent,
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
            share=use_shared_memory,
            resume=path_text(resume),
            start_method=start_method,
        )
    )

"""Builds the engine for one call of a training function, and runs it."""

import logging
import time
from collections.abc import Callable
from contextlib import ExitStack

import numpy as np
import torch

from palestra.contract.documents import hash_document
from workers.core.errors import EnvironmentFailedError, unwrapped_error
from workers.core.types import StopReason, Unit
from workers.engine.budget import Budget
from workers.engine.engine import Engine
from workers.engine.parts import BestScore, Cadence, Parts
from workers.engine.triggers import IntervalTrigger
from workers.entrypoints.functional_parts.episodes_csv import EPISODES_FILE, EpisodesFile
from workers.entrypoints.functional_parts.evaluation_records import (
    CallerEvaluator,
    EpisodeCount,
    EvaluationOutputs,
    EvaluationRecorder,
    History,
)
from workers.entrypoints.functional_parts.evaluator import (
    EvaluationEnvironments,
    ExternalAgentEvaluator,
)
from workers.entrypoints.functional_parts.interrupts import Interrupts, TerminatedError
from workers.entrypoints.functional_parts.log_recorder import LogRecorder
from workers.entrypoints.functional_parts.named_snapshots import (
    NamedSnapshots,
    find_snapshot,
    repair_named_snapshots,
)
from workers.entrypoints.functional_parts.recorder_group import RecorderGroup
from workers.entrypoints.functional_parts.scores_file import SCORES_FILE
from workers.entrypoints.functional_parts.training_arguments import (
    ALL,
    WEIGHTS,
    TrainingCall,
    check_call,
)
from workers.entrypoints.table_files import rename_existing
from workers.hooks.evaluation_hooks import SuccessScoreHook
from workers.hooks.step_hooks import StepHooks
from workers.rl.agents.pfrl_adapter import ExternalAgent
from workers.rl.collect.vector_collector import VectorCollector
from workers.rl.envs.caller_envs import as_vector, close, copy_of, statistics_of
from workers.rl.evaluate.vector_evaluator import new_seed_rule
from workers.snapshot.owner import snapshot_owner
from workers.snapshot.snapshot_directory import LoadedSnapshot, read_snapshot


def run_call(call: TrainingCall) -> History:
    """Trains, and returns the history of evaluations.

    Raises:
        Exception: The unchanged exception of the agent, the environment or a hook, after a snapshot
            `<t>_except` was written.
    """
    run = _Run(call)
    try:
        run.train()
    except EnvironmentFailedError as error:
        failure = unwrapped_error(error)
    else:
        return run.evaluations.history
    # Within the handler, Python would set the `__context__` of the exception.
    raise failure


class _Run:
    """Builds the engine parts of one call and runs the engine."""

    def __init__(self, call: TrainingCall) -> None:
        check_call(call)
        self._call = call
        self._logger = call.logger or logging.getLogger(__name__)
        self._vector = as_vector(call.env, "env", call.max_episode_len)
        if not call.is_batch and self._vector.num_envs != 1:
            raise ValueError(
                f"env: {self._vector.num_envs} environments; {call.function} takes one, "
                "train_agent_batch takes several"
            )
        self._agent = ExternalAgent(
            call.agent,
            num_envs=self._vector.num_envs,
            is_batch=call.is_batch,
            save_memory=call.save_memory,
        )
        self.interrupts = Interrupts(call.time_limit, time.monotonic)
        self._best = BestScore()
        self._snapshot: LoadedSnapshot | None = None
        self._t = int(call.step_offset)
        self._seed = 0
        self.evaluations: EvaluationRecorder

    def train(self) -> None:
        """Builds the engine, runs it, and closes the files and environments that were opened."""
        with ExitStack() as stack:
            engine = self._assemble(stack)
            with self.interrupts.handle_sigterm():
                result = engine.run()
            if self.interrupts.terminated and result.reason is StopReason.DRAIN:
                raise TerminatedError("SIGTERM")

    def _assemble(self, stack: ExitStack) -> Engine:
        """Returns the engine, with its clock at the env_step at which training begins."""
        call, agent = self._call, self._agent
        environments = self._evaluation_environments(stack)
        self._find_start()
        call.directory.mkdir(parents=True, exist_ok=True)
        repair_named_snapshots(call.directory)
        if call.is_batch:
            stack.push(self._close_after_error)
        snapshots = self._snapshots()
        if self._is_fresh and self._t == 0:
            for name in (SCORES_FILE, EPISODES_FILE):
                rename_existing(call.directory / name)
        episodes = EpisodeCount(None if call.is_batch else call.steps)
        outputs = self._outputs(stack, environments)
        self.evaluations = EvaluationRecorder(self._statistics, episodes, outputs)
        log = LogRecorder(
            self._logger,
            call.outdir,
            self._statistics,
            interval=call.log_interval,
            window=call.return_window_size,
            logs_episodes=not call.is_batch,
        )
        recorder = EpisodesFile(call.directory / EPISODES_FILE, self._t)
        stack.callback(recorder.close)
        parts = Parts(
            agent=agent,
            collector=VectorCollector(self._vector, agent, self._seed),
            recorder=RecorderGroup(
                {"episodes": recorder, "log": log, "evaluations": self.evaluations}
            ),
            snapshotter=snapshots,
            control=self.interrupts,
            evaluator=outputs.evaluator if outputs else None,
            hooks=(
                episodes,
                StepHooks(call.env, call.agent, call.step_hooks, self._vector.num_envs),
                *self._deciding_hooks(episodes),
            ),
            best=self._best,
        )
        return self._create_engine(parts, snapshots, log)

    def _create_engine(self, parts: Parts, snapshots: NamedSnapshots, log: LogRecorder) -> Engine:
        call = self._call
        evaluation = IntervalTrigger(call.evaluation.settings.interval) if call.evaluation else None
        checkpoint = IntervalTrigger(call.checkpoint_freq) if call.checkpoint_freq else None
        cadence = Cadence(
            budget=Budget({Unit.ENV_STEPS: call.steps}),
            evaluation=evaluation,
            evaluates_during_episode=call.evaluates_during_episode,
            snapshot=checkpoint,
            saves_best=bool(call.evaluation and call.evaluation.saves_best),
            saves_best_separately=True,
        )
        engine = Engine(parts, cadence, time.monotonic)
        engine.clock.env_steps = int(call.step_offset)
        self._load(engine)
        for trigger in (evaluation, checkpoint):
            if trigger is not None:
                trigger.skip(engine.clock)
        snapshots.begin(engine.clock.env_steps)
        log.begin(engine.clock.env_steps)
        return engine

    def _load(self, engine: Engine) -> None:
        snapshot, parts = self._snapshot, self._call.resume_parts
        if snapshot is None:
            self._agent.step = self._call.step_offset
        elif parts == ALL:
            for _, note in engine.restore(snapshot.state).notes:
                self._logger.warning("%s", note)
            if not snapshot.manifest.resume_exact:
                self._logger.warning(
                    "The resume is statistical: %s",
                    "the snapshot was written after an exception, or on a GPU."
                    if self._agent.exact
                    else "the agent has no state_dict and load_state_dict "
                    "that hand out all of its state.",
                )
            self._logger.info(
                "resumed at step %s from snapshot %s",
                engine.clock.env_steps,
                snapshot.manifest.snapshot_id,
            )
        else:
            self._agent.load_parts(
                snapshot.state["agent"], None if parts == WEIGHTS else tuple(parts)
            )
            self._agent.step = self._call.step_offset

    # Start of training: resume or step_offset

    def _find_start(self) -> None:
        call = self._call
        found = None if call.resume is None else find_snapshot(call.directory, call.resume)
        if found is not None:
            self._snapshot = read_snapshot(found)
        is_full_resume = self._snapshot is not None and call.resume_parts == ALL
        if is_full_resume and self._snapshot is not None:
            manifest = self._snapshot.manifest
            if manifest.definition_hash != self._identity():
                raise ValueError(
                    "resume: the snapshot is of another agent class, other spaces "
                    "or another number of environments"
                )
            if call.seed not in {None, manifest.seed}:
                raise ValueError(
                    f"seed: the snapshot was made with seed {manifest.seed}, "
                    "leave seed out to go on with it"
                )
            self._seed, self._t = manifest.seed, manifest.env_step
        elif call.seed is not None:
            self._seed = call.seed
        else:
            # Drawn from numpy's global generator, so that the caller's global seed decides.
            self._seed = int(np.random.randint(2**31 - 1))  # noqa: NPY002
        self._is_fresh = not is_full_resume

    def _identity(self) -> str:
        agent, vector = type(self._call.agent), self._vector
        spaces = [str(vector.single_observation_space), str(vector.single_action_space)]
        return hash_document(
            {"agent": agent.__qualname__, "num_envs": vector.num_envs, "spaces": spaces}
        )

    def _snapshots(self) -> NamedSnapshots:
        call, before = self._call, self._snapshot.manifest if self._snapshot else None
        is_on_gpu = bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]
        owner = snapshot_owner(
            run_id=before.run_id if before and not self._is_fresh else None,
            experiment_id=call.function,
            definition_hash=self._identity(),
            seed=self._seed,
            parent=before.snapshot_id if before else None,
            device="cuda" if is_on_gpu else "cpu",
            is_exact=self._agent.exact,
        )
        return NamedSnapshots(
            call.directory,
            owner,
            every=call.checkpoint_freq or None,
            includes_last_step=call.is_batch,
            keep=call.keep_checkpoints,
            logger=self._logger,
        )

    # Records and evaluations

    def _evaluation_environments(self, stack: ExitStack) -> EvaluationEnvironments | None:
        call, evaluation = self._call, self._call.evaluation
        if evaluation is None:
            return None
        limit, apart = (
            evaluation.settings.max_episode_len,
            evaluation.env is not None and evaluation.env is not call.env,
        )
        if apart and evaluation.env is not None:
            environments = EvaluationEnvironments(
                evaluation.env, as_vector(evaluation.env, "eval_env", limit)
            )
        elif call.is_batch:
            own = copy_of(call.env)
            stack.callback(close, own)
            environments = EvaluationEnvironments(own, as_vector(own, "eval_env", limit))
        else:
            if call.evaluates_during_episode:
                raise ValueError(
                    "eval_during_episode: give an eval_env of its own, "
                    "or evaluation would disturb the running episode"
                )
            environments = EvaluationEnvironments(
                call.env, as_vector(call.env, "env", limit), self._vector
            )
        if not call.is_batch and environments.vector.num_envs != 1:
            raise ValueError(
                f"eval_env: {environments.vector.num_envs} environments; {call.function} takes one"
            )
        return environments

    def _outputs(
        self, stack: ExitStack, environments: EvaluationEnvironments | None
    ) -> EvaluationOutputs | None:
        evaluation = self._call.evaluation
        if evaluation is None or environments is None:
            return None
        seeds = new_seed_rule(self._seed)
        evaluator = ExternalAgentEvaluator(
            self._agent,
            environments,
            evaluation.settings,
            seeds,
            self._best,
            self.interrupts.check_interrupts,
        )
        outputs = EvaluationOutputs.open(
            self._call.directory,
            evaluator,
            [*self._statistics(), *statistics_of(environments.env)],
            self._t,
            stack,
            writes_events=evaluation.writes_events,
            hooks=evaluation.hooks,
        )
        self._best.score = outputs.best
        return outputs

    def _deciding_hooks(self, episodes: EpisodeCount) -> tuple[object, ...]:
        call = self._call
        if call.evaluator is None:
            return (SuccessScoreHook(call.successful_score),)
        asking = CallerEvaluator(
            call.evaluator,
            self.evaluations,
            episodes,
            evaluates_during_episode=call.evaluates_during_episode,
            agent_statistics=self._statistics,
            successful_score=call.successful_score,
        )
        return (asking,)

    def _statistics(self) -> list[tuple[str, object]]:
        return list(self._call.agent.get_statistics())

    def _close_after_error(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            return
        closers: list[Callable[[], object]] = [self._vector.close]
        if (other := self._call.evaluation.env if self._call.evaluation else None) is not None:
            closers.append(lambda: close(other))
        if (env := getattr(self._call.evaluator, "env", None)) is not None:
            closers.append(env.close)
        for one in closers:
            try:
                one()
            except Exception:
                self._logger.exception("an environment could not be closed")

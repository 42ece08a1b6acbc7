"""Warnings about submissions that are valid but unlikely to do what their author wants.

They are returned with the accepted submission.

This module holds the rules and their texts. The server adds warnings that depend on its state.
"""

from collections.abc import Iterator
from typing import Final

from palestra.contract.definition import Definition, RlDefinition, SupervisedDefinition
from palestra.contract.envs import DEFAULT_EPISODE_STEPS
from palestra.contract.job_options import JobOptions
from palestra.contract.views import SubmissionWarning

SHORT_EPISODE: Final = 20
"""Assumed env_steps of an evaluation episode; most environments have longer episodes.
"""

MANY_PROCESSES: Final = 256
"""Number of environment processes above which a warning is given."""


def list_warnings(definition: Definition, options: JobOptions) -> tuple[SubmissionWarning, ...]:
    """Returns the warnings for a submission."""
    if not options.schedule.writes_training_state:
        return ()
    rules = (
        _check_rl(definition)
        if isinstance(definition, RlDefinition)
        else _check_supervised(definition)
    )
    return tuple(rules)


def warn_of_cut_episodes(env_id: str) -> SubmissionWarning:
    """Returns the warning that nothing limits the episodes of an environment."""
    return SubmissionWarning(
        code="no_time_limit",
        pointer="/definition/env/max_episode_steps",
        message=(
            f"episodes of {env_id} have no time limit: they are cut after "
            f"{DEFAULT_EPISODE_STEPS:,} env_steps, and an evaluation with such an episode does not "
            "count for the success score. Set env.max_episode_steps"
        ),
    )


def _check_rl(definition: RlDefinition) -> Iterator[SubmissionWarning]:
    yield from _check_updates(definition)
    yield from _check_evaluation(definition)
    if (
        every := definition.snapshot.every_env_steps
    ) is not None and every <= definition.env.num_envs:
        yield _warn_every_step("every_env_steps", "vector step")
    if definition.env.vectorization == "async" and definition.env.num_envs > MANY_PROCESSES:
        yield SubmissionWarning(
            code="many_processes",
            pointer="/definition/env/num_envs",
            message=(
                f"starts {definition.env.num_envs:,} processes per run on the worker: lower "
                "num_envs, or set vectorization to sync"
            ),
        )


def _check_updates(definition: RlDefinition) -> Iterator[SubmissionWarning]:
    budget = definition.loop.env_steps
    starts = getattr(definition.agent, "learning_starts", None)
    if budget is not None and starts is not None and starts > budget:
        yield SubmissionWarning(
            code="no_updates",
            pointer="/definition/agent/learning_starts",
            message=(
                f"the run ends after {budget:,} env_steps and learning starts after {starts:,}: no "
                "update is made. Lower agent.learning_starts, or raise loop.env_steps"
            ),
        )
    steps = getattr(definition.agent, "rollout_steps", None)
    rollout = None if steps is None else steps * definition.env.num_envs
    if budget is not None and rollout is not None and rollout > budget:
        yield SubmissionWarning(
            code="less_than_a_rollout",
            pointer="/definition/loop/env_steps",
            message=(
                f"the run ends after {budget:,} env_steps, before its first rollout of "
                f"{rollout:,} (agent.rollout_steps x env.num_envs) is whole: raise loop.env_steps, "
                "or lower agent.rollout_steps"
            ),
        )


def _check_evaluation(definition: RlDefinition) -> Iterator[SubmissionWarning]:
    wanted = definition.evaluation
    if wanted.every_env_steps is None:
        return
    limit = wanted.max_episode_steps or definition.env.max_episode_steps or SHORT_EPISODE
    episodes = (wanted.episodes or 0) * min(limit, SHORT_EPISODE)
    steps = wanted.steps or episodes
    if steps > wanted.every_env_steps:
        yield SubmissionWarning(
            code="costly_evaluation",
            pointer="/definition/evaluation/every_env_steps",
            message=(
                f"every {wanted.every_env_steps:,} env_steps of training are followed by an "
                f"evaluation of {'' if wanted.steps else 'at least some '}{steps:,}: evaluate less "
                "often, or shorter"
            ),
        )


def _check_supervised(definition: SupervisedDefinition) -> Iterator[SubmissionWarning]:
    wanted = definition.evaluation
    if (
        wanted.steps is not None
        and wanted.every_updates is not None
        and wanted.steps > wanted.every_updates
    ):
        yield SubmissionWarning(
            code="costly_evaluation",
            pointer="/definition/evaluation/every_updates",
            message=(
                f"every {wanted.every_updates:,} updates are followed by an evaluation of "
                f"{wanted.steps:,} batches: evaluate less often, or shorter"
            ),
        )
    if definition.snapshot.every_updates == 1:
        yield _warn_every_step("every_updates", "update")


def _warn_every_step(member: str, step: str) -> SubmissionWarning:
    return SubmissionWarning(
        code="snapshot_every_step",
        pointer=f"/definition/snapshot/{member}",
        message=(
            f"saves a snapshot at every {step}, which takes longer than the training itself: raise "
            f"{member}"
        ),
    )

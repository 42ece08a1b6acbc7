"""Submissions: a definition with seeds becomes an experiment, its runs and their jobs.

A submission is checked once, and completed from the pool's workers. What its experiment lacks is
planned once: `submit` stores the plan, `app.services.experiments.submission_preview` says when its
jobs would start.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from app.db.engine import Session
from app.db.models.experiments import ExperimentRow, RunRow
from app.db.repositories import experiments as rows
from app.db.repositories import jobs as job_rows
from app.domain.definition_members import list_members
from app.domain.errors import ConflictError, InvalidError
from app.domain.principal import Principal
from app.services import offers
from app.services.access import rights
from app.services.experiments import experiments, unapplied_options
from app.services.jobs import dependencies, job_creation, job_state, priority_classes
from app.services.jobs.dependencies import Dependencies
from app.services.jobs.job_creation import TrainingRequest
from app.services.projects import storage_limits
from app.services.queue import quotas
from app.services.views.experiments import read_definition
from palestra.contract import advice
from palestra.contract.definition import Definition, RlDefinition
from palestra.contract.documents import encode_canonical_json
from palestra.contract.identity import compute_experiment_id, hash_definition, hash_identity
from palestra.contract.job_options import MAX_SEEDS, JobOptions, Submission
from palestra.contract.names import new_id
from palestra.contract.resources import SubmittedExperiment
from palestra.contract.states import RunState
from palestra.contract.views import SubmissionWarning

_RUNS_PER_STEP: Final = 100
"""Number of runs that are inserted before other requests may run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedSubmission:
    """A checked submission."""

    project_id: str
    submission: Submission
    """The submission, completed from the pool's workers."""
    is_pack_chosen: bool
    """Whether the server chose the number of runs in a pack."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlan:
    """What a submission adds to its experiment."""

    new_seeds: tuple[int, ...]
    """Seeds of which the experiment has no run."""
    untrained_runs: tuple[RunRow, ...]
    """Runs of the other seeds that have had tests but no training: they are trained as if new."""
    packs: tuple[Sequence[int], ...]
    """The seeds that each job trains: the new ones, then those of the runs without training."""
    first_place: int
    """Index of the first run to train among the runs of the experiment."""
    dependencies: Dependencies
    warnings: tuple[SubmissionWarning, ...]


async def submit(
    session: Session, principal: Principal, submission: Submission
) -> tuple[SubmittedExperiment, bool]:
    """Creates an experiment with one run and one queued job per seed.

    If the project has an experiment with the same definition and code, adds the missing seeds to it
    and restores it if it was archived. Concurrent submissions create one experiment.

    Returns:
        The experiment with warnings about the submission, and whether it is new.

    Raises:
        InvalidError: If no worker of the pool can execute it; `too_many_seeds`;
            `unknown_dependency`.
        ForbiddenError: If the caller may not submit it.
        ConflictError: If another experiment of the project has the same ID by collision;
            `storage_limit_reached`; `quota_exceeded`; `dependency_failed`.
    """
    accepted = await accept(session, principal, submission)
    options = accepted.submission.options
    experiment, is_new = await _find_or_insert(session, _build_row(principal, accepted))
    _limit(session, principal, experiment, options, is_new=is_new)
    if is_new:
        members = list_members(json.loads(experiment.definition))
        await rows.add_members(session, experiment.project_id, experiment.id, members)
        experiments.record(session, principal, experiment, "experiment.create")
    elif experiment.archived_at is not None:
        await rows.set_archived(session, experiment, archived=False)
        experiments.record(session, principal, experiment, "experiment.restore")
    plan = await plan_training(session, principal, accepted, None if is_new else experiment)
    runs = await _add_runs(session, principal, experiment, accepted.submission, plan.new_seeds)
    runs += plan.untrained_runs
    if runs:
        request = TrainingRequest(
            runs=runs,
            pack_sizes=tuple(map(len, plan.packs)),
            options=options,
            dependencies=plan.dependencies,
            first_place=plan.first_place,
        )
        await job_creation.queue_trainings(session, principal, experiment, request)
        if not is_new:
            experiments.record(session, principal, experiment, "experiment.extend", runs=len(runs))
    view = await job_state.append_experiment_event(session, experiment)
    definition = read_definition(experiment)
    return SubmittedExperiment(
        **dict(view), definition=definition, warnings=list(plan.warnings)
    ), is_new


async def accept(
    session: Session, principal: Principal, submission: Submission
) -> AcceptedSubmission:
    """Checks a submission, and completes it from the pool's workers.

    Args:
        session: A writing session: the pool is not deleted before the commit.
        principal: The caller.
        submission: The submission.

    Raises:
        InvalidError: If no worker of the pool can execute it; `too_many_seeds`.
        ForbiddenError: If the caller may not submit it.
        ConflictError: `storage_limit_reached`.
    """
    if (number := len(submission.options.seeds)) > MAX_SEEDS:
        raise InvalidError(
            "too_many_seeds",
            f"A submission takes at most {MAX_SEEDS:,} seeds, not {number:,}. Send the others in "
            "further submissions: the same definition adds its missing seeds.",
            pointer="/options/seeds",
        )
    project_id = rights.choose_project_to_submit_to(principal)
    await storage_limits.check_submission(session, project_id)
    completed = await offers.resolve(session, project_id, submission)
    options = completed.options
    priority_classes.check(
        principal, project_id, options.priority_class, options.limits, "/options"
    )
    return AcceptedSubmission(
        project_id=project_id,
        submission=completed,
        is_pack_chosen=submission.options.resources.pack == "auto",
    )


async def plan_training(
    session: Session,
    principal: Principal,
    accepted: AcceptedSubmission,
    experiment: ExperimentRow | None,
) -> TrainingPlan:
    """Returns what a submission adds to its experiment.

    Args:
        session: A writing session: quotas and dependencies stay as they are until it ends.
        principal: The caller.
        accepted: The submission.
        experiment: Its experiment, locked; `None` for a new one.

    Raises:
        InvalidError: `unknown_dependency`.
        ConflictError: `quota_exceeded` or `dependency_failed`.
    """
    submission, project_id = accepted.submission, accepted.project_id
    options, definition = submission.options, submission.definition
    existing_runs: Sequence[RunRow] = ()
    untrained_runs: list[RunRow] = []
    first_place = 0
    if experiment is not None:
        existing_runs = await rows.list_runs_for_seeds(session, experiment, options.seeds)
        if options.schedule.writes_training_state:
            trained = await job_rows.filter_trained(session, [run.id for run in existing_runs])
            untrained_runs = [run for run in existing_runs if run.id not in trained]
        key = (experiment.project_id, experiment.id)
        total = sum((await rows.count_runs(session, [key]))[key].values())
        first_place = max(0, total - len(untrained_runs))
    seeds_of_runs = {run.seed for run in existing_runs}
    new_seeds = [seed for seed in options.seeds if seed not in seeds_of_runs]
    seeds = [*new_seeds, *(run.seed for run in untrained_runs)]
    agent, _ = name_parts(definition)
    packs = job_creation.group_into_packs(seeds, options, agent)
    job_dependencies = Dependencies()
    if packs:
        number = len(packs) + len(seeds) * len(options.then)
        await quotas.check_queued(
            session, project_id, principal.user_id, options.pool, number, "/options/pool"
        )
        job_dependencies = await dependencies.check(
            session, project_id, options.after, options.on, "/options"
        )
    queued_seeds = set(seeds)
    unchanged_runs = [run for run in existing_runs if run.seed not in queued_seeds]
    option_warnings = await unapplied_options.list_warnings(session, unchanged_runs, options)
    if accepted.is_pack_chosen:
        option_warnings = [
            warning for warning in option_warnings if warning.pointer != "/options/resources/pack"
        ]
    return TrainingPlan(
        new_seeds=tuple(new_seeds),
        untrained_runs=tuple(untrained_runs),
        packs=tuple(packs),
        first_place=first_place,
        dependencies=job_dependencies,
        warnings=(
            *advice.list_warnings(definition, options),
            *await offers.list_warnings(session, definition, options),
            *option_warnings,
        ),
    )


def _limit(
    session: Session,
    principal: Principal,
    experiment: ExperimentRow,
    options: JobOptions,
    *,
    is_new: bool,
) -> None:
    """Applies the limit on running jobs that a submission names."""
    if options.max_running in {None, experiment.max_running}:
        return
    if not is_new:
        rights.require_control(principal, experiment.project_id, experiment.created_by)
    experiments.set_max_running(session, principal, experiment, options.max_running)


async def _find_or_insert(session: Session, row: dict[str, Any]) -> tuple[ExperimentRow, bool]:
    """Returns the project's experiment of an identity, locked, and whether it is new.

    An experiment that is moved away between the two statements is inserted by the second try.

    Raises:
        ConflictError: `id_taken`.
    """
    for _ in range(2):
        is_new = await rows.insert_experiment(session, row)
        experiment = await rows.find_by_identity(session, row["project_id"], row["identity_hash"])
        if experiment is not None:
            return experiment, is_new
    raise build_taken_id()


def build_taken_id() -> ConflictError:
    """Returns the refusal of a submission whose ID another experiment of the project has."""
    return ConflictError(
        "id_taken",
        "Another experiment of this project has the same ID. Give this one another name.",
    )


def _build_row(principal: Principal, accepted: AcceptedSubmission) -> dict[str, Any]:
    definition, code = accepted.submission.definition, accepted.submission.code
    agent, environment = name_parts(definition)
    return {
        "project_id": accepted.project_id,
        "id": compute_experiment_id(definition, code),
        "identity_hash": hash_identity(definition, code),
        "definition_hash": hash_definition(definition),
        "schema_version": definition.schema_version,
        "definition": encode_canonical_json(definition).decode(),
        "code": code.model_dump(mode="json"),
        "name": definition.name,
        "notes": definition.notes,
        "kind": definition.kind,
        "agent": agent,
        "env": environment,
        "created_by": principal.user_id,
    }


def name_parts(definition: Definition) -> tuple[str, str]:
    """Returns the names of agent and environment, or of estimator and training input."""
    if isinstance(definition, RlDefinition):
        return definition.agent.name, definition.env.id
    return definition.estimator.name, definition.train_input.name


async def _add_runs(
    session: Session,
    principal: Principal,
    experiment: ExperimentRow,
    submission: Submission,
    seeds: Sequence[int],
) -> list[RunRow]:
    """Adds a run for each seed, with a record of the submission."""
    if not seeds:
        return []
    record = await rows.insert_submission(
        session, experiment, submission.provenance, principal.user_id
    )
    common = {
        "project_id": experiment.project_id,
        "experiment_id": experiment.id,
        "submission_id": record.id,
        "state": RunState.QUEUED,
        "created_by": principal.user_id,
        "created_at": record.created_at,
    }
    ids = sorted(new_id("run") for _ in seeds)
    new = [{**common, "id": run_id, "seed": seed} for run_id, seed in zip(ids, seeds, strict=True)]
    runs: list[RunRow] = []
    for first in range(0, len(new), _RUNS_PER_STEP):
        runs += await rows.insert_runs(session, new[first : first + _RUNS_PER_STEP])
        await asyncio.sleep(0)
    return runs

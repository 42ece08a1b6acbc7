"""Experiments: submitted, listed, read, archived."""

import asyncio
import json
from collections.abc import Collection
from typing import Any, Final

from app.db.engine import QUEUE, Session, announce
from app.db.models.experiments import ExperimentRow, RunRow
from app.db.repositories import experiments as rows
from app.db.repositories import jobs as job_rows
from app.domain.definition_members import list_members
from app.domain.errors import ConflictError, InvalidError, NotFoundError
from app.domain.principal import Principal
from app.services import offers
from app.services.access import rights
from app.services.access.audit_actor import describe_actor
from app.services.audit import audit_log
from app.services.experiments import unapplied_options
from app.services.jobs import job_creation, job_state, priority_classes
from app.services.projects import storage_limits
from app.services.views.experiments import build_experiment_views, read_definition
from palestra.contract import advice
from palestra.contract.definition import Definition, RlDefinition
from palestra.contract.documents import encode_canonical_json
from palestra.contract.identity import compute_experiment_id, hash_definition, hash_identity
from palestra.contract.job_changes import ExperimentChange
from palestra.contract.job_options import MAX_SEEDS, JobOptions, Submission
from palestra.contract.names import new_id
from palestra.contract.resources import (
    ExperimentDetail,
    SubmittedExperiment,
)
from palestra.contract.states import RunState

_RUNS_PER_STEP: Final = 100
"""Number of runs that are inserted before other requests may run."""

__all__ = [
    "archive",
    "change",
    "check",
    "find_runs_to_train",
    "get",
    "name_parts",
    "refuse_taken_id",
    "submit",
]


async def submit(
    session: Session, principal: Principal, submission: Submission
) -> tuple[SubmittedExperiment, bool]:
    """Creates an experiment with one run and one queued job per seed.

    If the project has an experiment with the same definition and code, adds the missing seeds to it
    and restores it if it was archived. Concurrent submissions create one experiment.

    Returns:
        The experiment with warnings about the submission, and whether it is new.

    Raises:
        InvalidError: If no worker of the pool can execute it; `too_many_seeds`.
        ConflictError: If another experiment of the project has the same ID by collision;
            `storage_limit_reached`.
    """
    if (number := len(submission.options.seeds)) > MAX_SEEDS:
        raise InvalidError(
            "too_many_seeds",
            f"A submission takes at most {MAX_SEEDS:,} seeds, not {number:,}. Send the others in "
            "further submissions: the same definition adds its missing seeds.",
            pointer="/options/seeds",
        )
    is_pack_chosen = submission.options.resources.pack == "auto"
    project_id, submission = await check(session, principal, submission)
    experiment, new = await _find_or_insert(session, _row(principal, project_id, submission))
    if experiment is None:
        raise refuse_taken_id()
    _limit(session, principal, experiment, submission.options, is_new=new)
    if new:
        members = list_members(json.loads(experiment.definition))
        await rows.add_members(session, experiment.project_id, experiment.id, members)
        _audit(session, principal, experiment, "experiment.create")
    elif experiment.archived_at is not None:
        await rows.set_archived(session, experiment, archived=False)
        _audit(session, principal, experiment, "experiment.restore")
    seeds_of_runs = frozenset() if new else await rows.load_seeds(session, experiment)
    added = await _add_runs(session, principal, experiment, submission, seeds_of_runs)
    repeated = seeds_of_runs.intersection(submission.options.seeds)
    if repeated and submission.options.schedule.writes_training_state:
        added += await find_runs_to_train(session, experiment, repeated)
    if added:
        await job_creation.queue_training(session, principal, experiment, added, submission.options)
    if added and not new:
        _audit(session, principal, experiment, "experiment.extend", runs=len(added))
    view = await job_state.append_experiment_event(session, experiment)
    options, definition = submission.options, submission.definition
    warnings = [
        *advice.list_warnings(definition, options),
        *await offers.list_warnings(session, definition, options),
    ]
    kept = (
        ()
        if new
        else await unapplied_options.list_warnings(
            session, experiment, options, {run.id for run in added}
        )
    )
    if is_pack_chosen:
        kept = [one for one in kept if one.pointer != "/options/resources/pack"]
    return SubmittedExperiment(
        **dict(view), definition=read_definition(experiment), warnings=[*warnings, *kept]
    ), new


async def check(
    session: Session, principal: Principal, submission: Submission
) -> tuple[str, Submission]:
    """Returns the project of a submission, and the submission completed from the pool's workers.

    Args:
        session: A writing session: the pool is not deleted before the commit.
        principal: The caller.
        submission: The submission.

    Raises:
        InvalidError: If no worker of the pool can execute it.
        ForbiddenError: If the caller may not submit it.
        ConflictError: `storage_limit_reached`.
    """
    project_id = rights.choose_project_to_submit_to(principal)
    await storage_limits.check_submission(session, project_id)
    submission = await offers.resolve(session, project_id, submission)
    options = submission.options
    priority_classes.check(
        principal, project_id, options.priority_class, options.limits, "/options"
    )
    return project_id, submission


def refuse_taken_id() -> ConflictError:
    """Returns the refusal of a submission whose ID another experiment of the project has."""
    return ConflictError(
        "id_taken",
        "Another experiment of this project has the same ID. Give this one another name.",
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
    _set_max_running(session, principal, experiment, options.max_running)


def _set_max_running(
    session: Session, principal: Principal, experiment: ExperimentRow, max_running: int | None
) -> None:
    rows.set_max_running(experiment, max_running)
    _audit(session, principal, experiment, "experiment.change", max_running=max_running)
    announce(session, QUEUE)


async def _find_or_insert(
    session: Session, row: dict[str, Any]
) -> tuple[ExperimentRow | None, bool]:
    """Returns the project's experiment of an identity, locked, and whether it is new.

    An experiment that is moved away between the two statements is inserted by the second try.
    `None` if another experiment of the project has the ID.
    """
    project_id, identity = row["project_id"], row["identity_hash"]
    new = await rows.insert_experiment(session, row)
    experiment = await rows.find_by_identity(session, project_id, identity)
    if experiment is None:
        new = await rows.insert_experiment(session, row)
        experiment = await rows.find_by_identity(session, project_id, identity)
    return experiment, new


def _row(principal: Principal, project_id: str, submission: Submission) -> dict[str, Any]:
    definition, code = submission.definition, submission.code
    agent, environment = name_parts(definition)
    return {
        "project_id": project_id,
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
    seeds_of_runs: Collection[int],
) -> list[RunRow]:
    """Adds runs for the seeds of a submission of which the experiment has no run."""
    missing = [seed for seed in submission.options.seeds if seed not in seeds_of_runs]
    if not missing:
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
    ids = sorted(new_id("run") for _ in missing)
    new = [
        {**common, "id": run_id, "seed": seed} for run_id, seed in zip(ids, missing, strict=True)
    ]
    added: list[RunRow] = []
    for first in range(0, len(new), _RUNS_PER_STEP):
        added += await rows.insert_runs(session, new[first : first + _RUNS_PER_STEP])
        await asyncio.sleep(0)
    return added


async def find_runs_to_train(
    session: Session, experiment: ExperimentRow, seeds: Collection[int]
) -> list[RunRow]:
    """Returns the runs of the given seeds that have had tests but no training.

    A submission trains these runs as if they were new.
    """
    runs = await rows.list_runs_for_seeds(session, experiment, seeds)
    trained = await job_rows.filter_trained(session, [run.id for run in runs])
    return [run for run in runs if run.id not in trained]


async def get(session: Session, principal: Principal, experiment_id: str) -> ExperimentDetail:
    """Returns an experiment.

    Raises:
        NotFoundError: If the project has no experiment with that ID.
    """
    return await _detail(session, await _find(session, principal, experiment_id))


async def archive(
    session: Session, principal: Principal, experiment_id: str, *, archived: bool = True
) -> ExperimentDetail:
    """Archives an experiment, which hides it from lists, or restores it.

    Nothing is deleted, and doing it twice changes nothing.

    Raises:
        NotFoundError: If the project has no experiment with that ID.
        ConflictError: While one of its jobs has not ended.
    """
    experiment = await _find(session, principal, experiment_id)
    if not await rows.lock_against_moves(session, experiment.project_id, experiment.id):
        raise NotFoundError("experiment")
    rights.require_control(principal, experiment.project_id, experiment.created_by)
    if (experiment.archived_at is not None) is not archived:
        busy = await job_rows.count_unfinished(session, experiment.project_id, experiment.id)
        if archived and busy:
            raise ConflictError(
                "experiment_active", f"{busy} of its jobs have not ended. Cancel them first."
            )
        await rows.set_archived(session, experiment, archived=archived)
        _audit(
            session,
            principal,
            experiment,
            "experiment.archive" if archived else "experiment.restore",
        )
        await job_state.append_experiment_event(session, experiment)
    return await _detail(session, experiment)


async def change(
    session: Session, principal: Principal, experiment_id: str, request: ExperimentChange
) -> ExperimentDetail:
    """Changes how many jobs of an experiment run at the same time; running jobs go on.

    Raises:
        NotFoundError: If the project has no experiment with that ID.
        ForbiddenError: If the caller may not act on it.
    """
    experiment = await _find(session, principal, experiment_id)
    if not await rows.lock_against_moves(session, experiment.project_id, experiment.id):
        raise NotFoundError("experiment")
    rights.require_control(principal, experiment.project_id, experiment.created_by)
    if "max_running" in request.model_fields_set and request.max_running != experiment.max_running:
        _set_max_running(session, principal, experiment, request.max_running)
        await job_state.append_experiment_event(session, experiment)
    return await _detail(session, experiment)


async def _find(session: Session, principal: Principal, experiment_id: str) -> ExperimentRow:
    found = await rows.list_by_public_id(session, principal.project_ids, experiment_id)
    if not found:
        raise NotFoundError("experiment")
    if len(found) > 1:
        raise ConflictError(
            "ambiguous_experiment",
            "Several of your projects have an experiment of this ID. Name the project: "
            f"`--project SLUG`, or /api/v1/experiments/{found[0].id}?project=SLUG.",
        )
    return found[0]


async def _detail(session: Session, experiment: ExperimentRow) -> ExperimentDetail:
    (view,) = await build_experiment_views(session, [experiment])
    definition = read_definition(experiment)
    return ExperimentDetail(
        **dict(view),
        definition=definition,
        warnings=list(advice.list_warnings(definition, JobOptions())),
    )


def _audit(
    session: Session,
    principal: Principal,
    experiment: ExperimentRow,
    action: str,
    **data: object,
) -> None:
    audit_log.record(
        session,
        action,
        experiment.id,
        project_id=experiment.project_id,
        actor=describe_actor(principal),
        data={"definition_hash": experiment.definition_hash, **data},
    )

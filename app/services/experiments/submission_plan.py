"""What a submission would queue, found without writing anything."""

from dataclasses import dataclass
from itertools import accumulate

from app.db import clock
from app.db.engine import Session
from app.db.repositories import access as access_rows
from app.db.repositories import experiments as rows
from app.db.repositories.start_order import LoadedJob
from app.domain.principal import Principal
from app.domain.queue.equipment import Needs
from app.domain.queue.start_order import Group, QueuedJob
from app.services.experiments import submission
from app.services.experiments.submission import TrainingPlan
from palestra.contract.identity import compute_experiment_id, hash_identity
from palestra.contract.job_options import Submission
from palestra.contract.views import SubmissionWarning
from palestra.contract.work_order import choose_work_order_version


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionPlan:
    """The runs and jobs that a submission would create."""

    project_id: str
    project: str
    """Slug of the project."""
    user_id: str
    submission: Submission
    """The submission, completed from the pool's workers."""
    experiment_id: str
    exists: bool
    seeds: tuple[int, ...]
    """Seeds for which jobs would be queued."""
    packs: tuple[int, ...]
    """Number of seeds that each job trains."""
    jobs: tuple[LoadedJob, ...]
    """The jobs that would be queued, with IDs that no stored job has."""
    needs: Needs
    """What the jobs need of a worker."""
    warnings: tuple[SubmissionWarning, ...]


async def plan(session: Session, principal: Principal, submitted: Submission) -> SubmissionPlan:
    """Checks a submission as `submission.submit` does; returns the runs and jobs to create.

    Args:
        session: A writing session, in which nothing is written: the checks lock the pool.
        principal: The caller.
        submitted: The submission.

    Raises:
        InvalidError: If no worker of the pool can execute it; `too_many_seeds`;
            `unknown_dependency`.
        ForbiddenError: If the caller may not submit it.
        ConflictError: If another experiment of the project has the same ID by collision;
            `storage_limit_reached`; `quota_exceeded`; `dependency_failed`.
    """
    accepted = await submission.accept(session, principal, submitted)
    project_id, completed = accepted.project_id, accepted.submission
    experiment_id = compute_experiment_id(completed.definition, completed.code)
    identity = hash_identity(completed.definition, completed.code)
    experiment = await rows.find_by_identity(session, project_id, identity)
    if experiment is not None:
        # The same definition may have been submitted with another name.
        experiment_id = experiment.id
    elif await rows.find(session, project_id, experiment_id) is not None:
        raise submission.build_taken_id()
    training = await submission.plan_training(session, principal, accepted, experiment)
    slugs = await access_rows.load_project_slugs(session, {project_id})
    group = Group(completed.options.priority_class, project_id, principal.user_id)
    return SubmissionPlan(
        project_id=project_id,
        project=slugs[project_id],
        user_id=principal.user_id,
        submission=completed,
        experiment_id=experiment_id,
        exists=experiment is not None,
        seeds=tuple(seed for pack in training.packs for seed in pack),
        packs=tuple(map(len, training.packs)),
        jobs=await _build_jobs(session, group, experiment_id, completed, training),
        needs=_needs_of(completed),
        warnings=training.warnings,
    )


def _needs_of(completed: Submission) -> Needs:
    definition = completed.definition
    agent, environment = submission.name_parts(definition)
    return Needs(
        kind=definition.kind,
        environment=environment,
        agent=agent,
        code=completed.code.model_dump(mode="json"),
        formats=frozenset(definition.export.formats),
        any_version=False,
    )


async def _build_jobs(
    session: Session,
    group: Group,
    experiment_id: str,
    completed: Submission,
    training: TrainingPlan,
) -> tuple[LoadedJob, ...]:
    options, now = completed.options, await clock.now(session)
    version = choose_work_order_version(
        completed.definition.schema_version, options.resources, None
    )
    schedule, limits = options.schedule, options.limits
    sizes = map(len, training.packs)
    places = accumulate(sizes, initial=training.first_place)
    return tuple(
        LoadedJob(
            job=QueuedJob(
                id=f"preview {number:05}",
                attempt=0,
                group=group,
                priority=options.priority,
                seed_index=place,
                queued_at=now,
                gpus=options.resources.gpus,
                version=version,
                requirements=f"{group.project_id} {experiment_id} {schedule} preview",
                experiment_id=experiment_id,
                wall_seconds=limits.wall_seconds,
                grace_seconds=limits.grace_seconds,
            ),
            schedule=schedule,
            wall_seconds=limits.wall_seconds or 0,
            allow_code_change=False,
        )
        for number, place in zip(range(len(training.packs)), places, strict=False)
    )

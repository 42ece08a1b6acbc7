"""What a submission would queue, found without writing anything."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from app.db import clock
from app.db.engine import Session
from app.db.models.experiments import ExperimentRow
from app.db.repositories import access as access_rows
from app.db.repositories import experiments as rows
from app.db.repositories.start_order import LoadedJob
from app.domain.principal import Principal
from app.domain.queue.equipment import Needs
from app.domain.queue.start_order import Group, QueuedJob
from app.services import offers
from app.services.experiments import experiments, unapplied_options
from app.services.jobs import dependencies
from app.services.jobs.job_creation import group_into_packs
from app.services.queue import quotas
from palestra.contract import advice
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


async def plan(session: Session, principal: Principal, submission: Submission) -> SubmissionPlan:
    """Checks a submission as `experiments.submit` does; returns the runs and jobs to create.

    Args:
        session: A writing session, in which nothing is written: the checks lock the pool.
        principal: The caller.
        submission: The submission.

    Raises:
        InvalidError: If no worker of the pool can execute it.
        ForbiddenError: If the caller may not submit it.
        ConflictError: If another experiment of the project has the same ID by collision;
            `storage_limit_reached`.
    """
    project_id, submission = await experiments.check(session, principal, submission)
    options, definition = submission.options, submission.definition
    experiment_id = compute_experiment_id(definition, submission.code)
    identity = hash_identity(definition, submission.code)
    experiment = await rows.find_by_identity(session, project_id, identity)
    if experiment is not None:
        # The same definition may have been submitted with another name.
        experiment_id = experiment.id
    elif await rows.find(session, project_id, experiment_id) is not None:
        raise experiments.refuse_taken_id()
    seeds, earlier = await _find_seeds_to_train(session, experiment, submission)
    needs = _needs_of(submission)
    packs = group_into_packs(seeds, options, needs.agent)
    queued = len(packs) + len(seeds) * len(options.then)
    if packs:
        await quotas.check_queued(
            session, project_id, principal.user_id, options.pool, queued, "/options/pool"
        )
        await dependencies.check(session, project_id, options.after, options.on, "/options")
    warnings = list(advice.list_warnings(definition, options))
    warnings += await offers.list_warnings(session, definition, options)
    if experiment is not None:
        warnings += await _list_unapplied_options(session, experiment, submission, seeds)
    slugs = await access_rows.load_project_slugs(session, {project_id})
    group = Group(options.priority_class, project_id, principal.user_id)
    return SubmissionPlan(
        project_id=project_id,
        project=slugs[project_id],
        user_id=principal.user_id,
        submission=submission,
        experiment_id=experiment_id,
        exists=experiment is not None,
        seeds=tuple(seeds),
        packs=tuple(map(len, packs)),
        jobs=await _build_jobs(session, group, experiment_id, submission, packs, earlier),
        needs=needs,
        warnings=tuple(warnings),
    )


async def _find_seeds_to_train(
    session: Session, experiment: ExperimentRow | None, submission: Submission
) -> tuple[list[int], int]:
    """Returns the seeds that would be trained, and how many runs the experiment has before them."""
    wanted = submission.options.seeds
    if experiment is None:
        return list(wanted), 0
    known = await rows.load_seeds(session, experiment)
    new = [seed for seed in wanted if seed not in known]
    tested = (
        await experiments.find_runs_to_train(session, experiment, wanted)
        if submission.options.schedule.writes_training_state
        else []
    )
    key = (experiment.project_id, experiment.id)
    there = sum((await rows.count_runs(session, [key]))[key].values())
    return [*new, *(run.seed for run in tested)], max(0, there - len(tested))


async def _list_unapplied_options(
    session: Session, experiment: ExperimentRow, submission: Submission, seeds: Sequence[int]
) -> list[SubmissionWarning]:
    runs = await rows.list_runs_for_seeds(session, experiment, seeds)
    queued = {run.id for run in runs}
    return await unapplied_options.list_warnings(session, experiment, submission.options, queued)


def _needs_of(submission: Submission) -> Needs:
    definition = submission.definition
    agent, environment = experiments.name_parts(definition)
    return Needs(
        kind=definition.kind,
        environment=environment,
        agent=agent,
        code=submission.code.model_dump(mode="json"),
        formats=frozenset(definition.export.formats),
        any_version=False,
    )


async def _build_jobs(
    session: Session,
    group: Group,
    experiment_id: str,
    submission: Submission,
    packs: Sequence[Sequence[int]],
    earlier: int,
) -> tuple[LoadedJob, ...]:
    options, now = submission.options, await clock.now(session)
    version = choose_work_order_version(
        submission.definition.schema_version, options.resources, None
    )
    schedule, limits = options.schedule, options.limits
    places = accumulate(map(len, packs), initial=earlier)
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
        for number, place in zip(range(len(packs)), places, strict=False)
    )

"""What a pool's workers offer, and the checks of a submission that depend on it.

The server imports no part of a training itself.
"""

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from pydantic import TypeAdapter

from app.db.engine import Session
from app.db.models.experiments import ExperimentRow
from app.db.models.jobs import JobRow
from app.db.models.workers import WorkerRow
from app.db.repositories import workers as rows
from app.domain import registered_parts
from app.domain.errors import ConflictError, InvalidError
from app.domain.principal import Principal
from app.domain.queue import equipment
from app.domain.queue.packs import resolve_pack
from app.services import pools
from app.services.queue.equipped_workers import needs_of
from palestra.contract import advice
from palestra.contract.agents import PACKABLE_AGENTS
from palestra.contract.catalogue import (
    Catalogue,
    EnvironmentDescription,
    PartDescription,
    SpaceDescription,
)
from palestra.contract.code import (
    BuiltinCode,
    Code,
    DistributionCode,
    EntrypointCode,
    EnvironmentCode,
    GitCode,
    ModuleCode,
    describe_code,
)
from palestra.contract.definition import Definition, RlDefinition
from palestra.contract.documents import encode_canonical_json
from palestra.contract.job_options import JobOptions, JobRequest, Submission
from palestra.contract.names import EvaluationPolicy, Schedule
from palestra.contract.resources import CatalogueView
from palestra.contract.sb3 import SB3_ACTION_SPACES, Sb3Parameters
from palestra.contract.upgrade import load_definition
from palestra.contract.views import SubmissionWarning

_Part = TypeVar("_Part")
_KIND_NAMES: Final[Mapping[str, str]] = {
    "discrete": "Discrete",
    "box": "Box",
    "multi_discrete": "MultiDiscrete",
    "multi_binary": "MultiBinary",
    "dict": "Dict",
    "tuple": "Tuple",
}
_ONE_CODE: Final[TypeAdapter[EntrypointCode | DistributionCode | ModuleCode]] = TypeAdapter(
    EntrypointCode | EnvironmentCode
)
_CODE: Final[TypeAdapter[BuiltinCode | EntrypointCode | GitCode]] = TypeAdapter(Code)


async def get(session: Session, principal: Principal, pool: str) -> CatalogueView:
    """Returns the merged catalogues that the workers of a pool reported.

    `known` is false until a worker has registered, and for a pool that the caller does not see.
    """
    visible = await pools.list_visible_names(session, principal)
    workers = (
        []
        if visible is not None and pool not in visible
        else await rows.list_for_pool(session, pool)
    )
    return CatalogueView(
        pool=pool, known=bool(workers), catalogue=merge([_catalogue(worker) for worker in workers])
    )


async def find_episode_limit(session: Session, pool: str, env_id: str) -> int | None:
    """Returns the largest episode limit with which a pool's workers register an environment."""
    limits = await _list_episode_limits(session, pool, env_id)
    return max((limit for limit in limits if limit is not None), default=None)


async def list_warnings(
    session: Session, definition: Definition, options: JobOptions
) -> list[SubmissionWarning]:
    """Returns warnings of a submission that depend on what the pool's workers offer."""
    if (
        not isinstance(definition, RlDefinition)
        or definition.env.max_episode_steps is not None
        or not options.schedule.writes_training_state
    ):
        return []
    limits = await _list_episode_limits(session, options.pool, definition.env.id)
    return [advice.warn_of_cut_episodes(definition.env.id)] if None in limits else []


async def _list_episode_limits(session: Session, pool: str, env_id: str) -> list[int | None]:
    """Returns the episode limit of an environment on each worker of a pool that has it."""
    return [
        one.get("max_episode_steps")
        for worker in await rows.list_for_pool(session, pool)
        for one in worker.catalogue.get("environments", ())
        if one["id"] == env_id
    ]


def _catalogue(worker: WorkerRow) -> Catalogue:
    return Catalogue.model_validate_json(encode_canonical_json(worker.catalogue))


def merge(catalogues: Sequence[Catalogue]) -> Catalogue:
    """Returns the union of the catalogues.

    Where two of them describe the same part, the later description is returned.
    """
    return Catalogue(
        agents=_latest([one.agents for one in catalogues], _name),
        model_functions=_latest([one.model_functions for one in catalogues], _name),
        input_functions=_latest([one.input_functions for one in catalogues], _name),
        environments=_latest(
            [one.environments for one in catalogues], lambda environment: environment.id
        ),
        schedules=tuple(sorted({schedule for one in catalogues for schedule in one.schedules})),
        imports=tuple(sorted({module for one in catalogues for module in one.imports})),
        export_formats=tuple(sorted({name for one in catalogues for name in one.export_formats})),
    )


def _latest(offers: Sequence[Sequence[_Part]], key: Callable[[_Part], str]) -> tuple[_Part, ...]:
    found = {key(part): part for offer in offers for part in offer}
    return tuple(found[name] for name in sorted(found))


def _name(part: PartDescription) -> str:
    return part.name


async def resolve(session: Session, project_id: str, submission: Submission) -> Submission:
    """Returns a submission completed from the catalogues of the pool's workers.

    Adds the code of registered parts and the defaults of their parameters, and replaces
    `resources.pack` of `auto` by the size of packs for the pool's slots.

    Refuses a submission that no worker of the pool could execute. A pool without workers accepts
    all built-in parts: its jobs wait.

    Raises:
        InvalidError: With the codes `unknown_pool`, `wall_time_too_long`, `too_many_gpus`,
            `unknown_environment`, `unknown_agent`, `unknown_part`, `invalid_parameters`,
            `action_space_mismatch`, `observation_space_mismatch`, `code_mismatch`,
            `unsupported_format` or `unsupported_schedule`.
    """
    pool = submission.options.pool
    row = await pools.check(session, project_id, pool, "/options/pool")
    limits = pools.apply_default_wall_time(submission.options.limits, row, "/options/limits")
    options = submission.options.model_copy(update={"limits": limits})
    registered = await rows.list_for_pool(session, pool)
    check_gpus(options.resources.gpus, registered, pool, "/options/resources/gpus")
    pack = resolve_pack(
        options.resources.pack,
        len(options.seeds),
        sum(worker.slots for worker in registered),
        is_packable=submission.definition.kind == "rl"
        and submission.definition.agent.name in PACKABLE_AGENTS,
    )
    resources = options.resources.model_copy(update={"pack": pack})
    options = options.model_copy(update={"resources": resources})
    workers = [_catalogue(worker) for worker in registered]
    definition, code = registered_parts.resolve(
        submission.definition, submission.code, workers, pool
    )
    check(definition, submission.options.schedule, workers, pool)
    check_formats(definition.export.formats, workers, pool, "/definition/export/formats")
    return submission.model_copy(
        update={"definition": definition, "code": code, "options": options}
    )


async def check_job(
    session: Session, experiment: ExperimentRow, request: JobRequest, *, any_code: bool = False
) -> JobRequest:
    """Returns a job on an experiment with the wall time of its pool.

    Refuses a job that no worker of its pool can execute with the right code.

    Args:
        session: A session.
        experiment: The experiment.
        request: The job, with its pool.
        any_code: Whether other code than the experiment's is accepted.

    Raises:
        InvalidError: See `resolve`.
    """
    assert request.pool is not None
    pool, definition = request.pool, load_definition(experiment.definition)
    row = await pools.check(session, experiment.project_id, pool, "/pool")
    limits = pools.apply_default_wall_time(request.limits, row, "/limits")
    registered = await rows.list_for_pool(session, pool)
    check_gpus(request.resources.gpus, registered, pool, "/resources/gpus")
    workers = [_catalogue(worker) for worker in registered]
    code = (
        BuiltinCode() if any_code else _CODE.validate_json(encode_canonical_json(experiment.code))
    )
    registered_parts.resolve(definition, code, workers, pool)
    check(definition, request.schedule, workers, pool)
    _check_policy(definition, request.evaluate.policy)
    named = request.evaluate.formats if request.schedule is Schedule.EXPORT else None
    check_formats(named or definition.export.formats, workers, pool, "/evaluate/formats")
    return request.model_copy(update={"limits": limits})


def _check_policy(definition: Definition, policy: EvaluationPolicy | None) -> None:
    """Refuses to draw actions where the definition has no policy to draw them from.

    Whether an agent of a distribution has one is known to the worker alone.
    """
    if policy is None:
        return
    if not isinstance(definition, RlDefinition):
        raise InvalidError(
            "deterministic_policy",
            "A supervised run has no policy: leave `policy` out.",
            pointer="/evaluate/policy",
        )
    if policy != "greedy" and definition.has_deterministic_policy:
        raise InvalidError(
            "deterministic_policy",
            f"The policy of {definition.agent.name} is deterministic: leave `policy` out.",
            pointer="/evaluate/policy",
        )


async def check_same_code(session: Session, experiment: ExperimentRow, pool: str) -> None:
    """Refuses to resume an experiment if all workers of the pool have other code than it.

    The code of workers is compared as they reported it at registration. If a worker's code has
    changed since, the trainer detects it and the job is paused again.

    Raises:
        ConflictError: With the code `code_changed`.
    """
    workers = await rows.list_for_pool(session, pool)
    others = [
        pair
        for worker in workers
        for pair in equipment.other_versions(worker.catalogue, experiment.code, experiment.env)
    ]
    if others and not any(
        equipment.has_code(worker.catalogue, experiment.code, experiment.env) for worker in workers
    ):
        made, there = (
            describe_code(_ONE_CODE.validate_json(encode_canonical_json(code)))
            for code in others[-1]
        )
        raise ConflictError(
            "code_changed",
            f"The experiment was made with {made}, the workers of the pool {pool} have {there}. "
            "Put the code back and restart the worker, or resume with --allow-code-change.",
        )


async def is_for_another(
    session: Session, worker: WorkerRow, job: JobRow, experiment: ExperimentRow
) -> bool:
    """Returns whether a worker does not meet a job's needs while another online worker does.

    A job may need the code, the agent and the environment of its experiment, and formats to export
    in. If no worker has them, the job is dispatched: the failure states what the worker has
    instead, or which package to install.
    """
    if _has(worker, job, experiment):
        return False
    known = await rows.list_for_pool(session, worker.pool)
    others = [one for one in known if not one.draining and _has(one, job, experiment)]
    silence = await rows.measure_silence(session, [one.id for one in others]) if others else {}
    return any(silence[one.id] <= one.silent_seconds for one in others)


def _has(worker: WorkerRow, job: JobRow, experiment: ExperimentRow) -> bool:
    return equipment.has(worker.catalogue, needs_of(job, experiment))


def check(
    definition: Definition, schedule: Schedule, workers: Sequence[Catalogue], pool: str
) -> None:
    """Refuses a submission that no worker of a pool can execute; without workers, accepts any."""
    if workers:
        offered = merge(workers)
        if isinstance(definition, RlDefinition):
            check_definition(definition, offered, pool)
        check_schedule(schedule, offered, pool)


def check_gpus(gpus: int, workers: Sequence[WorkerRow], pool: str, pointer: str) -> None:
    """Refuses more GPUs than any worker of the pool has, offline ones included.

    Accepts any number where no worker ever registered.

    Raises:
        InvalidError: `too_many_gpus`.
    """
    most = max((worker.gpu_count for worker in workers), default=gpus)
    if gpus > most:
        offers = f"at most {most} GPU{'' if most == 1 else 's'}" if most else "no GPU"
        raise InvalidError(
            "too_many_gpus",
            f"The workers of the pool {pool} have {offers} each, and a job runs on one worker. Ask "
            f"for {most or 'none'}, or name a pool whose workers have {gpus}.",
            pointer=pointer,
        )


def check_schedule(schedule: Schedule, catalogue: Catalogue, pool: str) -> None:
    """Refuses a schedule that no worker of the pool supports."""
    if catalogue.schedules and schedule not in catalogue.schedules:
        known = ", ".join(catalogue.schedules)
        message = (
            f"No worker of the pool {pool} does {schedule}. Choose one of {known}, or another pool."
        )
        raise InvalidError("unsupported_schedule", message, pointer="/schedule")


def check_formats(
    formats: Sequence[str], workers: Sequence[Catalogue], pool: str, pointer: str
) -> None:
    """Refuses export formats that no worker of a pool can write.

    Accepts all where there is no worker.
    """
    offered = merge(workers).export_formats
    lacking = [name for name in formats if name not in offered]
    if workers and lacking:
        message = (
            f"No worker of the pool {pool} exports {lacking[0]}; they export {', '.join(offered)}. "
            "Install the worker's extra onnx (pip install onnx onnxscript), or leave the "
            "format out."
        )
        raise InvalidError("unsupported_format", message, pointer=pointer)


def check_definition(definition: RlDefinition, catalogue: Catalogue, pool: str) -> None:
    """Refuses an unknown agent or environment, and an agent that cannot act in the environment."""
    agents = {agent.name: agent for agent in catalogue.agents}
    environments = {environment.id: environment for environment in catalogue.environments}
    agent, environment = agents.get(definition.agent.name), environments.get(definition.env.id)
    if environments and environment is None:
        message = (
            f"No worker of the pool {pool} knows this "
            f"environment{_nearest(definition.env.id, list(environments))} Choose another one, or "
            "install the package that registers it on a worker of the pool and start that worker "
            "again; see docs/own-environment.md."
        )
        raise InvalidError("unknown_environment", message, pointer="/definition/env/id")
    if agents and agent is None:
        message = (
            f"No worker of the pool {pool} knows this agent; they know {', '.join(sorted(agents))}."
        )
        raise InvalidError("unknown_agent", message, pointer="/definition/agent/name")
    if environment is not None:
        _check_observations(definition, environment)
    if agent is not None and environment is not None and environment.action_space is not None:
        if isinstance(definition.agent, Sb3Parameters):
            algorithm = definition.agent.algorithm
            _check_actions(
                f"{algorithm} of Stable-Baselines3",
                SB3_ACTION_SPACES[algorithm],
                environment.action_space,
                catalogue,
            )
        else:
            _check_actions(
                agent.name.upper(), agent.action_spaces, environment.action_space, catalogue
            )


def _check_observations(definition: RlDefinition, environment: EnvironmentDescription) -> None:
    """Checks the observations unless arguments may change the space that the catalogue lists."""
    space = environment.observation_space
    if space is not None and space.kind == "other" and not definition.env.kwargs:
        message = (
            "The observation space of this environment is of a kind that no agent takes: "
            "they take Box, Discrete, MultiDiscrete, "
            "MultiBinary, and Dict and Tuple of these. Register the environment with a "
            "wrapper that turns its observations into one."
        )
        raise InvalidError("observation_space_mismatch", message, pointer="/definition/env/id")


def _check_actions(
    agent: str, taken: Sequence[str], space: SpaceDescription, catalogue: Catalogue
) -> None:
    if space.kind not in taken:
        needs = " or ".join(_KIND_NAMES[kind] for kind in taken)
        others = ", ".join(
            sorted(one.name for one in catalogue.agents if space.kind in one.action_spaces)
        )
        remedy = (
            f"Choose one of {others}, which take them"
            if others
            else "No agent of this pool takes them: choose another environment"
        )
        message = (
            f"{agent} needs {needs} actions, the environment has {_describe(space)}. {remedy}."
        )
        raise InvalidError("action_space_mismatch", message, pointer="/definition/agent/name")


def _describe(space: SpaceDescription) -> str:
    name = _KIND_NAMES.get(space.kind, "a space of another kind")
    match space.kind:
        case "discrete":
            return name if space.n is None else f"{name}({space.n})"
        case "box" | "multi_discrete" | "multi_binary":
            return f"{name}({math.prod(space.shape)})"
    return name


def _nearest(name: str, known: Sequence[str]) -> str:
    folded = {other.lower(): other for other in sorted(known)}
    base = name.lower().rsplit("-v", 1)[0]
    same = [other for lower, other in folded.items() if lower.rsplit("-v", 1)[0] == base]
    near = [
        folded[match] for match in difflib.get_close_matches(name.lower(), folded, n=3, cutoff=0.5)
    ]
    best = list(dict.fromkeys([*same, *near]))[:3]
    return f"; did you mean {' or '.join(best)}?" if best else "."

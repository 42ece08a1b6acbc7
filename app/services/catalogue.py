"""What a pool's workers offer, and the checks of a submission that depend on it. The server imports no part of a training itself."""

import difflib
import math
from collections.abc import Sequence

from app.db.engine import Session
from app.db.models.workers import Worker
from app.db.repositories import workers as rows
from app.domain.errors import InvalidError
from app.domain.principal import Principal
from palestra.contract.definition import Definition
from palestra.contract.documents import canonical_json
from palestra.contract.names import Schedule
from palestra.contract.resources import CatalogueView
from palestra.contract.work_order import AgentDescription, Catalogue, EnvironmentDescription, SpaceDescription


async def get(session: Session, principal: Principal, pool: str) -> CatalogueView:
    """Returns what the workers of a pool reported; `known` is false until one registered."""
    workers = await rows.of_pool(session, principal.project_id, pool)
    return CatalogueView(pool=pool, known=bool(workers), catalogue=merge([_catalogue(worker) for worker in workers]))


def _catalogue(worker: Worker) -> Catalogue:
    return Catalogue.model_validate_json(canonical_json(worker.catalogue))


def merge(catalogues: Sequence[Catalogue]) -> Catalogue:
    """Returns what at least one of the catalogues offers; of two descriptions the later one counts."""
    agents: dict[str, AgentDescription] = {}
    environments: dict[str, EnvironmentDescription] = {}
    schedules: set[Schedule] = set()
    for catalogue in catalogues:
        agents |= {agent.name: agent for agent in catalogue.agents}
        environments |= {environment.id: environment for environment in catalogue.environments}
        schedules |= set(catalogue.schedules)
    return Catalogue(
        agents=tuple(agents[name] for name in sorted(agents)),
        environments=tuple(environments[name] for name in sorted(environments)),
        schedules=tuple(sorted(schedules)),
    )


async def check(session: Session, principal: Principal, pool: str, definition: Definition, schedule: Schedule) -> None:
    """Refuses a definition or a schedule that no worker of the pool could work on. A pool without workers accepts all: its jobs wait.

    Raises:
        InvalidError: With the codes `unknown_environment`, `unknown_agent`, `action_space_mismatch` or `unsupported_schedule`.
    """
    offered = await get(session, principal, pool)
    if not offered.known:
        return
    check_definition(definition, offered.catalogue, pool)
    check_schedule(schedule, offered.catalogue, pool)


def check_schedule(schedule: Schedule, catalogue: Catalogue, pool: str) -> None:
    """Refuses a schedule that no worker knows."""
    if catalogue.schedules and schedule not in catalogue.schedules:
        known = ", ".join(catalogue.schedules)
        message = f"No worker of the pool {pool} does {schedule}. Choose one of {known}, or another pool."
        raise InvalidError("unsupported_schedule", message, pointer="/schedule")


def check_definition(definition: Definition, catalogue: Catalogue, pool: str) -> None:
    """Refuses an agent or an environment that no worker knows, and an agent that cannot act in the environment."""
    agents = {agent.name: agent for agent in catalogue.agents}
    environments = {environment.id: environment for environment in catalogue.environments}
    agent, environment = agents.get(definition.agent.name), environments.get(definition.env.id)
    if environments and environment is None:
        message = f"No worker of the pool {pool} knows this environment{_nearest(definition.env.id, list(environments))}."
        raise InvalidError("unknown_environment", message, pointer="/definition/env/id")
    if agents and agent is None:
        message = f"No worker of the pool {pool} knows this agent; they know {', '.join(sorted(agents))}."
        raise InvalidError("unknown_agent", message, pointer="/definition/agent/name")
    if agent is not None and environment is not None and environment.action_space is not None:
        _check_actions(agent, environment.action_space)


def _check_actions(agent: AgentDescription, space: SpaceDescription) -> None:
    if space.kind not in agent.action_spaces:
        needs = " or ".join(kind.capitalize() for kind in agent.action_spaces)
        message = f"{agent.name.upper()} needs {needs} actions, the environment has {_describe(space)}. Choose another agent."
        raise InvalidError("action_space_mismatch", message, pointer="/definition/agent/name")


def _describe(space: SpaceDescription) -> str:
    if space.kind == "discrete":
        return f"Discrete({space.n})"
    return f"Box({math.prod(space.shape)})" if space.kind == "box" else "a space of another kind"


def _nearest(name: str, known: Sequence[str]) -> str:
    folded = {other.lower(): other for other in sorted(known)}
    base = name.lower().rsplit("-v", 1)[0]
    same = [other for lower, other in folded.items() if lower.rsplit("-v", 1)[0] == base]
    near = [folded[match] for match in difflib.get_close_matches(name.lower(), folded, n=3, cutoff=0.5)]
    best = list(dict.fromkeys([*same, *near]))[:3]
    return f"; did you mean {' or '.join(best)}?" if best else ""

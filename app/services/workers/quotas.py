"""Quotas of projects and persons in a pool: shown to members, changed by administrators."""

from app.db.engine import QUEUE, Session, announce
from app.db.models.pools import PoolRow
from app.db.models.projects import ProjectRow
from app.db.repositories import access as access_rows
from app.db.repositories import memberships
from app.db.repositories import pools as pool_rows
from app.db.repositories import projects as project_rows
from app.db.repositories import quotas as rows
from app.domain.errors import InvalidError, NotFoundError
from app.domain.principal import Principal
from app.domain.queue.quotas import (
    DEFAULT_PERSON_QUOTA,
    NO_QUOTA,
    PERIOD_SECONDS,
    Quota,
    QuotaUse,
)
from app.domain.queue.start_order import UsageAccount
from app.services.access import rights
from app.services.access.audit_actor import describe_actor
from app.services.audit import audit_log
from app.services.events import event_log
from app.services.queue import quotas
from palestra.contract.permissions import Permission
from palestra.contract.problems import build_pointer
from palestra.contract.quotas import (
    OwnQuotasView,
    OwnQuotaView,
    PersonQuotaView,
    ProjectQuotasView,
    QuotaChange,
    QuotaLimits,
)


async def show(
    session: Session, principal: Principal, pool_name: str, slug: str
) -> ProjectQuotasView:
    """Returns the quotas of a project in a pool, for its members and administrators of the server.

    Raises:
        NotFoundError: If the pool or the project does not exist for the caller, or the pool does
            not admit the project.
    """
    manages = principal.permits(Permission.SERVER_POOLS)
    project = await project_rows.find_by_slug(session, slug)
    pool = await pool_rows.find_by_name(session, pool_name)
    readable = principal.projects_with(Permission.PROJECT_READ)
    if project is None or not (manages or project.id in readable):
        raise NotFoundError("project")
    if pool is None or not await pool_rows.admits(session, pool.id, project.id):
        raise NotFoundError("project of this pool" if manages else "pool")
    return await _view(session, pool, project)


async def list_own(session: Session, principal: Principal) -> OwnQuotasView:
    """Returns the quotas that limit the caller, with what is left of them.

    Pools in which only the default on queued jobs holds are left out.
    """
    slugs = {one.project_id: one.slug for one in principal.memberships}
    readable = principal.projects_with(Permission.PROJECT_READ) & slugs.keys()
    pools = await pool_rows.list_names_for_projects(session, readable)
    admitted = await pool_rows.list_admitted_pairs(session, pools)
    items = []
    for pool in sorted(pools):
        found = await rows.load(session, pool)
        limited = [
            project_id
            for project_id in readable
            if (pool, project_id) in admitted
            and (
                found.of_project(project_id),
                found.of_person(UsageAccount(project_id, principal.user_id)),
            )
            != (NO_QUOTA, DEFAULT_PERSON_QUOTA)
        ]
        use = await quotas.read_use(session, pool, found) if limited else QuotaUse()
        for project_id in sorted(limited, key=lambda one: slugs[one]):
            account = UsageAccount(project_id, principal.user_id)
            queued = await rows.count_queued(session, pool, project_id)
            person = quotas.sum_use(use, [account], queued.get(principal.user_id, 0))
            everyone = quotas.list_accounts(use, project_id)
            items.append(
                OwnQuotaView(
                    pool=pool,
                    project=slugs[project_id],
                    of_person=quotas.build_state(found.of_person(account), person),
                    of_project=quotas.build_state(
                        found.of_project(project_id),
                        quotas.sum_use(use, everyone, sum(queued.values())),
                    ),
                )
            )
    return OwnQuotasView(period_seconds=PERIOD_SECONDS, items=items)


async def change(
    session: Session, principal: Principal, pool_name: str, slug: str, request: QuotaChange
) -> ProjectQuotasView:
    """Changes the quotas of a project in a pool; running and queued jobs are not affected.

    Raises:
        ForbiddenError: If the caller manages no pools.
        NotFoundError: If there is no such pool or project, or the pool does not admit the project.
        InvalidError: `no_such_member` for a person who is no member of the project.
    """
    rights.require_pool_management(principal)
    await show(session, principal, pool_name, slug)
    pool = await pool_rows.find_by_name(session, pool_name, lock=True)
    project = await project_rows.find_by_slug(session, slug)
    assert pool is not None
    assert project is not None
    present = await rows.load(session, pool.name)
    subjects: dict[str, tuple[Quota | None, QuotaLimits | None]] = {}
    if request.project is not None:
        subjects[rows.PROJECT] = present.projects.get(project.id), request.project
    if request.each_person is not None:
        subjects[rows.EACH_PERSON] = present.each_person.get(project.id), request.each_person
    for name, limits in request.persons.items():
        user_id = await _find_member(session, project, name)
        subjects[user_id] = present.persons.get(UsageAccount(project.id, user_id)), limits
    for subject, (has, wanted) in subjects.items():
        quota = None if wanted is None else _merge(has or NO_QUOTA, wanted)
        if quota == NO_QUOTA and subject in {rows.PROJECT, rows.EACH_PERSON}:
            quota = None
        await rows.store(session, pool.id, project.id, subject, quota)
    if subjects:
        _record(session, principal, pool, project, request)
        announce(session, QUEUE)
        event_log.record(session, "pool", {"pool": pool.name, "deleted": False}, project_id=None)
    return await _view(session, pool, project)


def _merge(quota: Quota, wanted: QuotaLimits) -> Quota:
    values = {name: getattr(quota, name) for name in quotas.MEMBERS}
    values |= {name: getattr(wanted, name) for name in wanted.model_fields_set}
    return Quota(**values)


async def _find_member(session: Session, project: ProjectRow, name: str) -> str:
    user = await access_rows.find_user_by_name(session, name)
    if user is None or await memberships.find(session, project.id, user.id) is None:
        raise InvalidError(
            "no_such_member",
            f"The project {project.slug} has no member of this login name. `palestra members list "
            f"{project.slug}` names its members.",
            pointer=build_pointer(("persons", name)),
        )
    return user.id


async def _view(session: Session, pool: PoolRow, project: ProjectRow) -> ProjectQuotasView:
    found = await rows.load(session, pool.name)
    use = await quotas.read_use(session, pool.name, found)
    queued = await rows.count_queued(session, pool.name, project.id)
    accounts = quotas.list_accounts(use, project.id)
    members = await project_rows.list_members(session, project.id)
    persons = []
    for _, user in members:
        account = UsageAccount(project.id, user.id)
        state = quotas.build_state(
            found.of_person(account), quotas.sum_use(use, [account], queued.get(user.id, 0))
        )
        persons.append(
            PersonQuotaView(**dict(state), user=user.name, has_own_limits=account in found.persons)
        )
    return ProjectQuotasView(
        pool=pool.name,
        project=project.slug,
        period_seconds=PERIOD_SECONDS,
        of_project=quotas.build_state(
            found.of_project(project.id), quotas.sum_use(use, accounts, sum(queued.values()))
        ),
        each_person=quotas.build_limits(found.each_person.get(project.id, NO_QUOTA)),
        persons=persons,
    )


def _record(
    session: Session,
    principal: Principal,
    pool: PoolRow,
    project: ProjectRow,
    request: QuotaChange,
) -> None:
    audit_log.record(
        session,
        "pool.quotas",
        pool.id,
        project_id=project.id,
        actor=describe_actor(principal),
        data={
            "pool": pool.name,
            "project": project.slug,
            "quotas": request.model_dump(mode="json", exclude_unset=True),
        },
    )

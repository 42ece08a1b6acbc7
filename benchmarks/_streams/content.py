"""The users and the runs of the measured server."""

from dataclasses import dataclass, replace

from sqlalchemy import insert

from app.db.engine import Database
from app.db.models import MembershipRow, UserRow
from app.domain.principal import Membership
from app.services.access import tokens
from app.services.projects import projects
from palestra.contract.access import TokenRequest
from palestra.contract.names import Scope, new_id
from palestra.contract.permissions import Role
from palestra.contract.projects import ProjectRequest
from tests.support.server_fixture import World, make_world


@dataclass(frozen=True)
class Training:
    """A run with the attempt that writes its points."""

    run_id: str
    attempt_id: str
    token: str
    project: int
    """Number of its project."""


@dataclass(frozen=True)
class Viewer:
    """A user's token."""

    token: str
    project: int
    """Number of the only project of which the user is a member."""


async def fill(url: str, runs: int, users: int) -> tuple[list[Training], list[Viewer]]:
    """Makes two projects, between which the runs and the users are divided."""
    database = Database(url)
    try:
        world = await make_world(database)
        async with database.write() as session:
            made = await projects.create(session, world.admin, ProjectRequest(name="second"))
        member = Membership(
            project_id=made.id, slug=made.slug, name=made.name, role=Role.MAINTAINER
        )
        second = replace(
            world, project_id=made.id, admin=replace(world.admin, memberships=(member,))
        )
        await second.make_pool("default", project_id=made.id)
        viewers = [await _add_viewer((world, second), number) for number in range(users)]
        return await _start_runs((world, second), runs), viewers
    finally:
        await database.dispose()


async def _start_runs(worlds: tuple[World, World], runs: int) -> list[Training]:
    worker = await worlds[0].register(slots=runs)
    worlds[1].own.update(worlds[0].own)
    found = []
    for number in range(runs):
        world = worlds[number % 2]
        job = await world.submit_one_job(seeds=[number])
        claimed = await world.start(job.id, worker.worker_id, slot=number)
        found.append(
            Training(job.run_ids[0], claimed.work_order.attempt_id, claimed.token, number % 2)
        )
    return found


async def _add_viewer(worlds: tuple[World, World], number: int) -> Viewer:
    world = worlds[number % 2]
    user_id = new_id("usr")
    request = TokenRequest(name="streams", scopes=(Scope.READ,), expires_in_days=1)
    async with world.database.write() as session:
        await session.execute(insert(UserRow), [{"id": user_id, "name": f"viewer-{number}"}])
        await session.execute(
            insert(MembershipRow),
            [
                {
                    "project_id": world.project_id,
                    "user_id": user_id,
                    "role": Role.VIEWER.value,
                }
            ],
        )
        made = await tokens.issue_token(session, None, user_id, request)
    assert made.secret is not None
    return Viewer(made.secret, number % 2)

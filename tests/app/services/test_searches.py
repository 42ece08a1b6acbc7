"""Searches take the text literally, and lists stay readable while users are deleted."""

import pytest
from sqlalchemy import select

from app.db.engine import Session
from app.db.models import ExperimentRow, JobRow, RunRow
from app.domain.paging import PageRequest
from app.services import user_removal
from app.services.access import users
from app.services.access.users import UserFilter
from app.services.audit import search
from app.services.audit.search import AuditFilter
from app.services.lists import experiment_list
from app.services.views.experiments import build_experiment_views
from app.services.views.jobs import build_job_views
from app.services.views.login_names import DELETED_USER
from app.services.views.runs import run_views
from palestra.contract.people import UserChange
from tests.support.server_fixture import World, make_definition

pytestmark = pytest.mark.both_databases(
    "The databases search texts in different ways.",
    of=(
        "app.db.engine",
        "app.db.repositories.filter_conditions",
    ),
)


async def test_a_search_takes_wildcards_of_sql_literally(world: World) -> None:
    made = {}
    for steps, name in enumerate(("100% sure", "100 x sure", "a_b", "axb", "a\\b"), start=50):
        view, _ = await world.submit(make_definition(name=name, loop={"env_steps": steps}))
        made[name] = view.id
    found = {}
    for text in ("0%", "a_b", "A_B", "a\\b", "%", "_"):
        async with world.database.read() as session:
            wanted = experiment_list.ExperimentFilter(text=text)
            page = await experiment_list.list_experiments(
                session, world.admin, wanted, PageRequest()
            )
        found[text] = {item.name for item in page.items}
    assert found == {
        "0%": {"100% sure"},
        "a_b": {"a_b"},
        "A_B": {"a_b"},
        "a\\b": {"a\\b"},
        "%": {"100% sure"},
        "_": {"a_b"},
    }


async def _read_around_a_deletion(world: World, reading: Session) -> list[str]:
    """Returns the owners in views of rows that were read before their owner was deleted."""
    made, _ = await world.submit(by=world.other)
    owned = select(ExperimentRow).where(ExperimentRow.id == made.id)
    rows = (await reading.scalars(owned)).all()
    runs = (await reading.scalars(select(RunRow))).all()
    jobs = (await reading.scalars(select(JobRow))).all()
    async with world.database.write() as session:
        await user_removal.delete(session, world.admin, "bea", "admin")
    return [
        *(view.created_by for view in await build_experiment_views(reading, rows)),
        *(view.created_by for view in await run_views(reading, runs)),
        *(view.created_by for view in await build_job_views(reading, jobs)),
    ]


async def test_a_reading_session_does_not_see_a_deletion_between_its_queries(world: World) -> None:
    async with world.database.read() as reading:
        assert await _read_around_a_deletion(world, reading) == ["bea"] * 3


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_rows_of_a_deleted_user_are_readable_in_a_writing_session(world: World) -> None:
    """Regression: the views of rows that were read before the deletion raised KeyError.

    Runs are read again with what their views show, so theirs name the new owner.
    """
    async with world.database.write() as reading:
        owners = await _read_around_a_deletion(world, reading)
        assert owners == [DELETED_USER, "admin", DELETED_USER]


async def test_a_search_for_people_takes_wildcards_literally(world: World) -> None:
    async with world.database.write() as session:
        await users.change(session, world.admin, "bea", UserChange(display_name="Bea_100%"))
        await users.change(session, world.admin, "admin", UserChange(display_name="Beax1000"))
    found = {}
    for text in ("a_1", "A_1", "00%", "%", "ea"):
        async with world.database.read() as session:
            wanted = UserFilter(text=text)
            page = await users.list_users(session, world.admin, wanted, PageRequest(sort="name"))
        found[text] = [item.name for item in page.items]
    only = ["bea"]
    assert found == {"a_1": only, "A_1": only, "00%": only, "%": only, "ea": ["admin", "bea"]}


async def test_an_action_of_the_audit_log_is_found_in_its_own_case_alone(world: World) -> None:
    """Regression: LIKE ignores the case of letters on SQLite."""
    await world.submit()
    found = {}
    for action in ("experiment.", "experiment.CR", "EXPERIMENT", "experiment_", "experiment.c%"):
        async with world.database.read() as session:
            page = await search.search(
                session,
                world.admin,
                AuditFilter(action=action),
                PageRequest(sort=search.SORT),
            )
        found[action] = len(page.items)
    assert found == dict.fromkeys(found, 0) | {"experiment.": 1}

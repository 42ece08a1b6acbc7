import asyncio

import pytest

from app.db.bulk_insert import insert_rows
from app.db.engine import Database
from app.db.migrate import read_required_version, read_version, upgrade
from app.db.models import Base, JobRow
from app.domain.errors import ConflictError, InvalidError, NotFoundError
from app.domain.paging import PageRequest
from app.services.experiments import experiments, submission_plan, submission_preview
from app.services.lists import experiment_list
from palestra.contract.identity import compute_experiment_id
from palestra.contract.names import Schedule, new_id
from palestra.contract.states import Cause, JobState, Outcome, RunState
from palestra.contract.work_order import Failure
from tests.support.server_fixture import (
    World,
    make_catalogue,
    make_definition,
    make_submission,
)
from tests.support.statements import note_statements

both_databases = pytest.mark.both_databases(
    "Rows are locked on PostgreSQL, and texts are compared and ordered in other ways.",
    of=(
        "app.db.repositories.experiments",
        "app.db.repositories.filter_conditions",
    ),
)

schema_of_both_databases = pytest.mark.both_databases(
    "The schema has types, keys and indexes for each database.",
    of=(
        "app.db.migrate",
        "app.db.models.audit",
        "app.db.models.base",
        "app.db.models.curves",
        "app.db.models.events",
        "app.db.models.jobs",
        "app.db.models.start_estimates",
        "app.db.models.summaries",
    ),
)


async def test_a_submission_makes_an_experiment_with_a_run_and_a_job_per_seed(world: World) -> None:
    experiment, created = await world.submit(seeds=[3, 1, 2])
    assert created
    assert experiment.id == compute_experiment_id(experiment.definition, experiment.code)
    assert experiment.runs == {RunState.QUEUED: 3}
    assert experiment.state is RunState.QUEUED
    assert experiment.created_by == "admin"
    jobs = await world.list_jobs(experiment_id=experiment.id)
    runs = [await world.run(job.run_ids[0]) for job in jobs]
    assert sorted(run.seed for run in runs) == [1, 2, 3]
    assert all(run.job_id == job.id and run.fence == 0 for run, job in zip(runs, jobs, strict=True))
    assert [job.position for job in jobs] == [1, 2, 3]


@both_databases
async def test_the_same_document_gives_the_same_experiment_and_adds_missing_seeds(
    world: World,
) -> None:
    first, _ = await world.submit(seeds=[0, 1])
    again, created = await world.submit(
        make_definition(name="Another name", notes="x"), seeds=[1, 2], by=world.other
    )
    assert not created
    assert again.id == first.id
    assert again.name == first.name
    assert again.runs == {RunState.QUEUED: 3}
    assert len(await world.list_jobs()) == 3


async def test_any_change_of_the_definition_makes_another_experiment(world: World) -> None:
    first, _ = await world.submit()
    other, created = await world.submit(make_definition(loop={"env_steps": 10_001}))
    assert created
    assert other.id != first.id


@both_databases
async def test_fifty_submissions_at_once_make_one_experiment_with_each_seed_once(
    world: World,
) -> None:
    seeds = [[index % 5, index % 5 + 1] for index in range(50)]
    answers = await asyncio.gather(*(world.submit(seeds=pair) for pair in seeds))
    assert len({experiment.id for experiment, _ in answers}) == 1
    assert sum(created for _, created in answers) == 1
    jobs = await world.list_jobs()
    runs = [await world.run(job.run_ids[0]) for job in jobs]
    assert sorted(run.seed for run in runs) == [0, 1, 2, 3, 4, 5]


async def test_the_same_document_in_another_project_is_another_experiment(
    world: World, database: Database
) -> None:
    from app.db.models import ProjectRow, UserRow
    from palestra.contract.names import new_id
    from tests.support.server_fixture import ALL, make_principal

    await world.submit()
    project, user = (
        ProjectRow(id=new_id("prj"), slug="other", name="other"),
        UserRow(id=new_id("usr"), name="carl"),
    )
    async with database.write() as session:
        session.add_all([project, user])
    await world.make_pool("default", project_id=project.id)
    stranger = make_principal(project, user, ALL)
    mine, _ = await world.submit()
    theirs, created = await world.submit(by=stranger)
    assert created
    assert theirs.id == mine.id
    async with database.read() as session:
        listed = await experiment_list.list_experiments(
            session, stranger, experiment_list.ExperimentFilter(), PageRequest()
        )
    assert [item.id for item in listed.items] == [theirs.id]


async def test_experiments_of_other_projects_and_unknown_ones_are_not_found(
    world: World, database: Database
) -> None:
    async with database.read() as session:
        for name in ("exp-0000000000000000", "../etc", "x" * 4_000, ""):
            with pytest.raises(NotFoundError):
                await experiments.get(session, world.admin, name)


@both_databases
async def test_pages_list_every_experiment_once(world: World, database: Database) -> None:
    names = [f"experiment {index % 3}" for index in range(7)]
    for index, name in enumerate(names):
        await world.submit(make_definition(name=name, loop={"env_steps": 100 + index}))
    for sort in ("created_at", "-created_at", "name", "-name"):
        seen, cursor = [], None
        for _ in range(10):
            async with database.read() as session:
                request = PageRequest(limit=2, sort=sort, cursor=cursor)
                page = await experiment_list.list_experiments(
                    session, world.admin, experiment_list.ExperimentFilter(), request
                )
            seen += page.items
            cursor = page.next_cursor
            if cursor is None:
                break
        assert len({item.id for item in seen}) == len(seen) == 7
        keys = [item.name if "name" in sort else item.created_at for item in seen]
        assert keys == sorted(keys, reverse=sort.startswith("-"))


@both_databases
@pytest.mark.parametrize("sort", ["name", "created_at"])
async def test_a_cursor_with_a_value_of_another_kind_is_refused(
    world: World, database: Database, sort: str
) -> None:
    from app.domain.paging import encode_cursor

    value: int | str = 5 if sort == "name" else "five"
    async with database.read() as session:
        request = PageRequest(sort=sort, cursor=encode_cursor(sort, (value,), "x"))
        with pytest.raises(InvalidError):
            await experiment_list.list_experiments(
                session, world.admin, experiment_list.ExperimentFilter(), request
            )


@both_databases
async def test_filters_take_agent_environment_text_state_and_archive(
    world: World, database: Database
) -> None:
    dqn, _ = await world.submit(make_definition(name="Alpha 100%"))
    ppo, _ = await world.submit(
        make_definition(name="Beta", agent={"name": "ppo", "minibatch_size": 64})
    )
    (job,) = await world.list_jobs(experiment_id=ppo.id)
    await world.cancel(job.id)

    async def find_ids(**wanted: object) -> set[str]:
        async with database.read() as session:
            page = await experiment_list.list_experiments(
                session, world.admin, experiment_list.ExperimentFilter(**wanted), PageRequest()
            )
            return {item.id for item in page.items}

    assert await find_ids() == {dqn.id, ppo.id}
    assert await find_ids(agent="ppo") == {ppo.id}
    assert await find_ids(env="CartPole-v1") == {dqn.id, ppo.id}
    assert await find_ids(text="ALPHA") == {dqn.id}
    assert await find_ids(text="%") == {dqn.id}
    assert await find_ids(text="_") == set()
    assert await find_ids(state=RunState.QUEUED) == {dqn.id}
    assert await find_ids(state=RunState.CANCELLED) == {ppo.id}
    async with database.write() as session:
        await experiments.archive(session, world.admin, ppo.id)
    assert await find_ids() == {dqn.id}
    assert await find_ids(archived=True) == {ppo.id}


@both_databases
async def test_an_experiment_lists_why_its_runs_failed(world: World) -> None:
    """Regression: an experiment showed how many runs failed, but no reason."""
    registered = await world.register(slots=8)
    messages = ["The loss is NaN.", "No module named 'x'.", "The loss is NaN.", None]
    runs = []
    for seed, message in enumerate(messages):
        job = await world.submit_one_job(seeds=[seed])
        order = (await world.start(job.id, registered.worker_id, slot=seed)).work_order
        failure = None if message is None else Failure(message=message, traceback="x" * 60_000)
        await world.release(
            order.attempt_id,
            Outcome.FAILED,
            Cause.USER_EXCEPTION if message else Cause.NO_RESULT,
            failure=failure,
        )
        runs.append(job.run_ids[0])
    await world.submit(make_definition(loop={"env_steps": 5}), seeds=[0])
    async with world.database.read() as session:
        page = await experiment_list.list_experiments(
            session, world.admin, experiment_list.ExperimentFilter(), PageRequest()
        )
    fine, failed = page.items
    assert fine.failures == []
    told = [(one.runs, one.cause, one.message, one.run_id) for one in failed.failures]
    assert told[0] == (2, Cause.USER_EXCEPTION, "The loss is NaN.", min(runs[0], runs[2]))
    assert {row[1:] for row in told[1:]} == {
        (Cause.USER_EXCEPTION, "No module named 'x'.", runs[1]),
        (Cause.NO_RESULT, "The attempt ended: no result.", runs[3]),
    }


async def test_an_experiment_lists_at_most_five_failure_reasons(world: World) -> None:
    """Hundreds of runs may fail with different messages."""
    registered = await world.register(slots=8)
    for seed in range(7):
        job = await world.submit_one_job(seeds=[seed])
        order = (await world.start(job.id, registered.worker_id, slot=seed)).work_order
        await world.release(
            order.attempt_id,
            Outcome.FAILED,
            Cause.DIVERGED,
            failure=Failure(message=f"At update {seed}."),
        )
    experiment, _ = await world.submit(seeds=[0])
    assert [one.runs for one in experiment.failures] == [1] * 5


async def test_an_experiment_with_unfinished_jobs_is_not_archived(
    world: World, database: Database
) -> None:
    experiment, _ = await world.submit()
    with pytest.raises(ConflictError) as refused:
        async with database.write() as session:
            await experiments.archive(session, world.admin, experiment.id)
    assert refused.value.code == "experiment_active"


async def test_a_submission_restores_an_archived_experiment(
    world: World, database: Database
) -> None:
    experiment, _ = await world.submit()
    (job,) = await world.list_jobs()
    await world.cancel(job.id)
    async with database.write() as session:
        archived = await experiments.archive(session, world.admin, experiment.id)
    assert archived.archived_at is not None
    again, created = await world.submit(seeds=[0, 9])
    assert not created
    assert again.archived_at is None
    assert again.runs == {RunState.CANCELLED: 1, RunState.QUEUED: 1}


@pytest.mark.parametrize(
    ("document", "code", "words"),
    [
        (
            make_definition(env={"id": "CartPole-v999"}),
            "unknown_environment",
            "did you mean CartPole-v1",
        ),
        (
            make_definition(env={"id": "Pendulum-v0"}),
            "unknown_environment",
            "did you mean Pendulum-v1",
        ),
        (
            make_definition(env={"id": "Pendulum-v1"}),
            "action_space_mismatch",
            "DQN needs Discrete actions, the environment has Box(1)",
        ),
    ],
)
async def test_a_definition_that_no_worker_can_train_is_refused(
    world: World, document: dict[str, object], code: str, words: str
) -> None:
    await world.register()
    with pytest.raises(InvalidError) as refused:
        await world.submit(document)
    assert refused.value.code == code
    assert words in refused.value.detail
    assert await world.list_jobs() == []


async def test_a_job_in_a_pool_without_workers_is_accepted_and_waits_for_one(world: World) -> None:
    job = await world.submit_one_job(resources={"gpus": 8})
    assert job.state is JobState.QUEUED
    assert job.waiting is not None
    assert "palestra worker --pool default" in job.waiting
    await world.register()
    assert "offers 8 GPUs" in ((await world.job(job.id)).waiting or "")


@pytest.mark.parametrize(
    ("gpus", "words"), [(0, "have no GPU each"), (2, "have at most 2 GPUs each")]
)
async def test_more_gpus_than_any_worker_has_are_refused(
    world: World, gpus: int, words: str
) -> None:
    await world.register(gpus=[{"index": one, "name": "g", "memory_mib": 1} for one in range(gpus)])
    run_id = (await world.submit_one_job(seeds=[0])).run_ids[0]
    with pytest.raises(InvalidError) as refused:
        await world.submit(seeds=[1], resources={"gpus": 3})
    assert (refused.value.code, refused.value.pointer) == (
        "too_many_gpus",
        "/options/resources/gpus",
    )
    assert words in refused.value.detail
    with pytest.raises(InvalidError) as refused:
        await world.add_job(run_id, Schedule.TEST, resources={"gpus": 3})
    assert (refused.value.code, refused.value.pointer) == ("too_many_gpus", "/resources/gpus")


async def test_the_size_of_automatic_packs_is_recorded(world: World) -> None:
    await world.register(slots=3)
    made, _ = await world.submit(seeds=list(range(7)), resources={"pack": "auto"})
    jobs = await world.list_jobs()
    assert sorted(len(job.run_ids) for job in jobs) == [1, 3, 3]
    assert {job.resources.pack for job in jobs} == {3}
    again, _ = await world.submit(seeds=list(range(40)), resources={"pack": "auto"})
    assert again.warnings == made.warnings
    assert max(len(job.run_ids) for job in await world.list_jobs()) == 14
    submission = make_submission(seeds=list(range(40)), resources={"pack": "auto"})
    async with world.database.trial() as session:
        plan = await submission_plan.plan(session, world.admin, submission)
    assert list(plan.warnings) == again.warnings


async def test_a_thousand_seeds_are_accepted(world: World) -> None:
    experiment, _ = await world.submit(seeds=list(range(1_000)))
    assert experiment.runs == {RunState.QUEUED: 1_000}


async def test_more_than_a_thousand_seeds_are_refused_with_the_limit(world: World) -> None:
    with pytest.raises(InvalidError, match="at most 1,000 seeds, not 1,001") as refused:
        await world.submit(seeds=list(range(1_001)))
    assert (refused.value.code, refused.value.pointer) == ("too_many_seeds", "/options/seeds")
    assert await world.list_jobs() == []
    submission = make_submission(seeds=list(range(1_001)))
    async with world.database.trial() as session:
        with pytest.raises(InvalidError, match="at most 1,000 seeds, not 1,001"):
            await submission_plan.plan(session, world.admin, submission)


async def test_seeds_and_follow_ups_are_inserted_in_bulk(world: World) -> None:
    """Ten times the seeds take far fewer than ten times the statements."""
    counts = []
    for number, first in ((50, 0), (500, 50)):
        with note_statements(world.database) as statements:
            await world.submit(
                seeds=list(range(first, first + number)), then=["evaluate", "export"]
            )
        counts.append(len(statements))
    assert counts[1] < 3 * counts[0]


async def test_no_statement_of_a_submission_grows_with_its_seeds(world: World) -> None:
    """PostgreSQL's driver parses a statement in half a millisecond for each row of values."""
    longest = []
    for seeds in (2, 90):
        definition = make_definition(loop={"env_steps": seeds})
        with note_statements(world.database) as statements:
            await world.submit(definition, seeds=list(range(seeds)))
        longest.append(max(map(len, statements)))
    assert longest[0] == longest[1], max(statements, key=len)


async def test_rows_that_are_inserted_together_are_returned_as_the_database_holds_them(
    world: World, database: Database
) -> None:
    job = await world.submit_one_job()
    names = [attribute.key for attribute in JobRow.__mapper__.column_attrs]
    async with database.write() as session:
        stored = await session.get_one(JobRow, job.id)
        given = ("project_id", "experiment_id", "schedule", "state", "pool", "priority", "gpus")
        given += ("resources", "limits", "work_order_version", "created_by", "created_at")
        common = {name: getattr(stored, name) for name in (*given, "queued_at")}
        rows = [{**common, "id": new_id("job")} for _ in range(2)]
        inserted = await insert_rows(session, JobRow, rows)
    async with database.read() as session:
        for row in inserted:
            read = await session.get_one(JobRow, row.id)
            assert [getattr(row, name) for name in names] == [getattr(read, name) for name in names]


async def test_the_members_of_a_definition_are_inserted_by_one_statement(world: World) -> None:
    with note_statements(world.database) as statements:
        await world.submit()
    assert sum("INTO definition_members" in statement for statement in statements) == 1


@schema_of_both_databases
@pytest.mark.filterwarnings("ignore:autogenerate skipping metadata-specified expression-based")
def test_the_migrations_make_the_tables_of_the_models(database_url: str) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.runtime.migration import MigrationContext

    from app.db.migrate import _connection

    with _connection(database_url) as connection:
        is_postgresql = database_url.startswith("postgresql")
        context = MigrationContext.configure(
            connection,
            opts={
                "compare_type": is_postgresql,
                # SQLAlchemy reads no sort directions of SQLite's indexes.
                "include_name": lambda name, *_: is_postgresql or name != "ix_jobs_start_order",
                "include_object": lambda _object, name, *_: (
                    is_postgresql or name != "ix_jobs_start_order"
                ),
            },
        )
        assert compare_metadata(context, Base.metadata) == []
        assert read_version(connection) == read_required_version()


@schema_of_both_databases
def test_upgrading_twice_changes_nothing(database_url: str) -> None:
    assert upgrade(database_url) == upgrade(database_url) == read_required_version()


@schema_of_both_databases
def test_a_newer_schema_is_refused(database_url: str) -> None:
    from sqlalchemy import text

    from app.db.migrate import _connection
    from app.db.startup_check import DatabaseStartError

    with _connection(database_url) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        connection.commit()
    try:
        with pytest.raises(DatabaseStartError, match="upgrade Palestra"):
            upgrade(database_url)
    finally:
        with _connection(database_url) as connection:
            connection.execute(
                text("UPDATE alembic_version SET version_num = :head"),
                {"head": read_required_version()},
            )
            connection.commit()


async def test_a_submission_that_cannot_learn_gets_a_warning(world: World) -> None:
    """For example, an agent that makes no update within its budget."""
    first, _ = await world.submit(make_definition(agent={"name": "dqn", "learning_starts": 50_000}))
    assert [(one.code, one.pointer) for one in first.warnings] == [
        ("no_updates", "/definition/agent/learning_starts")
    ]
    fine, _ = await world.submit()
    assert fine.warnings == []


async def test_an_environment_without_a_time_limit_gets_a_warning(world: World) -> None:
    catalogue = make_catalogue()
    cliff = {"id": "CliffWalking-v1", "action_space": {"kind": "discrete", "n": 4}}
    environments = [*catalogue["environments"], cliff]
    await world.register(name="w1", catalogue={**catalogue, "environments": environments})
    made, _ = await world.submit(make_definition(env={"id": "CliffWalking-v1"}))
    assert [(one.code, one.pointer) for one in made.warnings] == [
        ("no_time_limit", "/definition/env/max_episode_steps")
    ]
    limited, _ = await world.submit(
        make_definition(env={"id": "CliffWalking-v1", "max_episode_steps": 200})
    )
    assert limited.warnings == []
    submission = make_submission(make_definition(env={"id": "CliffWalking-v1", "num_envs": 2}))
    async with world.database.trial() as session:
        plan = await submission_plan.plan(session, world.admin, submission)
    async with world.database.read() as session:
        preview = await submission_preview.preview(session, plan)
    assert [one.code for one in preview.warnings] == ["no_time_limit"]


async def test_a_resubmission_lists_the_options_that_were_not_applied(world: World) -> None:
    """Submitting an experiment again with other options does not change its jobs."""
    gpus = [{"index": one, "name": "g", "memory_mib": 1} for one in range(2)]
    await world.register(name="w2", pool="lab", gpus=gpus)
    await world.submit(seeds=[0, 1], priority=3)
    again, created = await world.submit(
        seeds=[0, 1, 2], priority=5, pool="lab", resources={"gpus": 2}
    )
    assert not created
    assert {(one.code, one.pointer) for one in again.warnings} == {
        ("options_not_applied", "/options/pool"),
        ("options_not_applied", "/options/priority"),
        ("options_not_applied", "/options/resources/gpus"),
    }
    (told,) = [one.message for one in again.warnings if one.pointer == "/options/priority"]
    assert (
        "priority 5 was not applied: the run of 2 seeds, 0 the first, is there already, with 3"
        in told
    )
    added = [job for job in await world.list_jobs() if job.pool == "lab"]
    assert [(job.priority, job.resources.gpus) for job in added] == [(5, 2)], (
        "the new seed has them"
    )
    same, _ = await world.submit(seeds=[0, 1], priority=3)
    assert same.warnings == []


async def test_an_experiment_has_the_warnings_of_its_submission(
    world: World,
) -> None:
    """Regression: only the answer to the submission had the warnings."""
    document = make_definition(agent={"name": "dqn", "learning_starts": 20_000})
    submitted, _ = await world.submit(document)
    async with world.database.read() as session:
        read = await experiments.get(session, world.admin, submitted.id)
    assert [one.code for one in read.warnings] == [one.code for one in submitted.warnings] != []


@both_databases
async def test_names_with_letters_beyond_ascii_are_found(world: World) -> None:
    """Regression: lower-casing the text alone hid them on SQLite, in their own spelling too."""
    made, _ = await world.submit(make_definition(name="\u00c9clair Noir"))
    for text in ("\u00c9clair", "\u00c9CLAIR N", "\u00e9clair noir"):
        async with world.database.read() as session:
            wanted = experiment_list.ExperimentFilter(text=text)
            page = await experiment_list.list_experiments(
                session, world.admin, wanted, PageRequest()
            )
        # The letters that PostgreSQL lower-cases are those of the database's locale.
        if text == "\u00c9clair" or world.database.engine.dialect.name == "sqlite":
            assert [item.id for item in page.items] == [made.id], text

"""Projects, service accounts and pools by the dashboard alone, in a real browser."""

import asyncio
import re

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Page, expect
from sqlalchemy import update

from app.db.models import WorkerRow
from app.services.projects import projects
from palestra.contract.projects import ProjectRequest
from palestra.contract.states import Cause, Outcome
from tests.e2e.dashboard_site import PAGE_MARKS, DashboardSite
from tests.support.server_fixture import make_definition, registration
from tests.support.training import make_evaluations, train

pytestmark = [
    pytest.mark.browser,
    # Nothing is summarised: the rivals of an experiment are sought by a series that no run has.
    pytest.mark.page_faults(r"^422 POST /api/v1/statistics:aggregate$"),
    *PAGE_MARKS,
]

END = (Outcome.SUCCEEDED, Cause.BUDGET)


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def site(shared_site: DashboardSite) -> DashboardSite:
    return await shared_site.add_project("management")


@pytest_asyncio.fixture(loop_scope="session")
async def page(site: DashboardSite, close_pages: None) -> Page:
    """The page of an administrator who is logged in."""
    return await site.page("/experiments")


async def _status(page: Page, secret: str) -> int:
    """Returns the status of a request with a token, beside the browser."""
    origin = await page.evaluate("window.location.origin")
    async with httpx.AsyncClient(base_url=origin) as client:
        answer = await client.get(
            "/api/v1/experiments?project=motion-lab",
            headers={"authorization": f"Bearer {secret}"},
        )
    return answer.status_code


async def test_a_project_gets_a_service_account_and_is_deleted_and_restored(page: Page) -> None:
    await page.get_by_role("button", name="Account", exact=True).click()
    await page.get_by_role("menuitem", name="Administration").click()
    await page.get_by_role("link", name="Projects", exact=True).click()
    await page.get_by_role("button", name="New project").click()
    await page.get_by_label("Name", exact=False).first.fill("Motion Lab")
    await page.get_by_role("button", name="Create", exact=True).click()
    await page.wait_for_url("**/p/motion-lab/members")

    await page.get_by_role("link", name="Service accounts").click()
    await expect(page.get_by_text("No service account yet")).to_be_visible()
    await page.get_by_role("button", name="New service account").click()
    await page.get_by_placeholder("motion-lab-ci").fill("motion-lab-ci")
    await page.get_by_role("button", name="Create", exact=True).click()
    await page.get_by_role("button", name="New token").click()
    await page.get_by_placeholder("nightly pipeline").fill("nightly")
    await page.get_by_role("button", name="Create", exact=True).click()
    secret = await page.get_by_title("Secret", exact=True).inner_text()
    assert await _status(page, secret) == 200
    await page.get_by_role("button", name="I have copied it").click()
    await expect(page.get_by_text(secret)).to_have_count(0)
    await page.get_by_role("button", name="Revoke nightly").click()
    await page.get_by_role("button", name="Revoke", exact=True).click()
    await expect(page.get_by_text("No token is valid")).to_be_visible()
    assert await _status(page, secret) == 401

    await page.get_by_role("link", name="Settings", exact=True).click()
    await page.get_by_label("Storage limit", exact=True).fill("1.5")
    await page.get_by_role("button", name="Change the limit").click()
    await expect(page.get_by_text("used of 1.5 GiB")).to_be_visible()
    await page.get_by_role("button", name="Archive", exact=True).click()
    await page.get_by_role("button", name="Delete…").click()
    await page.get_by_label("Type the slug").fill("motion-lab")
    await page.get_by_role("button", name="Delete the project").click()
    await page.wait_for_url("**/admin/projects")
    deleted = page.get_by_role("table", name="Deleted projects")
    await expect(deleted).to_contain_text(re.compile(r"in (29|30) d"))
    await deleted.get_by_role("button", name="Restore Motion Lab").click()
    await expect(page.get_by_role("table", name="Archived projects")).to_contain_text("Motion Lab")
    await expect(deleted).to_have_count(0)


@pytest.mark.page_faults(r"^409 DELETE /api/v1/pools/gpu$")
async def test_a_pool_gets_a_worker_by_the_token_that_the_page_shows(
    site: DashboardSite, page: Page
) -> None:
    await page.goto("/workers")
    await page.get_by_role("link", name="Manage pools").click()
    await page.get_by_role("button", name="New pool").click()
    await page.get_by_label("Name", exact=False).first.fill("gpu")
    await page.get_by_label("Maximum wall time").fill("72")
    await page.get_by_role("button", name="Create", exact=True).click()
    await page.wait_for_url("**/admin/pools/gpu")
    await expect(page.get_by_text("The pool admits no project")).to_be_visible()
    await page.get_by_placeholder("Another project").click()
    await page.get_by_role("option", name="default").click()
    await page.get_by_role("button", name="Admit").click()
    await expect(page.get_by_role("table", name="Admitted projects")).to_contain_text("default")

    await page.get_by_role("button", name="New token").click()
    await page.get_by_placeholder("rack 3").fill("rack 3")
    await page.get_by_role("button", name="Create", exact=True).click()
    command = await page.get_by_title("Secret", exact=True).inner_text()
    assert "palestra worker --server http" in command
    secret = command.split("'")[3]
    await page.get_by_role("button", name="I have copied it").click()
    origin = await page.evaluate("window.location.origin")
    async with httpx.AsyncClient(base_url=origin) as client:
        answer = await client.post(
            "/api/v1/workers",
            headers={"authorization": f"Bearer {secret}"},
            json=registration(name="rack3-a", pool=None).model_dump(mode="json"),
        )
    assert answer.status_code == 201, answer.text
    async with site.served.database.write() as session:
        # Nobody sends heartbeats for it: however long the page takes, it stays alive.
        is_registered = WorkerRow.name == "rack3-a"
        await session.execute(update(WorkerRow).where(is_registered).values(silent_seconds=86_400))
    workers = page.get_by_role("table", name="Workers of the pool")
    await expect(workers).to_contain_text("rack3-a")
    await page.get_by_role("button", name="Actions on rack3-a").click()
    drain = page.get_by_role("menuitem", name=re.compile("^Drain"))
    for _ in range(2):
        await page.wait_for_event("response", lambda one: one.url.endswith("/api/v1/workers"))
    await expect(drain).to_be_visible()
    await page.keyboard.press("Escape")

    await page.get_by_role("button", name="Pause…").click()
    await page.get_by_placeholder("Driver update").fill("Power cut at noon")
    await page.get_by_role("button", name="Pause", exact=True).click()
    await expect(page.get_by_role("button", name="Resume")).to_be_visible()
    await page.goto("/workers")
    await expect(page.get_by_role("status")).to_contain_text("Power cut at noon")
    await page.goto("/admin/pools/gpu")
    await page.get_by_role("button", name="Delete…").click()
    await page.get_by_role("button", name="Delete", exact=True).click()
    await expect(page.get_by_role("alert")).to_contain_text("The pool has 1 live worker and")


@pytest.mark.page_faults(r"^404 GET /api/v1/experiments/")
async def test_an_experiment_is_moved_and_another_page_that_shows_it_follows(
    site: DashboardSite, page: Page
) -> None:
    world = site.world
    worker = (await world.register(name="mover")).worker_id
    experiment, _ = await world.submit(make_definition(name="Reference", loop={"env_steps": 1_003}))
    (job,) = await world.list_jobs(experiment_id=experiment.id)
    async with site.served.database.write() as session:
        await projects.create(session, world.admin, ProjectRequest(name="Archive of papers"))
    address = f"/p/management/experiments/{experiment.id}"
    await page.goto(address)
    await page.get_by_role("button", name="More actions").click()
    move = page.get_by_role("menuitem", name="Move to another project…")
    await move.hover()
    await expect(page.get_by_role("tooltip")).to_contain_text("1 run of it must end first")
    await page.keyboard.press("Escape")
    run = await train(world, job, (worker, 0), make_evaluations(401.9), END)

    other = await site.page(address)
    await expect(other.get_by_role("heading", name="Reference")).to_be_visible()
    await page.reload()
    await page.get_by_role("button", name="More actions").click()
    await move.click()
    # The message of the other page goes away by itself.
    message = other.get_by_text("This experiment was moved to Archive of papers")
    shown = asyncio.create_task(message.wait_for())
    await page.get_by_role("button", name="Move the experiment").click()
    await shown
    await other.wait_for_url(f"**/p/archive-of-papers/experiments/{experiment.id}")
    await page.wait_for_url(f"**/p/archive-of-papers/experiments/{experiment.id}")
    await expect(page.get_by_role("heading", name="Reference")).to_be_visible()
    await expect(page.get_by_title("Over the latest evaluation of each run")).to_contain_text(
        "401.9"
    )
    await expect(other.get_by_role("heading", name="Reference")).to_be_visible()
    await other.goto(f"/p/management/runs/{run}")
    await other.wait_for_url(f"**/p/archive-of-papers/runs/{run}")

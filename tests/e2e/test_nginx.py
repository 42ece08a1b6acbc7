"""Palestra below a path behind a real nginx: documented, and with nginx's defaults."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from playwright.async_api import Browser, Page, expect

from tests.e2e.conftest import QUICK, make_own_project, make_short_directory
from tests.e2e.curve_points import wait_for_points
from tests.e2e.dashboard_site import PAGE_MARKS, open_page
from tests.e2e.run_history import make_slow_definition, release_brake, wait_for_success
from tests.support.nginx import Nginx
from tests.support.process_stack import REPOSITORY, Stack, find_free_port
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.processes, pytest.mark.browser, *PAGE_MARKS]

LARGE = [512, 512]
"""Hidden sizes of a network whose weights take more than 1 MiB."""
MIB = 2**20


@pytest.fixture(scope="module")
def published(migrated_sqlite: Path) -> Iterator[tuple[Stack, Nginx]]:
    """A stack whose server is reached below a path of nginx, which tests run."""
    with make_short_directory() as directory:
        site = directory / "site"
        site.mkdir()
        shutil.copy(REPOSITORY / "tests" / "support" / "slow_pole.py", site)
        nginx = Nginx(directory, find_free_port(), "/palestra")
        nginx.make_certificate()
        settings = {**QUICK, **nginx.trust, "PALESTRA_PUBLIC_URL": nginx.url}
        worker = {"PYTHONPATH": str(site)}
        stack = Stack(directory, settings=settings, worker=worker, template=migrated_sqlite)
        stack.worker_options = ["--import", "slow_pole"]
        stack.worker_url = stack.command_url = nginx.url
        with nginx.run_documented(stack.port):
            stack.__enter__()
        try:
            yield stack, nginx
        finally:
            stack.__exit__()


@pytest.fixture
def project(
    published: tuple[Stack, Nginx], monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Stack, Nginx]]:
    """The same with a project of this test alone, for commands that trust the certificate."""
    shared, nginx = published
    for name, value in nginx.trust.items():
        monkeypatch.setenv(name, value)
    with make_own_project(shared) as stack:
        stack.login_url = stack.login_url.replace(stack.url, nginx.url)
        yield stack, nginx


def _submit(stack: Stack, name: str, **changes: Any) -> str:
    """Submits a slow training with large snapshots by the command; returns the run's ID."""
    definition = make_slow_definition(stack, 1_000, name=name, **changes)
    definition["agent"]["hidden_sizes"] = LARGE
    file = stack.directory / "definition.yaml"
    file.write_text(yaml.safe_dump({"definition": definition}))
    stack.run_palestra("submit", str(file), "--seeds", "0")
    (run,) = stack.get("runs")["items"]
    return str(run["id"])


async def _open_run(browser: Browser, stack: Stack, nginx: Nginx, run_id: str) -> Page:
    """Logs a browser in by the stack's link and opens the page of a run."""
    page = await open_page(browser, nginx.url)
    await page.goto(stack.login_url)
    await expect(page.get_by_role("navigation").first).to_be_visible()
    await page.goto(f"{nginx.url}/runs/{run_id}")
    return page


async def test_with_the_documented_configuration_everything_works_below_a_path(
    browser: Browser, project: tuple[Stack, Nginx]
) -> None:
    stack, nginx = project
    with nginx.run_documented(stack.port):
        run_id = _submit(stack, "behind the documented nginx")
        page = await _open_run(browser, stack, nginx, run_id)
        seen = await wait_for_points(page, run_id, 3)
        assert page.url.startswith(f"{nginx.url}/p/")
        assert {cookie["name"] for cookie in await page.context.cookies()} == {
            "__Secure-palestra_session+palestra",
            "__Secure-palestra_device+palestra",
        }
        await page.reload()
        await wait_for_points(page, run_id, seen + 3)
        await expect(page.get_by_test_id("live-badge")).to_have_attribute("data-state", "live")
        # Nothing of it is left to load when its nginx ends.
        await page.context.close()
        release_brake(stack)
        await asyncio.to_thread(wait_for_success, stack, run_id)
        files = stack.get(f"runs/{run_id}/artifacts")["items"]
        assert any(one["size"] > MIB and one["stored"] for one in files)
        link = stack.run_palestra("users", "invite", "--display-name", "Ada")
        assert f"{nginx.url}/login#code=" in link


async def test_with_the_defaults_of_nginx_pages_are_live_and_a_large_upload_waits(
    browser: Browser, project: tuple[Stack, Nginx]
) -> None:
    stack, nginx = project
    with nginx.run_with_defaults(stack.port):
        run_id = _submit(stack, "behind nginx with its defaults")
        page = await _open_run(browser, stack, nginx, run_id)
        await wait_for_points(page, run_id, 3)
        await expect(page.get_by_test_id("live-badge")).to_have_attribute("data-state", "live")
        assert await asyncio.to_thread(_poll, stack, nginx)
        release_brake(stack)
        held = await asyncio.to_thread(_wait_for_pending_upload, stack, run_id)
        assert "client_max_body_size" in held["problem"]
        await expect(page.get_by_text("client_max_body_size").first).to_be_visible()
        assert "client_max_body_size" in stack.run_palestra("show", run_id)
        await page.context.close()
    with nginx.run_documented(stack.port):
        done = await asyncio.to_thread(wait_for_success, stack, run_id)
        assert done["not_uploaded"] is None
        files = stack.get(f"runs/{run_id}/artifacts")["items"]
        assert files
        assert all(one["stored"] for one in files)


def _poll(stack: Stack, nginx: Nginx) -> list[Any]:
    """Returns the next events of all runs, for which the server waits."""
    subscription = {"project": None, "runs": [], "experiments": [], "types": [], "after": None}
    headers = {"Authorization": f"Bearer {stack.tokens['user']}"}
    with httpx.Client(verify=False, trust_env=False, timeout=60) as client:
        answer = client.post(
            f"{nginx.url}/api/v1/events:poll",
            json={"subscriptions": [subscription], "wait": 25},
            headers=headers,
        )
    return list(answer.raise_for_status().json()["events"])


def _wait_for_pending_upload(stack: Stack, run_id: str) -> dict[str, Any]:
    def find() -> dict[str, Any] | None:
        held = stack.get(f"runs/{run_id}")["not_uploaded"]
        return held if held and held["delivering"] and held["problem"] else None

    return wait_for(find, "the run waits for its upload")

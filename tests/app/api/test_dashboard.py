"""Serving the dashboard: its files, one HTML page for every address, and no other file of the
disk.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from app.main import create_app
from app.settings import Settings


@pytest.fixture
def app(tmp_path: Path) -> FastAPI:
    dist = tmp_path / "dist"
    (dist / "assets").mkdir(parents=True)
    (dist / "index.html").write_text("<title>Palestra</title>")
    (dist / "assets" / "app-1.js").write_text("go()")
    (tmp_path / "secret.txt").write_text("secret")
    return create_app(Settings(dashboard_dir=dist, data_dir=tmp_path))


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://localhost"
    ) as opened:
        yield opened


async def test_every_page_of_the_dashboard_is_the_same_html_document(
    client: httpx.AsyncClient,
) -> None:
    for path in (
        "/",
        "/login",
        "/experiments/",
        "/p/alpha/runs/run_1",
        "/admin/audit",
        "/index.html",
    ):
        answer = await client.get(path)
        assert (answer.status_code, answer.text) == (200, "<title>Palestra</title>")
        assert answer.headers["cache-control"] == "no-cache"
    assert (await client.head("/")).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/metrics",
        "/nowhere",
        "/runs/run_1/more",
        "/run/",
        "/loginx",
        "/experiments/a/b",
        "//login",
    ],
)
async def test_an_unknown_address_is_not_found(client: httpx.AsyncClient, path: str) -> None:
    """Regression: `/metrics` answered 200 with the dashboard's HTML, which a monitoring program
    reads as metrics.
    """
    url = httpx.URL("http://localhost", raw_path=path.encode())
    for accept in ("*/*", "application/json", "text/plain;version=0.0.4"):
        answer = await client.get(url, headers={"Accept": accept})
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    page = await client.get(url, headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    assert (page.status_code, page.text) == (404, "<title>Palestra</title>"), (
        "a browser gets the dashboard's not-found page"
    )
    assert (await client.head(url)).status_code == 404


async def test_files_are_served_as_immutable(client: httpx.AsyncClient) -> None:
    answer = await client.get("/assets/app-1.js")
    assert answer.text == "go()"
    assert answer.headers["content-type"].startswith("text/javascript")
    assert "immutable" in answer.headers["cache-control"]


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/..%2fsecret.txt",
        "/assets/../../secret.txt",
        "/%2e%2e/secret.txt",
        "//etc/passwd",
    ],
)
async def test_no_file_outside_the_build_is_served(client: httpx.AsyncClient, path: str) -> None:
    assert (
        "secret"
        not in (await client.get(httpx.URL("http://localhost", raw_path=path.encode()))).text
    )


async def test_unknown_api_paths_and_posts_are_not_answered_with_the_page(
    client: httpx.AsyncClient,
) -> None:
    unknown = await client.get("/api/v2/runs")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found")
    posted = await client.post("/login")
    assert (posted.status_code, posted.headers["allow"]) == (405, "GET, HEAD")


async def test_without_a_build_the_page_says_how_to_make_one(tmp_path: Path) -> None:
    app = create_app(Settings(dashboard_dir=tmp_path / "none", data_dir=tmp_path))
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://localhost"
    ) as client:
        answer = await client.get("/")
    assert answer.status_code == 404
    assert "not built" in answer.text


async def test_unknown_files_are_not_sought_on_the_disk(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: each of them listed the folder of the build, for whoever asked."""

    def seek(*_: object) -> None:
        pytest.fail("the folder is listed")

    monkeypatch.setattr(Path, "rglob", seek)
    for path in ("/assets/x.js", "/assets/app-1.js.br", "/x", "/"):
        await client.get(path)


async def test_a_build_under_a_running_server_is_served(
    client: httpx.AsyncClient, tmp_path: Path
) -> None:
    await client.get("/")
    assets = tmp_path / "dist" / "assets"
    missing = await client.get("/assets/app-2.js")
    assert (missing.status_code, "<title>" in missing.text) == (404, False)
    (assets / "app-1.js").unlink()
    (assets / "app-2.js").write_text("new()")
    assert (await client.get("/assets/app-2.js")).text == "new()"
    assert (await client.get("/assets/app-1.js")).status_code == 404
    (tmp_path / "dist" / "index.html").unlink()
    assert "not built" in (await client.get("/runs/run_1")).text

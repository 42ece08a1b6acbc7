"""A server below a path of its host, as in `https://example.org/palestra`."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from fastapi.routing import iter_route_contexts
from starlette.types import Receive, Scope, Send

from app.api import dashboard
from app.db.engine import Database
from app.main import create_app
from app.services.access import logins
from app.settings import RESERVED_SEGMENTS, Settings
from palestra.contract.access import SetupRequest
from palestra.sign_in import InvitationLink
from tests.app.api.serving import AppServer, serve
from tests.support.server_fixture import make_definition

HOST = "https://127.0.0.1"
PATH = "/palestra"
INDEX = '<meta content="./"><script src="./assets/app-1.js"></script>'

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def published(
    module_database_url: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[AppServer]:
    """A server below a path, with a small dashboard."""
    directory = tmp_path_factory.mktemp("data")
    dist = directory / "dist"
    (dist / "assets").mkdir(parents=True)
    (dist / "index.html").write_text(INDEX)
    (dist / "assets" / "app-1.js").write_text("go()")
    settings = {"public_url": HOST + PATH, "dashboard_dir": dist}
    async with serve(module_database_url, directory, **settings) as served:
        yield served


def _open(served: AppServer, path: str = PATH, token: str = "") -> httpx.AsyncClient:
    headers = {"Authorization": f"Bearer {served.tokens[token]}"} if token else {}
    transport = httpx.ASGITransport(served.app)
    return httpx.AsyncClient(transport=transport, base_url=HOST + path, headers=headers)


async def _make_code(database: Database, user_id: str) -> str:
    async with database.write() as session:
        return await logins.make_link(session, user_id, 3_600)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/p/lab/runs/run_1"),
        ("GET", "/nowhere"),
        ("GET", "/assets/app-1.js"),
        ("HEAD", "/assets/app-1.js"),
        ("GET", "/readyz"),
        ("GET", "/api/v1/jobs"),
        ("HEAD", "/api/v1/jobs"),
        ("HEAD", "/api/v1/events"),
        ("DELETE", "/api/v1/jobs"),
        ("GET", "/api/v1/nothing"),
        ("POST", "/login"),
    ],
)
async def test_answers_are_the_same_whether_a_proxy_passes_the_path_on_or_removes_it(
    published: AppServer, method: str, path: str
) -> None:
    answers = []
    for below in (PATH, ""):
        async with _open(published, below, "user") as client:
            answer = await client.request(method, path)
        headers = {name: text for name, text in answer.headers.items() if name != "x-request-id"}
        body = answer.text if "x-request-id" not in answer.text else ""
        body = body if "request_id" not in body else json.loads(body)["code"]
        answers.append((answer.status_code, headers, body))
    assert answers[0] == answers[1]


async def test_the_page_names_the_path_and_its_files_below_it(published: AppServer) -> None:
    async with _open(published) as client:
        for path in ("", "/", "/login", "/p/lab/runs/run_1"):
            answer = await client.get(HOST + PATH + path)
            assert answer.status_code == 200
            assert answer.text == INDEX.replace("./", f"{PATH}/")
        assert (await client.get("/assets/app-1.js")).text == "go()"
        beside = await client.get(f"{HOST}{PATH}x/login")
    assert (beside.status_code, beside.json()["code"]) == (404, "not_found")
    assert f"{PATH}/api/v1" in beside.json()["detail"]


async def test_at_the_root_the_page_names_its_files_from_the_root(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(INDEX)
    app = create_app(Settings(dashboard_dir=tmp_path, data_dir=tmp_path))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        assert (await client.get("/login")).text == INDEX.replace("./", "/")


@pytest.mark.parametrize(
    ("public_url", "name", "attributes"),
    [
        ("", "palestra_session", {"Path=/"}),
        (HOST, "__Host-palestra_session", {"Path=/", "Secure"}),
        (f"{HOST}/a", "__Secure-palestra_session+a", {"Path=/a", "Secure"}),
        (f"{HOST}/a/b.c", "__Secure-palestra_session+a+b.c", {"Path=/a/b.c", "Secure"}),
        ("http://127.0.0.1/a", "palestra_session+a", {"Path=/a"}),
    ],
)
async def test_path_and_name_of_a_cookie_have_the_path(
    published: AppServer, public_url: str, name: str, attributes: set[str]
) -> None:
    """`__Host-` permits no other path than `/` (RFC 6265bis, section 4.1.3.2)."""
    state, settings = published.app.state, published.app.state.settings
    code = await _make_code(published.database, published.world.admin.user_id)
    state.settings = settings.model_copy(update={"public_url": public_url})
    try:
        async with _open(published) as client:
            answer = await client.post("/api/v1/session:redeem", json={"code": code})
    finally:
        state.settings = settings
    session, device = answer.headers.get_list("set-cookie")
    named, *sent = session.split("; ")
    assert named.partition("=")[0] == name
    assert {one for one in sent if one.startswith(("Path", "Secure"))} == attributes
    assert device.startswith(name.replace("session", "device") + "=")


async def test_servers_below_different_paths_of_a_host_keep_their_logins(
    published: AppServer, module_database_url: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """One of them is at the root, so that its cookies are sent to the other one too."""
    settings = Settings(public_url=HOST, data_dir=tmp_path_factory.mktemp("root"))
    root = create_app(settings)
    root.state.database = published.database

    async def host(scope: Scope, receive: Receive, send: Send) -> None:
        app = published.app if scope["path"].startswith(PATH) else root
        await app(scope, receive, send)

    transport = httpx.ASGITransport(host)
    async with httpx.AsyncClient(transport=transport, base_url=HOST) as browser:
        csrf = {}
        for path in ("", PATH):
            code = await _make_code(published.database, published.world.admin.user_id)
            answer = await browser.post(f"{path}/api/v1/session:redeem", json={"code": code})
            csrf[path] = answer.json()["csrf_token"]
        for path in ("", PATH):
            answer = await browser.get(f"{path}/api/v1/session")
            assert answer.json()["csrf_token"] == csrf[path]
        headers = {"Origin": HOST, "X-CSRF-Token": csrf[PATH]}
        ended = await browser.delete(f"{PATH}/api/v1/session", headers=headers)
        assert ended.status_code == 204
        statuses = [
            (await browser.get(f"{path}/api/v1/session")).status_code for path in ("", PATH)
        ]
    assert statuses == [200, 401]


async def test_links_locations_and_the_openapi_document_have_the_path(
    published: AppServer,
) -> None:
    async with _open(published, token="user") as client:
        body = {"definition": make_definition(), "options": {"seeds": [901]}}
        made = await client.post("/api/v1/experiments", json=body)
        assert made.status_code in {200, 201}, made.text
        assert made.headers["location"].startswith(f"{PATH}/api/v1/experiments/")
        read = await client.get(HOST + made.headers["location"])
        assert read.json()["id"] == made.json()["id"]
        document = (await client.get("/api/v1/openapi.json")).json()
        assert document["servers"] == [{"url": PATH}]
        invited = await client.post(
            "/api/v1/users:invite", json={"invitations": [{"display_name": "Ada"}]}
        )
        link = invited.json()["items"][0]["url"]
    assert link.startswith(f"{HOST}{PATH}/login#code=")
    place = InvitationLink.read(link)
    assert place.server == HOST + PATH
    async with _open(published) as client:
        request = SetupRequest(code=place.code, check_only=True)
        asked = await client.post(
            "/api/v1/session:redeem",
            content=request.model_dump_json(),
            headers={"Content-Type": "application/json"},
        )
    assert asked.status_code == 200, asked.text


@pytest.mark.parametrize(
    ("origin", "status"), [(HOST, 201), ("https://127.0.0.1:8443", 403), ("https://evil.test", 403)]
)
async def test_a_page_may_log_in_through_a_proxy_that_replaces_the_host_header(
    published: AppServer, origin: str, status: int
) -> None:
    """nginx does so by default."""
    code = await _make_code(published.database, published.world.admin.user_id)
    headers = {"Origin": origin, "Host": "localhost:8080", "Sec-Fetch-Site": "same-origin"}
    async with _open(published) as client:
        answer = await client.post("/api/v1/session:redeem", json={"code": code}, headers=headers)
    assert answer.status_code == status
    assert status == 201 or "public_url" in answer.json()["detail"]


async def test_a_path_cannot_begin_as_one_of_the_servers_own_paths(tmp_path: Path) -> None:
    """Else a path that a proxy has removed from requests would be removed twice."""
    app = create_app(Settings(data_dir=tmp_path))
    routes = [context.path or "" for context in iter_route_contexts(app.routes)]
    pages = json.loads(Path(dashboard.__file__).with_name("dashboard_pages.json").read_text())
    public = Path(__file__).parents[3] / "frontend" / "public"
    files = ["/assets", "/index.html", *(f"/{file.name}" for file in public.iterdir())]
    firsts = {path.split("/")[1] for path in [*routes, *pages, *files]} - {""}
    assert firsts == RESERVED_SEGMENTS

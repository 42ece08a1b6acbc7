"""How a request meets its route: paths and methods that no route has, and dependencies once."""

import pytest
from starlette.routing import Match

from app.api import health, v1
from app.api.resource_router import ResourceRouter
from tests.app.api.serving import AppServer
from tests.support.statements import note_statements

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_request_looks_its_caller_up_once(shared: AppServer) -> None:
    """The tree of dependencies has authentication in three branches."""
    with note_statements(shared.database) as noted:
        async with shared.client("user") as client:
            answer = await client.get("/api/v1/runs", params={"limit": "1"})
    assert answer.status_code == 200
    assert len([one for one in noted if "FROM tokens" in one]) == 1


async def test_a_path_that_no_route_has_is_the_dashboards(shared: AppServer) -> None:
    async with shared.client("user") as client:
        for path in ("/api/v1/nothing", "/api/v1/runs/x/y/z", "/api/v1/runs/", "/api/v1"):
            answer = await client.get(path)
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), path


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"])
async def test_a_request_without_a_credential_is_refused_before_a_route_is_looked_for(
    shared: AppServer, method: str
) -> None:
    async with shared.client("anonymous") as client:
        answers = [
            await client.request(method, path)
            for path in ("/api/v1/nothing", "/api/v1/runs/x", "/api/v1/runs:x", "/api/v1/")
        ]
    assert {answer.status_code for answer in answers} == {401}
    assert {answer.headers["www-authenticate"] for answer in answers} == {'Bearer realm="palestra"'}


@pytest.mark.parametrize("path", ["/api/v1/nothing", "/api/v1/jobs"])
async def test_other_methods_are_refused_without_a_look_at_the_path(
    shared: AppServer, path: str
) -> None:
    async with shared.client("anonymous") as client:
        answer = await client.options(path)
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
    assert answer.headers["allow"] == "DELETE, GET, HEAD, PATCH, POST, PUT"


async def test_routers_pass_over_paths_of_other_resources(shared: AppServer) -> None:
    """Each route has a path that its router does not pass over, whatever its parameters are."""
    included = {id(router): router for router in _list_routers()}
    assert len(included) > 25
    for router in included.values():
        for route in router.routes:
            path = getattr(route, "path", "").replace("{", "a:b{")
            assert router._resources.search(f"/api/v1{path}"), path
        assert router.matches({"type": "http", "method": "GET", "path": "/none"}) == (
            Match.NONE,
            {},
        )


def _list_routers() -> list[ResourceRouter]:
    names = ("router", "limited_router", "public_router")
    found = [getattr(module, name, None) for module in (health, *v1.PARTS) for name in names]
    return [router for router in found if isinstance(router, ResourceRouter)]

"""Clients hold contents of artifacts, and ask each time whether they may and whether it is new."""

import hashlib

import pytest

from app.api import download
from tests.app.api.serving import AppServer

pytestmark = pytest.mark.asyncio(loop_scope="module")


def make_tag(content: str) -> str:
    return f'"{hashlib.sha256(content.encode()).hexdigest()}"'


@pytest.mark.parametrize("form", ["{}", "W/{}", '"other", {}', "*"])
async def test_a_content_that_the_client_has_is_not_read_again(
    shared: AppServer, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = f"held {form}"
    path = await shared.store_artifact(f"held-{len(form)}.bin", content)
    monkeypatch.setattr(download, "_read", None)
    headers = {"If-None-Match": form.format(make_tag(content)), "Range": "bytes=0-1"}
    async with shared.client("user") as client:
        answer = await client.get(path, headers=headers)
    assert (answer.status_code, answer.content) == (304, b"")
    assert answer.headers["etag"] == make_tag(content)
    assert answer.headers["cache-control"] == "private, no-cache"


@pytest.mark.parametrize("held", ["", make_tag("older"), make_tag("newer").strip('"'), "x" * 4_000])
async def test_another_content_is_sent(shared: AppServer, held: str) -> None:
    content = f"newer {held}"
    path = await shared.store_artifact(f"other-{hash(held)}.bin", content)
    async with shared.client("user") as client:
        answer = await client.get(path, headers={"If-None-Match": held})
    assert (answer.status_code, answer.text) == (200, content)
    assert answer.headers["cache-control"] == "private, no-cache"


async def test_a_content_is_not_sent_without_a_login_whatever_the_client_has(
    shared: AppServer,
) -> None:
    path = await shared.store_artifact("private.bin", "private")
    for who, status in (("anonymous", 401), ("foreign", 404), ("revoked", 401)):
        async with shared.client(who) as client:
            answer = await client.get(path, headers={"If-None-Match": make_tag("private")})
        assert answer.status_code == status

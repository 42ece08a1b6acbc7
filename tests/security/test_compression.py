"""Compression of large answers; answers that contain a secret are not compressed."""

import gzip
import os
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path

import brotli
import httpx
import pytest
import zstandard
from starlette.responses import JSONResponse

from app.api.accepted_codings import choose_coding
from app.api.compression import Compression
from app.main import create_app
from app.services.telemetry import batches
from app.settings import Settings
from tests.app.api.serving import AppServer
from tests.support.records import make_delivery, make_points

DIST = Settings.model_fields["dashboard_dir"].default
MANY_RUNS = 120
BROTLI = brotli.compress(b"any text")


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    dist = tmp_path / "dist"
    (dist / "assets").mkdir(parents=True)
    for name in ("index.html", "assets/app-1.js", "assets/old-1.js", "assets/plain-1.js"):
        (dist / name).write_text(name * 500)
    for name in ("index.html", "assets/app-1.js", "assets/old-1.js"):
        (dist / f"{name}.gz").write_bytes(gzip.compress(name.encode() * 500))
    (dist / "assets" / "app-1.js.br").write_bytes(BROTLI)
    stale = time.time() - 1_000
    os.utime(dist / "assets" / "old-1.js.gz", (stale, stale))
    app = create_app(Settings(dashboard_dir=dist, data_dir=tmp_path))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as opened:
        opened.headers["Accept-Encoding"] = "gzip, deflate"
        yield opened


@pytest.mark.parametrize(
    ("path", "accepted", "coding", "varies"),
    [
        ("/assets/app-1.js", "gzip", "gzip", True),
        ("/assets/app-1.js", "identity", None, True),
        ("/assets/app-1.js", "gzip;q=0", None, True),
        ("/login", "gzip, br;q=0", None, False),
        ("/assets/old-1.js", "gzip", None, False),
        ("/assets/plain-1.js", "gzip, br", None, False),
    ],
)
async def test_a_file_is_sent_in_an_encoding_that_the_client_accepts(
    client: httpx.AsyncClient, path: str, accepted: str, coding: str | None, *, varies: bool
) -> None:
    answer = await client.get(path, headers={"Accept-Encoding": accepted})
    assert answer.status_code == 200
    assert answer.headers.get("content-encoding") == coding
    assert (answer.headers.get("vary") == "Accept-Encoding") is varies
    assert answer.headers["etag"]
    assert answer.headers["content-type"].startswith(("text/javascript", "text/html"))
    assert answer.text.startswith(("index.html", "assets/"))


async def test_brotli_is_preferred_and_compressed_copies_have_no_url(
    client: httpx.AsyncClient,
) -> None:
    request = client.build_request(
        "GET", "/assets/app-1.js", headers={"Accept-Encoding": "gzip, br"}
    )
    answer = await client.send(request, stream=True)
    assert answer.headers["content-encoding"] == "br"
    assert b"".join([part async for part in answer.aiter_raw()]) == BROTLI
    plain = await client.get("/assets/app-1.js", headers={"Accept-Encoding": "identity"})
    assert plain.headers["etag"] != answer.headers["etag"]
    held = {"Accept-Encoding": "identity", "If-None-Match": plain.headers["etag"]}
    again = await client.get("/assets/app-1.js", headers=held)
    assert (again.status_code, again.content) == (304, b"")
    held = {"Accept-Encoding": "gzip, br", "If-None-Match": plain.headers["etag"]}
    assert (await client.get("/assets/app-1.js", headers=held)).status_code == 200
    for path in ("/assets/app-1.js.br", "/assets/app-1.js.gz", "/index.html.gz"):
        assert (await client.get(path)).status_code == 404


def test_the_build_has_compressed_copies_of_large_files() -> None:
    """Regression: the first page load transferred 1.2 to 1.5 MB."""
    large = [
        file
        for file in DIST.rglob("*")
        if file.suffix in {".js", ".css"} and file.stat().st_size > 1_024
    ]
    assert len(large) >= 2
    for file in large:
        assert gzip.decompress(Path(f"{file}.gz").read_bytes()) == file.read_bytes()
        assert Path(f"{file}.br").stat().st_size < Path(f"{file}.gz").stat().st_size
    page = DIST / "index.html"
    loaded = [
        page,
        *(DIST / name for name in re.findall(r'(?:src|href)="./(assets/[^"]+)"', page.read_text())),
    ]
    assert {file.suffix for file in loaded} == {".html", ".js", ".css"}
    sent = [Path(f"{file}.br") if file in large else file for file in loaded]
    assert sum(file.stat().st_size for file in sent) < 300_000


@pytest.mark.asyncio(loop_scope="module")
async def test_large_answers_are_compressed(shared: AppServer) -> None:
    """The curves of 120 seeds are 2.9 MB uncompressed."""
    run, attempt = shared.names["live_run"], shared.names["live_attempt"]
    async with shared.database.write() as session:
        for index in range(10):
            batch = [
                make_points(
                    run,
                    f"curve-{index}",
                    range(0, 20_000, 20),
                    [i * 0.37 % 11 for i in range(1_000)],
                )
            ]
            await batches.take(session, make_delivery(attempt, 4 + index, batch))
    select = [{"run_id": run, "series": f"curve-{index % 10}"} for index in range(MANY_RUNS)]
    async with shared.client("reader") as client:
        sent = {}
        for coding in ("identity", "gzip", "zstd"):
            request = client.build_request("POST", "/api/v1/series:query", json={"select": select})
            request.headers["Accept-Encoding"] = coding
            answer = await client.send(request, stream=True)
            sent[coding] = b"".join([part async for part in answer.aiter_raw()])
            assert answer.headers.get("content-encoding", "identity") == coding
            assert answer.headers["vary"] == "Accept, Accept-Encoding"
            assert int(answer.headers["content-length"]) == len(sent[coding])
            assert answer.headers["cache-control"] == "no-store"
    assert gzip.decompress(sent["gzip"]) == sent["identity"]
    assert zstandard.decompress(sent["zstd"]) == sent["identity"]
    assert len(sent["gzip"]) * 3 < len(sent["identity"])
    assert len(sent["zstd"]) * 3 < len(sent["identity"])


@pytest.mark.asyncio(loop_scope="module")
async def test_no_answer_with_a_secret_is_compressed(shared: AppServer) -> None:
    """If an attacker can add text to an answer, its compressed length reveals the
    secret (BREACH).
    """
    async with shared.client("user") as client:
        for index in range(30):
            made = await client.post(
                "/api/v1/tokens", json={"name": f"t{index}", "scopes": ["read"]}
            )
            assert "content-encoding" not in made.headers
        for path in ("/api/v1/tokens", "/api/v1/session", "/api/v1/events?after=x"):
            answer = await client.get(path, headers={"Accept-Encoding": "gzip, zstd"})
            assert "content-encoding" not in answer.headers, path
        for accepted, coding in (
            ("gzip", "gzip"),
            ("gzip, br, zstd", "zstd"),
            ("zstd;q=0, *", "gzip"),
        ):
            headers = {"Accept-Encoding": accepted}
            listed = await client.get("/api/v1/openapi.json", headers=headers)
            assert listed.headers["content-encoding"] == coding
        assert "content-encoding" not in (await client.get("/healthz")).headers


@pytest.mark.parametrize(
    ("method", "path", "is_compressed"),
    [
        ("GET", "/api/v1/runs", True),
        ("POST", "/api/v1/series:query", True),
        ("POST", "/api/v1/runs:act", False),
        ("GET", "/api/v1/session", False),
        ("GET", "/api/v1/tokens", False),
        ("GET", "/api/v1/artifacts/art_1", True),
        ("GET", "/api/v1/artifacts/art_1/content", False),
        ("GET", "/api/v1/runs/run_1/snapshots/snp_1/archive", False),
        ("GET", "/api/v1/events", False),
        ("GET", "/api/v1/audit:export", False),
        ("GET", "/assets/data.json", False),
    ],
)
async def test_only_reads_without_secrets_streams_and_files_are_compressed(
    method: str, path: str, *, is_compressed: bool
) -> None:
    app = Compression(JSONResponse({"text": "word " * 1_000}))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as opened:
        answer = await opened.request(method, path, headers={"Accept-Encoding": "zstd"})
    assert ("content-encoding" in answer.headers) is is_compressed
    assert answer.json()["text"].startswith("word")


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("", None),
        ("gzip", "gzip"),
        ("br, gzip", "br"),
        ("GZIP;q=0.5", "gzip"),
        ("br;q=0, *", "gzip"),
        ("*;q=0", None),
        ("gzip;q=nonsense", None),
        ("," * 10_000 + "gzip", None),
    ],
)
def test_accept_encoding_is_parsed(accepted: str, coding: str | None) -> None:
    assert choose_coding(accepted, ("br", "gzip")) == coding

"""A full disk of the server is reported as such and requests succeed again once there is space."""

import hashlib
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import event

from app.services import storage
from app.services.artifacts.blob_store import BlobStore
from tests.app.api.serving import AppServer, serve
from tests.support.disks import fill, mount_small_disk
from tests.support.records import make_points


@pytest.fixture(autouse=True)
def _measure_free_space_at_every_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "_LOOK_SECONDS", 0.0)


@asynccontextmanager
async def _serve_with_blobs_on(
    disk: Path, directory: Path, database_url: str, **settings: Any
) -> AsyncIterator[AppServer]:
    async with serve(
        database_url, directory, artifacts_url=str(disk / "blobs"), **settings
    ) as served:
        yield served


def _make_declaration(served: AppServer, content: bytes, name: str = "policy") -> dict[str, Any]:
    digest = hashlib.sha256(content).hexdigest()
    return {
        "run_id": served.names["live_run"],
        "name": name,
        "kind": "export",
        "size": len(content),
        "sha256": digest,
    }


def _is_storage_full(answer: httpx.Response, what: str) -> bool:
    body = answer.json()
    assert (answer.status_code, body["code"]) == (507, "storage_full"), answer.text
    assert int(answer.headers["Retry-After"]) > 0
    return what in body["detail"]


async def test_an_artifact_is_507_on_a_full_disk_and_stored_once_there_is_space(
    sqlite_file: Path, tmp_path: Path
) -> None:
    """Regression: declaring it was answered 413 `no_space`, which an uploader treats as final."""
    content = bytes(200_000)
    with mount_small_disk(tmp_path / "disk", 1_024) as disk:
        async with (
            _serve_with_blobs_on(disk, tmp_path, f"sqlite:///{sqlite_file}") as served,
            served.client("live_attempt") as client,
        ):
            base = f"/api/v1/attempts/{served.names['live_attempt']}/artifacts"
            ballast = fill(disk, leave=100_000)
            assert _is_storage_full(
                await client.post(base, json=_make_declaration(served, content)), "artifact store"
            )
            ballast.unlink()
            declared = (await client.post(base, json=_make_declaration(served, content))).json()
            fill(disk, leave=100_000)
            put = {"content": content, "headers": {"Content-Type": "application/octet-stream"}}
            assert _is_storage_full(
                await client.put(f"{base}/{declared['id']}", **put), "artifact store"
            )
            ballast.unlink()
            assert (await client.put(f"{base}/{declared['id']}", **put)).json()["stored"] is True
        assert [path.name for path in (disk / "blobs" / "incoming").iterdir()] == []


async def test_a_disk_that_fills_up_during_an_upload_is_507(
    sqlite_file: Path, tmp_path: Path
) -> None:
    """The disk has space when the upload begins and is full before its last byte."""
    content = bytes(400_000)
    with mount_small_disk(tmp_path / "disk", 1_024) as disk:
        async with (
            _serve_with_blobs_on(disk, tmp_path, f"sqlite:///{sqlite_file}") as served,
            served.client("live_attempt") as client,
        ):
            base = f"/api/v1/attempts/{served.names['live_attempt']}/artifacts"
            declared = (await client.post(base, json=_make_declaration(served, content))).json()

            async def chunks() -> AsyncIterator[bytes]:
                yield content[:100_000]
                fill(disk)
                yield content[100_000:]

            headers = {"Content-Type": "application/octet-stream"}
            answer = await client.put(f"{base}/{declared['id']}", content=chunks(), headers=headers)
            assert _is_storage_full(answer, "artifact store")
            assert (await client.get("/readyz")).status_code == 503
            (disk / "ballast").unlink()
            assert (await client.get("/readyz")).status_code == 200
            assert (
                await client.put(f"{base}/{declared['id']}", content=content, headers=headers)
            ).json()["stored"] is True


async def test_readiness_names_the_full_disk_of_the_blobs_and_recovers(
    sqlite_file: Path, tmp_path: Path
) -> None:
    """Regression: `/readyz` answered 200 while the blob disk was full."""
    with mount_small_disk(tmp_path / "disk", 1_024) as disk:
        async with (
            _serve_with_blobs_on(disk, tmp_path, f"sqlite:///{sqlite_file}") as served,
            served.client() as client,
        ):
            assert (await client.get("/readyz")).status_code == 200
            ballast = fill(disk)
            answer = await client.get("/readyz")
            assert (answer.status_code, answer.json()["code"]) == (503, "storage_full")
            assert "artifact store" in answer.json()["detail"]
            assert (await client.get("/healthz")).status_code == 200
            ballast.unlink()
            assert (await client.get("/readyz")).status_code == 200


async def test_a_full_disk_of_the_database_is_507_for_every_write_and_loses_nothing(
    migrated_sqlite: Path, tmp_path: Path
) -> None:
    """Regression: writes were answered 500 (telemetry 503) and `/readyz` 200."""
    with mount_small_disk(tmp_path / "disk", 4_096) as disk:
        shutil.copy(migrated_sqlite, disk / "p.db")
        async with serve(f"sqlite:///{disk / 'p.db'}", tmp_path) as served:
            run, attempt = served.names["live_run"], served.names["live_attempt"]
            telemetry = f"/api/v1/attempts/{attempt}/telemetry"
            many = [
                make_points(
                    run, f"loss{index}", list(range(400)), [index / 7 + step for step in range(400)]
                )
                for index in range(100)
            ]
            async with served.client("live_attempt") as client, served.client("user") as user:
                ballast = fill(disk)
                assert _is_storage_full(
                    await client.post(telemetry, json={"first_seq": 4, "records": many[:40]}),
                    "database",
                )
                answer = await user.get("/readyz")
                assert (answer.status_code, answer.json()["code"]) == (503, "storage_full")
                assert "database" in answer.json()["detail"]
                assert _is_storage_full(
                    await user.post(f"/api/v1/jobs/{served.names['queued_job']}:pause"), "database"
                )
                assert (await user.get(f"/api/v1/runs/{run}")).status_code == 200, "reading goes on"
                ballast.unlink()
                assert (await user.get("/readyz")).status_code == 200
                assert (
                    await client.post(telemetry, json={"first_seq": 4, "records": many[:40]})
                ).json() == {"acked_seq": 43}
                assert (
                    await user.post(f"/api/v1/jobs/{served.names['queued_job']}:pause")
                ).status_code == 200


async def test_a_database_without_space_for_a_page_is_507(
    sqlite_file: Path, tmp_path: Path
) -> None:
    """Limits the size of the SQLite file, so that the test runs where mounting is not permitted."""
    async with (
        serve(f"sqlite:///{sqlite_file}", tmp_path) as served,
        served.client("live_attempt") as client,
    ):
        event.listen(
            served.reserved.writer.sync_engine, "checkout", _limit_database_to_present_size
        )
        run = served.names["live_run"]
        many = [
            make_points(
                run, f"loss{index}", list(range(400)), [index / 7 + step for step in range(400)]
            )
            for index in range(40)
        ]
        answer = await client.post(
            f"/api/v1/attempts/{served.names['live_attempt']}/telemetry",
            json={"first_seq": 4, "records": many},
        )
        assert _is_storage_full(answer, "database")


def _limit_database_to_present_size(connection: Any, *_: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA max_page_count = 1")
    cursor.close()


def test_the_reserve_is_left_to_the_database(tmp_path: Path) -> None:
    """Blobs do not use the reserved space, since the database usually shares their disk."""
    with mount_small_disk(tmp_path / "disk", 1_024) as disk:
        free = shutil.disk_usage(disk).free
        assert BlobStore(disk, 2**20).room() == free - 2**20 // 20
        assert BlobStore(disk, 1_000).room() == free - 1_000

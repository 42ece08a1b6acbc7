"""A running training attempt with an artifact store, and helpers that send its records and
upload its files."""

import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.db.engine import Database
from app.domain.paging import PageRequest
from app.services.artifacts import artifacts
from app.services.artifacts.blob_store import BlobStore
from app.services.runs import evaluations
from app.services.snapshots import snapshots
from app.services.telemetry import batches
from palestra.contract.names import new_id
from palestra.contract.resources import (
    ArtifactDeclaration,
    ArtifactView,
    EvaluationView,
    SnapshotView,
)
from palestra.contract.states import Cause, Outcome
from tests.support import records
from tests.support.records import make_delivery
from tests.support.server_fixture import World


async def yield_chunks(content: bytes, size: int = 7) -> AsyncIterator[bytes]:
    for first in range(0, len(content), size):
        yield content[first : first + size]


def make_file_entry(name: str, content: bytes) -> dict[str, Any]:
    return {"name": name, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}


@dataclass
class AttemptWithStore:
    """A run with a running attempt, and the artifact store that receives its uploads."""

    world: World
    database: Database
    store: BlobStore
    directory: Path
    run_id: str
    job_id: str
    worker_id: str
    attempt_id: str
    seq: int = 0

    async def send(self, *content: dict[str, Any], attempt_id: str | None = None) -> None:
        async with self.database.write() as session:
            await batches.take(
                session, make_delivery(attempt_id or self.attempt_id, self.seq + 1, content)
            )
        self.seq += len(content)

    async def declare(
        self, name: str, content: bytes, snapshot_id: str | None = None, **changes: Any
    ) -> ArtifactView:
        kind = "snapshot" if snapshot_id else "export"
        body = {
            **make_file_entry(name, content),
            "run_id": self.run_id,
            "kind": kind,
            "snapshot_id": snapshot_id,
            **changes,
        }
        return await artifacts.declare(
            self.database, self.store, self.attempt_id, ArtifactDeclaration(**body)
        )

    async def upload(self, artifact_id: str, content: bytes) -> ArtifactView:
        return await artifacts.upload(
            self.database, self.store, self.attempt_id, artifact_id, yield_chunks(content)
        )

    async def put(self, name: str, content: bytes, snapshot_id: str | None = None) -> ArtifactView:
        declared = await self.declare(name, content, snapshot_id)
        return declared if declared.stored else await self.upload(declared.id, content)

    async def write_snapshot(
        self, env_step: int, *, score: Any = None, upload: bool = True, reason: str = "periodic"
    ) -> str:
        """Writes and uploads a snapshot: a file of its own and a file that all snapshots share."""
        snapshot_id = new_id("snp")
        files = {"state": f"state at {env_step} {snapshot_id}".encode(), "memory": b"shared"}
        content = [make_file_entry(name, text) for name, text in files.items()]
        record = records.make_snapshot(self.run_id, snapshot_id, env_step, content, score=score)
        await self.send({**record, "reason": reason})
        for name, text in files.items() if upload else ():
            await self.put(name, text, snapshot_id)
        return snapshot_id

    async def succeed(self) -> None:
        """Ends the attempt and its run."""
        await self.world.release(
            self.attempt_id, Outcome.SUCCEEDED, Cause.SUCCESS_SCORE, last_seq=self.seq
        )

    async def resume(self, number: int) -> None:
        """Ends the attempt as lost and starts the next one."""
        await self.world.send_heartbeat(self.worker_id, dead=[self.attempt_id])
        claimed = await self.world.start(self.job_id, self.worker_id, attempt=number, slot=number)
        self.attempt_id, self.seq = claimed.work_order.attempt_id, 0

    async def list_snapshots(self) -> dict[str, SnapshotView]:
        async with self.database.read() as session:
            page = await snapshots.list_for_run(
                session, self.world.admin, self.run_id, PageRequest(limit=100)
            )
        return {view.id: view for view in page.items}

    async def list_evaluations(self, *, superseded: bool) -> list[EvaluationView]:
        async with self.database.read() as session:
            request = PageRequest(limit=100, sort="env_step")
            return (
                await evaluations.list_for_run(
                    session, self.world.admin, self.run_id, request, superseded=superseded
                )
            ).items

    def read_files(self) -> list[bytes]:
        return sorted(path.read_bytes() for path in self.directory.rglob("*") if path.is_file())

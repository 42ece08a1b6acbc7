"""Stores the records of an attempt's batch exactly once, in order, in one transaction.

A batch may repeat or overlap committed records if their content is equal. A batch that leaves a
gap, contradicts a committed record, or comes from an attempt that may no longer write is refused
as a whole. `app.services.telemetry.group_commit` commits several batches together.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from app.db.engine import Session
from app.db.models.curves import TelemetryBatchRow
from app.db.models.experiments import RunRow
from app.db.models.jobs import AttemptRow, AttemptRunRow
from app.db.repositories import attempts as attempt_rows
from app.db.repositories import deleted_projects
from app.db.repositories import telemetry as rows
from app.domain.errors import ConflictError, DomainError, NotFoundError
from app.metrics import sort_records
from app.metrics.sort_records import NumberedRecord
from app.services.telemetry import record_rows, record_rules
from palestra.contract.telemetry import Record, TelemetryBatch

DIGEST_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Delivery:
    """A received batch with a digest of each record."""

    attempt_id: str
    batch: TelemetryBatch
    digests: bytes

    @classmethod
    def from_batch(cls, attempt_id: str, batch: TelemetryBatch) -> "Delivery":
        """Hashes the records of a batch; to be called outside of a transaction."""
        return cls(attempt_id, batch, b"".join(hash_record(record) for record in batch.records))

    @property
    def last_seq(self) -> int:
        """Sequence number of the last record."""
        return self.batch.first_seq + len(self.batch.records) - 1

    def prefix(self, length: int) -> "Delivery":
        """Returns a delivery of the first `length` records."""
        batch = self.batch.model_copy(update={"records": self.batch.records[:length]})
        return Delivery(self.attempt_id, batch, self.digests[: length * DIGEST_BYTES])

    def digests_of(self, first_seq: int, last_seq: int) -> bytes:
        """Returns the digests of the records from `first_seq` to `last_seq`, both inclusive."""
        begin = (first_seq - self.batch.first_seq) * DIGEST_BYTES
        return self.digests[begin : (last_seq - self.batch.first_seq + 1) * DIGEST_BYTES]

    def records_from(self, first_seq: int) -> list[NumberedRecord]:
        """Returns the records whose sequence number is at least `first_seq`."""
        skipped = max(0, first_seq - self.batch.first_seq)
        return [
            NumberedRecord(self.batch.first_seq + i, record)
            for i, record in enumerate(self.batch.records)
            if i >= skipped
        ]


@dataclass(frozen=True, slots=True)
class WritableAttempt:
    """An attempt that may write telemetry, with its locked runs by their ID."""

    attempt: AttemptRow
    carried: Mapping[str, AttemptRunRow]
    runs: Mapping[str, RunRow]


def hash_record(record: Record) -> bytes:
    """Returns the first 16 bytes of the SHA-256 of a record's JSON as pydantic writes it."""
    return hashlib.sha256(record.model_dump_json().encode()).digest()[:DIGEST_BYTES]


async def take(session: Session, delivery: Delivery) -> int:
    """Writes the new records of a batch; returns the attempt's last sequence number after them.

    Raises:
        ConflictError: `project_deleted`, `stale_attempt`, `seq_gap` with `expected_seq`, or
            `seq_conflict`.
        ForbiddenError: `other_run` for a run that does not belong to the attempt; `not_training`
            for training records of an attempt that does not train.
        InvalidError: With a pointer to the record (see `record_rules`), among them
            `too_many_metrics` and `snapshot_exists`.
        NotFoundError: If there is no such attempt.
    """
    writer = await open_writer(session, delivery.attempt_id)
    expected = writer.attempt.acked_seq + 1
    if delivery.batch.first_seq > expected:
        raise ConflictError(
            "seq_gap",
            f"Records before this batch are missing. Send from record {expected}.",
            expected_seq=expected,
        )
    await _check_repeats(session, delivery, writer.attempt.acked_seq)
    new = delivery.records_from(expected)
    if new:
        record_rules.check(new, delivery.batch.first_seq, writer.carried)
        await _write(session, delivery, new, writer)
    return writer.attempt.acked_seq


async def open_writer(session: Session, attempt_id: str) -> WritableAttempt:
    """Locks an attempt and its runs.

    Raises:
        NotFoundError: If there is no such attempt.
        ConflictError: `project_deleted` if the content of its project is being removed;
            `stale_attempt` if it ended, or if a newer attempt holds the fence of one of its runs.
    """
    attempt = await attempt_rows.find(session, attempt_id, lock=True)
    if attempt is None:
        raise NotFoundError("attempt")
    if attempt.state not in attempt_rows.LIVE:
        if await deleted_projects.is_being_removed(session, attempt.project_id):
            raise _project_deleted()
        raise _stale("The attempt has ended. Nothing more is taken from it.")
    carried = {
        row.run_id: row for row in (await attempt_rows.load_runs(session, [attempt_id]))[attempt_id]
    }
    runs = await rows.lock_runs(session, carried.keys())
    if any(row.training and runs[run_id].fence != row.fence for run_id, row in carried.items()):
        raise _stale("A newer attempt trains this run. Nothing more is taken from this one.")
    return WritableAttempt(attempt, carried, runs)


def _project_deleted() -> DomainError:
    return ConflictError(
        "project_deleted", "The project of this attempt is being deleted. Nothing more is stored."
    )


def _stale(detail: str) -> DomainError:
    return ConflictError("stale_attempt", detail)


async def _check_repeats(session: Session, delivery: Delivery, acked: int) -> None:
    if delivery.batch.first_seq > acked:
        return
    last = min(delivery.last_seq, acked)
    for stored in await rows.list_batches(
        session, delivery.attempt_id, delivery.batch.first_seq, last
    ):
        first, end = max(stored.first_seq, delivery.batch.first_seq), min(stored.last_seq, last)
        if _stored_digests(stored, first, end) != delivery.digests_of(first, end):
            raise ConflictError(
                "seq_conflict",
                (
                    f"Among records {first} to {end} one is stored with another content. "
                    "Each number is used once."
                ),
            )


def _stored_digests(stored: TelemetryBatchRow, first: int, last: int) -> bytes:
    return stored.digests[
        (first - stored.first_seq) * DIGEST_BYTES : (last - stored.first_seq + 1) * DIGEST_BYTES
    ]


async def _write(
    session: Session, delivery: Delivery, new: Sequence[NumberedRecord], writer: WritableAttempt
) -> None:
    attempt, first_seq = writer.attempt, new[0].seq
    received, now = await rows.read_last_received(session, attempt.id)
    elapsed = None if received is None else (now - received).total_seconds()
    found = [
        (
            record_rows.RecordContext(
                writer.runs[run_id],
                attempt,
                writer.carried[run_id].fence,
                first_seq,
                delivery.batch.first_seq,
            ),
            content,
        )
        for run_id, content in sort_records.sort(new).items()
    ]
    await record_rows.write(session, found)
    for target, content in found:
        if writer.carried[target.run.id].training and content.progress is not None:
            record_rows.update_progress(target.run, content.progress, elapsed)
    digests = delivery.digests_of(first_seq, delivery.last_seq)
    sha256 = hashlib.sha256(digests).hexdigest()
    batch = {
        "attempt_id": attempt.id,
        "first_seq": first_seq,
        "last_seq": delivery.last_seq,
        "sha256": sha256,
        "digests": digests,
    }
    await rows.add_batch(session, batch)
    attempt.acked_seq = delivery.last_seq
    await session.flush()

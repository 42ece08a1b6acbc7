"""Stores the records of an attempt's batch exactly once, in order, in one transaction.

A batch may repeat or overlap committed records if their content is equal. A batch that leaves a
gap, contradicts a committed record, or comes from an attempt that may no longer write is refused
as a whole. `app.services.telemetry.group_commit` commits several batches together.
"""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from app.db.engine import Session
from app.db.models.curves import TelemetryBatchRow
from app.db.repositories import deleted_projects, writers
from app.db.repositories import telemetry as rows
from app.db.repositories.writers import Writer
from app.domain.errors import ConflictError, DomainError, NotFoundError
from app.metrics import sort_records
from app.metrics.sort_records import DecodedTable, NumberedRecord
from app.services.telemetry import record_rows, record_rules
from app.services.telemetry.record_rows import RecordContext, RunContent
from palestra.contract.telemetry import Record, TelemetryBatch

DIGEST_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Delivery:
    """A received batch with a digest of each record."""

    attempt_id: str
    first_seq: int
    records: Sequence[Record | DecodedTable]
    digests: bytes

    @classmethod
    def from_batch(cls, attempt_id: str, batch: TelemetryBatch) -> "Delivery":
        """Returns the delivery of records that no JSON was kept of."""
        texts = [record.model_dump_json().encode() for record in batch.records]
        return cls.from_texts(attempt_id, batch.first_seq, batch.records, texts)

    @classmethod
    def from_texts(
        cls,
        attempt_id: str,
        first_seq: int,
        records: Sequence[Record | DecodedTable],
        texts: Sequence[bytes],
    ) -> "Delivery":
        """Hashes the JSON of each record; to be called outside of a transaction."""
        return cls(attempt_id, first_seq, records, b"".join(map(hash_text, texts)))

    @property
    def last_seq(self) -> int:
        """Sequence number of the last record."""
        return self.first_seq + len(self.records) - 1

    @property
    def run_ids(self) -> frozenset[str]:
        """The runs that the records name."""
        return frozenset(record.run for record in self.records)

    def prefix(self, length: int) -> "Delivery":
        """Returns a delivery of the first `length` records."""
        return replace(
            self,
            records=self.records[:length],
            digests=self.digests[: length * DIGEST_BYTES],
        )

    def digests_of(self, first_seq: int, last_seq: int) -> bytes:
        """Returns the digests of the records from `first_seq` to `last_seq`, both inclusive."""
        begin = (first_seq - self.first_seq) * DIGEST_BYTES
        return self.digests[begin : (last_seq - self.first_seq + 1) * DIGEST_BYTES]

    def records_from(self, first_seq: int) -> list[NumberedRecord]:
        """Returns the records whose sequence number is at least `first_seq`."""
        skipped = max(0, first_seq - self.first_seq)
        return [
            NumberedRecord(self.first_seq + i, self.records[i])
            for i in range(skipped, len(self.records))
        ]


def hash_text(text: bytes) -> bytes:
    """Returns the first 16 bytes of the SHA-256 of a record's JSON."""
    return hashlib.sha256(text).digest()[:DIGEST_BYTES]


async def take(session: Session, delivery: Delivery) -> int:
    """Writes the new records of one batch, like `take_group`.

    Returns:
        The attempt's last sequence number after them.

    Raises:
        DomainError: If the batch is refused; nothing was written.
    """
    (answer,) = await take_group(session, [delivery])
    if isinstance(answer, DomainError):
        raise answer
    return answer


async def take_group(session: Session, deliveries: Sequence[Delivery]) -> list[int | DomainError]:
    """Writes the new records of batches of different attempts.

    Each table is read and written once for all batches. Batches are refused before anything is
    written, so the transaction of the others can be committed.

    Args:
        session: A writing session.
        deliveries: Batches, each of another attempt.

    Returns:
        For each batch the attempt's last sequence number after it, or why it is refused:
            ConflictError: `project_deleted`, `stale_attempt`, `seq_gap` with `expected_seq`, or
                `seq_conflict`.
            ForbiddenError: `other_run` for a run that does not belong to the attempt.
            InvalidError: With a pointer to the record (see `record_rules`), among them
                `not_training` for training records of an attempt that does not train,
                `too_many_metrics` and `snapshot_exists`.
            NotFoundError: If there is no such attempt.
    """
    opened = await open_writers(session, [delivery.attempt_id for delivery in deliveries])
    found: list[_NewRecords | int | DomainError] = []
    for delivery in deliveries:
        try:
            found.append(await _find_new(session, delivery, opened[delivery.attempt_id]))
        except DomainError as refusal:
            found.append(refusal)
    store = record_rows.Store(session)
    await store.load(part for one in found if isinstance(one, _NewRecords) for part in one.content)
    for place, one in enumerate(found):
        if isinstance(one, _NewRecords):
            try:
                store.accept(one.content)
            except DomainError as refusal:
                found[place] = refusal
    await _write(store, [one for one in found if isinstance(one, _NewRecords)])
    return [one.delivery.last_seq if isinstance(one, _NewRecords) else one for one in found]


@dataclass(frozen=True, slots=True)
class _NewRecords:
    """A batch with records that are not stored yet."""

    delivery: Delivery
    writer: Writer
    first_seq: int
    """Sequence number of the first new record."""
    content: list[RunContent]


async def _find_new(
    session: Session, delivery: Delivery, writer: Writer | DomainError
) -> _NewRecords | int:
    """Returns the new records of a batch; the last sequence number if it has none."""
    if isinstance(writer, DomainError):
        raise writer
    acked = writer.acked_seq
    if delivery.first_seq > acked + 1:
        raise ConflictError(
            "seq_gap",
            f"Records before this batch are missing. Send from record {acked + 1}.",
            expected_seq=acked + 1,
        )
    await _check_repeats(session, delivery, acked)
    new = delivery.records_from(acked + 1)
    if not new:
        return acked
    record_rules.check(new, delivery.first_seq, writer.runs)
    content = [
        (
            RecordContext(
                writer.runs[run_id], writer, new[0].seq, delivery.last_seq, delivery.first_seq
            ),
            records,
        )
        for run_id, records in sort_records.sort(new).items()
    ]
    return _NewRecords(delivery, writer, new[0].seq, content)


async def open_writer(session: Session, attempt_id: str) -> Writer:
    """Locks an attempt and its runs.

    Raises:
        NotFoundError: If there is no such attempt.
        ConflictError: `project_deleted` if the content of its project is being removed;
            `stale_attempt` if it ended, or if a newer attempt holds the fence of one of its runs.
    """
    writer = (await open_writers(session, [attempt_id]))[attempt_id]
    if isinstance(writer, DomainError):
        raise writer
    return writer


async def open_writers(
    session: Session, attempt_ids: Sequence[str]
) -> dict[str, Writer | DomainError]:
    """Locks attempts and their runs; returns the refusal for each attempt that may not write."""
    locked = await writers.lock(session, attempt_ids)
    found: dict[str, Writer | DomainError] = {}
    for attempt_id in attempt_ids:
        writer = locked.get(attempt_id)
        if writer is None:
            found[attempt_id] = NotFoundError("attempt")
        elif not writer.is_live:
            is_removed = await deleted_projects.is_being_removed(session, writer.project_id)
            found[attempt_id] = (
                _project_deleted()
                if is_removed
                else _stale("The attempt has ended. Nothing more is taken from it.")
            )
        elif writer.is_superseded:
            found[attempt_id] = _stale(
                "A newer attempt trains this run. Nothing more is taken from this one."
            )
        else:
            found[attempt_id] = writer
    return found


def _project_deleted() -> DomainError:
    return ConflictError(
        "project_deleted", "The project of this attempt is being deleted. Nothing more is stored."
    )


def _stale(detail: str) -> DomainError:
    return ConflictError("stale_attempt", detail)


async def _check_repeats(session: Session, delivery: Delivery, acked: int) -> None:
    if delivery.first_seq > acked:
        return
    last = min(delivery.last_seq, acked)
    for stored in await rows.list_batches(session, delivery.attempt_id, delivery.first_seq, last):
        first, end = max(stored.first_seq, delivery.first_seq), min(stored.last_seq, last)
        known = _stored_digests(stored, first, end)
        if known != delivery.digests_of(first, end):
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


async def _write(store: record_rows.Store, accepted: Sequence[_NewRecords]) -> None:
    if not accepted:
        return
    group = rows.GroupRows()
    for batch in accepted:
        attempt, delivery = batch.writer, batch.delivery
        elapsed = _measure_pause(attempt.id)
        for target, content in batch.content:
            if target.run.is_training and content.progress is not None:
                record_rows.update_progress(target.run, content.progress, elapsed)
                group.runs.append(target.run)
        group.acked.append({"key": attempt.id, "acked_seq": delivery.last_seq})
        group.batches.append(
            {
                "attempt_id": attempt.id,
                "first_seq": batch.first_seq,
                "last_seq": delivery.last_seq,
                "digests": delivery.digests_of(batch.first_seq, delivery.last_seq),
            }
        )
    await store.write([part for batch in accepted for part in batch.content], group)


_received: Final[dict[str, float]] = {}
"""Time of the latest batch of each attempt by this process's monotonic clock."""
_MAX_RECEIVED: Final = 10_000


def _measure_pause(attempt_id: str) -> float | None:
    """Returns the seconds since the attempt's batch before; `None` without one."""
    now, before = time.monotonic(), _received.pop(attempt_id, None)
    _received[attempt_id] = now
    if len(_received) > _MAX_RECEIVED:
        del _received[next(iter(_received))]
    return None if before is None else now - before

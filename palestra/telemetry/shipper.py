"""The shipper: sends a spool to the server, every record exactly once by its number.

Nothing is dropped: what cannot be sent now is sent later, and a record that the server can never
accept is replaced by a note. Records of a type that an older server does not know wait for its
upgrade.

    with open_client(server, token) as client:
        shipper = Shipper(SpoolReader(directory), HttpTransport(client, attempt_id))
        shipper.run(stop)          # in a thread, until `stop` is set
        shipper.flush(seconds)     # what is left; true once all is acknowledged
"""

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from palestra.backoff import Backoff
from palestra.contract.telemetry import MAX_BATCH_BYTES, MAX_BATCH_RECORDS, Note
from palestra.telemetry.spool import SpoolBatch, SpoolReader
from palestra.telemetry.transport import Reply, SendResult, Transport

INTERVAL_SECONDS: Final = 0.1
"""Seconds between two reads of the spool."""

_OVERHEAD_BYTES: Final = 256
_FIRST_WAIT: Final = 0.2
_MAX_WAIT_SECONDS: Final = 30.0
_RECOVERY: Final = 2
"""Factor by which the batch size grows after each accepted batch."""


class StaleAttemptError(Exception):
    """The attempt may not write any more: it has ended, or a newer attempt holds the fence."""


@dataclass(slots=True)
class ShipperCounts:
    """Counts of sent and refused records, for the log and the run page."""

    batches: int = 0
    records: int = 0
    retries: int = 0
    rewinds: int = 0
    refused: int = 0
    """Records that were replaced by a note, since the server can never accept them."""
    conflicts: int = 0
    """Records that the server holds with another content."""


class Shipper:
    """Sends the records of one spool in order.

    Args:
        reader: Reads the spool; its position is the last record that counts as acknowledged at the
            start.
        transport: Sends one batch.
        report: Called with the reason each time that a batch is not accepted.
        runs: The runs of the attempt. A note that replaces a refused record is attributed to one
            of them.
        interval_seconds: Seconds between two reads of the spool in `run`.
        clock: Returns seconds that never go backwards; `flush` ends by it.
    """

    def __init__(
        self,
        reader: SpoolReader,
        transport: Transport,
        *,
        report: Callable[[str], None] = lambda _: None,
        runs: Sequence[str] = (),
        interval_seconds: float = INTERVAL_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reader = reader
        self._transport = transport
        self._report = report
        self._runs = tuple(runs)
        self._interval_seconds = interval_seconds
        self._clock = clock
        self._acked = reader.position
        self._max_records = MAX_BATCH_RECORDS
        self._max_bytes = MAX_BATCH_BYTES - _OVERHEAD_BYTES
        self._backoff = Backoff(longest=_MAX_WAIT_SECONDS, first=_FIRST_WAIT)
        self._pause = 0.0
        self._substitute: int | None = None
        self._why = ""
        self.counts = ShipperCounts()

    @property
    def acked_seq(self) -> int:
        """The number of the last record that the server committed."""
        return self._acked

    @property
    def pause(self) -> float:
        """Seconds to wait before the next try; 0 if the last one succeeded."""
        return self._pause

    def rewind(self, after_seq: int) -> None:
        """Sends the records after `after_seq` again, because the server lacks them."""
        self._acked = min(after_seq, self._acked)

    def ship_once(self) -> bool:
        """Sends one batch if there is one; true if the server took it and more may follow.

        Raises:
            StaleAttemptError: If the attempt may not write any more.
            SpoolDamagedError: If the next record is damaged.
        """
        self._reader.seek(self._acked)
        batch = self._reader.read(self._max_records, self._max_bytes)
        if not batch.payloads:
            self._pause = 0.0
            return False
        reply = self._transport(self._encode(batch))
        self._act(reply, batch)
        return self._pause == 0

    def run(self, stop: threading.Event) -> None:
        """Sends until `stop` is set.

        Raises:
            StaleAttemptError: See `ship_once`.
        """
        while not stop.is_set():
            if not self.ship_once():
                stop.wait(max(self._pause, self._interval_seconds))

    def flush(self, seconds: float, stop: threading.Event | None = None) -> bool:
        """Sends until everything spooled is acknowledged, for at most `seconds`; true if it is.

        Raises:
            StaleAttemptError: See `ship_once`.
        """
        wake = stop or threading.Event()
        deadline = self._clock() + seconds
        while self.ship_once() or self._pause:
            left = deadline - self._clock()
            if left <= 0 or (self._pause and wake.wait(min(self._pause, left))):
                return False
        return True

    def _encode(self, batch: SpoolBatch) -> bytes:
        payloads = batch.payloads
        if self._substitute == batch.first_seq:
            payloads = (_replacement_note(payloads[0], self._why, self._runs), *payloads[1:])
        return b'{"first_seq":%d,"records":[%s]}' % (batch.first_seq, b",".join(payloads))

    def _act(self, reply: Reply, batch: SpoolBatch) -> None:
        match reply.result:
            case SendResult.ACKNOWLEDGED:
                self._on_acknowledged(reply.seq, batch)
            case SendResult.REWIND:
                self._on_rewind(reply)
            case SendResult.STALE:
                raise StaleAttemptError(reply.reason)
            case SendResult.LATER:
                self._on_later(reply)
            case _:
                self._narrow(reply, batch)

    def _on_acknowledged(self, seq: int, batch: SpoolBatch) -> None:
        if seq < batch.first_seq - 1:
            self._on_rewind(
                Reply(SendResult.REWIND, seq=seq + 1, reason=f"acknowledged only up to {seq}")
            )
            return
        self.counts.batches += 1
        self.counts.records += min(seq, batch.last_seq) - batch.first_seq + 1
        self._acked = min(seq, batch.last_seq)
        self._backoff.reset()
        self._pause, self._substitute = 0.0, None
        self._max_records = min(self._max_records * _RECOVERY, MAX_BATCH_RECORDS)
        self._max_bytes = min(self._max_bytes * _RECOVERY, MAX_BATCH_BYTES - _OVERHEAD_BYTES)

    def _on_rewind(self, reply: Reply) -> None:
        self.counts.rewinds += 1
        self._report(f"goes on from record {reply.seq}: {reply.reason}")
        if reply.seq == self._acked + 1:
            self._back_off(0.0)
            return
        self._acked = reply.seq - 1
        self._pause = 0.0

    def _on_later(self, reply: Reply) -> None:
        if self._backoff.failures == 0:
            self._report(f"record {self._acked + 1} waits: {reply.reason}")
        self._back_off(reply.wait)

    def _narrow(self, reply: Reply, batch: SpoolBatch) -> None:
        """Halves the batch until it holds only the refused record, then sends a note instead.

        A record that a proxy or an older server does not take waits until it does.
        """
        if len(batch.payloads) > 1:
            self._max_records = len(batch.payloads) // 2
            self._pause = 0.0
            return
        if reply.result is SendResult.TOO_LARGE_FOR_PROXY:
            self._on_later(reply)
        elif reply.result is SendResult.UNKNOWN_TYPE:
            older = f"the server is older than this recorder; upgrade it: {reply.reason}"
            self._on_later(replace(reply, reason=older))
        elif reply.result is SendResult.CONFLICT:
            self.counts.conflicts += 1
            self._report(f"record {batch.first_seq} is stored with another content: {reply.reason}")
            self._acked, self._pause = batch.first_seq, 0.0
        elif self._substitute == batch.first_seq:
            # The record is not the reason then, so the record itself is sent again and not lost.
            self._report(f"record {batch.first_seq} is refused even as a note: {reply.reason}")
            self.counts.refused -= 1
            self._substitute = None
            self._back_off(reply.wait)
        else:
            self.counts.refused += 1
            self._substitute, self._why, self._pause = batch.first_seq, reply.reason, 0.0
            self._report(f"record {batch.first_seq} goes as a note: {reply.reason}")

    def _back_off(self, asked: float) -> None:
        self.counts.retries += 1
        self._pause = self._backoff.compute_next_wait(asked)


def _replacement_note(payload: bytes, reason: str, runs: Sequence[str]) -> bytes:
    """Returns the note that replaces a refused record under its number.

    It names the record's run, or the first of `runs` if the record names none.
    """
    record: dict[str, Any] = json.loads(payload)
    run = record["run"] if not runs or record["run"] in runs else runs[0]
    kind = str(record.get("type"))
    what = f"{kind} {record['series']}" if "series" in record else kind
    wall = record.get("wall", 0.0)
    first = wall[0] if isinstance(wall, list) else wall
    note = Note(
        run=run,
        wall=float(first),
        code="record_refused",
        message=f"The server refused a record ({what}): {reason}"[:2_000],
    )
    return note.model_dump_json().encode()

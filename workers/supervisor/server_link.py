"""A supervisor's requests to the server: lease, telemetry and uploads, one thread each.

Retries while the server is unreachable. The server's orders are put into the `PendingOrder`; this
module does not act on the trainer.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import httpx

from palestra.backoff import Backoff
from palestra.contract.states import Order
from palestra.contract.work_order import AttemptReport, Release, Renewal
from palestra.telemetry.shipper import Shipper, StaleAttemptError
from palestra.telemetry.spool import SpoolDamagedError, SpoolReader, SpoolWriter
from palestra.telemetry.transport import HttpTransport
from workers.ipc.attempt_directory import AttemptDirectory
from workers.ipc.json_log import Logger
from workers.ipc.server_api import AttemptApi, RefusedError, ServerUnreachableError
from workers.supervisor.pending_order import PendingOrder
from workers.supervisor.uploads import Uploader

MAX_WAIT_SECONDS: Final = 10.0
"""Longest pause in seconds before the release of an attempt is retried.

It also bounds a longer pause that the server asks for, since a slot waits for the release.
"""
_UPLOAD_POLL_SECONDS: Final = 0.5
_FLUSH_SECONDS: Final = 30.0
_JOIN_SECONDS: Final = 60.0
_MAX_LEASE_PAUSE_SECONDS: Final = 2.0
"""After a partition the lease must be renewed soon: the server counts the silence, not the
partition.
"""
_SHORTEST_RENEWAL: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkParts:
    """Dependencies of a `ServerLink`."""

    client: httpx.Client
    directory: AttemptDirectory
    spool: SpoolWriter
    box: PendingOrder
    log: Logger
    renew_seconds: float
    renewal: Callable[[], Renewal]
    """Returns the next renewal, with the trainer's progress."""
    run_ids: tuple[str, ...]
    """The runs of the attempt; notes of the supervisor name the first."""


class ServerLink:
    """Renews an attempt's lease, ships its telemetry, uploads its results and releases it."""

    def __init__(self, parts: LinkParts) -> None:
        attempt_id = parts.directory.attempt_id
        self._parts = parts
        self._api = AttemptApi(parts.client, attempt_id)
        self._shipper = Shipper(
            SpoolReader(parts.directory.spool),
            HttpTransport(parts.client, attempt_id),
            report=lambda reason: parts.log.warning("telemetry.delayed", reason=reason),
            runs=parts.run_ids,
        )
        self._uploader = Uploader(
            self._api,
            parts.directory,
            parts.spool,
            lambda reason: parts.log.warning("upload.left_out", reason=reason),
        )
        self._is_delivering = False
        self._given_up = threading.Event()
        """Set once a user discarded the results that are not uploaded."""
        self._stop_work = threading.Event()
        self._stop_lease = threading.Event()
        self._renew_now = threading.Event()
        self._work = [
            threading.Thread(target=target, name=target.__name__, daemon=True)
            for target in (self._ship, self._upload)
        ]
        self._lease = threading.Thread(target=self._keep_lease, name="lease", daemon=True)

    @property
    def api(self) -> AttemptApi:
        """API client with the attempt's token."""
        return self._api

    @property
    def acked_seq(self) -> int:
        """Sequence number of the last record that the server committed."""
        return self._shipper.acked_seq

    def start(self) -> None:
        """Starts the threads that renew, ship and upload."""
        for thread in (self._lease, *self._work):
            thread.start()

    def renew_soon(self) -> None:
        """Renews the lease at once, so that the server sees a change early."""
        self._renew_now.set()

    def release(self, report: AttemptReport) -> AttemptReport | None:
        """Sends all remaining results, then releases the attempt.

        Retries without limit while the server is unreachable or its disk is full, and renews the
        lease meanwhile. Returns the report with which the attempt was released; `None` if the
        attempt is stale.
        """
        self._is_delivering = True
        self._renew_now.set()
        self._stop_work.set()
        for thread in self._work:
            thread.join(_JOIN_SECONDS)
        backoff = Backoff(self._parts.box.stale)
        released: AttemptReport | None = None
        while released is None and not self._parts.box.stale.is_set():
            released = self._try_to_release(report, backoff)
        self._stop_lease.set()
        self._renew_now.set()
        return released

    def _try_to_release(self, report: AttemptReport, backoff: Backoff) -> AttemptReport | None:
        wait = 0.0
        try:
            if self._deliver_all():
                judged = self._uploader.missing.judge(report)
                self._api.release(Release(report=judged, last_seq=self._shipper.acked_seq))
                return judged
        except ServerUnreachableError as error:
            self._parts.log.warning("release.delayed", reason=str(error))
            wait = error.wait
        except RefusedError as refusal:
            self._on_refused_release(refusal)
        except StaleAttemptError:
            self._parts.box.give(Order.STALE)
        backoff.wait(min(wait, MAX_WAIT_SECONDS))
        return None

    def _deliver_all(self) -> bool:
        """Ships all records and uploads all results; `True` if nothing is left."""
        stale = self._parts.box.stale
        if not self._shipper.flush(_FLUSH_SECONDS, stale):
            return False
        if self._given_up.is_set():
            self._uploader.discard_all()
        self._uploader.deliver(self._shipper.acked_seq)
        return self._shipper.flush(_FLUSH_SECONDS, stale)

    def _on_refused_release(self, refusal: RefusedError) -> None:
        if refusal.code == "telemetry_missing":
            self._shipper.rewind((refusal.expected_seq or 1) - 1)
            return
        self._parts.log.warning("release.refused", reason=str(refusal))
        self._parts.box.give(Order.STALE)

    def _keep_lease(self) -> None:
        renew_seconds = self._parts.renew_seconds
        backoff = Backoff(self._renew_now, longest=min(renew_seconds, _MAX_LEASE_PAUSE_SECONDS))
        while not self._stop_lease.is_set():
            self._renew_now.clear()
            try:
                answer = self._api.renew(
                    self._renewal(), within=max(renew_seconds, _SHORTEST_RENEWAL)
                )
            except ServerUnreachableError as error:
                if backoff.failures == 0:
                    self._parts.log.warning("lease.unreachable", reason=str(error))
                backoff.wait(error.wait)
                continue
            except RefusedError as refusal:
                self._parts.log.warning("lease.refused", reason=str(refusal))
                self._parts.box.give(Order.STALE)
                return
            backoff.reset()
            self._parts.box.give(answer.order)
            if answer.give_up:
                self._given_up.set()
            self._renew_now.wait(renew_seconds)

    def _renewal(self) -> Renewal:
        backlog = self._uploader.backlog.model_copy(update={"delivering": self._is_delivering})
        renewal = self._parts.renewal()
        phase = None if self._is_delivering else renewal.phase
        return renewal.model_copy(update={"backlog": backlog, "phase": phase})

    def _ship(self) -> None:
        try:
            self._shipper.run(self._stop_work)
        except StaleAttemptError as error:
            self._parts.log.warning("telemetry.stale", reason=str(error))
            self._parts.box.give(Order.STALE)
        except SpoolDamagedError:
            self._parts.log.exception("spool.damaged")
            self._parts.box.give(Order.DRAIN)

    def _upload(self) -> None:
        backoff = Backoff(self._stop_work)
        while not self._stop_work.is_set():
            try:
                if not self._uploader.step(self._shipper.acked_seq):
                    self._stop_work.wait(_UPLOAD_POLL_SECONDS)
                backoff.reset()
            except ServerUnreachableError as error:
                self._parts.log.warning("upload.delayed", reason=str(error))
                backoff.wait(error.wait)
            except RefusedError as refusal:
                self._parts.log.warning("upload.refused", reason=str(refusal))
                self._parts.box.give(Order.STALE)
                return

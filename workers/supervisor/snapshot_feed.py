"""The supervisor's part of a continuous evaluation: passes snapshots to the trainer.

It requests them from the server and downloads them, one at a time.

All waiting happens here: for the server, for a snapshot, for `throttle_seconds` and
`delay_seconds`. The trainer only polls for its answer, which counts as progress
(`workers.supervisor.limits`). While no attempt trains the run, perhaps because this attempt has the
slot, the remaining snapshots are passed on without delay.
"""

import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from palestra.backoff import Backoff
from palestra.contract.states import Cause
from palestra.contract.work_order import FollowAnswer, FollowRequest, RunOrder, SnapshotRef
from workers.ipc.attempt_directory import AttemptDirectory
from workers.ipc.json_log import Logger
from workers.ipc.server_api import AttemptApi, RefusedError, ServerUnreachableError
from workers.ipc.snapshot_requests import (
    NoSnapshotReason,
    SnapshotAnswer,
    SnapshotRequest,
    read_request,
    write_answer,
)
from workers.supervisor.limits import Breach
from workers.supervisor.snapshot_download import InputError, fetch_snapshot

_LOOK_SECONDS: Final = 0.1
_FIRST_PAUSE: Final = 0.5
_MAX_PAUSE_SECONDS: Final = 5.0
_PAUSE_GROWTH: Final = 1.5
_MAX_LOST: Final = 3
"""Consecutive failed downloads after which the feed fails.

A download fails, for example, if newer snapshots have replaced the requested one.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedParts:
    """Dependencies of a `SnapshotFeed`."""

    api: AttemptApi
    directory: AttemptDirectory
    run: RunOrder
    log: Logger
    is_first_attempt: bool = True
    """Whether this is the job's first attempt; `delay_seconds` applies only to that."""
    monotonic: Callable[[], float] = time.monotonic


class SnapshotFeed:
    """Answers one trainer's requests for snapshots.

    Attributes:
        breach: Why the attempt cannot continue; `None` while it can.
    """

    def __init__(self, parts: FeedParts) -> None:
        assert parts.run.follow is not None
        self._parts = parts
        self._follow = parts.run.follow
        self._answered = 0
        self._lost = 0
        self._earliest = parts.monotonic() + (
            self._follow.delay_seconds if parts.is_first_attempt else 0.0
        )
        self.breach: Breach | None = None

    def run(self, stop: threading.Event) -> None:
        """Answers requests until stopped, or until `breach` is set.

        Any exception sets `breach`, so that the trainer does not wait for a feed that failed.
        """
        try:
            self._answer_requests(stop)
        except Exception as error:
            if not stop.is_set():
                self._parts.log.exception("follow.failed")
                self.breach = Breach(
                    Cause.NO_RESULT,
                    "The next snapshot could not be passed to the trainer: "
                    f"{type(error).__name__}: {error}.",
                )

    def answer_request(self, pending: SnapshotRequest, stop: threading.Event) -> bool:
        """Tries once to answer a request; `False` if there is no answer yet.

        Raises:
            ServerUnreachableError: If the server is unreachable; a retry may succeed.
            RefusedError: If the server refuses the request permanently.
        """
        if self._follow.only_once:
            self._clear(keep=None)
        is_repeated = not self._follow.only_once and not self._seconds_until_allowed()
        request = FollowRequest(
            run_id=self._parts.run.run_id, evaluated=pending.evaluated, again=is_repeated
        )
        answered = self._parts.api.follow(request)
        if answered.snapshot is None:
            return self._end(pending, answered)
        if answered.training != "waiting" and self._seconds_until_allowed():
            return False
        if not self._fetch(answered.snapshot, stop):
            return False
        self._earliest = self._parts.monotonic() + self._follow.throttle_seconds
        self._answer(
            SnapshotAnswer(
                number=pending.number,
                snapshot_id=answered.snapshot.snapshot_id,
                stored=answered.evaluated,
            )
        )
        return True

    def _answer_requests(self, stop: threading.Event) -> None:
        backoff, pause = Backoff(stop), _FIRST_PAUSE
        while not stop.is_set() and self.breach is None:
            pending = read_request(self._parts.directory)
            if pending.number <= self._answered:
                stop.wait(_LOOK_SECONDS)
                continue
            try:
                done = self.answer_request(pending, stop)
            except ServerUnreachableError as error:
                self._parts.log.warning("follow.delayed", reason=str(error))
                backoff.wait(error.wait)
                continue
            except RefusedError as refusal:
                self._parts.log.warning("follow.refused", reason=str(refusal))
                self._give_up(refusal)
                return
            backoff.reset()
            pause = _FIRST_PAUSE if done else min(_PAUSE_GROWTH * pause, _MAX_PAUSE_SECONDS)
            if not done:
                stop.wait(min(pause, self._seconds_until_allowed() or pause))

    def _end(self, pending: SnapshotRequest, answered: FollowAnswer) -> bool:
        if answered.training == "live":
            return False
        end = NoSnapshotReason.OVER if answered.training == "over" else NoSnapshotReason.YIELD
        self._answer(SnapshotAnswer(number=pending.number, end=end, stored=answered.evaluated))
        return True

    def _answer(self, answer: SnapshotAnswer) -> None:
        write_answer(self._parts.directory, answer)
        self._answered = answer.number

    def _seconds_until_allowed(self) -> float:
        return max(0.0, self._earliest - self._parts.monotonic())

    def _fetch(self, snapshot: SnapshotRef, stop: threading.Event) -> bool:
        target = self._parts.directory.inputs / snapshot.snapshot_id
        self._clear(keep=snapshot.snapshot_id)
        if not target.exists():
            try:
                fetch_snapshot(self._parts.api, target, snapshot, stop.is_set)
            except InputError as error:
                shutil.rmtree(target, ignore_errors=True)
                self._count_loss(error)
                return False
        self._lost = 0
        return not stop.is_set()

    def _count_loss(self, error: InputError) -> None:
        self._lost += 1
        self._parts.log.warning("follow.lost", reason=str(error))
        if self._lost >= _MAX_LOST or error.cause is Cause.DISK_FULL:
            self.breach = Breach(error.cause, str(error))

    def _give_up(self, refusal: RefusedError) -> None:
        """Sets `breach`, unless the token is invalid: then the lease thread ends the attempt."""
        if not refusal.ends_attempt:
            self.breach = Breach(
                Cause.NO_RESULT, f"The server refuses the request for the next snapshot: {refusal}."
            )

    def _clear(self, *, keep: str | None) -> None:
        """Removes all downloaded snapshots but `keep`."""
        for path in self._parts.directory.inputs.iterdir():
            if path.name != keep:
                shutil.rmtree(path, ignore_errors=True)

"""What the groups of methods of `palestra.Client` share."""

from collections.abc import Sequence
from typing import Final, TypeVar, cast

from palestra.connection import Connection
from palestra.contract.event_streams import EventType, SubscriptionRequest
from palestra.contract.job_batches import JobsActed, JobsAction
from palestra.contract.run_batches import RunsActed, RunsAction
from palestra.errors import EventsLostError, ServerError, TooManyRequestsError
from palestra.event_feed import POLL_SECONDS, EventFeed

PAGE_SIZE: Final = 200
"""Items of a list that one request asks for."""
Acted = TypeVar("Acted", JobsActed, RunsActed)


class ClientMethods:
    """A group of methods of `palestra.Client`, which sets the attributes."""

    _connection: Connection
    _feed: EventFeed
    _project: str | None
    """Slug of the project that the client is bound to; `None` for all projects of the token."""

    def _follow(
        self,
        *,
        runs: Sequence[str] = (),
        experiments: Sequence[str] = (),
        types: Sequence[str] = (),
    ) -> SubscriptionRequest:
        """Returns a scope of the event log, whose names the server judges."""
        return SubscriptionRequest.model_construct(
            project=self._project,
            runs=tuple(runs),
            experiments=tuple(experiments),
            types=cast("tuple[EventType, ...]", tuple(types)),
            after=None,
        )

    def _act_on_many(
        self, answer: type[Acted], path: str, request: JobsAction | RunsAction
    ) -> Acted:
        """Sends an action on many jobs or runs by as many requests as needed.

        Returns:
            The counts of the first request, and what all of them did and refused.
        """
        limits = {"project": self._project}
        first = part = self._connection.post(answer, path, request, parameters=limits)
        done, refused = list(part.done), list(part.refused)
        while part.next_after is not None:
            request = request.model_copy(update={"after": part.next_after})
            part = self._connection.post(answer, path, request, parameters=limits)
            done += part.done
            refused += part.refused
        return first.model_copy(
            update={"done": tuple(done), "refused": tuple(refused), "next_after": None}
        )

    def _wait_for_change(
        self, scope: SubscriptionRequest, cursor: int | None, period: float
    ) -> int | None:
        """Waits for an event of a scope, at most `POLL_SECONDS`.

        Args:
            scope: The events.
            cursor: Cursor that the caller's state has reached; `None` only finds the present one.
            period: Seconds to wait where the server has no room for another long poll.

        Returns:
            The cursor after which the next wait begins; `None` if it is not known.
        """
        try:
            return self._feed.poll(scope, cursor, 0.0 if cursor is None else POLL_SECONDS)[1]
        except EventsLostError:
            return None
        except (TooManyRequestsError, ServerError):
            self._connection.sleep(period)
            return None

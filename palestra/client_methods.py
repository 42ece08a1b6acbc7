"""What the groups of methods of `palestra.Client` share."""

from collections.abc import Sequence
from typing import Final, cast

from palestra.connection import Connection
from palestra.contract.event_streams import EventType, SubscriptionRequest
from palestra.errors import EventsLostError, ServerError, TooManyRequestsError
from palestra.event_feed import POLL_SECONDS, EventFeed

PAGE_SIZE: Final = 200
"""Items of a list that one request asks for."""


class ClientMethods:
    """A group of methods of `palestra.Client`, which sets the attributes."""

    _connection: Connection
    _feed: EventFeed
    _project: str | None
    """Slug of the project that the client is bound to; `None` for all projects of the token."""
    _within: str
    """Path of the project that the client is bound to; empty for all projects of the token."""

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

"""Streams with equal filters, indexed by the runs and the experiments that they follow.

An event is compared only with the groups that follow its run or its experiment and with those that
follow no particular one, and once per group, however many streams the group has.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from app.services.events.filters import EventKey, StreamFilter
from app.services.events.frames import LiveEvent
from app.services.events.subscriptions import EventBatch, EventSubscription, Part, match

_Place = tuple[str, str]
_EVERYTHING: _Place = ("", "")


@dataclass(slots=True, eq=False)
class _Group:
    filters: tuple[StreamFilter, ...]
    numbered: bool
    streams: set[EventSubscription] = field(default_factory=set)

    @property
    def places(self) -> set[_Place]:
        """Keys of the index under which events that the group may take are found."""
        found: set[_Place] = set()
        for one in self.filters:
            if one.runs:
                found |= {("run", run) for run in one.runs}
            elif one.experiments:
                found |= {("experiment", experiment) for experiment in one.experiments}
            else:
                found.add(_EVERYTHING)
        return found


class StreamGroups:
    """The open streams of a process."""

    def __init__(self) -> None:
        self._groups: dict[tuple[tuple[StreamFilter, ...], bool], _Group] = {}
        self._index: defaultdict[_Place, set[_Group]] = defaultdict(set)
        self._streams: dict[EventSubscription, _Group] = {}

    def __len__(self) -> int:
        return len(self._streams)

    def __iter__(self) -> Iterator[EventSubscription]:
        return iter(tuple(self._streams))

    def add(self, stream: EventSubscription) -> None:
        """Adds a stream to the group of its filters."""
        key = (stream.filters, stream.numbered)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group(*key)
            for place in group.places:
                self._index[place].add(group)
        group.streams.add(stream)
        self._streams[stream] = group

    def discard(self, stream: EventSubscription) -> None:
        """Removes a stream."""
        group = self._streams.pop(stream, None)
        if group is None:
            return
        group.streams.discard(stream)
        if not group.streams:
            del self._groups[group.filters, group.numbered]
            for place in group.places:
                self._index[place].discard(group)
                if not self._index[place]:
                    del self._index[place]

    def change(self, stream: EventSubscription, filters: tuple[StreamFilter, ...]) -> None:
        """Replaces the filters of a stream."""
        if filters == stream.filters or stream not in self._streams:
            return
        self.discard(stream)
        stream.filters = filters
        self.add(stream)

    def is_wanted(self, event: EventKey) -> bool:
        """Returns whether any stream takes an event."""
        return any(match(group.filters, event) for group in self._find(event))

    def offer(self, events: Sequence[LiveEvent]) -> None:
        """Queues events, in the order of their IDs, at each stream that takes them."""
        parts: defaultdict[_Group, list[Part]] = defaultdict(list)
        for event in events:
            for group in self._find(event.key):
                numbers = match(group.filters, event.key)
                if numbers:
                    parts[group].append((event, numbers))
        for group, some in parts.items():
            delivery = EventBatch(some, numbered=group.numbered)
            for stream in group.streams:
                stream.offer(delivery)

    def _find(self, event: EventKey) -> Iterable[_Group]:
        # A defaultdict's `get` adds nothing.
        found = self._index.get(_EVERYTHING, set())
        for place in (("run", event.run_id), ("experiment", event.experiment_id)):
            if place[1] is not None:
                found = found | self._index.get((place[0], place[1]), set())
        return found

"""Which updates this process and its subprocesses compile at the moment, and what failed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from workers.core.shared_counter import SharedCount


class Compilations:
    """Counts the compilations under way and passes on the failed ones.

    There is one for a process, since updates are compiled deep within agents, at the first call.
    """

    def __init__(self) -> None:
        self.on_failure: Callable[[str], None] = lambda _: None
        """Called with one sentence if an update cannot be compiled and runs eagerly instead."""
        self.shared: SharedCount | None = None
        """Compilations of this process and of those that share the count."""
        self._own = 0

    @property
    def are_under_way(self) -> bool:
        """Whether this process, or one that shares the count, compiles."""
        return self._own > 0 or (self.shared is not None and self.shared.value > 0)

    def share(self) -> SharedCount:
        """Returns the count to which subprocesses add, by setting it as their `shared`."""
        if self.shared is None:
            self.shared = SharedCount()
        return self.shared

    @contextmanager
    def add(self) -> Iterator[None]:
        """Counts one compilation while the context is open."""
        self._change(1)
        try:
            yield
        finally:
            self._change(-1)

    def _change(self, by: int) -> None:
        self._own += by
        if self.shared is not None:
            self.shared.add(by)


COMPILATIONS = Compilations()
"""Those of this process."""

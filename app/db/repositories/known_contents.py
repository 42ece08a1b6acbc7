"""What a process keeps of rows that never change, so that lists need not read them again."""

from collections.abc import Iterable
from typing import Generic, TypeVar

Content = TypeVar("Content")


class KnownContents(Generic[Content]):
    """Contents by key, of which the oldest ones are dropped.

    Connections look for keys in threads of their own; contents are added in one thread.

    Args:
        most: Largest number of contents.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[str, Content] = {}

    def find(self, keys: Iterable[str]) -> dict[str, Content]:
        """Returns those that are kept."""
        kept = self._kept
        return {key: content for key in keys if (content := kept.get(key)) is not None}

    def add(self, key: str, content: Content) -> None:
        """Keeps a content, and drops the oldest one if there are too many."""
        self._kept[key] = content
        while len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]

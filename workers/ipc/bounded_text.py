"""Texts of which head and tail are kept when they are too long: an error is often at the end."""

from typing import Final

_NOTE_CHARACTERS: Final = 48
"""Space for the note between head and tail."""


class BoundedText:
    """A text that grows at its end, and of which only head and tail are kept.

    Args:
        max_characters: Length up to which the whole text is kept; at least 100.
    """

    def __init__(self, max_characters: int) -> None:
        self._max = max_characters
        self._side = (max_characters - _NOTE_CHARACTERS) // 2
        self.clear()

    def clear(self) -> None:
        """Removes all of the text."""
        self._head = self._tail = ""
        self._omitted_bytes = 0

    def append(self, text: str) -> None:
        """Appends `text`."""
        room = self._side - len(self._head) if not self._tail else 0
        self._head += text[:room]
        self._tail += text[room:]
        # At twice the length, so that short texts do not copy the tail each time.
        if len(self._tail) > 2 * self._max:
            self._omitted_bytes += _count_bytes(self._tail[: -self._side])
            self._tail = self._tail[-self._side :]

    def remove_last(self, count: int) -> None:
        """Removes the last `count` characters, of the part that is kept at most."""
        from_tail = min(count, len(self._tail))
        self._tail = self._tail[: len(self._tail) - from_tail]
        if not self._omitted_bytes:
            self._head = self._head[: max(0, len(self._head) - (count - from_tail))]

    def __str__(self) -> str:
        """Returns the text; if it is too long, head and tail with a note of the bytes between."""
        if not self._omitted_bytes and len(self._head) + len(self._tail) <= self._max:
            return self._head + self._tail
        omitted = self._omitted_bytes + _count_bytes(self._tail[: -self._side])
        return f"{self._head} ... [{omitted:,} bytes left out] ... {self._tail[-self._side :]}"


def shorten(text: str, max_characters: int) -> str:
    """Returns `text`, or its head and tail if it has more than `max_characters`.

    A note between them says how many bytes of UTF-8 are left out.
    """
    bounded = BoundedText(max_characters)
    bounded.append(text)
    return str(bounded)


def _count_bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))

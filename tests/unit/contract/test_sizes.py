"""Sizes in bytes as text."""

import pytest

from palestra.contract.sizes import format_size


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 B"),
        (1_023, "1023 B"),
        (1_024, "1.0 KiB"),
        (346_419, "338.3 KiB"),
        (2**20 - 1, "1.0 MiB"),
        (4_812_331, "4.6 MiB"),
        (5 * 2**40, "5.0 TiB"),
        (3 * 2**50, "3,072.0 TiB"),
    ],
)
def test_a_size_is_written_in_the_largest_fitting_unit(size: int, words: str) -> None:
    assert format_size(size) == words

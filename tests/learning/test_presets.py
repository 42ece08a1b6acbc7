import math

import pytest

from benchmarks._learning.presets import list_preset_paths, read_preset
from benchmarks._learning.tables import interval, write_readme


@pytest.mark.parametrize("path", list_preset_paths(), ids=lambda path: path.stem)
def test_every_preset_can_be_submitted_and_says_what_it_is_to_reach(path) -> None:
    preset = read_preset(path)
    assert preset.definition.env.id
    assert math.isfinite(preset.target)


def test_the_interval_is_that_of_students_t() -> None:
    low, high = interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (low, high) == pytest.approx((3 - 1.9633, 3 + 1.9633), abs=1e-3)


def test_rows_of_presets_that_were_not_trained_now_stay(tmp_path) -> None:
    path = tmp_path / "README.md"
    path.write_text(
        "Before.\n<!-- table: written by `make learning` -->\n<!-- end of the table -->\nBehind.\n"
    )
    write_readme(path, [("a", "1"), ("b", "2"), ("gone", "3")], ["a", "b", "gone"], "First.")
    write_readme(path, [("b", "5")], ["a", "b"], "Second.")
    text = path.read_text()
    assert text.startswith("Before.\n")
    assert text.endswith("\nBehind.\n")
    assert [line for line in text.splitlines() if line.startswith("| ")][1:] == [
        "| a | 1 |",
        "| b | 5 |",
    ]
    assert "First." not in text
    assert "Second." in text

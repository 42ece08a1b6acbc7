"""The rows of the acceptance table, and how a test says which one it shows."""

import re

COUNTS = {"P": 82, "G": 49, "R": 29, "A": 22, "E": 15}
"""Rows per API: PFRL's experiments, garage's trainer, polyaxon's RLExperiment, Agent and
Experiment.
"""

ROWS = tuple(
    f"{letter}{number}" for letter, count in COUNTS.items() for number in range(1, count + 1)
)
_TEST = re.compile(r"::test_([PGRAE][0-9]+)_(\w+)")


def row_of(nodeid: str) -> tuple[str, str] | None:
    """Returns the row and the title of a test.

    Of `...::test_P12_step_offset[...]` these are P12 and "step offset".
    """
    match = _TEST.search(nodeid)
    return None if match is None else (match[1], match[2].replace("_", " "))

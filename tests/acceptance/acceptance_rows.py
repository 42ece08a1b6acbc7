"""The rows of the acceptance table, and the row to which a test belongs."""

import re

COUNTS = {"P": 82, "G": 49, "R": 29, "A": 22, "E": 15}
"""Number of rows per API: PFRL's experiments (P), garage's trainer (G), polyaxon's RLExperiment
(R), Agent (A) and Experiment (E).
"""

ROWS = tuple(
    f"{letter}{number}" for letter, count in COUNTS.items() for number in range(1, count + 1)
)
_TEST = re.compile(r"::test_([PGRAE][0-9]+)_(\w+)")


def get_row(nodeid: str) -> tuple[str, str] | None:
    """Returns row and title of a test.

    For `...::test_P12_step_offset[...]` these are P12 and "step offset".
    """
    match = _TEST.search(nodeid)
    return None if match is None else (match[1], match[2].replace("_", " "))

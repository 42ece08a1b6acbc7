"""Copies values that an algorithm records with `dowel.tabular` into the row of the epoch."""

import sys
from contextlib import suppress

from workers.entrypoints.trainer_parts.tabular import Tabular


def take_over(tabular: Tabular, itr: int) -> None:
    """Moves what dowel's table holds into a row, and lets dowel's own outputs write it, too.

    Does nothing in a process that has not imported dowel. What is no number and no word, a
    histogram for example, is left to dowel's outputs; where none takes it, dowel warns.

    Args:
        tabular: The row.
        itr: Number of the next iteration, under which dowel's outputs write.
    """
    dowel = sys.modules.get("dowel")
    if dowel is None:
        return
    for key, value in dowel.tabular.as_dict.items():
        with suppress(TypeError):
            tabular.record(key, value)
            dowel.tabular.mark(key)
    if dowel.logger.has_output_type(dowel.LogOutput):
        dowel.logger.log(dowel.tabular)
        dowel.logger.dump_all(itr)
    dowel.tabular.clear()

"""Copies values that an algorithm records with `dowel.tabular` into the row of the epoch."""

import sys
from contextlib import suppress

from workers.entrypoints.trainer_parts.tabular import Tabular


def copy_dowel_values(tabular: Tabular, itr: int) -> None:
    """Copies the values of dowel's table into a row, then writes dowel's outputs and clears it.

    Does nothing in a process that has not imported dowel. Values that are neither numbers nor text,
    for example histograms, are written only by dowel's outputs; dowel warns if no output accepts
    one.

    Args:
        tabular: The row of the current epoch.
        itr: Number of the next iteration; dowel's outputs write it as the step.
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

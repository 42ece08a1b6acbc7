"""Converts records of tables to records of points, which tests compare more easily."""

from typing import Any


def split_table(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns a record of points for each series of a table; another record as it is."""
    if record["type"] != "table":
        return [record]
    axes = {name: value for name, value in record.items() if name != "series"}
    return [
        {**axes, "type": "points", "series": name, "value": values}
        for name, values in record["series"].items()
    ]

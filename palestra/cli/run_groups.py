"""Groups of runs as a table: `palestra runs --group`."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from palestra.cli.named_keys import warn_of_unknown_keys
from palestra.cli.output import build_table, emit_json, remove_control_characters, show
from palestra.client import Client


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOptions:
    """Which groups to show."""

    by: Sequence[str]
    metric: str
    filters: str
    user: str | None
    sort: str
    limit: int


def show_groups(client: Client, wanted: GroupOptions, *, json: bool) -> None:
    """Prints groups of runs with mean and standard error of the metric."""
    found = client.run_groups(
        wanted.by,
        metric=wanted.metric,
        filter=wanted.filters,
        user=wanted.user,
        sort=wanted.sort,
    )
    rows = list(islice(found, wanted.limit))
    if json:
        return emit_json(rows)
    if all(row.n == 0 for row in rows):
        warn_of_unknown_keys(client, "runs", [("--metric", [wanted.metric])])
    cells = [
        (
            *(_write(row.by.get(key)) for key in wanted.by),
            row.runs,
            row.n,
            _write(row.mean),
            _write(row.stderr),
        )
        for row in rows
    ]
    numbers = ("runs", "n", f"mean of {wanted.metric}", "stderr")
    return show(build_table((*wanted.by, *numbers), cells, numbers=numbers))


def _write(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return "-" if value is None else remove_control_characters(str(value))

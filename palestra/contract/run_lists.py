"""What lists of runs offer beside their rows: the keys that exist, and groups of runs."""

from pydantic import JsonValue

from palestra.contract.states import RunState
from palestra.contract.views import View


class ListFieldView(View):
    """A field of runs that filters, orders, columns and groups may name."""

    name: str
    kind: str
    """What it is compared with: `text`, `number`, `time`, `choice` or `flag`."""
    description: str
    choices: tuple[str, ...]
    """Its values, if there are few."""


class RunKeysView(View):
    """The keys that filters, orders, columns and groups of runs may name."""

    fields: tuple[ListFieldView, ...]
    members: tuple[str, ...]
    """Paths of members of the definitions, for example `agent.learning_rate`."""
    series: tuple[str, ...]
    """Names of series; a statistic may follow: `evaluation/mean.best`."""
    thresholds: tuple[str, ...]
    """Names of thresholds of the projects; their keys are `reached.NAME`."""
    searched_runs: int | None
    """Number of runs whose series are named, the newest ones that the filter finds: older ones may
    have further series. `null` where no run that it finds has another series.
    """
    is_complete: bool
    """Whether all members and series are named; else some of them, those that come first by name
    or those of the newest `searched_runs` runs.
    """


class RunGroupView(View):
    """Runs that share the values of some keys."""

    name: str
    """The keys and their values; empty for the group of all runs."""
    by: dict[str, JsonValue]
    """The values that the runs share, by key; `null` where they have none."""
    filter: str
    """The filter that selects exactly these runs among all."""
    runs: int
    states: dict[RunState, int]
    """Number of runs in each state."""
    n: int
    """Number of runs that have a value of the metric."""
    mean: float | None
    """Mean of the metric over the runs that have it; `null` without one."""
    stderr: float | None
    """Standard error of the mean, from the sample standard deviation; `null` below two values."""

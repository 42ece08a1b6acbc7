"""The methods of `palestra.Client` that read runs and the records of their attempts."""

from collections.abc import Iterator, Sequence
from typing import Literal

from palestra.client_methods import PAGE_SIZE, ClientMethods
from palestra.connection import encode_path_part
from palestra.contract.comparison import ComparisonQuery, ComparisonResult
from palestra.contract.health import HealthView
from palestra.contract.names import EvaluationSource
from palestra.contract.queries import EventView, LogView, SeriesInfo, SeriesQuery, SeriesResult
from palestra.contract.resources import (
    EvaluationView,
    ProvenanceView,
    RunDetail,
    RunView,
    SnapshotView,
)
from palestra.contract.run_batches import RunsActed, RunsAction, RunSelection, RunVerb
from palestra.contract.run_lists import RunGroupView, RunKeysView
from palestra.contract.states import FINAL_RUN_STATES, RunState
from palestra.contract.statistics import StatisticsQuery, StatisticsResult


class RunMethods(ClientMethods):
    """Runs with their snapshots, evaluations, curves, events and logs."""

    def runs(
        self,
        experiment_id: str | None = None,
        *,
        state: str | None = None,
        user: str | None = None,
        filter: str = "",  # noqa: A002 - the name of the parameter of the API
        sort: str = "-created_at",
        columns: Sequence[str] = (),
    ) -> Iterator[RunView]:
        """Yields runs, newest first; all filters must hold.

        Args:
            experiment_id: Experiment.
            state: State of the run.
            user: Login name of the submitter; `me` is the token's user.
            filter: A filter, for example `agent:ppo evaluation/mean.best>3000`
                (`palestra.contract.filters`).
            sort: A field of the filter, with a minus in front for descending order; up to four
                with commas between them, for example `agent,-evaluation/mean.best,-created`
                (`palestra.contract.list_order`).
            columns: Fields of the filter whose values the runs have in `values`.
        """
        wanted = {
            "project": self._project,
            "experiment": experiment_id,
            "state": state,
            "user": user,
            "filter": filter or None,
            "sort": sort,
            "columns": list(columns),
            "limit": PAGE_SIZE,
        }
        return self._connection.pages(RunView, "/runs", wanted)

    def run_keys(self, *, filter: str = "") -> RunKeysView:  # noqa: A002 - name of the API
        """Returns the keys that filters, orders, columns and groups of runs may name.

        Args:
            filter: Series are those of the runs that it finds. If it finds more than 2,000 and
                older ones may have other series, `searched_runs` is the number of the newest ones
                whose series are named. Without a filter they are those of all runs.
        """
        wanted = {"project": self._project, "filter": filter or None}
        return self._connection.get(RunKeysView, "/runs:keys", wanted)

    def run_groups(
        self,
        by: Sequence[str] = (),
        *,
        metric: str = "evaluation/mean.last",
        filter: str = "",  # noqa: A002 - the name of the parameter of the API
        user: str | None = None,
        sort: str = "-mean",
    ) -> Iterator[RunGroupView]:
        """Yields groups of runs with the mean of a metric and its standard error.

        Args:
            by: Keys whose values the runs of a group share, for example `agent` and
                `agent.learning_rate`; without one all runs are a group.
            metric: A series with its statistic, or a field of runs that is a number.
            filter: A filter of the runs.
            user: Login name of the submitter; `me` is the token's user.
            sort: `mean`, `n`, `runs` or `name`, with a minus in front for descending order.
        """
        wanted = {
            "project": self._project,
            "by": list(by),
            "metric": metric,
            "filter": filter or None,
            "user": user,
            "sort": sort,
            "limit": PAGE_SIZE,
        }
        return self._connection.pages(RunGroupView, "/runs:groups", wanted)

    def act_on_runs(
        self,
        action: RunVerb,
        selection: RunSelection,
        *,
        origin: Literal["newest", "start"] = "newest",
        reason: str = "",
        dry_run: bool = False,
    ) -> RunsActed:
        """Pauses, resumes, cancels or retries many runs, by as many requests as needed.

        Args:
            action: What to do with each run.
            selection: Named runs, or all that fit a filter.
            origin: Where a retry starts: at the newest verified snapshot, or at the beginning.
            reason: Kept in the audit log.
            dry_run: Counts the runs and changes none.
        """
        request = RunsAction(
            action=action, selection=selection, origin=origin, reason=reason, dry_run=dry_run
        )
        return self._act_on_many(RunsActed, "/runs:act", request)

    def run(self, run_id: str) -> RunDetail:
        """Returns a run with its attempts and jobs."""
        return self._connection.get(RunDetail, f"/runs/{encode_path_part(run_id)}")

    def health(self, run_id: str) -> HealthView:
        """Returns what is wrong with a run's training: findings with number and remedy."""
        return self._connection.get(HealthView, f"/runs/{encode_path_part(run_id)}/health")

    def provenance(self, run_id: str) -> ProvenanceView:
        """Returns the provenance of a run: code, packages and machines of its attempts."""
        return self._connection.get(ProvenanceView, f"/runs/{encode_path_part(run_id)}/provenance")

    def watch(self, experiment_id: str, *, period: float = 1.0) -> Iterator[list[RunView]]:
        """Yields the experiment's runs in order of their seeds, repeatedly, until all have ended.

        Args:
            experiment_id: Experiment.
            period: Seconds between two requests while a run trains. While none does, the next
                request follows a change of a run.
        """
        scope = self._follow(experiments=[experiment_id], types=["run"])
        cursor: int | None = None
        while True:
            runs = sorted(self.runs(experiment_id), key=lambda run: (run.seed, run.replicate))
            yield runs
            if all(run.state in FINAL_RUN_STATES for run in runs):
                return
            if any(run.state is RunState.RUNNING for run in runs):
                # The progress of a training run changes without an event.
                self._connection.sleep(period)
                cursor = None
            else:
                cursor = self._wait_for_change(scope, cursor, period)

    def snapshots(self, run_id: str) -> Iterator[SnapshotView]:
        """Yields a run's snapshots, newest first."""
        return self._connection.pages(
            SnapshotView, f"/runs/{encode_path_part(run_id)}/snapshots", {"limit": PAGE_SIZE}
        )

    def evaluations(
        self, run_id: str, *, superseded: bool = False, source: EvaluationSource | None = None
    ) -> Iterator[EvaluationView]:
        """Yields a run's evaluations, of one source or of all.

        Evaluations by evaluation jobs are included.
        """
        wanted = {"superseded": superseded, "source": source, "limit": PAGE_SIZE}
        return self._connection.pages(
            EvaluationView, f"/runs/{encode_path_part(run_id)}/evaluations", wanted
        )

    def series_names(self, run_id: str) -> list[SeriesInfo]:
        """Returns all series of a run with their summaries, ordered by name."""
        return list(
            self._connection.pages(
                SeriesInfo, f"/runs/{encode_path_part(run_id)}/series", {"limit": PAGE_SIZE}
            )
        )

    def series(self, query: SeriesQuery) -> SeriesResult:
        """Returns curves on one common grid."""
        return self._connection.post(SeriesResult, "/series:query", query)

    def aggregate_statistics(self, query: StatisticsQuery) -> StatisticsResult:
        """Returns statistics over groups of runs: scores, aggregates, profiles, comparisons."""
        return self._connection.post(StatisticsResult, "/statistics:aggregate", query)

    def compare_runs(self, query: ComparisonQuery) -> ComparisonResult:
        """Returns how runs, or groups of runs, differ in definitions, origin and scores."""
        return self._connection.post(ComparisonResult, "/runs:compare", query)

    def events(
        self,
        *,
        after: int | None = None,
        types: Sequence[str] = (),
        experiment_id: str | None = None,
        run_id: str | None = None,
        reconnect: bool = True,
    ) -> Iterator[EventView]:
        """Yields events as they happen, without end.

        After a lost connection the stream resumes after the last event that was received. Where a
        proxy holds back the stream, long polls bring the same events.

        Args:
            after: Cursor, for example `SeriesResult.cursor`; `None` begins now.
            types: Types to yield; empty yields all.
            experiment_id: Only events of this experiment.
            run_id: Only events of this run.
            reconnect: Whether to connect again after a loss.

        Raises:
            EventsLostError: While iterating, if the server no longer holds the events after the
                cursor, or the events were read too slowly.
        """
        scope = self._follow(
            runs=[] if run_id is None else [run_id],
            experiments=[] if experiment_id is None else [experiment_id],
            types=types,
        )
        return self._feed.follow(scope, after, reconnect=reconnect)

    def log(self, run_id: str, *, after: int = 0, limit: int = 1_000) -> LogView:
        """Returns the lines of a run's log after line `after`, the last page with open lines."""
        return self._connection.get(
            LogView, f"/runs/{encode_path_part(run_id)}/log", {"after": after, "limit": limit}
        )

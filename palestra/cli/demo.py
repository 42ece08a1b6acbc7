"""`palestra demo`: trains and evaluates agents of a definition with all parts of Palestra.

The processes that it starts are stopped at the end.
"""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Annotated, Final, TypeVar

import typer
from rich.table import Table
from rich.text import Text

from palestra import presets
from palestra.cli.documents import parse_seeds, read_submission
from palestra.cli.embedded.instance import Instance, InstanceOptions
from palestra.cli.output import (
    FAILURE,
    CommandError,
    build_table,
    err,
    format_mean_and_spread,
    format_number,
    out,
    say,
    show,
)
from palestra.cli.server_address import DEFAULT_DATA_DIR
from palestra.cli.up import DataDirOption
from palestra.cli.watch_runs import Board
from palestra.client import Client
from palestra.contract.job_options import JobRequest, Submission
from palestra.contract.names import Schedule
from palestra.contract.resources import EvaluationView, RunView
from palestra.contract.states import FINAL_JOB_STATES, FINAL_RUN_STATES, JobState, RunState
from palestra.errors import ConflictError, ServerError, UnreachableError
from palestra.provenance import capture

EXAMPLE: Final = "cartpole-dqn.yaml"
FRESH_EPISODES: Final = 20
FRESH_SHARE: Final = 450 / 475
"""Share of the success score that the last snapshot must reach on new episodes."""

_PERIOD: Final = 0.3
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class _Result:
    run: RunView
    fresh: EvaluationView | None
    is_good: bool


def register(app: typer.Typer) -> None:
    """Adds the command of this module to a group."""
    app.command()(demo)


def demo(
    file: Annotated[
        str | None, typer.Option("--file", help="Definition; CartPole with DQN by default.")
    ] = None,
    seeds: Annotated[str, typer.Option(help="Seeds to train.")] = "0-2",
    slots: Annotated[int, typer.Option(min=1, max=64, help="Trainings at once.")] = 2,
    port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help="Port of the dashboard.")
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=1, help="Seconds after which the demo gives up.")
    ] = 1_800,
    data_dir: DataDirOption = Path(DEFAULT_DATA_DIR),
) -> None:
    """Trains and evaluates three seeds of DQN on CartPole with all parts of Palestra.

    Starts a server, a broker and a worker, and stops them at the end.
    """
    submission = read_submission(file or str(find_example()))
    options = submission.options.model_copy(update={"seeds": parse_seeds(seeds)})
    submission = submission.model_copy(update={"options": options, "provenance": capture(sys.argv)})
    instance = Instance(
        InstanceOptions(data_dir=data_dir, port=port, slots=slots),
        lambda sentence: err.print(Text(sentence)),
    )
    say("Palestra is starting: SQLite, Valkey, server with its daemons, one worker ...")
    with instance.run(), instance.client() as client:
        say(f"Dashboard   {instance.login_url}  (logs you in, once)")
        results = _Demo(instance, client, time.monotonic() + timeout).run(submission)
        say("Stopping everything ...")
    say("Stopped. `make up` (or `palestra up`) serves the same data again.")
    if not all(result.is_good for result in results):
        raise typer.Exit(FAILURE)


def find_example() -> Path:
    """Returns the demo's definition, from the checkout or from the installed package.

    Raises:
        CommandError: If neither has it.
    """
    directory = presets.find_directory()
    if directory is not None and (directory / EXAMPLE).is_file():
        return directory / EXAMPLE
    raise CommandError(f"{EXAMPLE} is missing: name a definition with --file")


class _Demo:
    def __init__(self, instance: Instance, client: Client, deadline: float) -> None:
        self._instance = instance
        self._client = client
        self._deadline = deadline

    def run(self, submission: Submission) -> list[_Result]:
        experiment, created = self._client.submit_document(submission)
        say(
            f"Experiment  {experiment.id}"
            + ("" if created else "  (was here before: what is trained is not trained again)")
        )
        wanted = set(submission.options.seeds)
        if not created:
            self._retry_failed(experiment.id, wanted)
        runs = self._train(experiment.id, wanted)
        say(f"\nEvaluating the last snapshot of each seed on {FRESH_EPISODES} new episodes ...")
        results = self._compare_with_score(runs, submission.definition.stop.success_score)
        out.print()
        show(_table(results))
        say(f"\nExperiment  {experiment.id}")
        say(f"Dashboard   {self._instance.url}/experiments/{experiment.id}")
        say(f"Data        {self._instance.data.root}")
        return results

    def _retry_failed(self, experiment_id: str, seeds: set[int]) -> None:
        for run in self._runs(experiment_id, seeds):
            if run.state is RunState.PAUSED and run.job_id is not None:
                self._client.resume(run.job_id, "demo")
            elif run.state in {RunState.FAILED, RunState.CANCELLED}:
                self._client.enqueue(run.id, JobRequest(schedule=Schedule.TRAIN))

    def _train(self, experiment_id: str, seeds: set[int]) -> list[RunView]:
        with Board() as board:
            while True:
                runs = self._ask(lambda: self._runs(experiment_id, seeds))
                if runs is not None:
                    board.show(runs)
                    if all(run.state in FINAL_RUN_STATES for run in runs):
                        return runs
                self._pause()

    def _compare_with_score(self, runs: Sequence[RunView], score: float | None) -> list[_Result]:
        trained = [run for run in runs if run.state is RunState.SUCCEEDED]
        jobs = {
            run.id: self._client.evaluate(run.id, episodes=FRESH_EPISODES).id for run in trained
        }
        waiting = set(jobs.values())
        while waiting:
            waiting = {job for job in waiting if not self._is_over(job)}
            self._pause()
        return [self._result(run, jobs.get(run.id), score) for run in runs]

    def _is_over(self, job_id: str) -> bool:
        job = self._ask(lambda: self._client.job(job_id))
        return job is not None and job.state in FINAL_JOB_STATES

    def _result(self, run: RunView, job_id: str | None, score: float | None) -> _Result:
        fresh: EvaluationView | None = None
        if job_id is not None and self._client.job(job_id).state is JobState.SUCCEEDED:
            fresh = next(
                (row for row in self._client.evaluations(run.id) if row.job_id == job_id), None
            )
        latest = run.latest_evaluation
        good = fresh is not None and latest is not None
        if good and score is not None and fresh is not None and latest is not None:
            good = latest.mean >= score and fresh.mean >= score * FRESH_SHARE
        return _Result(run, fresh, good)

    def _runs(self, experiment_id: str, seeds: set[int]) -> list[RunView]:
        return sorted(
            (run for run in self._client.runs(experiment_id) if run.seed in seeds),
            key=lambda run: (run.seed, run.replicate),
        )

    def _ask(self, question: Callable[[], _Value]) -> _Value | None:
        """Returns the answer to `question`; `None` while the server does not answer.

        `restart_ended` restarts a server that has ended.
        """
        try:
            return question()
        except (UnreachableError, ServerError, ConflictError):
            return None

    def _pause(self) -> None:
        if time.monotonic() > self._deadline:
            raise CommandError("the demo took too long; its data is kept, `palestra up` shows it")
        self._instance.restart_ended()
        time.sleep(_PERIOD)


def _table(results: Sequence[_Result]) -> Table:
    headings = (
        "seed",
        "ended",
        "env_steps",
        "evaluation",
        "min",
        "max",
        "new episodes",
        "min ",
        "max ",
        "",
    )
    rows = [_row(result) for result in results]
    latest = [
        result.run.latest_evaluation.mean for result in results if result.run.latest_evaluation
    ]
    fresh = [result.fresh.mean for result in results if result.fresh]
    steps = f"{fmean(result.run.progress.env_step for result in results):,.0f}" if results else ""
    rows.append(
        (
            "all",
            "mean ± sd",
            steps,
            _over(latest),
            *_range(latest),
            _over(fresh),
            *_range(fresh),
            "",
        )
    )
    return build_table(headings, rows, numbers=headings[2:-1])


def _row(result: _Result) -> tuple[object, ...]:
    run = result.run
    score_check = (
        Text("ok", "green")
        if result.is_good
        else Text("below the score" if result.fresh else "no result", "red")
    )
    reason = str(run.cause or run.state)
    return (
        run.seed,
        reason,
        f"{run.progress.env_step:,}",
        *_cells(run.latest_evaluation),
        *_cells(result.fresh),
        score_check,
    )


def _cells(evaluation: EvaluationView | None) -> tuple[str, str, str]:
    if evaluation is None:
        return ("-", "-", "-")
    return (
        format_mean_and_spread(evaluation.mean, evaluation.stdev, evaluation.episodes),
        format_number(evaluation.min),
        format_number(evaluation.max),
    )


def _over(values: Sequence[float]) -> str:
    if not values:
        return "-"
    return format_mean_and_spread(
        fmean(values), stdev(values) if len(values) > 1 else None, len(values)
    )


def _range(values: Sequence[float]) -> tuple[str, str]:
    return (format_number(min(values)), format_number(max(values))) if values else ("-", "-")

"""The typed client of the HTTP API: submit, watch, query, control."""

import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Literal, Self

from palestra.connection import Connection, path_part
from palestra.contract.access import SessionView
from palestra.contract.audit import AuditEntry, AuditQuery
from palestra.contract.code import BuiltinCode, Code
from palestra.contract.definition import Definition
from palestra.contract.job_options import (
    EvaluateOptions,
    JobOptions,
    JobRequest,
    RetryRequest,
    Submission,
)
from palestra.contract.names import EvaluationSource, ExportFormat, Schedule
from palestra.contract.queries import EventView, LogView, SeriesInfo, SeriesQuery, SeriesResult
from palestra.contract.resources import (
    ArtifactKind,
    ArtifactView,
    CatalogueView,
    EvaluationView,
    ExperimentDetail,
    ExperimentView,
    JobAction,
    JobView,
    PoolView,
    ProvenanceView,
    ResumeAction,
    RunDetail,
    RunView,
    SnapshotView,
    SubmittedExperiment,
    WorkerView,
)
from palestra.contract.states import FINAL_JOB_STATES, JobState, RunState
from palestra.downloads import (
    StoredFile,
    choose_snapshot,
    file_of_artifact,
    files_of_export,
    files_of_snapshot,
    safe_name,
    store,
)
from palestra.people_methods import PeopleMethods
from palestra.project_methods import ProjectMethods
from palestra.token_methods import TokenMethods

FINAL_RUN_STATES: Final = frozenset({RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED})
_PAGE: Final = 200


class Client(PeopleMethods, ProjectMethods, TokenMethods):
    """A client of one server with one token. Thread-safe; usable as a context manager.

    Every method raises a `palestra.errors.PalestraError`: the subclass of `ApiError` for the
    server's refusal, or `UnreachableError`.

    Args:
        server: Base URL, for example `http://127.0.0.1:8080`.
        token: API token (`plr_...`).
        project: Slug of the project to submit to, and of which to list; `None` lists those of all
            projects that the token may read, and submits to the only one.
        timeout: Seconds for each of connecting, sending and receiving.
    """

    def __init__(
        self, server: str, token: str, *, project: str | None = None, timeout: float = 30.0
    ) -> None:
        self._connection = Connection(server, token, timeout=timeout)
        self._within = "" if project is None else f"/projects/{path_part(project)}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()

    def session(self) -> SessionView:
        """Returns the user and the permissions of the token."""
        return self._connection.get(SessionView, "/session")

    def submit(
        self,
        definition: Definition,
        options: JobOptions | None = None,
        *,
        code: Code | None = None,
        provenance: dict[str, Any] | None = None,
        key: str | None = None,
    ) -> SubmittedExperiment:
        """Submits a definition.

        The same definition and code give the same experiment, to which missing seeds are added.

        Args:
            definition: What to train and how.
            options: Seeds and queue options.
            code: Identity of the code; built-in parts by default.
            provenance: What `palestra.provenance.capture` returned.
            key: `Idempotency-Key`; a new one by default, so that a retry after a lost answer does
                not submit twice.
        """
        return self.submit_document(
            Submission(
                definition=definition,
                options=options or JobOptions(),
                code=code or BuiltinCode(),
                provenance=provenance or {},
            ),
            key=key,
        )[0]

    def submit_document(
        self, submission: Submission, *, key: str | None = None
    ) -> tuple[SubmittedExperiment, bool]:
        """Submits a whole document.

        Returns the experiment, with `warnings`, and whether it is new.
        """
        key = key or str(uuid.uuid4())
        experiment, status = self._connection.send(
            SubmittedExperiment, "POST", f"{self._within}/experiments", body=submission, key=key
        )
        return experiment, status == 201

    def experiments(
        self,
        *,
        state: str | None = None,
        agent: str | None = None,
        env: str | None = None,
        text: str | None = None,
        archived: bool = False,
        user: str | None = None,
    ) -> Iterator[ExperimentView]:
        """Yields experiments, newest first; all filters must hold.

        Args:
            state: State of the experiment.
            agent: Name of its agent.
            env: Id of its environment.
            text: Part of its name or ID.
            archived: Whether to list the archived ones instead.
            user: Login name of who submitted them; `me` is the token's user.
        """
        wanted = {
            "state": state,
            "agent": agent,
            "env": env,
            "text": text,
            "archived": archived,
            "user": user,
            "limit": _PAGE,
        }
        return self._connection.pages(ExperimentView, f"{self._within}/experiments", wanted)

    def experiment(self, experiment_id: str) -> ExperimentDetail:
        """Returns an experiment with its definition."""
        return self._connection.get(ExperimentDetail, self._experiment(experiment_id))

    def _experiment(self, experiment_id: str) -> str:
        """Returns the path of an experiment, whose ID is unique within its project."""
        return f"{self._within}/experiments/{path_part(experiment_id)}"

    def archive(self, experiment_id: str) -> ExperimentDetail:
        """Hides an experiment from lists; nothing is deleted."""
        return self._connection.post(ExperimentDetail, f"{self._experiment(experiment_id)}:archive")

    def unarchive(self, experiment_id: str) -> ExperimentDetail:
        """Restores an archived experiment, so that lists show it again."""
        return self._connection.post(
            ExperimentDetail, f"{self._experiment(experiment_id)}:unarchive"
        )

    def runs(
        self,
        experiment_id: str | None = None,
        *,
        state: str | None = None,
        user: str | None = None,
    ) -> Iterator[RunView]:
        """Yields runs, newest first; `user` is who submitted them, `me` the token's user."""
        wanted = {"experiment": experiment_id, "state": state, "user": user, "limit": _PAGE}
        return self._connection.pages(RunView, f"{self._within}/runs", wanted)

    def run(self, run_id: str) -> RunDetail:
        """Returns a run with its attempts and jobs."""
        return self._connection.get(RunDetail, f"/runs/{path_part(run_id)}")

    def provenance(self, run_id: str) -> ProvenanceView:
        """Returns the full record of how a run came about."""
        return self._connection.get(ProvenanceView, f"/runs/{path_part(run_id)}/provenance")

    def snapshots(self, run_id: str) -> Iterator[SnapshotView]:
        """Yields a run's snapshots, newest first."""
        return self._connection.pages(
            SnapshotView, f"/runs/{path_part(run_id)}/snapshots", {"limit": _PAGE}
        )

    def evaluations(
        self, run_id: str, *, superseded: bool = False, source: EvaluationSource | None = None
    ) -> Iterator[EvaluationView]:
        """Yields a run's evaluations, of one source or of all.

        Those of evaluation jobs are included.
        """
        wanted = {"superseded": superseded, "source": source, "limit": _PAGE}
        return self._connection.pages(
            EvaluationView, f"/runs/{path_part(run_id)}/evaluations", wanted
        )

    def artifacts(self, run_id: str, *, kind: ArtifactKind | None = None) -> Iterator[ArtifactView]:
        """Yields a run's stored files, newest first: of one kind, or of all."""
        return self._connection.pages(
            ArtifactView, f"/runs/{path_part(run_id)}/artifacts", {"kind": kind, "limit": _PAGE}
        )

    def artifact(self, artifact_id: str) -> ArtifactView:
        """Returns the description of a stored file."""
        return self._connection.get(ArtifactView, f"/artifacts/{path_part(artifact_id)}")

    def download(self, artifact: ArtifactView | str, directory: Path) -> Path:
        """Downloads a stored file below a directory, verifies it and returns its path.

        Size and SHA-256 are compared with what the server recorded.

        Characters of its name that no file name may hold are replaced. An existing file with the
        same content is kept.

        Args:
            artifact: The file, or its id.
            directory: Directory to write to; it is created.

        Raises:
            DownloadError: If the content differs from the stored one, or another file has its path.
        """
        return self._store(
            file_of_artifact(self.artifact(artifact) if isinstance(artifact, str) else artifact),
            directory,
        )

    def download_snapshot(self, run_id: str, directory: Path, *, snapshot: str = "best") -> Path:
        """Downloads and verifies a snapshot into a directory named by its ID below `directory`.

        Returns that directory.

        Args:
            run_id: Run of the snapshot.
            directory: Directory to write to; it is created.
            snapshot: `best`, `newest` or an id.

        Raises:
            DownloadError: If the run has no such snapshot, or a file could not be stored; see
                `download`.
        """
        found = choose_snapshot(run_id, self.snapshots(run_id), snapshot)
        place = directory / safe_name(found.id)
        for file in files_of_snapshot(found):
            self._store(file, place)
        return place

    def download_export(
        self,
        run_id: str,
        directory: Path,
        *,
        format: ExportFormat = "weights",  # noqa: A002 - the API's word
    ) -> list[Path]:
        """Downloads the newest export of a run in a format; returns its files.

        Raises:
            DownloadError: If the run has none, or a file could not be stored; see `download`.
        """
        files = files_of_export(run_id, self.artifacts(run_id, kind="export"), format)
        return [self._store(file, directory) for file in files]

    def _store(self, file: StoredFile, directory: Path) -> Path:
        path = f"/artifacts/{path_part(file.artifact_id)}/content"
        return store(file, directory, lambda offset: self._connection.content(path, offset))

    def jobs(
        self,
        *,
        experiment_id: str | None = None,
        run_id: str | None = None,
        pool: str | None = None,
        state: str | None = None,
        user: str | None = None,
    ) -> Iterator[JobView]:
        """Yields jobs; `user` is who submitted them, `me` the token's user."""
        wanted = {
            "experiment": experiment_id,
            "run": run_id,
            "pool": pool,
            "state": state,
            "user": user,
            "limit": _PAGE,
        }
        return self._connection.pages(JobView, f"{self._within}/jobs", wanted)

    def job(self, job_id: str) -> JobView:
        """Returns a job."""
        return self._connection.get(JobView, f"/jobs/{path_part(job_id)}")

    def enqueue(self, run_id: str, request: JobRequest, *, key: str | None = None) -> JobView:
        """Queues a schedule on a run."""
        return self._connection.post(
            JobView, f"/runs/{path_part(run_id)}/jobs", request, key=key or str(uuid.uuid4())
        )

    def evaluate(
        self,
        run_id: str,
        *,
        snapshot: str = "newest",
        episodes: int | None = None,
        seed: int | None = None,
        pool: str | None = None,
    ) -> JobView:
        """Queues an evaluation of a snapshot.

        Args:
            run_id: Run.
            snapshot: `newest`, `best` or an id.
            episodes: Episodes; `None` takes the definition's.
            seed: Seed of the episodes; `None` takes a new one.
            pool: Pool of workers; `None` takes the one of the run's training.
        """
        options = EvaluateOptions(snapshot=snapshot, episodes=episodes, seed=seed)
        return self.enqueue(
            run_id, JobRequest(schedule=Schedule.EVALUATE, evaluate=options, pool=pool)
        )

    def follow(
        self,
        run_id: str,
        options: EvaluateOptions | None = None,
        *,
        on_train_data: bool = False,
        pool: str | None = None,
    ) -> JobView:
        """Queues a continuous evaluation, which evaluates a run's snapshots as they are written.

        It has a slot of its own and ends with the training.

        Args:
            run_id: Run whose training it follows.
            options: Episodes, seed, and times between evaluations.
            on_train_data: Whether to evaluate on the training's own episodes, as a separate series.
            pool: Pool of workers; `None` takes the one of the run's training.
        """
        schedule = (
            Schedule.CONTINUOUS_EVAL_ON_TRAIN_DATA if on_train_data else Schedule.CONTINUOUS_EVAL
        )
        return self.enqueue(
            run_id, JobRequest(schedule=schedule, evaluate=options or EvaluateOptions(), pool=pool)
        )

    def test(self, run_id: str, *, pool: str | None = None) -> JobView:
        """Queues a test: one update, one evaluation, one export.

        Nothing of it becomes part of the run's history.
        """
        return self.enqueue(run_id, JobRequest(schedule=Schedule.TEST, pool=pool))

    def export(
        self,
        run_id: str,
        formats: Sequence[ExportFormat] = (),
        *,
        snapshot: str = "newest",
        pool: str | None = None,
    ) -> JobView:
        """Queues an export of a snapshot.

        Its artifacts have the kind `export` and hold only what is needed to act.

        Args:
            run_id: Run.
            formats: Formats to write; empty takes the definition's, or `weights` where it names
                none.
            snapshot: `newest`, `best` or an id.
            pool: Pool of workers; `None` takes the one of the run's training.
        """
        options = EvaluateOptions(snapshot=snapshot, formats=tuple(formats) or None)
        return self.enqueue(
            run_id, JobRequest(schedule=Schedule.EXPORT, evaluate=options, pool=pool)
        )

    def pause(self, job_id: str, reason: str = "") -> JobView:
        """Pauses a job after a snapshot, from which `resume` continues."""
        return self._act(job_id, "pause", reason)

    def resume(self, job_id: str, reason: str = "", *, allow_code_change: bool = False) -> JobView:
        """Queues a paused job again.

        With `allow_code_change` also if the workers' code differs from the experiment's.
        """
        if not allow_code_change:
            return self._act(job_id, "resume", reason)
        action = ResumeAction(reason=reason, allow_code_change=True)
        return self._connection.post(JobView, f"/jobs/{path_part(job_id)}:resume", action)

    def retry(
        self,
        run_id: str,
        *,
        origin: Literal["newest", "start"] = "newest",
        allow_code_change: bool = False,
        reason: str = "",
    ) -> JobView:
        """Queues another training of a run that failed or was cancelled, with the same options.

        Args:
            run_id: Run.
            origin: `newest` resumes from the newest verified snapshot, or from the beginning if
                there is none; `start` starts from the beginning.
            allow_code_change: Whether the workers' code may differ from the experiment's.
            reason: Kept in the audit log.
        """
        request = RetryRequest(origin=origin, allow_code_change=allow_code_change, reason=reason)
        return self._connection.post(
            JobView, f"/runs/{path_part(run_id)}:retry", request, key=str(uuid.uuid4())
        )

    def cancel(self, job_id: str, reason: str = "") -> JobView:
        """Cancels a job; a training saves a snapshot first."""
        return self._act(job_id, "cancel", reason)

    def give_up(self, job_id: str, reason: str = "") -> JobView:
        """Discards the results of a job that its worker has not uploaded yet.

        The job then ends without them.
        """
        return self._act(job_id, "give-up", reason)

    def _act(self, job_id: str, verb: str, reason: str) -> JobView:
        return self._connection.post(
            JobView, f"/jobs/{path_part(job_id)}:{verb}", JobAction(reason=reason)
        )

    def series_names(self, run_id: str) -> list[SeriesInfo]:
        """Returns all series of a run, by name."""
        return list(
            self._connection.pages(
                SeriesInfo, f"/runs/{path_part(run_id)}/series", {"limit": _PAGE}
            )
        )

    def series(self, query: SeriesQuery) -> SeriesResult:
        """Returns curves on one common grid."""
        return self._connection.post(SeriesResult, "/series:query", query)

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

        After a lost connection it resumes after the last event that was received.

        Args:
            after: Cursor, for example `SeriesResult.cursor`; `None` begins now.
            types: Types to yield; empty yields all.
            experiment_id: Only events of this experiment.
            run_id: Only events of this run.
            reconnect: Whether to connect again after a loss.
        """
        filters = {"type": list(types), "experiment": experiment_id, "run": run_id}
        path = f"{self._within}/events"
        return self._connection.events(path, filters, after, reconnect=reconnect)

    def log(self, run_id: str, *, after: int = 0, limit: int = 1_000) -> LogView:
        """Returns the lines of a run's log after line `after`."""
        return self._connection.get(
            LogView, f"/runs/{path_part(run_id)}/log", {"after": after, "limit": limit}
        )

    def workers(self) -> Iterator[WorkerView]:
        """Yields workers."""
        return self._connection.pages(WorkerView, "/workers")

    def forget_worker(self, worker_id: str) -> WorkerView:
        """Revokes a worker's secret, so that its name can be enrolled again at once.

        Requires the scope `admin`.
        """
        return self._connection.post(WorkerView, f"/workers/{path_part(worker_id)}:forget")

    def audit(self, query: AuditQuery | None = None) -> Iterator[AuditEntry]:
        """Yields entries of the audit log, newest first. Requires the scope `admin`."""
        wanted = {**_parameters(query), "limit": _PAGE}
        return self._connection.pages(AuditEntry, f"{self._within}/audit", wanted)

    def export_audit(self, query: AuditQuery | None = None) -> Iterator[bytes]:
        """Yields entries of the audit log as JSON lines without their ends, oldest first.

        Requires the scope `admin`. The lines are those of the server, so that the hash of each can
        be computed from them.

        Raises:
            PalestraError: If the server refused, or the connection broke before the last line.
        """
        return self._connection.lines(f"{self._within}/audit:export", _parameters(query))

    def pools(self) -> Iterator[PoolView]:
        """Yields pools with their queues."""
        return self._connection.pages(PoolView, "/pools")

    def catalogue(self, pool: str = "default") -> CatalogueView:
        """Returns the agents and environments that a pool's workers offer."""
        return self._connection.get(CatalogueView, "/catalogue", {"pool": pool})

    def watch(self, experiment_id: str, *, period: float = 1.0) -> Iterator[list[RunView]]:
        """Yields the experiment's runs in order of their seeds, repeatedly, until all have ended.

        Args:
            experiment_id: Experiment.
            period: Seconds between two requests.
        """
        while True:
            runs = sorted(self.runs(experiment_id), key=lambda run: (run.seed, run.replicate))
            yield runs
            if all(run.state in FINAL_RUN_STATES for run in runs):
                return
            time.sleep(period)

    def wait(self, job_id: str, *, period: float = 0.5, paused: bool = False) -> JobView:
        """Returns the job once it ended.

        Args:
            job_id: Job.
            period: Seconds between two requests.
            paused: Whether to return the job also when it is paused.
        """
        awaited = FINAL_JOB_STATES | {JobState.PAUSED} if paused else FINAL_JOB_STATES
        while (job := self.job(job_id)).state not in awaited:
            time.sleep(period)
        return job


def _parameters(query: AuditQuery | None) -> dict[str, Any]:
    return {} if query is None else query.model_dump(mode="json")

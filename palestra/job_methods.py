"""The methods of `palestra.Client` that queue jobs and act on them."""

import uuid
from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import RootModel

from palestra.client_methods import PAGE_SIZE, ClientMethods
from palestra.connection import encode_path_part
from palestra.contract.change_preview import ChangePreview
from palestra.contract.job_batches import JobsActed, JobsAction, JobSelection, JobVerb
from palestra.contract.job_changes import JobChange, JobReorder
from palestra.contract.job_options import (
    DependencyCondition,
    EvaluateOptions,
    JobRequest,
    RetryRequest,
)
from palestra.contract.names import EvaluationPolicy, ExportFormat, Schedule
from palestra.contract.queue import JobExplanation
from palestra.contract.resources import CancelledJobView, JobAction, JobView, ResumeAction
from palestra.contract.states import FINAL_JOB_STATES, JobState


class _AnyCancelled(RootModel[JobView | CancelledJobView]):
    """The answer to a cancellation."""


class JobMethods(ClientMethods):
    """Queues, pauses, resumes and cancels jobs, and waits for their end."""

    def jobs(
        self,
        *,
        experiment_id: str | None = None,
        run_id: str | None = None,
        pool: str | None = None,
        state: str | Sequence[str] | None = None,
        user: str | None = None,
    ) -> Iterator[JobView]:
        """Yields jobs.

        Args:
            experiment_id: Experiment.
            run_id: Run.
            pool: Name of the pool.
            state: A state, or several.
            user: Login name of who submitted them; `me` is the token's user.
        """
        wanted = {
            "project": self._project,
            "experiment": experiment_id,
            "run": run_id,
            "pool": pool,
            "state": state,
            "user": user,
            "limit": PAGE_SIZE,
        }
        return self._connection.pages(JobView, "/jobs", wanted)

    def job(self, job_id: str) -> JobView:
        """Returns a job with its state, its options and its place in the queue."""
        return self._connection.get(JobView, f"/jobs/{encode_path_part(job_id)}")

    def explain_job(self, job_id: str) -> JobExplanation:
        """Returns why a job has not started, and what decides its place in the queue."""
        return self._connection.get(JobExplanation, f"/jobs/{encode_path_part(job_id)}/explain")

    def change_job(self, job_id: str, change: JobChange) -> JobView:
        """Changes the members of a waiting job that are set in `change`; others stay."""
        path = f"/jobs/{encode_path_part(job_id)}"
        return self._connection.send(JobView, "PATCH", path, body=change)[0]

    def preview_change(self, job_id: str, change: JobChange) -> ChangePreview:
        """Returns what `change_job` would do to the queue; changes nothing."""
        path = f"/jobs/{encode_path_part(job_id)}:preview-change"
        return self._connection.post(ChangePreview, path, change)

    def reorder_job(self, job_id: str, before: str | None) -> JobView:
        """Moves a waiting job among the jobs of the same person.

        Args:
            job_id: Job.
            before: The waiting job directly before which it is to start; `None` moves it after all
                of the person's other jobs in the same pool, project and class. Only maintainers
                move it before a job of another person; it then gets the class `urgent`.
        """
        path = f"/jobs/{encode_path_part(job_id)}:reorder"
        return self._connection.post(JobView, path, JobReorder(before=before))

    def preview_reorder(self, job_id: str, before: str | None) -> ChangePreview:
        """Returns what `reorder_job` would do to the queue; moves nothing."""
        path = f"/jobs/{encode_path_part(job_id)}:preview-reorder"
        return self._connection.post(ChangePreview, path, JobReorder(before=before))

    def preview_action(
        self, action: JobVerb, selection: JobSelection, *, change: JobChange | None = None
    ) -> ChangePreview:
        """Returns what `act_on_jobs` would do to the queue: its first request, at most 100 jobs."""
        request = JobsAction(action=action, selection=selection, change=change)
        return self._connection.post(
            ChangePreview, "/jobs:preview-act", request, parameters={"project": self._project}
        )

    def act_on_jobs(
        self,
        action: JobVerb,
        selection: JobSelection,
        *,
        change: JobChange | None = None,
        reason: str = "",
        dry_run: bool = False,
    ) -> JobsActed:
        """Pauses, resumes, cancels or changes many jobs, by as many requests as needed.

        Args:
            action: What to do with each job.
            selection: Named jobs, or all that match.
            change: What to change of waiting jobs; for the action `change` alone.
            reason: Kept in the audit log.
            dry_run: Counts the jobs and changes none.
        """
        request = JobsAction(
            action=action, selection=selection, change=change, reason=reason, dry_run=dry_run
        )
        return self._act_on_many(JobsActed, "/jobs:act", request)

    def enqueue(self, run_id: str, request: JobRequest, *, key: str | None = None) -> JobView:
        """Queues a schedule on a run."""
        return self._connection.post(
            JobView, f"/runs/{encode_path_part(run_id)}/jobs", request, key=key or str(uuid.uuid4())
        )

    def evaluate(  # noqa: PLR0913
        self,
        run_id: str,
        *,
        snapshot: str = "newest",
        episodes: int | None = None,
        seed: int | None = None,
        policy: EvaluationPolicy | None = None,
        pool: str | None = None,
        after: Sequence[str] = (),
        on: DependencyCondition = "success",
    ) -> JobView:
        """Queues an evaluation of a snapshot.

        Args:
            run_id: Run.
            snapshot: `newest`, `best` or an id.
            episodes: Episodes; `None` takes the definition's.
            seed: Seed of the episodes; `None` takes a new one.
            policy: `greedy` takes the most probable actions, `stochastic` draws them from the
                policy, `both` evaluates twice; `None` takes the definition's. Another one than
                the definition's has a source of its own.
            pool: Pool of workers; `None` takes the one of the run's training.
            after: IDs of jobs of the project that have to end before.
            on: Whether they have to succeed, or to end in `any` way.
        """
        options = EvaluateOptions(snapshot=snapshot, episodes=episodes, seed=seed, policy=policy)
        request = JobRequest(
            schedule=Schedule.EVALUATE, evaluate=options, pool=pool, after=tuple(after), on=on
        )
        return self.enqueue(run_id, request)

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

        The results of the test do not become part of the run's history.
        """
        return self.enqueue(run_id, JobRequest(schedule=Schedule.TEST, pool=pool))

    def export(
        self,
        run_id: str,
        formats: Sequence[ExportFormat] = (),
        *,
        snapshot: str = "newest",
        pool: str | None = None,
        after: Sequence[str] = (),
        on: DependencyCondition = "success",
    ) -> JobView:
        """Queues an export of a snapshot.

        Its artifacts have the kind `export` and hold only what is needed to act.

        Args:
            run_id: Run.
            formats: Formats to write; empty takes the definition's, or `weights` where it names
                none.
            snapshot: `newest`, `best` or an id.
            pool: Pool of workers; `None` takes the one of the run's training.
            after: IDs of jobs of the project that have to end before.
            on: Whether they have to succeed, or to end in `any` way.
        """
        options = EvaluateOptions(snapshot=snapshot, formats=tuple(formats) or None)
        request = JobRequest(
            schedule=Schedule.EXPORT, evaluate=options, pool=pool, after=tuple(after), on=on
        )
        return self.enqueue(run_id, request)

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
        return self._connection.post(JobView, f"/jobs/{encode_path_part(job_id)}:resume", action)

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
            JobView, f"/runs/{encode_path_part(run_id)}:retry", request, key=str(uuid.uuid4())
        )

    def cancel(self, job_id: str, reason: str = "") -> JobView:
        """Cancels a job; a training saves a snapshot first."""
        return self._act(job_id, "cancel", reason)

    def cancel_any(self, job_id: str, reason: str = "") -> JobView | CancelledJobView:
        """Cancels a job of any project, which requires an administrator of the server.

        Of a job in a project that you may not read it returns the ID and the state.
        """
        path = f"/jobs/{encode_path_part(job_id)}:cancel"
        return self._connection.post(_AnyCancelled, path, JobAction(reason=reason)).root

    def give_up(self, job_id: str, reason: str = "") -> JobView:
        """Discards the results of a job that its worker has not uploaded yet.

        The job then ends without them.
        """
        return self._act(job_id, "give-up", reason)

    def wait(self, job_id: str, *, period: float = 0.5, paused: bool = False) -> JobView:
        """Returns the job once it has ended.

        Args:
            job_id: Job.
            period: Seconds between two requests where the server has no room for a long poll.
            paused: Whether to return the job also when it is paused.
        """
        awaited = FINAL_JOB_STATES | {JobState.PAUSED} if paused else FINAL_JOB_STATES
        cursor: int | None = None
        while (job := self.job(job_id)).state not in awaited:
            scope = self._follow(experiments=[job.experiment_id], types=["job"])
            cursor = self._wait_for_change(scope, cursor, period)
        return job

    def _act(self, job_id: str, verb: str, reason: str) -> JobView:
        return self._connection.post(
            JobView, f"/jobs/{encode_path_part(job_id)}:{verb}", JobAction(reason=reason)
        )

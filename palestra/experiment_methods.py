"""The methods of `palestra.Client` that submit, preview, list, archive and move experiments."""

import uuid
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Any

from palestra.client_methods import PAGE_SIZE, ClientMethods
from palestra.connection import encode_path_part
from palestra.contract.code import BuiltinCode, Code
from palestra.contract.definition import Definition
from palestra.contract.job_changes import ExperimentChange
from palestra.contract.job_options import JobOptions, Submission
from palestra.contract.moves import MoveRequest
from palestra.contract.presets import PresetView
from palestra.contract.queue import SubmissionPreview
from palestra.contract.resources import ExperimentDetail, ExperimentView, SubmittedExperiment


class ExperimentMethods(ClientMethods):
    """Submits, lists and archives experiments."""

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
            options: Seeds and queue options; more than 1,000 seeds are sent as several submissions.
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
        """Submits a document with definition and options.

        More than 1,000 seeds are sent as several submissions. If one of them fails, the seeds of
        those before are queued; the same call again adds the others.

        Returns:
            The experiment, with `warnings`, and whether it is new.
        """
        key = key or str(uuid.uuid4())
        parts = submission.split()
        answers = [
            self._connection.send(
                SubmittedExperiment,
                "POST",
                "/experiments",
                body=part,
                parameters={"project": self._project},
                key=key if len(parts) == 1 else f"{key}-{number}",
            )
            for number, part in enumerate(parts)
        ]
        warnings = {
            (warning.pointer, warning.message): warning
            for answer, _ in answers
            for warning in answer.warnings
        }
        experiment = answers[-1][0].model_copy(update={"warnings": list(warnings.values())})
        return experiment, answers[0][1] == HTTPStatus.CREATED

    def preview(
        self,
        definition: Definition,
        options: JobOptions | None = None,
        *,
        code: Code | None = None,
    ) -> SubmissionPreview:
        """Returns the jobs that `submit` would queue, and when they would start; queues nothing.

        Args:
            definition: What to train and how.
            options: Seeds and queue options.
            code: Identity of the code; built-in parts by default.
        """
        return self.preview_document(
            Submission(
                definition=definition,
                options=options or JobOptions(),
                code=code or BuiltinCode(),
            )
        )

    def preview_document(self, submission: Submission) -> SubmissionPreview:
        """Returns the jobs that the submission of a document would queue."""
        return self._connection.post(
            SubmissionPreview,
            "/experiments:preview",
            submission,
            parameters={"project": self._project},
        )

    def presets(self) -> Iterator[PresetView]:
        """Yields the submissions that come with the server, those that train fast first."""
        return self._connection.pages(PresetView, "/definitions/presets", {})

    def experiments(  # noqa: PLR0913 - all are named
        self,
        *,
        state: str | None = None,
        agent: str | None = None,
        env: str | None = None,
        text: str | None = None,
        archived: bool = False,
        user: str | None = None,
        filter: str = "",  # noqa: A002 - the name of the parameter of the API
        sort: str = "-created_at",
        columns: Sequence[str] = (),
    ) -> Iterator[ExperimentView]:
        """Yields experiments, newest first; all filters must hold.

        Args:
            state: State of the experiment.
            agent: Name of its agent.
            env: Id of its environment.
            text: Part of its name or ID.
            archived: Whether to list the archived ones instead.
            user: Login name of the submitter; `me` is the token's user.
            filter: A filter, for example `agent:ppo evaluation/mean.best>3000`
                (`palestra.contract.filters`); a series is the mean over the runs.
            sort: A field of the filter, with a minus in front for descending order; up to four
                with commas between them, for example `agent,-evaluation/mean.best,-created`
                (`palestra.contract.list_order`).
            columns: Fields of the filter whose values the experiments have in `values`.
        """
        wanted = {
            "project": self._project,
            "state": state,
            "agent": agent,
            "env": env,
            "text": text,
            "archived": archived,
            "user": user,
            "filter": filter or None,
            "sort": sort,
            "columns": list(columns),
            "limit": PAGE_SIZE,
        }
        return self._connection.pages(ExperimentView, "/experiments", wanted)

    def experiment(self, experiment_id: str) -> ExperimentDetail:
        """Returns an experiment with its definition."""
        return self._send("GET", _path(experiment_id))

    def change_experiment(self, experiment_id: str, change: ExperimentChange) -> ExperimentDetail:
        """Changes the members that are set in `change`, explicit `None` too; running jobs go on."""
        return self._send("PATCH", _path(experiment_id), change)

    def archive(self, experiment_id: str) -> ExperimentDetail:
        """Hides an experiment from lists; nothing is deleted."""
        return self._send("POST", f"{_path(experiment_id)}:archive")

    def unarchive(self, experiment_id: str) -> ExperimentDetail:
        """Restores an archived experiment, so that lists show it again."""
        return self._send("POST", f"{_path(experiment_id)}:unarchive")

    def move_experiment(
        self, experiment_id: str, to: str, *, project: str | None = None
    ) -> ExperimentDetail:
        """Moves an experiment with its runs, jobs, curves and files to another project.

        Requires a maintainer of both projects; all jobs of the experiment must have ended.

        Args:
            experiment_id: The experiment.
            to: Slug of the other project.
            project: Slug of its present project; the client looks it up by default.
        """
        slug = project or self.experiment(experiment_id).project
        path = f"/projects/{encode_path_part(slug)}{_path(experiment_id)}:move"
        return self._connection.post(ExperimentDetail, path, MoveRequest(to=to))

    def _send(
        self, method: str, path: str, change: ExperimentChange | None = None
    ) -> ExperimentDetail:
        """Returns the answer about an experiment, whose ID is unique within its project."""
        limits = {"project": self._project}
        return self._connection.send(
            ExperimentDetail, method, path, body=change, parameters=limits
        )[0]


def _path(experiment_id: str) -> str:
    return f"/experiments/{encode_path_part(experiment_id)}"

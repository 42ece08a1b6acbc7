"""Calls about what is trained: experiments, their moves, runs and jobs."""

from tests.app.api.audited.call import IN_PROJECT, AuditedCall
from tests.support.server_fixture import make_definition

_LOOP = {"env_steps": 7}
_SEEDS = {"definition": make_definition(loop=_LOOP), "options": {"seeds": [0]}}
_MORE_SEEDS = {"definition": make_definition(loop=_LOOP), "options": {"seeds": [0, 1, 2]}}
_OTHER = {"definition": make_definition(loop={"env_steps": 8}), "options": {"seeds": [0]}}
_OTHER_MORE = {"definition": make_definition(loop={"env_steps": 8}), "options": {"seeds": [0, 1]}}
_EXPERIMENT = "/experiments/{experiment_id}"
_LAB = {"slug": "lab"}
EXPERIMENTS = tuple(
    call
    for query, first, more in (
        ("", _SEEDS, _MORE_SEEDS),
        ("?project=default", _OTHER, _OTHER_MORE),
    )
    for call in (
        AuditedCall(
            route="POST /experiments",
            query=query,
            action="experiment.create",
            about="{experiment_id}",
            who="member",
            body=first,
            keeps={"experiment_id": "id"},
            **IN_PROJECT,
        ),
        AuditedCall(
            route="POST /experiments",
            query=query,
            action="experiment.extend",
            about="{experiment_id}",
            who="member",
            body=more,
            **IN_PROJECT,
        ),
        AuditedCall(
            route=f"PATCH {_EXPERIMENT}",
            query=query,
            action="experiment.change",
            about="{experiment_id}",
            who="member",
            body={"max_running": 3},
            **IN_PROJECT,
        ),
        *(
            AuditedCall(
                route=f"POST {_EXPERIMENT}:{verb}",
                query=query,
                action=action,
                about="{idle_experiment}",
                at={"experiment_id": "{idle_experiment}"},
                **IN_PROJECT,
            )
            for verb, action in (
                ("archive", "experiment.archive"),
                ("unarchive", "experiment.restore"),
            )
        ),
    )
)
MOVES = (
    AuditedCall(
        route="POST /projects/{slug}:restore",
        action="project.restore",
        about="{lab}",
        at=_LAB,
        in_project="{lab}",
    ),
    AuditedCall(
        route="POST /projects/{slug}/experiments/{experiment_id}:move",
        action="experiment.move_out",
        about="{idle_experiment}",
        at={"slug": "default", "experiment_id": "{idle_experiment}"},
        body={"to": "lab"},
        **IN_PROJECT,
    ),
    AuditedCall(
        route="POST /projects/{slug}/experiments/{experiment_id}:move",
        action="experiment.move_in",
        about="{idle_experiment}",
        at={"slug": "lab", "experiment_id": "{idle_experiment}"},
        body={"to": "default"},
        **IN_PROJECT,
    ),
)
VIEWS = (
    *(
        AuditedCall(
            route="POST /views",
            query=query,
            action="view.create",
            about="{view_id}",
            who=who,
            body={"name": f"view of {who}", "state": {"filter": "state:running"}},
            keeps={"view_id": "id"},
            **IN_PROJECT,
        )
        # The other caller may submit to several projects by now.
        for query, who in (("", "member"), ("?project=default", "user"))
    ),
    AuditedCall(
        route="PATCH /views/{view_id}",
        action="view.change",
        about="{view_id}",
        body={"visibility": "project"},
        **IN_PROJECT,
    ),
    AuditedCall(
        route="DELETE /views/{view_id}", action="view.delete", about="{view_id}", **IN_PROJECT
    ),
)
_JOB = {"job_id": "{fresh_job}"}
_ATTEMPT = {"attempt_id": "{fresh_attempt}"}
JOBS = (
    AuditedCall(
        route="POST /runs/{run_id}/jobs",
        action="job.create",
        about="{new_job}",
        at={"run_id": "{finished_run}"},
        body={"schedule": "train"},
        keeps={"new_job": "id"},
        **IN_PROJECT,
    ),
    *(
        AuditedCall(
            route=f"POST /jobs/{{job_id}}:{verb}",
            action="job.move",
            about="{queued_job}",
            at={"job_id": "{queued_job}"},
            body={},
            **IN_PROJECT,
        )
        for verb in ("pause", "resume")
    ),
    AuditedCall(
        route="PATCH /jobs/{job_id}",
        action="job.change",
        about="{queued_job}",
        at={"job_id": "{queued_job}"},
        body={"priority": 7},
        **IN_PROJECT,
    ),
    AuditedCall(
        route="POST /jobs/{job_id}:reorder",
        action="job.reorder",
        about="{queued_job}",
        at={"job_id": "{queued_job}"},
        body={"before": None},
        **IN_PROJECT,
    ),
    AuditedCall(
        route="POST /jobs/{job_id}:cancel",
        action="job.move",
        about="{queued_job}",
        at={"job_id": "{queued_job}"},
        body={},
        **IN_PROJECT,
    ),
    *(
        AuditedCall(
            route="POST /jobs:act",
            query=query,
            action="job.move",
            about="{new_job}",
            body={"action": action, "selection": {"jobs": ["{new_job}"]}},
            **IN_PROJECT,
        )
        for query, action in (("", "pause"), ("?project=default", "resume"))
    ),
    *(
        AuditedCall(
            route="POST /runs:act",
            query=query,
            action="job.move",
            about="{new_job}",
            body={"action": action, "selection": {"runs": ["{finished_run}"]}},
            **IN_PROJECT,
        )
        for query, action in (("", "pause"), ("?project=default", "resume"))
    ),
    AuditedCall(
        route="POST /runs/{run_id}:retry",
        action="run.retry",
        about="{queued_run}",
        at={"run_id": "{queued_run}"},
        body={},
        **IN_PROJECT,
    ),
    AuditedCall(
        route="POST /leases",
        action="job.move",
        about="{fresh_job}",
        who="own_worker",
        body="{claim}",
        keeps={"fresh_attempt": "work_order.attempt_id"},
        **IN_PROJECT,
    ),
    AuditedCall(
        route="POST /leases/{attempt_id}:renew",
        action="job.move",
        about="{fresh_job}",
        who="fresh_attempt",
        at=_ATTEMPT,
        body={"backlog": {"files": 1, "size": 1, "problem": "x", "delivering": True}},
        **IN_PROJECT,
    ),
    AuditedCall(
        route="POST /jobs/{job_id}:give-up",
        action="job.give_up",
        about="{fresh_job}",
        at=_JOB,
        body={},
        **IN_PROJECT,
    ),
    AuditedCall(
        route="POST /leases/{attempt_id}:release",
        action="job.move",
        about="{fresh_job}",
        who="fresh_attempt",
        at=_ATTEMPT,
        body={"report": {"outcome": "succeeded", "cause": "budget"}, "last_seq": 0},
        **IN_PROJECT,
    ),
)

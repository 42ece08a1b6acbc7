"""Calls of all mutating routes, in an order in which each succeeds, with their audit entries."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support.server_fixture import make_definition, registration

NOT_AUDITED = {
    "POST /series:query": "reads curves",
    "POST /events:stream": "reads events",
    "POST /events:poll": "reads events",
    "POST /experiments:preview": "writes nothing",
    "POST /projects/{project}/experiments:preview": "writes nothing",
    "POST /jobs:preview-act": "writes nothing",
    "POST /projects/{project}/jobs:preview-act": "writes nothing",
    "POST /jobs/{job_id}:preview-change": "writes nothing",
    "POST /jobs/{job_id}:preview-reorder": "writes nothing",
    "POST /workers/{worker_id}:heartbeat": "repeated all the time; jobs that it ends have entries",
    "POST /leases/{attempt_id}:adopt": "an attempt stays with its worker, under a new secret",
    "POST /leases/{attempt_id}:follow": "asks which snapshot comes next",
    "POST /attempts/{attempt_id}/telemetry": "records of a training, which the run shows",
    "POST /attempts/{attempt_id}/artifacts": "announces a file of a training",
    "PUT /attempts/{attempt_id}/artifacts/{artifact_id}": "a file of a training",
}
"""Mutating routes without an audit entry, and why."""


@dataclass(frozen=True, kw_only=True)
class AuditedCall:
    """A successful request, and the audit entry that it leaves.

    Texts such as `{pool}` are replaced by the values that earlier answers gave.
    """

    route: str
    action: str
    about: str
    """ID of the entry's object."""
    who: str = "user"
    at: Mapping[str, str] = field(default_factory=dict)
    """Path parameters that differ from the values of the same name."""
    query: str = ""
    body: Any = None
    in_project: str = ""
    """The project that the entry names."""
    keeps: Mapping[str, str] = field(default_factory=dict)
    """Names of values, and where the answer has them, for example `items.0.id`."""


_LOOP = {"env_steps": 7}
_SEEDS = {"definition": make_definition(loop=_LOOP), "options": {"seeds": [0]}}
_MORE_SEEDS = {"definition": make_definition(loop=_LOOP), "options": {"seeds": [0, 1, 2]}}
_OTHER = {"definition": make_definition(loop={"env_steps": 8}), "options": {"seeds": [0]}}
_OTHER_MORE = {"definition": make_definition(loop={"env_steps": 8}), "options": {"seeds": [0, 1]}}
_WORKER = registration(name="w9", pool="default").model_dump(mode="json")
_FLAT = "/experiments/{experiment_id}"
_IN_PROJECT = "/projects/{project}/experiments/{experiment_id}"
_LAB = {"slug": "lab"}
_OWN: dict[str, Any] = {"in_project": "{project_id}"}

ACCOUNT = (
    AuditedCall(
        route="PATCH /account", action="user.change", about="{me}", body={"email": "a@b.cd"}
    ),
    AuditedCall(
        route="POST /session:redeem",
        action="login.open",
        about="{login}",
        who="anonymous",
        body={"code": "{code}"},
    ),
    AuditedCall(
        route="PUT /account/password",
        action="password.set",
        about="{me}",
        who="browser",
        body={"password": "{password}"},
    ),
    AuditedCall(
        route="POST /session",
        action="login.open",
        about="{login}",
        who="anonymous",
        body={"user": "admin", "password": "{password}"},
    ),
    AuditedCall(
        route="DELETE /account/sessions/{session_id}",
        action="login.close",
        about="{login}",
        at={"session_id": "{login}"},
    ),
    AuditedCall(route="DELETE /session", action="login.close", about="{browser}", who="browser"),
    AuditedCall(route="POST /account:sign-out", action="user.sign_out", about="{me}"),
)
TOKENS = (
    AuditedCall(
        route="POST /tokens",
        action="token.create",
        about="{token_id}",
        body={"name": "t", "scopes": ["read"], "project": "default"},
        keeps={"token_id": "id"},
        **_OWN,
    ),
    AuditedCall(
        route="POST /tokens/{token_id}:rotate",
        action="token.rotate",
        about="{token_id}",
        body={},
        **_OWN,
    ),
    AuditedCall(
        route="DELETE /tokens/{token_id}", action="token.revoke", about="{token_id}", **_OWN
    ),
    AuditedCall(
        route="POST /projects/{project}/service-accounts",
        action="service_account.create",
        about="{robot}",
        who="maintainer",
        body={"name": "robot"},
        keeps={"robot": "user_id"},
        **_OWN,
    ),
    AuditedCall(
        route="POST /projects/{project}/service-accounts/{name}/tokens",
        action="token.create",
        about="{token_id}",
        who="maintainer",
        at={"name": "robot"},
        body={"name": "t", "scopes": ["read"]},
        keeps={"token_id": "id"},
        **_OWN,
    ),
    AuditedCall(
        route="DELETE /projects/{project}/service-accounts/{name}",
        action="service_account.delete",
        about="{robot}",
        who="maintainer",
        at={"name": "robot"},
        **_OWN,
    ),
)
_PERSON = {"user_id": "{person}"}
PEOPLE = (
    AuditedCall(
        route="POST /users:invite",
        action="invitation.create",
        about="{invitation_id}",
        body={"invitations": [{"name": "new"}]},
        keeps={"invitation_id": "items.0.id"},
    ),
    AuditedCall(
        route="DELETE /invitations/{invitation_id}",
        action="invitation.revoke",
        about="{invitation_id}",
    ),
    *(
        AuditedCall(route=route, action=action, about="{person}", at=_PERSON, body=body)
        for route, action, body in (
            ("PATCH /users/{user_id}", "user.change", {"is_admin": True}),
            ("POST /users/{user_id}:disable", "user.disable", {}),
            ("POST /users/{user_id}:enable", "user.enable", None),
            ("POST /users/{user_id}:reset-password", "link.create", None),
            ("POST /users/{user_id}:sign-out", "user.sign_out", None),
        )
    ),
    AuditedCall(
        route="PUT /projects/{slug}/members/{user}",
        action="membership.create",
        about="{person}",
        who="maintainer",
        at={"slug": "default", "user": "leaver"},
        body={"role": "viewer"},
        **_OWN,
    ),
    AuditedCall(
        route="DELETE /projects/{slug}/members/{user}",
        action="membership.delete",
        about="{person}",
        who="maintainer",
        at={"slug": "default", "user": "leaver"},
        **_OWN,
    ),
    AuditedCall(
        route="DELETE /users/{user_id}", action="user.delete", about="{person}", at=_PERSON
    ),
)
PROJECTS = (
    AuditedCall(
        route="POST /projects",
        action="project.create",
        about="{lab}",
        body={"name": "lab"},
        in_project="{lab}",
        keeps={"lab": "id"},
    ),
    AuditedCall(
        route="PATCH /projects/{slug}",
        action="project.update",
        about="{lab}",
        at=_LAB,
        body={"description": "x"},
        in_project="{lab}",
    ),
    *(
        AuditedCall(
            route=f"{method} /projects/{{slug}}{verb}",
            action=f"project.{action}",
            about="{lab}",
            at=_LAB,
            query=query,
            in_project="{lab}",
        )
        for method, verb, action, query in (
            ("POST", ":archive", "archive", ""),
            ("POST", ":restore", "restore", ""),
            ("POST", ":archive", "archive", ""),
            ("DELETE", "", "delete", "?confirm=lab"),
            ("POST", ":undelete", "undelete", ""),
        )
    ),
)
POOLS = (
    AuditedCall(
        route="POST /pools",
        action="pool.create",
        about="{pool_id}",
        body={"name": "gpu"},
        keeps={"pool": "name", "pool_id": "id"},
    ),
    AuditedCall(
        route="PATCH /pools/{pool}",
        action="pool.update",
        about="{pool_id}",
        body={"description": "x"},
    ),
    AuditedCall(
        route="POST /pools/{pool}:pause",
        action="pool.pause",
        about="{pool_id}",
        body={"reason": "x"},
    ),
    AuditedCall(route="POST /pools/{pool}:resume", action="pool.resume", about="{pool_id}"),
    AuditedCall(
        route="PUT /pools/{pool}/projects/{slug}",
        action="pool.admit",
        about="{pool_id}",
        at={"slug": "default"},
        body={"share": 2},
        **_OWN,
    ),
    AuditedCall(
        route="PATCH /pools/{pool}/projects/{slug}/quotas",
        action="pool.quotas",
        about="{pool_id}",
        at={"slug": "default"},
        body={"project": {"queued": 100}},
        **_OWN,
    ),
    AuditedCall(
        route="DELETE /pools/{pool}/projects/{slug}",
        action="pool.remove",
        about="{pool_id}",
        at={"slug": "default"},
        **_OWN,
    ),
    AuditedCall(
        route="POST /pools/{pool}/windows",
        action="pool.plan_window",
        about="{pool_id}",
        body={
            "kind": "maintenance",
            "start": "2999-01-01T00:00:00Z",
            "end": "2999-01-02T00:00:00Z",
        },
        keeps={"window_id": "id"},
    ),
    AuditedCall(
        route="DELETE /pools/{pool}/windows/{window_id}",
        action="pool.cancel_window",
        about="{pool_id}",
    ),
    AuditedCall(
        route="POST /pools/{pool}/enrolment-tokens",
        action="enrolment_token.create",
        about="{enrolment_id}",
        body={"name": "e", "expires_in_days": 7},
        keeps={"enrolment_id": "id"},
    ),
    AuditedCall(
        route="DELETE /pools/{pool}/enrolment-tokens/{enrolment_id}",
        action="enrolment_token.revoke",
        about="{enrolment_id}",
    ),
    AuditedCall(route="DELETE /pools/{pool}", action="pool.delete", about="{pool_id}"),
)
EXPERIMENTS = tuple(
    call
    for path, one, verb_path, first, more in (
        ("/experiments", "a", _FLAT, _SEEDS, _MORE_SEEDS),
        ("/projects/{project}/experiments", "b", _IN_PROJECT, _OTHER, _OTHER_MORE),
    )
    for call in (
        AuditedCall(
            route=f"POST {path}",
            action="experiment.create",
            about="{experiment_id}",
            who="member",
            body=first,
            keeps={"experiment_id": "id"},
            **_OWN,
        ),
        AuditedCall(
            route=f"POST {path}",
            action="experiment.extend",
            about="{experiment_id}",
            who="member",
            body=more,
            **_OWN,
        ),
        AuditedCall(
            route=f"PATCH {verb_path}",
            action="experiment.change",
            about="{experiment_id}",
            who="member",
            body={"max_running": 3},
            **_OWN,
        ),
        *(
            AuditedCall(
                route=f"POST {verb_path}:{verb}",
                action=action,
                about="{idle_experiment}",
                at={"experiment_id": "{idle_experiment}"},
                **_OWN,
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
        **_OWN,
    ),
    AuditedCall(
        route="POST /projects/{slug}/experiments/{experiment_id}:move",
        action="experiment.move_in",
        about="{idle_experiment}",
        at={"slug": "lab", "experiment_id": "{idle_experiment}"},
        body={"to": "default"},
        **_OWN,
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
        **_OWN,
    ),
    *(
        AuditedCall(
            route=f"POST /jobs/{{job_id}}:{verb}",
            action="job.move",
            about="{queued_job}",
            at={"job_id": "{queued_job}"},
            body={},
            **_OWN,
        )
        for verb in ("pause", "resume")
    ),
    AuditedCall(
        route="PATCH /jobs/{job_id}",
        action="job.change",
        about="{queued_job}",
        at={"job_id": "{queued_job}"},
        body={"priority": 7},
        **_OWN,
    ),
    AuditedCall(
        route="POST /jobs/{job_id}:reorder",
        action="job.reorder",
        about="{queued_job}",
        at={"job_id": "{queued_job}"},
        body={"before": None},
        **_OWN,
    ),
    AuditedCall(
        route="POST /jobs/{job_id}:cancel",
        action="job.move",
        about="{queued_job}",
        at={"job_id": "{queued_job}"},
        body={},
        **_OWN,
    ),
    *(
        AuditedCall(
            route=f"POST {path}/jobs:act",
            action="job.move",
            about="{new_job}",
            body={"action": action, "selection": {"jobs": ["{new_job}"]}},
            **_OWN,
        )
        for path, action in (("", "pause"), ("/projects/{project}", "resume"))
    ),
    AuditedCall(
        route="POST /runs/{run_id}:retry",
        action="run.retry",
        about="{queued_run}",
        at={"run_id": "{queued_run}"},
        body={},
        **_OWN,
    ),
    AuditedCall(
        route="POST /leases",
        action="job.move",
        about="{fresh_job}",
        who="own_worker",
        body="{claim}",
        keeps={"fresh_attempt": "work_order.attempt_id"},
        **_OWN,
    ),
    AuditedCall(
        route="POST /leases/{attempt_id}:renew",
        action="job.move",
        about="{fresh_job}",
        who="fresh_attempt",
        at=_ATTEMPT,
        body={"backlog": {"files": 1, "size": 1, "problem": "x", "delivering": True}},
        **_OWN,
    ),
    AuditedCall(
        route="POST /jobs/{job_id}:give-up",
        action="job.give_up",
        about="{fresh_job}",
        at=_JOB,
        body={},
        **_OWN,
    ),
    AuditedCall(
        route="POST /leases/{attempt_id}:release",
        action="job.move",
        about="{fresh_job}",
        who="fresh_attempt",
        at=_ATTEMPT,
        body={"report": {"outcome": "succeeded", "cause": "budget"}, "last_seq": 0},
        **_OWN,
    ),
)
WORKERS = (
    AuditedCall(
        route="POST /workers",
        action="worker.register",
        about="{worker_id}",
        who="enrolment",
        body=_WORKER,
        keeps={"worker_id": "worker_id"},
    ),
    *(
        AuditedCall(
            route=f"POST /workers/{{worker_id}}:{verb}",
            action=f"worker.{action}",
            about="{worker_id}",
        )
        for verb, action in (
            ("drain", "drain"),
            ("undrain", "undrain"),
            ("rotate-secret", "rotate"),
            ("forget", "forget"),
        )
    ),
)
CALLS = (
    *TOKENS,
    *PEOPLE,
    *PROJECTS,
    *POOLS,
    *EXPERIMENTS,
    *MOVES,
    *JOBS,
    *WORKERS,
    *ACCOUNT,
)

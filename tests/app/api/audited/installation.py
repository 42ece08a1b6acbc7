"""Calls about what administrators and maintainers set up: projects, pools, workers."""

from tests.app.api.audited.call import IN_PROJECT, AuditedCall
from tests.support.server_fixture import registration

_WORKER = registration(name="w9", pool="default").model_dump(mode="json")
_LAB = {"slug": "lab"}
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
            route=f"{method} /projects/{{slug}}/thresholds/{{threshold}}",
            action=f"threshold.{action}",
            about="solved",
            at={"slug": "lab", "threshold": "solved"},
            body=body,
            in_project="{lab}",
        )
        for method, action, body in (
            ("PUT", "create", {"series": "evaluation/mean", "value": 195}),
            ("DELETE", "delete", None),
        )
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
        **IN_PROJECT,
    ),
    AuditedCall(
        route="PATCH /pools/{pool}/projects/{slug}/quotas",
        action="pool.quotas",
        about="{pool_id}",
        at={"slug": "default"},
        body={"project": {"queued": 100}},
        **IN_PROJECT,
    ),
    AuditedCall(
        route="DELETE /pools/{pool}/projects/{slug}",
        action="pool.remove",
        about="{pool_id}",
        at={"slug": "default"},
        **IN_PROJECT,
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

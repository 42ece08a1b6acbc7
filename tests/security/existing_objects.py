"""Calls that name existing objects: one for each route, with the answer to a permitted caller.

Values such as `{run}` are IDs of the objects of one project; `test_existing_objects.py` sends every
call to the objects of two projects.
"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tests.support.server_fixture import make_definition


class Audience(StrEnum):
    """The callers for whom the object of a call exists; others are answered 404."""

    MEMBERS = "members of its project"
    MEMBERS_AND_ADMINISTRATORS = "members of its project and server administrators"
    HOLDER = "the user that the token or login belongs to"
    POOL = "members of the projects that the worker's pool admits, and server administrators"
    ALL = "all, since it belongs to no project"


@dataclass(frozen=True)
class Call:
    """A request, and the status that every permitted caller gets."""

    status: int
    audience: Audience = Audience.MEMBERS
    body: Any = None
    of_submitter: bool = False
    """Whether members may act only on what they submitted themselves."""
    refused: AbstractSet[str] = frozenset()
    """Callers that have the permission and see the object, and may still not act on it."""
    query: str = ""


_ANY = Audience.MEMBERS_AND_ADMINISTRATORS
_SUBMISSION = {
    "definition": make_definition(loop={"env_steps": 7}),
    "options": {"pool": "{project}"},
}
WINDOW = {
    "kind": "maintenance",
    "start": "2999-01-01T00:00:00Z",
    "end": "2999-01-02T00:00:00Z",
}
_TOKEN = {"name": "x", "scopes": ["read"]}
_CURVE = {"run_id": "{run}", "series": "loss"}

CALLS = {
    "DELETE /account/sessions/{session_id}": Call(204, Audience.HOLDER),
    "DELETE /tokens/{token_id}": Call(204, Audience.HOLDER),
    "POST /tokens/{token_id}:rotate": Call(200, Audience.HOLDER, {}, refused={"admin_only"}),
    "POST /tokens": Call(201, Audience.MEMBERS, {**_TOKEN, "project": "{project}"}),
    "GET /projects/{project}/service-accounts": Call(200),
    "POST /projects/{project}/service-accounts": Call(201, body={"name": "robot"}),
    "DELETE /projects/{project}/service-accounts/{name}": Call(204),
    "POST /projects/{project}/service-accounts/{name}/tokens": Call(201, body=_TOKEN),
    "POST /users:invite": Call(201, Audience.ALL, {"invitations": [{"name": "new"}]}),
    "GET /users/{user_id}": Call(200, Audience.ALL),
    "PATCH /users/{user_id}": Call(200, Audience.ALL, {"display_name": "X"}),
    "DELETE /users/{user_id}": Call(200, Audience.ALL),
    "POST /users/{user_id}:disable": Call(200, Audience.ALL, {}),
    "POST /users/{user_id}:enable": Call(200, Audience.ALL),
    "POST /users/{user_id}:reset-password": Call(200, Audience.ALL),
    "POST /users/{user_id}:sign-out": Call(200, Audience.ALL),
    "DELETE /invitations/{invitation_id}": Call(204, Audience.ALL),
    "GET /experiments/{experiment_id}": Call(200),
    "GET /experiments/{experiment_id}/runs": Call(200),
    "PATCH /experiments/{experiment_id}": Call(200, body={"max_running": 2}, of_submitter=True),
    "POST /experiments/{experiment_id}:archive": Call(409, of_submitter=True),
    "POST /experiments/{experiment_id}:unarchive": Call(200, of_submitter=True),
    "POST /runs/{run_id}:retry": Call(409, body={}, of_submitter=True),
    "GET /runs/{run_id}": Call(200),
    "GET /runs/{run_id}/provenance": Call(200),
    "GET /runs/{run_id}/snapshots": Call(200),
    "GET /runs/{run_id}/snapshots/{snapshot_id}/archive": Call(200),
    "GET /runs/{run_id}/evaluations": Call(200),
    "GET /runs/{run_id}/health": Call(200),
    "GET /runs/{run_id}/artifacts": Call(200),
    "GET /runs/{run_id}/series": Call(200),
    "GET /runs/{run_id}/log": Call(200),
    "POST /runs/{run_id}/jobs": Call(201, body={"schedule": "evaluate"}),
    "GET /jobs/{job_id}": Call(200),
    "GET /jobs/{job_id}/explain": Call(200),
    "PATCH /jobs/{job_id}": Call(200, body={}, of_submitter=True),
    "POST /jobs/{job_id}:reorder": Call(422, body={"before": "{job_id}"}, of_submitter=True),
    "POST /jobs/{job_id}:preview-change": Call(200, body={}, of_submitter=True),
    "POST /jobs/{job_id}:preview-reorder": Call(
        422, body={"before": "{job_id}"}, of_submitter=True
    ),
    "POST /jobs/{job_id}:pause": Call(200, body={}, of_submitter=True),
    "POST /jobs/{job_id}:resume": Call(200, body={}, of_submitter=True),
    "POST /jobs/{job_id}:cancel": Call(200, _ANY, {}, of_submitter=True),
    "POST /jobs/{job_id}:give-up": Call(409, body={}, of_submitter=True),
    "POST /experiments?project={project}": Call(201, body=_SUBMISSION),
    "POST /experiments:preview?project={project}": Call(200, body=_SUBMISSION),
    "GET /experiments?project={project}": Call(200),
    "GET /experiments/{experiment_id}?project={project}": Call(200),
    "GET /experiments/{experiment_id}/runs?project={project}": Call(200),
    "PATCH /experiments/{experiment_id}?project={project}": Call(
        200, body={"max_running": None}, of_submitter=True
    ),
    "POST /experiments/{experiment_id}:archive?project={project}": Call(409, of_submitter=True),
    "POST /experiments/{experiment_id}:unarchive?project={project}": Call(200, of_submitter=True),
    # No caller is a maintainer of both projects: `tests/app/api/test_moves.py` has one.
    "POST /projects/{slug}/experiments/{experiment_id}:move": Call(422, body={"to": "{slug}"}),
    "GET /runs?project={project}": Call(200),
    "GET /runs:keys?project={project}": Call(200),
    "GET /runs:groups?project={project}": Call(200),
    "POST /runs:act?project={project}": Call(
        200, body={"action": "pause", "selection": {"runs": ["run_unknown"]}}
    ),
    "GET /views/{view_id}": Call(200),
    "PATCH /views/{view_id}": Call(200, body={"name": "x"}, of_submitter=True),
    "DELETE /views/{view_id}": Call(204, of_submitter=True),
    "GET /views?project={project}": Call(200),
    "POST /views?project={project}": Call(201, body={"name": "new", "state": {}}),
    "GET /jobs?project={project}": Call(200),
    "POST /jobs:act?project={project}": Call(
        200, body={"action": "pause", "selection": {"jobs": ["job_unknown"]}}
    ),
    "POST /jobs:preview-act?project={project}": Call(
        200, body={"action": "pause", "selection": {"jobs": ["job_unknown"]}}
    ),
    "GET /events?project={project}": Call(400),
    "GET /records:export?project={project}": Call(200, query="&run={run_id}"),
    "GET /audit?project={project}": Call(200),
    "GET /audit:export?project={project}": Call(200),
    "POST /projects": Call(201, Audience.ALL, {"name": "a third"}),
    "GET /projects/{slug}": Call(200, _ANY),
    "PATCH /projects/{slug}": Call(200, _ANY, {"description": "x"}),
    "POST /projects/{slug}:archive": Call(200, _ANY),
    "POST /projects/{slug}:restore": Call(200, _ANY),
    "DELETE /projects/{slug}": Call(409, _ANY, query="?confirm={slug}"),
    "POST /projects/{slug}:undelete": Call(404, Audience.ALL),
    "GET /projects/{slug}/members": Call(200, _ANY),
    "PUT /projects/{slug}/members/{user}": Call(200, _ANY, {"role": "viewer"}),
    "DELETE /projects/{slug}/members/{user}": Call(204, _ANY),
    "GET /projects/{slug}/thresholds": Call(200, _ANY),
    "PUT /projects/{slug}/thresholds/{threshold}": Call(
        200, _ANY, {"series": "evaluation/mean", "value": 195}
    ),
    "DELETE /projects/{slug}/thresholds/{threshold}": Call(204, _ANY),
    "POST /events:poll": Call(
        200, body={"subscriptions": [{"project": "{project}", "after": 0}], "wait": 0}
    ),
    "POST /series:query": Call(200, body={"select": [_CURVE]}),
    "GET /records:export": Call(200, query="?kind=evaluations&run={run_id}"),
    "POST /statistics:aggregate": Call(
        422, body={"runs": ["{run}"], "score": {"missing": "leave_out"}}
    ),
    "POST /runs:compare": Call(422, body={"runs": ["{run}"]}),
    "GET /artifacts/{artifact_id}": Call(200),
    "GET /artifacts/{artifact_id}/content": Call(200),
    "GET /workers/{worker_id}": Call(200, Audience.POOL),
    "POST /workers/{worker_id}:drain": Call(200, Audience.POOL),
    "POST /workers/{worker_id}:undrain": Call(200, Audience.POOL),
    "POST /workers/{worker_id}:forget": Call(200, Audience.POOL),
    "POST /workers/{worker_id}:rotate-secret": Call(200, Audience.POOL),
    "POST /pools": Call(201, Audience.ALL, {"name": "new"}),
    "GET /pools/{pool}": Call(200, _ANY),
    "PATCH /pools/{pool}": Call(200, Audience.ALL, {"description": "x"}),
    "DELETE /pools/{pool}": Call(409, Audience.ALL),
    "POST /pools/{pool}:pause": Call(200, Audience.ALL, {"reason": "x"}),
    "POST /pools/{pool}:resume": Call(200, Audience.ALL),
    "PUT /pools/{pool}/projects/{slug}": Call(200, Audience.ALL, {"share": 2}),
    "GET /pools/{pool}/projects/{slug}/quotas": Call(200, _ANY),
    "PATCH /pools/{pool}/projects/{slug}/quotas": Call(
        200, Audience.ALL, {"project": {"queued": 100_000}}
    ),
    "DELETE /pools/{pool}/projects/{slug}": Call(204, Audience.ALL),
    "GET /pools/{pool}/estimates": Call(200, _ANY),
    "GET /pools/{pool}/shares": Call(200, _ANY),
    "GET /pools/{pool}/queue": Call(200, _ANY),
    "GET /pools/{pool}/windows": Call(200, _ANY),
    "POST /pools/{pool}/windows": Call(201, Audience.ALL, WINDOW),
    "DELETE /pools/{pool}/windows/{window_id}": Call(204, Audience.ALL),
    "GET /pools/{pool}/enrolment-tokens": Call(200, Audience.ALL),
    "POST /pools/{pool}/enrolment-tokens": Call(
        201, Audience.ALL, {"name": "x", "expires_in_days": None}
    ),
    "DELETE /pools/{pool}/enrolment-tokens/{enrolment_id}": Call(204, Audience.ALL),
}

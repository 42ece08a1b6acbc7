"""Calls of all mutating routes, in an order in which each succeeds, with their audit entries."""

from tests.app.api.audited.installation import POOLS, PROJECTS, WORKERS
from tests.app.api.audited.people import ACCOUNT, PEOPLE, TOKENS
from tests.app.api.audited.work import EXPERIMENTS, JOBS, MOVES, VIEWS

NOT_AUDITED = {
    "POST /series:query": "reads curves",
    "POST /statistics:aggregate": "reads evaluations",
    "POST /runs:compare": "reads definitions and evaluations",
    "POST /events:stream": "reads events",
    "POST /events:poll": "reads events",
    "POST /experiments:preview": "writes nothing",
    "POST /jobs:preview-act": "writes nothing",
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

CALLS = (
    *TOKENS,
    *PEOPLE,
    *PROJECTS,
    *POOLS,
    *EXPERIMENTS,
    *MOVES,
    *JOBS,
    *VIEWS,
    *WORKERS,
    *ACCOUNT,
)

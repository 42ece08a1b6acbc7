"""Minimal JSON answers of the API."""

from typing import Any

NOW = "2026-01-02T03:04:05Z"
RUN = "run_" + "0" * 26
JOB = "job_" + "0" * 26


def make_id(prefix: str, number: int) -> str:
    """Returns an ID with the given prefix and number."""
    return f"{prefix}_{number:026d}"


def make_definition(**changes: Any) -> dict[str, Any]:
    return {
        "kind": "rl",
        "name": "sample",
        "env": {"id": "CartPole-v1"},
        "agent": {"name": "dqn"},
        "loop": {"env_steps": 1_000},
        **changes,
    }


def make_experiment(**changes: Any) -> dict[str, Any]:
    return {
        "id": "sample-0123456789abcdef",
        "project": "default",
        "name": "sample",
        "notes": "",
        "kind": "rl",
        "agent": "dqn",
        "env": "CartPole-v1",
        "schema_version": 2,
        "definition_hash": "0" * 64,
        "code": {"kind": "builtin"},
        "state": "queued",
        "runs": {"queued": 1},
        "latest_evaluation": None,
        "failures": [],
        "created_at": NOW,
        "created_by": "admin",
        "archived_at": None,
        "definition": make_definition(),
        **changes,
    }


def make_evaluation(mean: float = 480.0, **changes: Any) -> dict[str, Any]:
    lengths = {f"length_{name}": mean for name in ("mean", "median", "stdev", "min", "max")}
    return {
        "id": make_id("evl", 1),
        "run_id": RUN,
        "job_id": JOB,
        "attempt_id": make_id("att", 1),
        "snapshot_id": None,
        "env_step": 500,
        "update": 5,
        "episode": 7,
        "wall": 1.0,
        "episodes": 20,
        "mean": mean,
        "median": mean,
        "stdev": 1.0,
        "min": mean - 1,
        "max": mean + 1,
        **lengths,
        "returns": [],
        "metrics": {},
        "seed": 3,
        "final": True,
        "superseded": False,
        "created_at": NOW,
        **changes,
    }


def make_run(**changes: Any) -> dict[str, Any]:
    progress = {
        "env_step": 500,
        "update": 5,
        "episode": 7,
        "fraction": 0.5,
        "env_steps_per_second": 100.0,
    }
    return {
        "id": RUN,
        "project": "default",
        "created_by": "admin",
        "experiment_id": "sample-0123456789abcdef",
        "seed": 0,
        "replicate": 0,
        "state": "running",
        "cause": None,
        "failure": None,
        "fence": 1,
        "progress": progress,
        "resume_quality": "fresh",
        "latest_evaluation": None,
        "best_evaluation": None,
        "snapshots": {"written": None, "verified": None},
        "not_uploaded": None,
        "job_id": JOB,
        "created_at": NOW,
        "started_at": NOW,
        "finished_at": None,
        "findings": [],
        **changes,
    }


def make_run_detail(**changes: Any) -> dict[str, Any]:
    """Returns a run with its attempts, jobs and definition."""
    return {**make_run(), "attempts": [], "jobs": [], "definition": make_definition(), **changes}


def make_job(**changes: Any) -> dict[str, Any]:
    return {
        "id": JOB,
        "project": "default",
        "experiment_id": "sample-0123456789abcdef",
        "run_ids": [RUN],
        "seeds": [0],
        "schedule": "train",
        "state": "running",
        "cause": None,
        "failure": None,
        "waiting": None,
        "not_uploaded": None,
        "position": None,
        "estimate": None,
        "pool": "default",
        "priority": 0,
        "resources": {},
        "limits": {},
        "evaluate": None,
        "attempts": 1,
        "worker_id": None,
        "created_at": NOW,
        "created_by": "admin",
        "started_at": NOW,
        "finished_at": None,
        **changes,
    }


def make_session() -> dict[str, Any]:
    """Returns the answer of `/api/v1/session`, which describes the caller."""
    return {
        "user": "admin",
        "user_id": "usr_1",
        "display_name": "",
        "is_admin": False,
        "project": "default",
        "projects": [
            {
                "project_id": "prj_1",
                "slug": "default",
                "name": "default",
                "role": "maintainer",
                "archived": False,
                "permissions": ["project.read"],
            }
        ],
        "permissions": [],
        "scopes": ["read", "submit"],
        "csrf_token": None,
        "via": "token",
    }


def make_page(*items: Any, cursor: str | None = None) -> dict[str, Any]:
    """Returns a page of a list."""
    return {"items": list(items), "next_cursor": cursor}


def make_event(number: int, **changes: Any) -> dict[str, Any]:
    """Returns an event of the stream."""
    return {
        "id": number,
        "type": "run",
        "experiment_id": None,
        "run_id": RUN,
        "job_id": None,
        "at": NOW,
        "data": {"n": number},
        **changes,
    }


def encode_events(*events: dict[str, Any]) -> bytes:
    """Returns events in the format of server-sent events."""
    import json

    return b"".join(
        f"id: {row['id']}\nevent: {row['type']}\ndata: {json.dumps(row)}\n\n".encode()
        for row in events
    )


def make_worker(**changes: Any) -> dict[str, Any]:
    """Returns a worker without slots."""
    view = {
        "id": make_id("wrk", 1),
        "name": "gpu-1",
        "pool": "default",
        "host": "gpu-1",
        "state": "online",
        "version": "0.1.0",
        "slots": [],
        "gpus": [],
        "registered_at": "2026-01-01T00:00:00Z",
        "last_heartbeat_at": "2026-01-01T00:00:00Z",
    }
    return {**view, **changes}

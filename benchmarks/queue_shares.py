"""Shares of slots, and the time from a release to the next claim, through real workers.

Five people in three projects with different shares and no past usage queue all their jobs; two
workers take them over Celery and Valkey. Most attempts hold a slot for a drawn 0.2 to 2 s without a
trainer, some train. Then one person queues 200 jobs, and another one job a minute later. Everything
is read from the rows of the database, by its clock.

    python -m benchmarks.queue_shares [--jobs 1000] [--trainings 100] [--slots 5] [--later 60]
"""

import argparse
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import httpx

from benchmarks._report import align_columns, describe_machine, show
from benchmarks.audit_log import database_url
from palestra.client import Client
from tests.e2e.run_history import make_cartpole_definition
from tests.support.several_servers import SeveralServers
from tests.support.waiting import wait_for

SHARES: Final = {"alpha": 1, "beta": 2, "gamma": 2}
PEOPLE: Final = (
    ("alpha", "ann"),
    ("alpha", "abe"),
    ("beta", "bea"),
    ("beta", "bob"),
    ("gamma", "gil"),
)
WORKERS: Final = ("worker", "second")
MAX_ERROR: Final = 0.05
"""Largest deviation of a project's part of the slot-seconds from its share."""
MAX_GAP: Final = 1.0
LATER_JOBS: Final = 200
LATER_HOLD_SECONDS: Final = 4
_PASSWORD: Final = "a password for benchmarks 17"
_ENDED: Final = ("succeeded", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class Interval:
    """One attempt."""

    project: str
    started_at: datetime
    ended_at: datetime


@dataclass
class Installation:
    """The processes, and the tokens of the people."""

    stack: SeveralServers
    tokens: dict[str, str]

    def submit(self, person: str, definition: Mapping[str, Any], jobs: int) -> str:
        """Submits an experiment with one job per seed as a person; returns its ID."""
        project = next((slug for slug, name in PEOPLE if name == person), "delta")
        answer = httpx.post(
            f"{self.stack.url}/api/v1/experiments?project={project}",
            json={
                "definition": dict(definition),
                "options": {"seeds": list(range(jobs)), "resources": {"pack": "off"}},
            },
            headers={"Authorization": f"Bearer {self.tokens[person]}"},
            timeout=120,
            trust_env=False,
        )
        assert answer.status_code == httpx.codes.CREATED, answer.text
        return str(answer.json()["id"])


@contextmanager
def run_installation(
    url: str, slots: int, hold_seconds: tuple[float, float] = (0.2, 2.0)
) -> Iterator[Installation]:
    """Starts a server on PostgreSQL, Valkey and two workers, and makes projects and people.

    Args:
        url: An empty PostgreSQL database.
        slots: Slots of each worker.
        hold_seconds: Bounds of the time for which an attempt holds its slot.
    """
    with (
        tempfile.TemporaryDirectory(prefix="plr-", dir="/tmp") as directory,
        SeveralServers(
            Path(directory), url, servers=1, slots=slots, hold_seconds=hold_seconds
        ) as stack,
    ):
        tokens: dict[str, str] = {}
        for slug, share in {**SHARES, "delta": 1}.items():
            stack.post("projects", {"name": slug, "slug": slug, "pools": []})
            path = f"/api/v1/pools/default/projects/{slug}"
            headers = {"Authorization": f"Bearer {stack.tokens['user']}"}
            httpx.put(
                f"{stack.url}{path}", json={"share": share}, headers=headers, trust_env=False
            ).raise_for_status()
        for project, name in (*PEOPLE, ("delta", "dan"), ("delta", "dora")):
            body = {
                "invitations": [
                    {"name": name, "projects": [{"project": project, "role": "member"}]}
                ]
            }
            (invitation,) = stack.post("users:invite", body)["items"]
            tokens[name] = str(Client.join(invitation["url"], password=_PASSWORD).secret)
        for name in WORKERS[1:]:
            stack.start_worker(name)
        yield Installation(stack, tokens)


def queue_all(installation: Installation, jobs: int, trainings: int) -> None:
    """Queues the jobs of all people while the pool is paused: to each project by its share."""
    stack = installation.stack
    stack.post("pools/default:pause", {"reason": "all jobs are queued first"})
    total = sum(SHARES.values())
    for number, (project, name) in enumerate(PEOPLE):
        people = sum(slug == project for slug, _ in PEOPLE)
        mine = jobs * SHARES[project] // total // people
        trained = trainings * SHARES[project] // total // people
        held = make_cartpole_definition(1_000 + number, name=f"no-op of {name}")
        installation.submit(name, held, mine - trained)
        if trained:
            short = make_cartpole_definition(600 + number, name=f"training of {name}")
            installation.submit(name, short, trained)
    stack.post("pools/default:resume", {})


def wait_for_ends(stack: SeveralServers, seconds: float) -> int:
    """Waits until all jobs have ended; returns how many succeeded."""

    def ended() -> bool:
        time.sleep(1)
        statement = "SELECT count(*) FROM jobs WHERE NOT state = ANY(%s)"
        return int(stack.query(statement, list(_ENDED))[0][0]) == 0

    wait_for(ended, "all jobs end", patience_seconds=seconds)
    return int(stack.query("SELECT count(*) FROM jobs WHERE state = 'succeeded'")[0][0])


def read_intervals(stack: SeveralServers) -> list[Interval]:
    """Returns the attempts that have ended, the oldest first."""
    rows = stack.query(
        "SELECT projects.slug, started_at, ended_at FROM attempts "
        "JOIN projects ON projects.id = attempts.project_id "
        "WHERE ended_at IS NOT NULL ORDER BY started_at"
    )
    return [Interval(*row) for row in rows]


def find_busy_end(intervals: Sequence[Interval]) -> datetime:
    """Returns the time at which the first project started its last job: then not all have work."""
    return min(
        max(one.started_at for one in intervals if one.project == project) for project in SHARES
    )


def report_shares(intervals: Sequence[Interval], until: datetime) -> bool:
    """Prints each project's part of the slot-seconds; returns whether all are near their share."""
    used = dict.fromkeys(SHARES, 0.0)
    for one in intervals:
        if one.started_at < until:
            used[one.project] += (min(one.ended_at, until) - one.started_at).total_seconds()
    rows = [("project", "share", "slot-seconds", "part", "deviation")]
    worst = 0.0
    for project, share in SHARES.items():
        entitled = share / sum(SHARES.values())
        part = used[project] / sum(used.values())
        worst = max(worst, abs(part / entitled - 1))
        deviation = f"{100 * (part / entitled - 1):+.1f} %"
        rows.append((project, str(share), f"{used[project]:.1f}", f"{part:.3f}", deviation))
    print(align_columns(rows))
    verdict = "ok" if worst <= MAX_ERROR else f"OVER {100 * MAX_ERROR:g} %"
    print(f"largest deviation of slot-seconds from the share: {100 * worst:.1f} %  {verdict}")
    return worst <= MAX_ERROR


def report_gaps(intervals: Sequence[Interval], slots: int, until: datetime) -> bool:
    """Prints the time from each release to the claim that follows it, while jobs wait.

    The slots are filled first; from then on the first release is followed by the next claim, the
    second by the one after it, and so on.
    """
    claims = sorted(one.started_at for one in intervals)[slots:]
    releases = sorted(one.ended_at for one in intervals)
    gaps = [
        (claim - release).total_seconds()
        for release, claim in zip(releases, claims, strict=False)
        if claim < until
    ]
    show("release to the next claim", gaps, "s")
    return show("release to the next claim", gaps, "s", MAX_GAP, 0.99)


def report_later_person(installation: Installation, jobs: int, later: float) -> bool:
    """One person queues many jobs, another one job later; prints which starts next."""
    stack = installation.stack
    many = make_cartpole_definition(2_000, name=f"no-op {LATER_HOLD_SECONDS} s of dan")
    installation.submit("dan", many, jobs)
    busy = "SELECT count(*) FROM attempts WHERE ended_at IS NULL"
    slots = stack.slots * len(WORKERS)
    wait_for(lambda: stack.query(busy)[0][0] == slots, "the first person has all slots")
    time.sleep(later)
    # Paused, nothing is assigned between the count and the other person's job.
    stack.post("pools/default:pause", {"reason": "the job of another person is queued"})
    waiting = stack.query(
        "SELECT count(*), count(assigned_worker_id) FROM jobs WHERE state = 'queued'"
    )[0]
    one = make_cartpole_definition(2_001, name=f"no-op {LATER_HOLD_SECONDS} s of dora")
    experiment = installation.submit("dora", one, 1)
    stack.post("pools/default:resume", {})
    find = (
        "SELECT jobs.queued_at, attempts.started_at FROM attempts "
        "JOIN jobs ON jobs.id = attempts.job_id WHERE jobs.experiment_id = %s"
    )
    (queued_at, started_at) = wait_for(
        lambda: stack.query(find, experiment), "it starts", patience_seconds=60
    )[0]
    between = stack.query(
        "SELECT count(*) FROM attempts WHERE started_at > %s AND started_at < %s",
        queued_at,
        started_at,
    )[0][0]
    seconds = (started_at - queued_at).total_seconds()
    is_next = int(between) <= int(waiting[1])
    print(
        f"{waiting[0]} jobs of one person waited ({waiting[1]} assigned); the job of another began "
        f"after {seconds:.2f} s, {between} others before it  {'ok' if is_next else 'NOT NEXT'}"
    )
    return is_next


def run(jobs: int, trainings: int, slots: int, later: float, later_jobs: int = LATER_JOBS) -> bool:
    """Runs both parts; returns whether every figure is within its bound."""
    print(describe_machine())
    with database_url("postgresql") as url, run_installation(url, slots) as installation:
        stack = installation.stack
        begin = time.monotonic()
        queue_all(installation, jobs, trainings)
        queued = int(stack.query("SELECT count(*) FROM jobs")[0][0])
        succeeded = wait_for_ends(stack, 60 + 5.0 * jobs + 30.0 * trainings)
        verdict = "ok" if succeeded == queued else "NOT ALL SUCCEEDED"
        print(
            f"{succeeded} of {queued} jobs succeeded, {trainings} of them trainings, on "
            f"{len(WORKERS) * slots} slots in {time.monotonic() - begin:.0f} s  {verdict}"
        )
        intervals = read_intervals(stack)
        until = find_busy_end(intervals)
        good = [
            succeeded == queued,
            report_shares(intervals, until),
            report_gaps(intervals, len(WORKERS) * slots, until),
            report_later_person(installation, later_jobs, later),
        ]
    return all(good)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000)
    parser.add_argument("--trainings", type=int, default=100)
    parser.add_argument("--slots", type=int, default=5, help="slots of each of the two workers")
    parser.add_argument("--later", type=float, default=60.0, help="seconds until the second person")
    chosen = parser.parse_args()
    raise SystemExit(not run(chosen.jobs, chosen.trainings, chosen.slots, chosen.later))

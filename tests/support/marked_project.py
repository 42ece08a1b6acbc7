"""Projects in which every text carries a marker, for tests of what one project shows of another."""

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select

from app.db.models import Base, MembershipRow, PoolRow, ProjectRow, UserRow
from app.domain.principal import Principal
from app.services.access import logins, tokens
from app.services.experiments.submission import submit as submit_definition
from app.services.jobs import jobs
from palestra.contract.access import TokenRequest
from palestra.contract.job_options import Submission
from palestra.contract.names import Scope, new_id
from palestra.contract.permissions import Role
from palestra.contract.states import Cause, Outcome
from palestra.contract.work_order import Failure
from tests.app.api.serving import ORIGIN, AppServer
from tests.support import records
from tests.support.server_fixture import ALL, make_catalogue, make_definition, make_principal

ROLES = {"maintainer": Role.MAINTAINER, "member": Role.MEMBER, "viewer": Role.VIEWER}
OF_ID = {
    "experiment_id": "experiments",
    "run_id": "runs",
    "job_id": "jobs",
    "attempt_id": "attempts",
    "artifact_id": "artifacts",
    "token_id": "tokens",
    "worker_id": "workers",
}
"""Tables of the IDs in paths."""


@dataclass
class MarkedProject:
    """A project with users, jobs in several states and all kinds of results."""

    served: AppServer
    side: str
    marker: str
    number: float
    """Value of its points and evaluations, which texts cannot mark."""
    project: ProjectRow
    owner: Principal
    ids: dict[str, list[str]] = field(default_factory=dict)
    """IDs by the path parameter in which they may stand."""
    secrets: set[str] = field(default_factory=set)
    """IDs that nobody outside of the project may be told."""

    async def act(self) -> None:
        """Makes changes that live streams report."""
        for seed in (901, 902):
            await self._submit(seeds=[seed])
        async with self.served.client(f"{self.side} maintainer") as client:
            path = f"/api/v1/projects/{self.project.slug}"
            body = {"description": f"{self.marker} again"}
            assert (await client.patch(path, json=body)).status_code == 200
            await client.post(
                f"/api/v1/runs/{self.ids['run_id'][0]}/jobs", json={"schedule": "test"}
            )
        batch = [records.make_points(self.ids["live_run"][0], f"{self.marker}/late", [9])]
        await self._send("live", batch)

    async def _submit(self, **options: Any) -> Any:
        marker = self.marker
        body = {
            "definition": make_definition(
                name=f"{marker} experiment",
                notes=f"{marker} notes",
                env={"id": "CartPole-v1", "kwargs": {"text": marker}},
            ),
            "options": {"pool": self.served.names[f"{self.side} pool"], **options},
            "provenance": {"command": f"{marker} command", "git": {"remote": marker}},
        }
        async with self.served.database.write() as session:
            request = Submission.model_validate_json(json.dumps(body))
            return (await submit_definition(session, self.owner, request))[0]

    async def _send(self, attempt: str, batch: list[dict[str, Any]]) -> None:
        name = f"{self.side} {attempt}"
        first = self.served.names.setdefault(f"{name} seq", "1")
        path = f"/api/v1/attempts/{self.served.names[name]}/telemetry"
        async with self.served.client(name) as client:
            answer = await client.post(path, json={"first_seq": int(first), "records": batch})
            assert answer.status_code == 200, answer.text
        self.served.names[f"{name} seq"] = str(int(first) + len(batch))


async def make_marked_project(served: AppServer, side: str) -> MarkedProject:
    """Makes a project with a marker in all texts, its users, workers and results."""
    digest = hashlib.sha256(side.encode()).hexdigest()
    marker = f"mk{side}{digest[:8]}"
    project = ProjectRow(
        id=new_id("prj"),
        slug=f"{marker}-slug",
        name=f"{marker} name",
        description=f"{marker} description",
    )
    async with served.database.write() as session:
        session.add(project)
    users = {name: await _add_user(served, project, marker, side, name) for name in ROLES}
    made = MarkedProject(
        served,
        side,
        marker,
        int(digest[:8], 16) + 0.5,
        project,
        make_principal(project, users["maintainer"], ALL),
    )
    await _add_service_account(made)
    await _add_invitation(made)
    await _save_view(made)
    await _run_jobs(made, users["maintainer"])
    await _collect_ids(made)
    return made


def make_missing_id(value: str) -> str:
    """Returns an ID of the form of `value` that no object has."""
    return value[:-4] + ("zzzz" if not value.endswith("zzzz") else "yyyy")


async def share_worker(*projects: MarkedProject) -> None:
    """Starts a job of each project on one worker, in a pool that admits them all."""
    world = projects[0].served.world
    for made in projects:
        await world.make_pool("shared", project_id=made.project.id)
    by = await world.make_enrolment("shared", projects[0].owner.user_id)
    worker = await world.register(by=by, name="shared-worker", pool="shared")
    for slot, made in enumerate(projects):
        await made._submit(pool="shared", seeds=[801])
        async with made.served.database.read() as session:
            request = jobs.PageRequest(limit=50, sort="created_at")
            listed = await jobs.list_jobs(session, made.owner, jobs.JobFilter(), request)
        (job,) = [one for one in listed.items if one.pool == "shared"]
        await world.start(job.id, worker.worker_id, slot=slot)
        await _collect_ids(made)


async def _add_user(
    served: AppServer, project: ProjectRow, marker: str, side: str, role: str
) -> UserRow:
    user = UserRow(
        id=new_id("usr"),
        name=f"{marker}-{role}",
        display_name=f"{marker} {role} display",
        email=f"{role}@{marker}.example",
    )
    async with served.database.write() as session:
        session.add(user)
        await session.flush()
        membership = {"project_id": project.id, "user_id": user.id}
        session.add(MembershipRow(role=ROLES[role].value, **membership))
        await session.flush()
        scopes = (Scope.READ, Scope.SUBMIT, Scope.ADMIN)
        request = TokenRequest(name=f"{marker} {role} token", scopes=scopes)
        token = await tokens.issue_token(session, None, user.id, request)
        code = await logins.make_link(session, user.id, 3_600)
    served.tokens[f"{side} {role}"] = token.secret or ""
    async with served.client() as client:
        headers = {"Origin": ORIGIN, "User-Agent": f"{marker}-browser"}
        body = {"code": code}
        answer = await client.post("/api/v1/session:redeem", json=body, headers=headers)
        assert answer.status_code == 201, answer.text
    return user


async def _add_service_account(made: MarkedProject) -> None:
    path = f"/api/v1/projects/{made.project.slug}/service-accounts"
    name = f"{made.marker}-robot"
    async with made.served.client(f"{made.side} maintainer") as client:
        assert (await client.post(path, json={"name": name})).status_code == 201
        body = {"name": f"{made.marker} robot token", "scopes": ["read", "submit"]}
        answer = await client.post(f"{path}/{name}/tokens", json=body)
    assert answer.status_code == 201, answer.text
    made.served.tokens[f"{made.side} service"] = answer.json()["secret"]
    made.ids["name"] = [name]


async def _save_view(made: MarkedProject) -> None:
    state = {"filter": f'name:"{made.marker} experiment"', "columns": ["name", f"{made.marker}/x"]}
    body = {"name": f"{made.marker} view", "visibility": "project", "state": state}
    async with made.served.client(f"{made.side} maintainer") as client:
        answer = await client.post(f"/api/v1/views?project={made.project.slug}", json=body)
        assert answer.status_code == 201, answer.text
        made.ids["view_id"] = [answer.json()["id"]]


async def _add_invitation(made: MarkedProject) -> None:
    guest = {"name": f"{made.marker}-guest", "display_name": f"{made.marker} guest"}
    guest["projects"] = [{"project": made.project.slug, "role": "viewer"}]  # type: ignore[assignment]
    async with made.served.client("user") as client:
        answer = await client.post("/api/v1/users:invite", json={"invitations": [guest]})
        assert answer.status_code == 201, answer.text
        made.ids["invitation_id"] = [answer.json()["items"][0]["id"]]


async def _run_jobs(made: MarkedProject, user: UserRow) -> None:
    """Makes a worker, and jobs that are running, failed, paused and queued."""
    world, marker = made.served.world, made.marker
    pool = made.served.names[f"{made.side} pool"] = f"{marker}-pool"
    await world.make_pool(pool, project_id=made.project.id)
    machine = await world.make_enrolment(pool, user.id)
    offers = {
        **make_catalogue(),
        "environments": [*make_catalogue()["environments"], _make_environment(marker)],
    }
    registered = await world.register(
        by=machine, name=f"{marker}-worker", host=f"{marker}-host", pool=pool, catalogue=offers
    )
    made.served.tokens[f"{made.side} worker"] = registered.secret or ""
    await made._submit(seeds=[1, 2, 3, 4])
    async with made.served.database.read() as session:
        request = jobs.PageRequest(limit=50, sort="created_at")
        listed = await jobs.list_jobs(session, made.owner, jobs.JobFilter(), request)
    for slot, (state, job) in enumerate(
        zip(("live", "failed", "paused"), listed.items, strict=False)
    ):
        claimed = await world.start(job.id, registered.worker_id, slot=slot)
        name = f"{made.side} {state}"
        made.served.names[name] = claimed.work_order.attempt_id
        made.served.tokens[name] = claimed.token
        made.ids[f"{state}_run"] = list(job.run_ids)
        await made._send(state, _make_results(made, job.run_ids[0]))
        await _upload(made, state, job.run_ids[0])
    failure = Failure(message=f"{marker} failure", traceback=f"{marker} traceback")
    failed, paused = (made.served.names[f"{made.side} {state}"] for state in ("failed", "paused"))
    seq = int(made.served.names[f"{made.side} failed seq"]) - 1
    await world.release(failed, Outcome.FAILED, Cause.USER_EXCEPTION, last_seq=seq, failure=failure)
    async with made.served.client(f"{made.side} maintainer") as client:
        (job_id,) = [job.id for job in listed.items if [*job.run_ids] == made.ids["paused_run"]]
        body = {"reason": f"{marker} reason"}
        assert (await client.post(f"/api/v1/jobs/{job_id}:pause", json=body)).status_code == 200
    await world.release(paused, Outcome.PAUSED, Cause.USER, last_seq=seq)


def _make_environment(marker: str) -> dict[str, Any]:
    return {"id": f"{marker}/Env-v0", "action_space": {"kind": "discrete", "n": 2}}


def _make_results(made: MarkedProject, run: str) -> list[dict[str, Any]]:
    marker, number = made.marker, made.number
    return [
        records.make_points(run, f"{marker}/loss", [1, 2, 3]),
        records.make_points(run, "loss", [1, 2, 3], [number] * 3),
        records.make_episodes(run, [1, 2]),
        records.make_log(run, f"{marker} line of a log"),
        records.make_note(run, f"{marker} note"),
        records.make_system_record(run, **{f"{marker}_load": 1.0}),
        records.make_evaluation(run, 3, number),
        records.make_stats(run, 3),
    ]


async def _upload(made: MarkedProject, state: str, run: str) -> None:
    """Stores an artifact and the file of a snapshot."""
    content = f"{made.marker} content of {run}".encode()
    file = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    snapshot_id = new_id("snp")
    name = f"{made.marker}.bin"
    await made._send(state, [records.make_snapshot(run, snapshot_id, 3, [{"name": name, **file}])])
    path = f"/api/v1/attempts/{made.served.names[f'{made.side} {state}']}/artifacts"
    async with made.served.client(f"{made.side} {state}") as client:
        for extra in (
            {"kind": "video", "env_step": 3},
            {"kind": "snapshot", "snapshot_id": snapshot_id},
        ):
            body = {"run_id": run, "name": name, **file, **extra}
            declared = await client.post(path, json=body)
            assert declared.status_code == 201, declared.text
            if not declared.json()["stored"]:
                headers = {"Content-Type": "application/octet-stream"}
                url = f"{path}/{declared.json()['id']}"
                sent = await client.put(url, content=content, headers=headers)
                assert sent.status_code == 200, sent.text


async def _collect_ids(made: MarkedProject) -> None:
    """Reads the IDs of all rows of the project."""
    async with made.served.database.read() as session:
        for table in Base.metadata.sorted_tables:
            if (
                "project_id" in table.c
                and "id" in table.c
                and table.name not in {"events", "audit"}
            ):
                query = select(table.c.id).where(table.c.project_id == made.project.id)
                found = [str(one) for one in await session.scalars(query)]
                made.secrets |= {one for one in found if not one.isdigit()}
                for parameter, name in OF_ID.items():
                    if name == table.name:
                        made.ids[parameter] = found
        users = select(UserRow.id).join(MembershipRow, MembershipRow.user_id == UserRow.id)
        of_project = users.where(MembershipRow.project_id == made.project.id)
        made.ids["user_id"] = [*await session.scalars(of_project)]
        pool = made.served.names[f"{made.side} pool"]
        made.secrets |= {*await session.scalars(select(PoolRow.id).where(PoolRow.name == pool))}
        mine = select(Base.metadata.tables["tokens"].c.id)
        mine = mine.where(Base.metadata.tables["tokens"].c.user_id.in_(made.ids["user_id"]))
        made.ids["token_id"] = [*await session.scalars(mine)]
    made.secrets |= {*made.ids["user_id"], *made.ids["token_id"], made.project.id}
    made.secrets.add(str(made.number))
    made.ids["project"] = made.ids["slug"] = [made.project.slug]
    made.ids["user"] = [f"{made.marker}-member"]

"""The first day of a team, with real processes: by the dashboard, and by commands.

An administrator makes two projects and invites three people: Ada is a member and Mira the
maintainer of one project, Bert is a member of the other. Ada trains, Bert neither sees nor touches
it, Mira pauses and resumes it, and the administrator disables Ada while her training goes on.
"""

import json
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, expect

from tests.e2e.dashboard_person import DashboardPerson
from tests.e2e.run_history import make_cartpole_definition
from tests.support.commands import run_command
from tests.support.process_stack import REPOSITORY, Stack, make_bare_environment
from tests.support.waiting import PATIENCE_SECONDS, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.extended]

MARKER = "quail-sonata"
"""Name of Ada's experiment, which nothing that Bert sees may contain."""
PASSWORD = "four unrelated owls sing"
LISTS = ("experiments", "runs", "jobs", "workers", "projects", "pools")


@dataclass(frozen=True)
class Team:
    """The login names of the people of one day, and the slugs of their projects."""

    admin: str
    day: str

    @property
    def ada(self) -> str:
        return f"ada-{self.day}"

    @property
    def bert(self) -> str:
        return f"bert-{self.day}"

    @property
    def mira(self) -> str:
        return f"mira-{self.day}"

    @property
    def motion(self) -> str:
        return f"motion-{self.day}"

    @property
    def vision(self) -> str:
        return f"vision-{self.day}"

    @property
    def people(self) -> tuple[str, str, str]:
        return self.ada, self.bert, self.mira


def _make_team(stack: Stack, day: str) -> Team:
    return Team(admin=stack.get("session")["user"], day=day)


class CredentialWatch:
    """Records when a credential is refused and when its stream ends."""

    def __init__(self, url: str, credentials: Mapping[str, Mapping[str, str]]) -> None:
        self._url = url
        self._pool = ThreadPoolExecutor()
        self._ends: dict[str, Future[float]] = {}
        begun = []
        for name, headers in credentials.items():
            for what, watch in (
                (f"stream of the {name}", self._wait_for_stream_end),
                (name, self._wait_for_refusal),
            ):
                begun.append(threading.Event())
                self._ends[what] = self._pool.submit(watch, headers, begun[-1])
        for accepted in begun:
            assert accepted.wait(PATIENCE_SECONDS), "all credentials are valid"

    def _wait_for_stream_end(self, headers: Mapping[str, str], begun: threading.Event) -> float:
        with (
            httpx.Client(base_url=self._url, trust_env=False, timeout=PATIENCE_SECONDS) as client,
            client.stream("GET", "/api/v1/events", headers=dict(headers)) as answer,
        ):
            assert answer.status_code == httpx.codes.OK
            begun.set()
            for _ in answer.iter_raw():
                pass
        return time.time()

    def _wait_for_refusal(self, headers: Mapping[str, str], begun: threading.Event) -> float:
        with httpx.Client(base_url=self._url, trust_env=False, timeout=PATIENCE_SECONDS) as client:

            def is_refused() -> bool:
                answer = client.get("/api/v1/session", headers=dict(headers))
                begun.set()
                return answer.status_code == httpx.codes.UNAUTHORIZED

            wait_for(is_refused, "the credential is refused")
        return time.time()

    def wait_for_ends(self) -> dict[str, float]:
        """Waits for all ends; returns the time of each in seconds since the epoch."""
        ends = {name: end.result() for name, end in self._ends.items()}
        self._pool.shutdown()
        return ends


def _make_headers(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def _check_ends(stack: Stack, team: Team, ends: Mapping[str, float]) -> None:
    """Checks that each access ended once the server had disabled the person."""
    start = datetime.fromisoformat(stack.get(f"users/{team.ada}")["disabled_at"]).timestamp()
    assert all(end > start for end in ends.values())


def _submit(stack: Stack, token: str, directory: Path) -> tuple[str, str]:
    """Submits a training that outlasts the test; returns the IDs of experiment and run."""
    file = directory / "training.json"
    file.write_text(json.dumps(make_cartpole_definition(2_000_000, name=MARKER)))
    made = json.loads(stack.run_palestra("submit", str(file), "--json", token=token))
    (run,) = json.loads(stack.run_palestra("runs", made["id"], "--json", token=token))
    return made["id"], run["id"]


def _is_training(run: dict[str, Any], more_than: int = 0) -> bool:
    return bool(run["state"] == "running" and run["progress"]["env_step"] > more_than)


def _wait_for_steps(read: Callable[[], dict[str, Any]], more_than: int = 0) -> dict[str, Any]:
    """Waits until a run trains and has done more steps; returns the run."""

    def get_training_run() -> dict[str, Any] | None:
        run = read()
        return run if _is_training(run, more_than) else None

    return wait_for(get_training_run, f"the run does more than {more_than} steps")


# Bert looks for what is Ada's. Whatever Ada's page asks for as her login ends is refused.
@pytest.mark.page_faults(
    r"^404 (GET|POST) /api/v1/(runs|jobs)/[^/]+$",
    r"^404 GET /api/v1/(experiments(/[^/]+)?|runs|jobs)\?(.*&)?project=motion-pages(&|$)",
    r"^401 GET /api/v1/",
)
@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.usefixtures("close_pages")
async def test_a_first_day_by_the_dashboard(stack: Stack, browser: Browser, tmp_path: Path) -> None:
    """Ada makes a token on the page of her account and submits with the command."""
    team = _make_team(stack, "pages")
    admin = await DashboardPerson.open(browser, stack.url, stack.login_url)
    await admin.page.wait_for_url("**/")
    for slug in (team.motion, team.vision):
        await admin.make_project(slug, slug)
    ada = await _invite_and_join(browser, stack, admin, (team.ada, team.motion, "member"))
    bert = await _invite_and_join(browser, stack, admin, (team.bert, team.vision, "member"))
    mira = await _invite_and_join(browser, stack, admin, (team.mira, team.motion, "maintainer"))
    token = await ada.make_token("notebook")
    experiment, run = _submit(stack, token, tmp_path)
    address = f"/p/{team.motion}/runs/{run}"
    await ada.page.goto(address)
    # What pages show is compared below; that the training goes on is asked beside them.
    read = partial(_show, stack, token, run)
    job = _wait_for_steps(read)["job_id"]
    await _check_that_the_page_hides(bert, team, (experiment, run, job))
    await mira.act_on_run(address, "Pause", "paused")
    await expect(ada.page.locator("h1 [data-state=paused]")).to_be_visible()
    await mira.act_on_run(address, "Resume", "running")
    await _check_audit_pages(admin, mira, team)
    before = _wait_for_steps(read)
    watch = CredentialWatch(
        stack.url, {"login": await ada.get_cookie_header(), "token": _make_headers(token)}
    )
    await admin.disable(team.ada)
    await ada.page.wait_for_url("**/login**")
    ends = {"page": time.time(), **watch.wait_for_ends()}
    _check_ends(stack, team, ends)
    read = partial(stack.get, f"runs/{run}")
    after = _wait_for_steps(read, before["progress"]["env_step"])
    after = _wait_for_steps(read, after["progress"]["env_step"])
    assert len(after["attempts"]) == len(before["attempts"]) == 2
    disabled = await admin.list_audit_rows("/admin/audit?action=user.disable")
    assert (team.admin, "user.disable") in disabled


async def _invite_and_join(
    browser: Browser, stack: Stack, admin: DashboardPerson, invited: tuple[str, str, str]
) -> DashboardPerson:
    """Invites a person, who opens the link in another browser context and joins."""
    user = invited[0]
    person = await DashboardPerson.open(browser, stack.url, await admin.invite(*invited))
    await person.join(user, PASSWORD)
    await person.page.wait_for_url("**/")
    return person


async def _check_that_the_page_hides(
    bert: DashboardPerson, team: Team, ids: tuple[str, str, str]
) -> None:
    """Checks that addresses and lists hide Ada's run from a member of another project."""
    experiment, run, job = ids
    limited = (
        f"{path}?project={team.motion}" for path in (f"experiments/{experiment}", *LISTS[:3])
    )
    for path in (f"runs/{run}", f"jobs/{job}", *limited):
        assert (await bert.request(path))[0] == httpx.codes.NOT_FOUND, path
    for verb in ("pause", "cancel", "resume"):
        status, _ = await bert.request(f"jobs/{job}:{verb}", "POST")
        assert status == httpx.codes.NOT_FOUND, verb
    for name in LISTS:
        status, text = await bert.request(name)
        assert status == httpx.codes.OK, name
        _check_no_marker(text, team, ids)
    for place in ("experiments", "queue"):
        await bert.page.goto(f"/p/{team.vision}/{place}")
        await expect(bert.page.locator("main h1")).to_be_visible()
        _check_no_marker(await bert.page.content(), team, ids)
    await bert.page.goto(f"/p/{team.vision}/runs/{run}")
    await expect(bert.page.get_by_role("alert")).to_contain_text("Not found")
    await bert.page.goto(f"/p/{team.motion}/runs/{run}")
    await expect(bert.page.get_by_text("There is no project")).to_be_visible()


def _check_no_marker(text: str, team: Team, ids: tuple[str, str, str]) -> None:
    for marker in (MARKER, team.motion, *ids):
        assert marker not in text


async def _check_audit_pages(admin: DashboardPerson, mira: DashboardPerson, team: Team) -> None:
    """Checks the pages of the server's log and, for a maintainer, of the project's log."""

    async def list_rows_of_the_day(action: str) -> list[tuple[str, str]]:
        rows = await admin.list_audit_rows(f"/admin/audit?action={action}")
        return [row for row in rows if row[0] in {team.admin, *team.people}]

    assert await list_rows_of_the_day("project") == [(team.admin, "project.create")] * 2
    assert sorted(await list_rows_of_the_day("invitation")) == sorted(
        [(team.admin, "invitation.create")] * 3
        + [(user, "invitation.redeem") for user in team.people]
    )
    assert (team.ada, "token.create") in await list_rows_of_the_day("token")
    told = await mira.list_audit_rows(f"/p/{team.motion}/audit")
    moves = [(who, what.removeprefix("job.move ")) for who, what in told if "job.move" in what]
    assert [what for who, what in moves if who == team.mira] == [
        "paused → queued",
        "running → pausing",
    ]
    assert told[-1] == (team.admin, "project.create")
    assert (team.ada, "experiment.create") in told
    members = [team.mira, team.ada, team.admin]
    assert [who for who, what in told if what == "membership.create"] == members


def test_a_first_day_by_commands(stack: Stack, tmp_path: Path) -> None:
    """Each person joins by `palestra join`; Ada also has a browser login, whose end is checked."""
    team = _make_team(stack, "commands")
    for slug in (team.motion, team.vision):
        stack.run_palestra("projects", "create", slug)
    ada = _invite_and_join_by_command(stack, team.ada, f"{team.motion}=member")
    bert = _invite_and_join_by_command(stack, team.bert, f"{team.vision}=member")
    mira = _invite_and_join_by_command(stack, team.mira, f"{team.motion}=maintainer")
    experiment, run = _submit(stack, ada, tmp_path)
    read = partial(_show, stack, mira, run)
    job = _wait_for_steps(read)["job_id"]
    _check_that_commands_hide(stack, team, bert, (experiment, run, job))
    stack.run_palestra("pause", run, "--wait", token=mira)
    assert read()["state"] == "paused"
    stack.run_palestra("resume", run, token=mira)
    before = _wait_for_steps(read)
    _check_audit_commands(stack, team, mira)
    watch = CredentialWatch(
        stack.url, {"login": _browser_login(stack, team.ada), "token": _make_headers(ada)}
    )
    stack.run_palestra("users", "disable", team.ada, "--jobs", "keep")
    _check_ends(stack, team, watch.wait_for_ends())
    stack.run_palestra("runs", token=ada, expect=1)
    after = _wait_for_steps(read, before["progress"]["env_step"])
    after = _wait_for_steps(read, after["progress"]["env_step"])
    assert len(after["attempts"]) == 2


def _invite_and_join_by_command(stack: Stack, user: str, role: str) -> str:
    """Invites a person, who joins by the link; returns the token that the command stored."""
    invited = stack.run_palestra(
        "users", "invite", "--display-name", user.title(), "--project", role, "--json"
    )
    home = stack.directory / f"home-{user}"
    link = json.loads(invited)[0]["url"]
    arguments = ("join", link, "--user", user, "--password-stdin")
    variables = {**make_bare_environment(), "XDG_CONFIG_HOME": str(home)}
    done = run_command(arguments, variables, REPOSITORY, f"{PASSWORD}\n")
    assert done.exit_code == 0, done.errors
    logins = json.loads((home / "palestra" / "logins.json").read_text("utf-8"))
    return str(logins["tokens"][stack.url])


def _browser_login(stack: Stack, user: str) -> dict[str, str]:
    """Logs a person in by password, as the dashboard does; returns the cookie."""
    with httpx.Client(base_url=stack.url, trust_env=False, timeout=PATIENCE_SECONDS) as client:
        credentials = {"user": user, "password": PASSWORD}
        client.post("/api/v1/session", json=credentials).raise_for_status()
        cookies = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    return {"Cookie": cookies}


def _show(stack: Stack, token: str, run: str) -> dict[str, Any]:
    return dict(json.loads(stack.run_palestra("show", run, "--json", token=token)))


def _check_that_commands_hide(
    stack: Stack, team: Team, bert: str, ids: tuple[str, str, str]
) -> None:
    """Checks that IDs and lists hide Ada's run from a member of another project."""
    _, run, job = ids
    for command in ("show", "pause", "cancel", "resume", "logs"):
        refused = stack.run_palestra(command, run, token=bert, expect=1)
        assert refused == "palestra: There is no such run in this project.\n"
    stack.run_palestra("cancel", job, token=bert, expect=1)
    for command in ("experiments", "runs", "jobs", "workers"):
        _check_no_marker(stack.run_palestra(command, "--json", token=bert), team, ids)
    listed = stack.run_palestra("projects", "list", "--json", token=bert)
    _check_no_marker(listed, team, ids)


def _check_audit_commands(stack: Stack, team: Team, mira: str) -> None:
    """Checks that the administrator reads the server's log, and the maintainer the project's."""
    whole = _parse_audit_rows(stack.run_palestra("audit", "list", "--limit", "500", "--json"))
    for user in team.people:
        assert {(user, "invitation.redeem"), (user, "token.create")} <= set(whole)
    assert whole.count((team.admin, "project.create")) == 2
    assert whole.count((team.admin, "invitation.create")) == 3
    answer = stack.run_palestra("audit", "list", "--json", token=mira)
    told, rows = _parse_audit_rows(answer), json.loads(answer)
    assert {(team.admin, "project.create"), (team.ada, "experiment.create")} <= set(told)
    moves = [row["data"] for row in rows if (row["user"], row["action"]) == (team.mira, "job.move")]
    assert [(move["from"], move["to"]) for move in moves] == [
        ("paused", "queued"),
        ("running", "pausing"),
    ]


def _parse_audit_rows(answer: str) -> list[tuple[str | None, str]]:
    return [(row["user"], row["action"]) for row in json.loads(answer)]

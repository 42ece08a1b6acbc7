"""The first day of a team, with real processes: by the dashboard, and by commands.

An administrator makes two projects and invites three people: Ada is a member and Mira the
maintainer of one project, Bert is a member of the other. Ada trains, Bert neither sees nor touches
it, Mira pauses and resumes it, and the administrator disables Ada while her training goes on.
`pytest -s` prints how soon each of Ada's accesses ended.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.e2e.dashboard_person import DashboardPerson
from tests.e2e.run_history import make_cartpole_definition
from tests.e2e.test_browser import CHROMIUM, QUIET
from tests.support.process_stack import Stack, make_bare_environment
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.processes, pytest.mark.timeout(1200)]

MARKER = "quail-sonata"
"""Name of Ada's experiment, which nothing that Bert sees may contain."""
PASSWORDS = {
    "ada": "four unrelated owls sing",
    "bert": "seven quiet lamps drift",
    "mira": "nine copper kettles wander",
}
LISTS = ("experiments", "runs", "jobs", "workers", "projects", "pools")
WITHIN = 5.0
"""Seconds within which logins, tokens and streams of a disabled person have ended."""


@pytest.fixture
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield chromium
        chromium.close()


class CredentialWatch:
    """Records when a credential is refused and when its stream ends."""

    def __init__(self, url: str, credentials: Mapping[str, Mapping[str, str]]) -> None:
        self._url = url
        self._pool = ThreadPoolExecutor()
        self._ends: dict[str, Future[float]] = {}
        for name, headers in credentials.items():
            self._ends[f"stream of the {name}"] = self._pool.submit(
                self._wait_for_stream_end, headers
            )
            self._ends[name] = self._pool.submit(self._wait_for_refusal, headers)
        time.sleep(1)
        assert not any(end.done() for end in self._ends.values()), "all credentials are valid"

    def _wait_for_stream_end(self, headers: Mapping[str, str]) -> float:
        timeout = httpx.Timeout(30)
        with (
            httpx.Client(base_url=self._url, trust_env=False, timeout=timeout) as client,
            client.stream("GET", "/api/v1/events", headers=dict(headers)) as answer,
        ):
            assert answer.status_code == httpx.codes.OK
            for _ in answer.iter_raw():
                pass
        return time.time()

    def _wait_for_refusal(self, headers: Mapping[str, str]) -> float:
        with httpx.Client(base_url=self._url, trust_env=False, timeout=30) as client:
            while True:
                answer = client.get("/api/v1/session", headers=dict(headers))
                if answer.status_code == httpx.codes.UNAUTHORIZED:
                    return time.time()
                assert answer.status_code == httpx.codes.OK
                time.sleep(0.1)

    def wait_for_ends(self) -> dict[str, float]:
        """Waits for all ends; returns the time of each in seconds since the epoch."""
        ends = {name: end.result(60) for name, end in self._ends.items()}
        self._pool.shutdown()
        return ends


def _make_headers(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def _check_ends(stack: Stack, day: str, ends: Mapping[str, float]) -> None:
    """Checks how long after the server disabled the person each access ended."""
    start = datetime.fromisoformat(stack.get("users/ada")["disabled_at"]).timestamp()
    after = {name: end - start for name, end in ends.items()}
    told = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in after.items())
    sys.stdout.write(f"\n{day}: ended after the person was disabled: {told}\n")
    assert all(0 < seconds < WITHIN for seconds in after.values())


def _submit(stack: Stack, token: str, directory: Path) -> tuple[str, str]:
    """Submits a training that outlasts the test; returns the IDs of experiment and run."""
    file = directory / "training.json"
    file.write_text(json.dumps(make_cartpole_definition(2_000_000, name=MARKER)))
    made = json.loads(stack.run_palestra("submit", str(file), "--json", token=token))
    (run,) = json.loads(stack.run_palestra("runs", made["id"], "--json", token=token))
    return made["id"], run["id"]


def _wait_for_steps(read: Callable[[], dict[str, Any]], more_than: int = 0) -> dict[str, Any]:
    """Waits until a run trains and has done more steps; returns the run."""

    def get_training_run() -> dict[str, Any] | None:
        run = read()
        is_training = run["state"] == "running" and run["progress"]["env_step"] > more_than
        return run if is_training else None

    return wait_for(get_training_run, f"the run does more than {more_than} steps")


@pytest.mark.browser
def test_a_first_day_by_the_dashboard(stack: Stack, browser: Browser, tmp_path: Path) -> None:
    """The dashboard has no form for submissions: Ada makes a token on the page of her account and
    submits with the command.
    """
    admin = DashboardPerson.open(browser, stack.url, stack.login_url)
    admin.page.wait_for_url("**/")
    admin.make_project("Motion Lab", "motion-lab")
    admin.make_project("Vision Lab", "vision-lab")
    ada = _invite_and_join(browser, stack, admin, ("Ada", "Motion Lab", "member"))
    bert = _invite_and_join(browser, stack, admin, ("Bert", "Vision Lab", "member"))
    mira = _invite_and_join(browser, stack, admin, ("Mira", "Motion Lab", "maintainer"))
    token = ada.make_token("notebook")
    experiment, run = _submit(stack, token, tmp_path)
    address = f"/p/motion-lab/runs/{run}"
    ada.page.goto(address)
    job = _wait_for_steps(lambda: _read(ada, run))["job_id"]
    _check_that_the_page_hides(bert, experiment, run, job)
    mira.act_on_run(address, "Pause", "paused")
    expect(ada.page.locator("h1 [data-state=paused]")).to_be_visible()
    mira.act_on_run(address, "Resume", "running")
    _check_audit_pages(admin, mira)
    before = _wait_for_steps(lambda: _read(mira, run))
    watch = CredentialWatch(
        stack.url, {"login": ada.get_cookie_header(), "token": _make_headers(token)}
    )
    admin.disable("ada")
    ada.page.wait_for_url("**/login**")
    ends = {"page": time.time(), **watch.wait_for_ends()}
    _check_ends(stack, "dashboard", ends)
    after = _wait_for_steps(lambda: _read(mira, run), before["progress"]["env_step"])
    after = _wait_for_steps(lambda: _read(mira, run), after["progress"]["env_step"])
    assert len(after["attempts"]) == len(before["attempts"]) == 2
    assert ("admin", "user.disable") in admin.list_audit_rows("/admin/audit?action=user.disable")


def _invite_and_join(
    browser: Browser, stack: Stack, admin: DashboardPerson, invited: tuple[str, str, str]
) -> DashboardPerson:
    """Invites a person, who opens the link in another browser context and joins."""
    display_name = invited[0]
    user = display_name.lower()
    person = DashboardPerson.open(browser, stack.url, admin.invite(*invited))
    person.join(user, PASSWORDS[user])
    person.page.wait_for_url("**/")
    return person


def _read(person: DashboardPerson, run: str) -> dict[str, Any]:
    status, text = person.request(f"runs/{run}")
    assert status == httpx.codes.OK, text
    found: dict[str, Any] = json.loads(text)
    return found


def _check_that_the_page_hides(bert: DashboardPerson, experiment: str, run: str, job: str) -> None:
    """Checks that addresses and lists hide Ada's run from a member of another project."""
    objects = (f"runs/{run}", f"jobs/{job}", "projects/motion-lab/experiments")
    for path in (*objects, f"projects/motion-lab/experiments/{experiment}"):
        assert bert.request(path)[0] == httpx.codes.NOT_FOUND, path
    for verb in ("pause", "cancel", "resume"):
        assert bert.request(f"jobs/{job}:{verb}", "POST")[0] == httpx.codes.NOT_FOUND, verb
    for name in LISTS:
        status, text = bert.request(name)
        assert status == httpx.codes.OK, name
        _check_no_marker(text, experiment, run, job)
    for place in ("experiments", "queue"):
        bert.page.goto(f"/p/vision-lab/{place}")
        expect(bert.page.locator("main h1")).to_be_visible()
        _check_no_marker(bert.page.content(), experiment, run, job)
    bert.page.goto(f"/p/vision-lab/runs/{run}")
    expect(bert.page.get_by_role("alert")).to_contain_text("Not found")
    bert.page.goto(f"/p/motion-lab/runs/{run}")
    expect(bert.page.get_by_text("There is no project")).to_be_visible()


def _check_no_marker(text: str, experiment: str, run: str, job: str) -> None:
    for marker in (MARKER, "motion-lab", "Motion Lab", experiment, run, job):
        assert marker not in text


def _check_audit_pages(admin: DashboardPerson, mira: DashboardPerson) -> None:
    """Checks the pages of the server's log and, for a maintainer, of the project's log."""
    people = list(PASSWORDS)
    assert admin.list_audit_rows("/admin/audit?action=project") == [("admin", "project.create")] * 2
    invitations = admin.list_audit_rows("/admin/audit?action=invitation")
    assert sorted(invitations) == sorted(
        [("admin", "invitation.create")] * 3 + [(user, "invitation.redeem") for user in people]
    )
    assert ("ada", "token.create") in admin.list_audit_rows("/admin/audit?action=token")
    told = mira.list_audit_rows("/p/motion-lab/audit")
    moves = [(who, what.removeprefix("job.move ")) for who, what in told if "job.move" in what]
    assert [what for who, what in moves if who == "mira"] == [
        "paused → queued",
        "running → pausing",
    ]
    assert told[-1] == ("admin", "project.create")
    assert ("ada", "experiment.create") in told
    assert [who for who, what in told if what == "membership.create"] == ["mira", "ada", "admin"]


def test_a_first_day_by_commands(stack: Stack, tmp_path: Path) -> None:
    """Each person joins by `palestra join`; Ada also has a browser login, whose end is checked."""
    stack.run_palestra("projects", "create", "Motion Lab")
    stack.run_palestra("projects", "create", "Vision Lab")
    ada = _invite_and_join_by_command(stack, "ada", "motion-lab=member")
    bert = _invite_and_join_by_command(stack, "bert", "vision-lab=member")
    mira = _invite_and_join_by_command(stack, "mira", "motion-lab=maintainer")
    experiment, run = _submit(stack, ada, tmp_path)
    job = _wait_for_steps(lambda: _show(stack, mira, run))["job_id"]
    _check_that_commands_hide(stack, bert, (experiment, run, job))
    stack.run_palestra("pause", run, "--wait", token=mira)
    assert _show(stack, mira, run)["state"] == "paused"
    stack.run_palestra("resume", run, token=mira)
    before = _wait_for_steps(lambda: _show(stack, mira, run))
    _check_audit_commands(stack, mira)
    watch = CredentialWatch(
        stack.url, {"login": _browser_login(stack, "ada"), "token": _make_headers(ada)}
    )
    stack.run_palestra("users", "disable", "ada", "--jobs", "keep")
    _check_ends(stack, "commands", watch.wait_for_ends())
    stack.run_palestra("runs", token=ada, expect=1)
    after = _wait_for_steps(lambda: _show(stack, mira, run), before["progress"]["env_step"])
    after = _wait_for_steps(lambda: _show(stack, mira, run), after["progress"]["env_step"])
    assert len(after["attempts"]) == 2


def _invite_and_join_by_command(stack: Stack, user: str, role: str) -> str:
    """Invites a person, who joins by the link; returns the token that the command stored."""
    invited = stack.run_palestra(
        "users", "invite", "--display-name", user.title(), "--project", role, "--json"
    )
    home = stack.directory / f"home-{user}"
    link = json.loads(invited)[0]["url"]
    done = subprocess.run(
        [sys.executable, "-m", "palestra.cli", "join", link, "--user", user, "--password-stdin"],
        env={**make_bare_environment(), "XDG_CONFIG_HOME": str(home)},
        input=f"{PASSWORDS[user]}\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    logins = json.loads((home / "palestra" / "logins.json").read_text("utf-8"))
    return str(logins["tokens"][stack.url])


def _browser_login(stack: Stack, user: str) -> dict[str, str]:
    """Logs a person in by password, as the dashboard does; returns the cookie."""
    with httpx.Client(base_url=stack.url, trust_env=False, timeout=20) as client:
        credentials = {"user": user, "password": PASSWORDS[user]}
        client.post("/api/v1/session", json=credentials).raise_for_status()
        cookies = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    return {"Cookie": cookies}


def _show(stack: Stack, token: str, run: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(stack.run_palestra("show", run, "--json", token=token))
    return found


def _check_that_commands_hide(stack: Stack, bert: str, ids: tuple[str, str, str]) -> None:
    """Checks that IDs and lists hide Ada's run from a member of another project."""
    experiment, run, job = ids
    for command in ("show", "pause", "cancel", "resume", "logs"):
        refused = stack.run_palestra(command, run, token=bert, expect=1)
        assert refused == "palestra: There is no such run in this project.\n"
    stack.run_palestra("cancel", job, token=bert, expect=1)
    for command in ("experiments", "runs", "jobs", "workers"):
        found = stack.run_palestra(command, "--json", token=bert)
        _check_no_marker(found, experiment, run, job)
    _check_no_marker(stack.run_palestra("projects", "list", "--json", token=bert), *ids)


def _check_audit_commands(stack: Stack, mira: str) -> None:
    """Checks that the administrator reads the server's log, and the maintainer the project's."""
    whole = _parse_audit_rows(stack.run_palestra("audit", "list", "--limit", "500", "--json"))
    for user in PASSWORDS:
        assert {(user, "invitation.redeem"), (user, "token.create")} <= set(whole)
    assert whole.count(("admin", "project.create")) == 2
    assert whole.count(("admin", "invitation.create")) == 3
    answer = stack.run_palestra("audit", "list", "--json", token=mira)
    told, rows = _parse_audit_rows(answer), json.loads(answer)
    assert {("admin", "project.create"), ("ada", "experiment.create")} <= set(told)
    moves = [row["data"] for row in rows if (row["user"], row["action"]) == ("mira", "job.move")]
    assert [(move["from"], move["to"]) for move in moves] == [
        ("paused", "queued"),
        ("running", "pausing"),
    ]


def _parse_audit_rows(answer: str) -> list[tuple[str | None, str]]:
    return [(row["user"], row["action"]) for row in json.loads(answer)]

"""Every command against a real HTTP server: its requests, its output and its exit code."""

import json
from pathlib import Path
from typing import Any

import pytest

from palestra.cli.server_address import get_logins_path
from palestra.contract.catalogue import Catalogue
from tests.support import api_samples
from tests.support.api_samples import JOB, RUN
from tests.support.commands import DOCUMENT, RunCommand
from tests.support.fake_http_server import Answer, FakeHttpServer, make_problem
from tests.support.server_fixture import make_catalogue_with_walk


def test_submit_sends_the_document_and_prints_the_runs(
    peer: FakeHttpServer, palestra: RunCommand
) -> None:
    peer.set_answers(
        "POST",
        "/experiments",
        Answer(201, api_samples.make_experiment()),
        Answer(200, api_samples.make_experiment()),
    )
    code, out, _ = palestra(
        "submit", "x.yaml", "--seeds", "0-2", "--pool", "gpu", "--priority", "5"
    )
    assert (code, "new experiment  sample-0123456789abcdef" in out) == (0, True)
    sent = peer.asked[0].body
    assert sent["options"]["seeds"] == [0, 1, 2]
    assert (sent["options"]["pool"], sent["options"]["priority"]) == ("gpu", 5)
    assert sent["provenance"]["packages"]
    code, out, _ = palestra("submit", "x.yaml", "--no-provenance", "--json")
    assert json.loads(out)["id"] == "sample-0123456789abcdef"
    assert peer.asked[1].body["provenance"] == {}


def test_the_option_code_is_refused_with_a_remedy(
    peer: FakeHttpServer, palestra: RunCommand
) -> None:
    """Regression: the option changed the ID of the experiment and had no other effect."""
    code, out, err = palestra("submit", "x.yaml", "--code", str(Path(__file__).parent))
    assert (code, out, peer.asked) == (2, "", [])
    assert "--code: the state of a work tree changed the experiment's ID and nothing else" in err
    assert "whose entry points name the agent or the environment" in err
    assert "--code" not in palestra("submit", "--help")[1]


def test_submit_prints_warnings(peer: FakeHttpServer, palestra: RunCommand) -> None:
    """Warnings go to standard error, since programs read standard output as JSON."""
    told = {
        "code": "no_updates",
        "pointer": "/definition/agent/learning_starts",
        "message": "no update is made",
    }
    peer.set_answers(
        "POST", "/experiments", Answer(201, api_samples.make_experiment(warnings=[told]))
    )
    code, out, err = palestra("submit", "x.yaml", "--no-provenance", "--json")
    assert (code, json.loads(out)["warnings"]) == (0, [told])
    assert "warning: definition.agent.learning_starts: no update is made" in " ".join(err.split())
    peer.set_answers("POST", "/experiments", Answer(201, api_samples.make_experiment()))
    assert palestra("submit", "x.yaml", "--no-provenance")[2] == ""


@pytest.mark.parametrize(("state", "expected"), [("succeeded", 0), ("failed", 1)])
def test_submit_watches_the_runs_if_asked(
    peer: FakeHttpServer, palestra: RunCommand, state: str, expected: int
) -> None:
    peer.set_answers("POST", "/experiments", Answer(201, api_samples.make_experiment()))
    done = api_samples.make_run(state=state, latest_evaluation=api_samples.make_evaluation(481.0))
    peer.set_answers(
        "GET",
        "/runs",
        Answer(200, api_samples.make_page(api_samples.make_run())),
        Answer(200, api_samples.make_page(done)),
    )
    code, out, _ = palestra("submit", "x.yaml", "--watch")
    assert code == expected
    assert "evaluation 481.0 ± 1.0" in out


def test_watch_shows_the_metrics_of_a_supervised_run(
    peer: FakeHttpServer, palestra: RunCommand
) -> None:
    evaluated = api_samples.make_evaluation(-0.25, metrics={"loss": 0.25, "accuracy": 0.9375})
    peer.set_answers(
        "GET",
        "/runs",
        Answer(
            200,
            api_samples.make_page(
                api_samples.make_run(state="succeeded", latest_evaluation=evaluated)
            ),
        ),
    )
    code, out, _ = palestra("watch", "sample-0123456789abcdef")
    assert code == 0
    assert "accuracy 0.9375  loss 0.2500" in out


def test_watch_says_what_a_run_does_before_it_trains(
    peer: FakeHttpServer, palestra: RunCommand
) -> None:
    states = [("running", "starting"), ("running", "compiling"), ("running", None)]
    answers = [
        Answer(200, api_samples.make_page(api_samples.make_run(state=state, phase=phase)))
        for state, phase in (*states, ("succeeded", None))
    ]
    peer.set_answers("GET", "/runs", *answers)
    code, out, _ = palestra("watch", "sample-0123456789abcdef")
    assert code == 0
    words = [line.split()[2] for line in out.splitlines()]
    assert words == ["starting", "compiling", "running", "succeeded"]


def test_an_evaluation_of_one_episode_shows_no_deviation(
    peer: FakeHttpServer, palestra: RunCommand
) -> None:
    only = api_samples.make_evaluation(481.0, episodes=1, stdev=0.0)
    peer.set_answers(
        "GET",
        "/runs",
        Answer(
            200,
            api_samples.make_page(api_samples.make_run(state="succeeded", latest_evaluation=only)),
        ),
    )
    out = palestra("watch", "sample-0123456789abcdef")[1]
    assert "evaluation 481.0" in out
    assert "±" not in out
    peer.set_answers("POST", f"/runs/{RUN}/jobs", Answer(201, api_samples.make_job(state="queued")))
    peer.set_answers("GET", f"/jobs/{JOB}", Answer(200, api_samples.make_job(state="succeeded")))
    peer.set_answers("GET", f"/runs/{RUN}/evaluations", Answer(200, api_samples.make_page(only)))
    row = palestra("evaluate", RUN, "--wait", "--episodes", "1")[1].splitlines()[-1].split()
    assert row == ["500", "1", "481.0", "-", "480.0", "481.0", "482.0", "evaluation"]


def test_unusual_file_names_are_used_literally(
    peer: FakeHttpServer, palestra: RunCommand, tmp_path: Path
) -> None:
    peer.set_answers("POST", "/experiments", Answer(201, api_samples.make_experiment()))
    for name in ("name; rm -rf ~", "-x.yaml", "*.yaml"):
        (tmp_path / name).write_text(DOCUMENT)
        assert palestra("submit", "--no-provenance", "--", name)[0] == 0


def test_lists_are_printed_as_tables(peer: FakeHttpServer, palestra: RunCommand) -> None:
    peer.set_answers(
        "GET",
        "/experiments",
        Answer(200, api_samples.make_page(api_samples.make_experiment(id="[bold]x"))),
    )
    peer.set_answers(
        "GET",
        "/runs",
        Answer(
            200,
            api_samples.make_page(
                api_samples.make_run(latest_evaluation=api_samples.make_evaluation())
            ),
        ),
    )
    peer.set_answers(
        "GET",
        "/jobs",
        Answer(200, api_samples.make_page(api_samples.make_job(waiting="no free slot"))),
    )
    peer.set_answers("GET", "/workers", Answer(200, api_samples.make_page()))
    assert "[bold]x" in palestra("experiments")[1]
    assert "480.0" in palestra("runs", "exp")[1]
    assert "no free slot" in palestra("jobs", RUN)[1]
    assert peer.asked[2].query["run"] == RUN
    assert palestra("workers")[0] == 0
    for command in ("experiments", "runs", "jobs", "workers"):
        assert isinstance(json.loads(palestra(command, "--json")[1]), list)


def test_submit_sends_a_schedule_with_its_options(
    peer: FakeHttpServer, palestra: RunCommand
) -> None:
    peer.set_answers("POST", "/experiments", Answer(201, api_samples.make_experiment()))
    assert (
        palestra(
            "submit", "x.yaml", "--schedule", "continuous_train_and_evaluate", "--no-provenance"
        )[0]
        == 0
    )
    assert peer.asked[0].body["options"]["schedule"] == "continuous_train_and_evaluate"
    code, _, err = palestra("submit", "x.yaml", "--schedule", "continuous_eval")
    assert (code, "palestra evaluate" in err) == (2, True)
    assert palestra("submit", "x.yaml", "--schedule", "nothing")[0] == 2


def _log(first: int, *texts: str, complete: bool) -> dict[str, Any]:
    lines = [
        {"n": first + n, "attempt_id": "att", "stream": "stdout", "wall": 1.0, "text": text}
        for n, text in enumerate(texts)
    ]
    return {
        "run_id": RUN,
        "lines": lines,
        "next_after": first + len(texts) - 1,
        "complete": complete,
    }


def test_logs_prints_the_lines_of_a_run(peer: FakeHttpServer, palestra: RunCommand) -> None:
    peer.set_answers(
        "GET",
        f"/runs/{RUN}/log",
        Answer(200, _log(1, "one [red]", "\x1b[31mtwo", complete=False)),
        Answer(200, _log(3, "three", complete=True)),
    )
    code, out, _ = palestra("logs", RUN)
    assert (code, out) == (0, "one [red]\n\ufffd[31mtwo\nthree\n")
    assert peer.asked[1].query["after"] == "2"


def test_logs_follow_until_the_run_ended(peer: FakeHttpServer, palestra: RunCommand) -> None:
    pieces = [_log(1, "a", complete=True), _log(2, "b", complete=True), _log(3, complete=True)]
    peer.set_answers("GET", f"/runs/{RUN}/log", *(Answer(200, piece) for piece in pieces))
    peer.set_answers(
        "GET",
        f"/runs/{RUN}",
        Answer(200, api_samples.make_run_detail()),
        Answer(200, api_samples.make_run_detail(state="failed")),
    )
    _, out, _ = palestra("logs", RUN, "--follow", "--json")
    assert [json.loads(line)["text"] for line in out.splitlines()] == ["a", "b"]


def test_watch_of_a_run_shows_its_experiment(peer: FakeHttpServer, palestra: RunCommand) -> None:
    peer.set_answers("GET", f"/runs/{RUN}", Answer(200, api_samples.make_run_detail()))
    peer.set_answers(
        "GET", "/runs", Answer(200, api_samples.make_page(api_samples.make_run(state="succeeded")))
    )
    code, out, _ = palestra("watch", RUN, "--json")
    assert (code, json.loads(out)["state"]) == (0, "succeeded")
    assert peer.asked[1].query["experiment"] == "sample-0123456789abcdef"


def test_provenance_prints_the_record_of_a_run(peer: FakeHttpServer, palestra: RunCommand) -> None:
    record = {
        "run_id": RUN,
        "experiment_id": "x",
        "seed": 0,
        "submission": {"command": "palestra submit"},
        "attempts": [],
    }
    peer.set_answers("GET", f"/runs/{RUN}/provenance", Answer(200, record))
    assert json.loads(palestra("provenance", RUN)[1])["submission"]["command"] == "palestra submit"


def test_login_keeps_the_token_for_this_user_only(
    peer: FakeHttpServer, palestra: RunCommand, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.touch(mode=0o600)
    token.write_text("plr_kept\n")
    peer.set_answers("GET", "/session", Answer(200, api_samples.make_session()))
    peer.set_answers("GET", "/runs", Answer(200, api_samples.make_page()))
    assert palestra("login", peer.url, "--token-file", str(token))[0] == 0
    assert get_logins_path().stat().st_mode & 0o077 == 0
    monkeypatch.delenv("PALESTRA_SERVER")
    monkeypatch.delenv("PALESTRA_TOKEN")
    assert palestra("runs")[0] == 0
    assert peer.asked[-1].headers["authorization"] == "Bearer plr_kept"


def test_a_login_belongs_to_a_server_however_its_address_is_typed(
    peer: FakeHttpServer, palestra: RunCommand, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.touch(mode=0o600)
    token.write_text("plr_kept\n")
    peer.set_answers("GET", "/session", Answer(200, api_samples.make_session()))
    peer.set_answers("GET", "/runs", Answer(200, api_samples.make_page()))
    typed = f" {peer.url.replace('http', 'HTTP')}// "
    assert palestra("login", typed, "--token-file", str(token))[0] == 0
    monkeypatch.delenv("PALESTRA_TOKEN")
    for address in (peer.url, typed, f"{peer.url}/"):
        monkeypatch.setenv("PALESTRA_SERVER", address)
        assert palestra("runs")[0] == 0
        assert peer.asked[-1].headers["authorization"] == "Bearer plr_kept"


@pytest.mark.parametrize(
    ("address", "remedy"),
    [
        ("localhost:8080", "must begin with http:// or https://"),
        ("ftp://h", "must begin with http:// or https://"),
        ("http://u:hunter2@h", "must not hold a user or a password"),
        ("http://h:0", "from 1 to 65535"),
        ("http://h/?x", "without ? and #"),
    ],
)
def test_commands_refuse_what_is_no_address_of_a_server(
    palestra: RunCommand, monkeypatch: pytest.MonkeyPatch, address: str, remedy: str
) -> None:
    refusals = [palestra("login", address), palestra("runs", "--server", address)]
    monkeypatch.setenv("PALESTRA_SERVER", address)
    refusals.append(palestra("runs"))
    for code, _, err in refusals:
        assert code == 2
        assert "the address of the server " in err
        assert remedy in err
        assert "hunter2" not in err


def test_a_refused_login_stores_no_token(
    peer: FakeHttpServer, palestra: RunCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    import io

    peer.set_answers(
        "GET",
        "/session",
        Answer(401, make_problem(401, "unauthenticated", "This token is unknown.")),
    )
    monkeypatch.setattr("sys.stdin", io.StringIO("plr_wrong\n"))
    assert palestra("login", peer.url) == (1, "", "palestra: This token is unknown.\n")
    assert not get_logins_path().exists()


def test_a_token_file_that_others_can_read_gets_a_warning(
    peer: FakeHttpServer, palestra: RunCommand, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("plr_x")
    (tmp_path / "token").chmod(0o644)
    peer.set_answers("GET", "/runs", Answer(200, api_samples.make_page()))
    code, _, err = palestra("runs", "--token-file", str(tmp_path / "token"))
    assert (code, "chmod 600" in err) == (0, True)


@pytest.mark.parametrize("content", ["", "\n", "two words and \x00", "ü"])
def test_a_token_file_without_a_token_is_refused(
    palestra: RunCommand, tmp_path: Path, content: str
) -> None:
    (tmp_path / "token").write_text(content)
    assert palestra("runs", "--token-file", str(tmp_path / "token"))[0] == 2


def test_the_server_of_the_current_data_directory_is_found(
    peer: FakeHttpServer, palestra: RunCommand, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("PALESTRA_SERVER")
    monkeypatch.delenv("PALESTRA_TOKEN")
    assert palestra("runs")[0] == 2
    (tmp_path / ".palestra" / "tokens").mkdir(parents=True)
    (tmp_path / ".palestra" / "up.json").write_text(json.dumps({"url": peer.url}))
    (tmp_path / ".palestra" / "tokens" / "user").write_text("plr_embedded")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    peer.set_answers("GET", "/runs", Answer(200, api_samples.make_page()))
    assert palestra("runs")[0] == 0
    assert peer.asked[-1].headers["authorization"] == "Bearer plr_embedded"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nonsense"],
        ["submit"],
        ["runs", "--nope"],
        ["up", "--port", "99999"],
        ["up", "--port", "abc"],
        ["login", "nowhere"],
        ["db"],
    ],
)
def test_wrong_usage_exits_with_2_and_no_traceback(
    palestra: RunCommand, arguments: list[str]
) -> None:
    code, _, err = palestra(*arguments)
    assert code == 2
    assert "Traceback" not in err


def test_version_and_help_are_printed(palestra: RunCommand) -> None:
    assert palestra("--version") == (0, "palestra 0.1.0\n", "")
    code, out, _ = palestra("--help")
    assert code == 0
    for command in (
        "up",
        "server",
        "worker",
        "submit",
        "experiments",
        "runs",
        "watch",
        "logs",
        "pause",
        "resume",
        "cancel",
        "evaluate",
        "login",
        "db",
        "demo",
    ):
        assert f"\n  {command} " in out


def test_an_internal_error_prints_one_sentence(
    palestra: RunCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palestra.cli.queries.connect", lambda *_: 1 / 0)
    code, _, err = palestra("runs")
    assert (code, err.startswith("palestra: this is a fault of Palestra: ZeroDivisionError")) == (
        1,
        True,
    )


def test_the_catalogue_lists_agents_and_environments_with_their_code(
    peer: FakeHttpServer, palestra: RunCommand
) -> None:
    """These are the parts that the workers of a pool can build."""
    offered = Catalogue.model_validate_json(json.dumps(make_catalogue_with_walk())).model_dump(
        mode="json"
    )
    peer.set_answers(
        "GET", "/catalogue", Answer(200, {"pool": "gpu", "known": True, "catalogue": offered})
    )
    code, out, _ = palestra("catalogue", "--pool", "gpu")
    assert (code, peer.asked[0].query["pool"]) == (0, "gpu")
    rows = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    assert "discrete 2" in rows["tiny/Walk-v0"]
    assert "tiny-envs 2.0 (digest 555555555555)" in rows["tiny/Walk-v0"]
    assert "digest" not in rows["CartPole-v1"]
    assert "tiny-agents 1.2.0 (digest 777777777777)" in out
    assert palestra("catalogue", "walk")[1].splitlines()[1].split()[0] == "tiny/Walk-v0"
    assert json.loads(palestra("catalogue", "--json")[1])["catalogue"]["imports"] == ["loose"]
    assert "nothing that the pool default offers has 'xyz'" in palestra("catalogue", "xyz")[1]

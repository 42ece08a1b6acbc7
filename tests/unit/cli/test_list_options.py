"""`palestra runs` and `palestra experiments` with a filter, a key and columns."""

import pytest

from palestra.contract.run_lists import RunKeysView
from tests.support import api_samples
from tests.support.fake_http_server import Answer, FakeHttpServer
from tests.unit.cli.conftest import RunCommand


@pytest.mark.parametrize("command", ["runs", "experiments"])
def test_filter_key_and_columns_are_sent_and_shown(
    peer: FakeHttpServer, palestra: RunCommand, command: str
) -> None:
    made = {"runs": api_samples.make_run, "experiments": api_samples.make_experiment}[command]
    row = made(values={"agent.lr": 0.25, "evaluation/mean.best": None, "env": "[bold]x"})
    peer.set_answers("GET", f"/{command}", Answer(200, api_samples.make_page(row)))
    keys = RunKeysView(
        fields=(), members=("agent.lr",), series=("evaluation/mean",), thresholds=(),
        searched_runs=None, is_complete=True,
    )  # fmt: skip
    peer.set_answers("GET", "/runs:keys", Answer(200, keys.model_dump(mode="json")))
    code, shown, _ = palestra(
        command,
        "--filter",
        "agent:ppo -state:failed",
        "--sort=-evaluation/mean.best",
        "--columns",
        "agent.lr, evaluation/mean.best,env",
    )
    assert code == 0
    for part in ("agent.lr", "0.25", "evaluation/mean.best", "[bold]x"):
        assert part in shown
    query = peer.asked[0].query
    assert query["filter"] == "agent:ppo -state:failed"
    assert query["sort"] == "-evaluation/mean.best"
    assert query["columns"] in ("env", ["agent.lr", "evaluation/mean.best", "env"])


@pytest.mark.parametrize("command", ["runs", "experiments"])
def test_a_filter_that_cannot_be_read_is_refused_with_a_mark_and_without_a_request(
    peer: FakeHttpServer, palestra: RunCommand, command: str
) -> None:
    code, _, told = palestra(command, "--filter", "state:running agnt:ppo")
    assert code == 2
    assert "at character 15: is no field of this list; did you mean agent?" in told
    lines = told.splitlines()
    mark = next(line for line in lines if line.strip() == "^")
    shown = lines[lines.index(mark) - 1]
    assert shown[mark.index("^") :].startswith("agnt")
    assert not peer.asked

"""The client against a real HTTP server: its requests, how it parses answers, and
lost connections.
"""

from collections.abc import Iterator
from itertools import islice

import pytest

import palestra
from palestra import errors
from palestra.client import Client
from palestra.contract.definition import Definition, read_definition
from palestra.contract.documents import encode_canonical_json
from palestra.contract.job_options import EvaluateOptions, JobOptions
from palestra.contract.names import EvaluationSource
from palestra.contract.queries import SeriesQuery
from palestra.contract.states import JobState, RunState
from tests.support import api_samples
from tests.support.api_samples import JOB, RUN
from tests.support.fake_http_server import Answer, FakeHttpServer, make_problem, run_fake_server

SSE = "text/event-stream"


@pytest.fixture
def peer() -> Iterator[FakeHttpServer]:
    with run_fake_server() as running:
        yield running


@pytest.fixture
def client(peer: FakeHttpServer) -> Iterator[Client]:
    with Client(peer.url, "plr_test") as made:
        made._connection.sleep = lambda _seconds: None
        yield made


def make_definition() -> Definition:
    return read_definition(encode_canonical_json(api_samples.make_definition()))


def test_the_package_exports_the_client() -> None:
    assert palestra.Client is Client
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = palestra.Nothing


def test_submit_sends_the_whole_document_with_a_key(peer: FakeHttpServer, client: Client) -> None:
    peer.set_answers("POST", "/experiments", Answer(201, api_samples.make_experiment()))
    made = client.submit(make_definition(), JobOptions(seeds=(0, 1)), provenance={"command": "x"})
    (asked,) = peer.asked
    assert made.id == "sample-0123456789abcdef"
    assert asked.headers["authorization"] == "Bearer plr_test"
    assert len(asked.headers["idempotency-key"]) == 36
    assert asked.body["options"]["seeds"] == [0, 1]
    assert asked.body["definition"]["agent"]["gamma"] == 0.99
    assert asked.body["provenance"] == {"command": "x"}


@pytest.mark.parametrize(("status", "created"), [(201, True), (200, False)])
def test_submit_document_returns_whether_the_experiment_is_new(
    peer: FakeHttpServer, client: Client, status: int, created: bool
) -> None:
    from palestra.contract.job_options import Submission

    peer.set_answers("POST", "/experiments", Answer(status, api_samples.make_experiment()))
    assert client.submit_document(Submission(definition=make_definition()))[1] is created


def test_a_request_with_a_lost_answer_is_repeated_with_the_same_key(
    peer: FakeHttpServer, client: Client
) -> None:
    peer.set_answers(
        "POST",
        "/experiments",
        Answer(drop=True),
        Answer(503, make_problem(503, "unavailable", "Later.")),
        Answer(201, api_samples.make_experiment()),
    )
    client.submit(make_definition())
    keys = {asked.headers["idempotency-key"] for asked in peer.asked}
    assert (len(peer.asked), len(keys)) == (3, 1)


def test_an_action_without_a_key_is_never_repeated(peer: FakeHttpServer, client: Client) -> None:
    peer.set_answers("POST", f"/jobs/{JOB}:cancel", Answer(drop=True))
    with pytest.raises(errors.UnreachableError, match="palestra up"):
        client.cancel(JOB)
    assert len(peer.asked) == 1


def test_lists_follow_their_cursor(peer: FakeHttpServer, client: Client) -> None:
    first = Answer(
        200,
        api_samples.make_page(
            api_samples.make_run(id=api_samples.make_id("run", 1)), cursor="next"
        ),
    )
    peer.set_answers(
        "GET",
        "/runs",
        first,
        Answer(200, api_samples.make_page(api_samples.make_run(id=api_samples.make_id("run", 2)))),
    )
    assert [run.id for run in client.runs("exp", state="running")] == [
        api_samples.make_id("run", 1),
        api_samples.make_id("run", 2),
    ]
    assert [asked.query.get("cursor") for asked in peer.asked] == [None, "next"]
    assert peer.asked[1].query["experiment"] == "exp"
    assert peer.asked[1].query["state"] == "running"


def test_filters_of_experiments_are_query_parameters(peer: FakeHttpServer, client: Client) -> None:
    peer.set_answers(
        "GET", "/experiments", Answer(200, api_samples.make_page(api_samples.make_experiment()))
    )
    assert [row.agent for row in client.experiments(agent="dqn", text="sam", archived=True)] == [
        "dqn"
    ]
    assert peer.asked[0].query == {
        "agent": "dqn",
        "text": "sam",
        "archived": "true",
        "sort": "-created_at",
        "limit": "200",
    }


def test_control_methods_send_their_actions(peer: FakeHttpServer, client: Client) -> None:
    for verb in ("pause", "resume", "cancel"):
        peer.set_answers(
            "POST", f"/jobs/{JOB}:{verb}", Answer(200, api_samples.make_job(state="pausing"))
        )
        assert getattr(client, verb)(JOB, "why").state is JobState.PAUSING
        assert peer.asked[-1].body == {"reason": "why"}


def test_evaluate_queues_a_schedule(peer: FakeHttpServer, client: Client) -> None:
    peer.set_answers(
        "POST",
        f"/runs/{RUN}/jobs",
        Answer(201, api_samples.make_job(schedule="evaluate", state="queued")),
    )
    assert client.evaluate(RUN, snapshot="best", episodes=20, seed=7).schedule == "evaluate"
    sent = peer.asked[0].body["evaluate"]
    assert (sent["snapshot"], sent["episodes"], sent["seed"], sent["formats"]) == (
        "best",
        20,
        7,
        None,
    )


def test_follow_and_test_queue_their_schedules(peer: FakeHttpServer, client: Client) -> None:
    peer.set_answers(
        "POST",
        f"/runs/{RUN}/jobs",
        *(Answer(201, api_samples.make_job(state="queued")) for _ in range(3)),
    )
    client.follow(
        RUN, EvaluateOptions(episodes=5, throttle_seconds=30, delay_seconds=1, only_once=False)
    )
    client.follow(RUN, on_train_data=True)
    client.test(RUN, pool="small")
    first, second, third = (asked.body for asked in peer.asked)
    assert (
        first["schedule"],
        first["evaluate"]["throttle_seconds"],
        first["evaluate"]["only_once"],
    ) == ("continuous_eval", 30, False)
    assert second["schedule"] == "continuous_eval_on_train_data"
    assert (third["schedule"], third["pool"]) == ("test", "small")


def test_evaluations_are_filtered_by_source(peer: FakeHttpServer, client: Client) -> None:
    peer.set_answers(
        "GET",
        f"/runs/{RUN}/evaluations",
        Answer(200, api_samples.make_page(api_samples.make_evaluation(source="train_data"))),
    )
    (found,) = client.evaluations(RUN, source=EvaluationSource.TRAIN_DATA)
    assert (found.source, peer.asked[0].query["source"]) == ("train_data", "train_data")


def test_reading_methods_parse_their_answers(peer: FakeHttpServer, client: Client) -> None:
    peer.set_answers("GET", "/session", Answer(200, api_samples.make_session()))
    peer.set_answers("GET", f"/runs/{RUN}", Answer(200, api_samples.make_run_detail()))
    peer.set_answers(
        "GET",
        f"/runs/{RUN}/evaluations",
        Answer(
            200,
            api_samples.make_page(
                api_samples.make_evaluation() | {"mean": "NaN", "max": "Infinity"}
            ),
        ),
    )
    peer.set_answers("GET", f"/jobs/{JOB}", Answer(200, api_samples.make_job()))
    peer.set_answers(
        "GET",
        f"/runs/{RUN}/log",
        Answer(200, {"run_id": RUN, "lines": [], "next_after": 0, "complete": True}),
    )
    assert client.session().user == "admin"
    assert client.run(RUN).state is RunState.RUNNING
    (found,) = client.evaluations(RUN)
    assert found.mean != found.mean
    assert client.job(JOB).id == JOB
    assert client.log(RUN).complete


def test_series_are_queried_with_a_body(peer: FakeHttpServer, client: Client) -> None:
    answer = {
        "x": "env_step",
        "grid": [1.0],
        "start": 0,
        "end": 2,
        "width": 2,
        "series": [],
        "groups": [],
        "cursor": 9,
    }
    peer.set_answers("POST", "/series:query", Answer(200, answer))
    assert client.series(SeriesQuery(buckets=1)).cursor == 9
    assert peer.asked[0].body["buckets"] == 1


def test_a_request_that_a_proxy_refuses_for_its_size_names_the_limit(
    peer: FakeHttpServer, client: Client
) -> None:
    page = Answer(413, raw=b"<html>413</html>", headers={"Content-Type": "text/html"})
    peer.set_answers("POST", "/series:query", page)
    with pytest.raises(errors.UnexpectedAnswerError, match="client_max_body_size"):
        client.series(SeriesQuery(buckets=1))


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *(
            (400, errors.InvalidRequestError),
            (401, errors.UnauthenticatedError),
            (403, errors.ForbiddenError),
            (404, errors.NotFoundError),
        ),
        *(
            (409, errors.ConflictError),
            (412, errors.ConflictError),
            (413, errors.InvalidRequestError),
            (415, errors.InvalidRequestError),
        ),
        *(
            (422, errors.InvalidRequestError),
            (429, errors.TooManyRequestsError),
            (500, errors.ServerError),
            (503, errors.ServerError),
        ),
    ],
)
def test_each_refusal_is_its_own_exception(
    peer: FakeHttpServer, client: Client, status: int, kind: type[errors.ApiError]
) -> None:
    peer.set_answers(
        "GET", f"/jobs/{JOB}", Answer(status, make_problem(status, "some_code", "Do this."))
    )
    with pytest.raises(kind, match="Do this") as caught:
        client.job(JOB)
    assert (caught.value.code, caught.value.status) == ("some_code", status)


def test_every_error_of_a_document_is_in_the_exception(
    peer: FakeHttpServer, client: Client
) -> None:
    faults = (
        {"pointer": "/a", "code": "x", "message": "is wrong"},
        {"pointer": "/b", "code": "x", "message": "is worse"},
    )
    peer.set_answers(
        "POST",
        "/experiments",
        Answer(422, make_problem(422, "invalid_document", "/a: is wrong (and 1 more).", faults)),
    )
    with pytest.raises(errors.InvalidRequestError, match=r"(?s)/a: is wrong.*/b: is worse"):
        client.submit(make_definition())


@pytest.mark.parametrize("raw", [b"<html>hello</html>", b"", b"[]", b'{"id": 3}'])
def test_an_answer_of_another_program_raises_an_error_that_says_so(
    peer: FakeHttpServer, client: Client, raw: bytes
) -> None:
    peer.set_answers("GET", f"/jobs/{JOB}", Answer(200, raw=raw))
    with pytest.raises(errors.UnexpectedAnswerError, match="is it a Palestra server"):
        client.job(JOB)


def test_an_unreachable_server_raises_an_error_of_one_sentence() -> None:
    with Client("http://127.0.0.1:9", "x") as client:
        client._connection.sleep = lambda _seconds: None
        with pytest.raises(errors.UnreachableError, match="does not answer"):
            client.session()


def test_busy_servers_are_retried_after_retry_after(peer: FakeHttpServer, client: Client) -> None:
    waits: list[float] = []
    client._connection.sleep = waits.append
    busy = Answer(429, make_problem(429, "slow_down", "Wait."), headers={"Retry-After": "3"})
    peer.set_answers("GET", "/session", busy, Answer(200, api_samples.make_session()))
    client.session()
    assert waits == [3.0]


def test_identifiers_never_change_the_path(peer: FakeHttpServer, client: Client) -> None:
    with pytest.raises(errors.NotFoundError):
        client.run("../session?x=1#y")
    assert peer.asked[0].path == "/api/v1/runs/..%2Fsession%3Fx%3D1%23y"


def test_a_request_that_the_database_gave_up_is_not_repeated(
    peer: FakeHttpServer, client: Client
) -> None:
    detail = "The database gave up this request after 5 s, its limit."
    peer.set_answers("GET", "/jobs", Answer(503, make_problem(503, "statement_deadline", detail)))
    with pytest.raises(errors.ServerError, match="after 5 s"):
        list(client.jobs())
    assert len(peer.asked) == 1


def test_events_continue_after_the_last_one_when_the_connection_is_lost(
    peer: FakeHttpServer, client: Client
) -> None:
    stream = {"Content-Type": "text/event-stream"}
    first = Answer(
        200,
        raw=b": hello\n\n"
        + api_samples.encode_events(api_samples.make_event(3), api_samples.make_event(5)),
        headers=stream,
    )
    busy = Answer(503, make_problem(503, "unavailable", "Later."))
    peer.set_answers(
        "GET",
        "/events",
        first,
        Answer(drop=True),
        busy,
        Answer(200, raw=api_samples.encode_events(api_samples.make_event(6)), headers=stream),
    )
    seen = [
        row.id for row in islice(client.events(after=2, types=["run", "points"], run_id=RUN), 3)
    ]
    assert seen == [3, 5, 6]
    assert [asked.headers.get("last-event-id") for asked in peer.asked] == ["2", "5", "5", "5"]
    assert peer.asked[0].query == {"type": "points", "run": RUN, "after": "2"}


def test_a_stream_without_events_resumes_after_the_cursor_of_its_pings(
    peer: FakeHttpServer, client: Client
) -> None:
    stream = {"Content-Type": "text/event-stream"}
    quiet = Answer(200, raw=b"retry: 1000\n\nid: 41\n: ping\n\n", headers=stream)
    event = api_samples.encode_events(api_samples.make_event(42))
    peer.set_answers("GET", "/events", quiet, Answer(200, raw=event, headers=stream))
    assert next(client.events()).id == 42
    assert [asked.query for asked in peer.asked] == [{}, {"after": "41"}]


def test_lost_events_are_an_exception(peer: FakeHttpServer, client: Client) -> None:
    raw = b'id: 7\n: ping\n\nevent: resync\ndata: {"reason":"load the history again"}\n\n'
    peer.set_answers("GET", "/events", Answer(200, raw=raw, headers={"Content-Type": SSE}))
    with pytest.raises(errors.EventsLostError, match="after 7") as raised:
        next(client.events(after=3))
    assert raised.value.cursor == 7


def test_events_without_reconnection_end(peer: FakeHttpServer, client: Client) -> None:
    peer.set_answers(
        "GET",
        "/events",
        Answer(
            200,
            raw=api_samples.encode_events(api_samples.make_event(3)),
            headers={"Content-Type": "text/event-stream"},
        ),
    )
    assert [row.id for row in client.events(reconnect=False)] == [3]


def test_a_refused_stream_is_an_exception(peer: FakeHttpServer, client: Client) -> None:
    peer.set_answers("GET", "/events", Answer(401, make_problem(401, "unauthenticated", "Log in.")))
    with pytest.raises(errors.UnauthenticatedError):
        next(client.events())


def test_watch_ends_with_the_last_run(peer: FakeHttpServer, client: Client) -> None:
    second = api_samples.make_id("run", 2)
    pages = [
        api_samples.make_page(api_samples.make_run(seed=1, id=second), api_samples.make_run()),
        api_samples.make_page(
            api_samples.make_run(seed=1, id=second, state="succeeded"),
            api_samples.make_run(state="failed"),
        ),
    ]
    peer.set_answers("GET", "/runs", *(Answer(200, page) for page in pages))
    looks = [
        [(run.seed, run.state.value) for run in runs] for runs in client.watch("exp", period=0)
    ]
    assert looks == [[(0, "running"), (1, "running")], [(0, "failed"), (1, "succeeded")]]


def test_watch_of_waiting_runs_asks_again_when_one_changes(
    peer: FakeHttpServer, client: Client
) -> None:
    states = ("queued", "queued", "succeeded")
    pages = [api_samples.make_page(api_samples.make_run(state=state)) for state in states]
    peer.set_answers("GET", "/runs", *(Answer(200, page) for page in pages))
    peer.set_answers("POST", "/events:poll", *make_polled(7, 8))
    assert [runs[0].state.value for runs in client.watch("exp")] == list(states)
    polls = [asked.body for asked in peer.asked if asked.method == "POST"]
    assert [(poll["wait"], poll["subscriptions"][0]["after"]) for poll in polls] == [
        (0.0, None),
        (25.0, 7),
    ]
    assert polls[0]["subscriptions"][0]["experiments"] == ["exp"]
    assert [asked.method for asked in peer.asked] == ["GET", "POST", "GET", "POST", "GET"]


def test_wait_returns_the_ended_job(peer: FakeHttpServer, client: Client) -> None:
    states = ("running", "running", "running", "succeeded")
    answers = (Answer(200, api_samples.make_job(state=state)) for state in states)
    peer.set_answers("GET", f"/jobs/{JOB}", *answers)
    busy = Answer(429, make_problem(429, "too_many_streams", "Close a program that watches."))
    peer.set_answers("POST", "/events:poll", *make_polled(7), *[busy] * 5, *make_polled(9))
    assert client.wait(JOB, period=0).state is JobState.SUCCEEDED


def make_polled(*cursors: int) -> list[Answer]:
    """Returns answers of long polls that reach these cursors."""
    return [Answer(200, {"events": [], "cursors": [one], "resync": []}) for one in cursors]

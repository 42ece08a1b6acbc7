"""The connection over which a process of the Celery pool sends its claims."""

import multiprocessing

import httpx

from tests.support.fake_http_server import Answer, run_fake_server
from workers.host.kept_connection import KeptConnection


def test_requests_with_one_secret_share_a_client_and_another_secret_opens_its_own() -> None:
    with run_fake_server() as server:
        server.set_answers("GET", "/workers", Answer(200, {}))
        kept = KeptConnection(server.url)
        first = kept.get("one")
        assert kept.get("one") is first
        second = kept.get("two")
        assert second is not first
        assert first.is_closed
        for client in (second, kept.get("two")):
            assert client.get("/api/v1/workers").status_code == httpx.codes.OK
        second.close()
        sent = [asked.headers.get("authorization") for asked in server.asked]
    assert sent == ["Bearer two", "Bearer two"]


def test_a_forked_process_shares_no_connection() -> None:
    kept = KeptConnection("http://127.0.0.1:9")
    inherited = kept.get("one")
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()

    def answer() -> None:
        own = kept.get("one")
        answers.put((own is inherited, inherited.is_closed, kept.get("one") is own))

    child = context.Process(target=answer)
    child.start()
    child.join()
    assert answers.get() == (False, False, True), "the parent's connection is left alone"
    assert kept.get("one") is inherited

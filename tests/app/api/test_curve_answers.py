"""Forms of the answers to queries of curves: tags, Arrow, and the codes of refusals."""

import io

import pyarrow as pa

from tests.app.api.serving import AppServer

ARROW = "application/vnd.apache.arrow.stream"
QUERY = "/api/v1/series:query"


async def test_an_answer_about_an_ended_run_is_not_sent_twice(shared: AppServer) -> None:
    run = shared.names["finished_run"]
    body = {"runs": [run], "names": ["episode/return"]}
    async with shared.client("user") as client:
        first = await client.post(QUERY, json=body)
        assert first.status_code == 200, first.text
        tag = first.headers["etag"]
        assert tag.startswith('W/"')
        again = await client.post(QUERY, json=body, headers={"If-None-Match": tag})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
        arrow = await client.post(QUERY, json=body, headers={"If-None-Match": tag, "Accept": ARROW})
        assert (arrow.status_code, arrow.headers["content-type"]) == (200, ARROW)
        changed = await client.post(
            QUERY, json={**body, "x": "update"}, headers={"If-None-Match": f'"x", {tag}'}
        )
        assert changed.status_code == 200
        live = await client.post(
            QUERY, json={"runs": [shared.names["live_run"]], "names": ["episode/return"]}
        )
        assert "etag" not in live.headers


async def test_arrow_is_answered_where_it_is_accepted(shared: AppServer) -> None:
    body = {"runs": [shared.names["finished_run"]], "names": ["episode/return", "evaluation/mean"]}
    async with shared.client("user") as client:
        answer = await client.post(QUERY, json=body, headers={"Accept": ARROW})
        plain = (await client.post(QUERY, json=body)).json()
    table = pa.ipc.open_stream(io.BytesIO(answer.content)).read_all()
    assert table.column("n").to_pylist() == [one["n"] for one in plain["series"]]

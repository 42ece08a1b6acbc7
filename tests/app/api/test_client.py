"""`palestra.Client` against the real application."""

import asyncio
import hashlib
import io
import json
import os
import zipfile
from collections.abc import AsyncIterator, Callable, Iterable
from itertools import islice
from pathlib import Path

import pytest
import pytest_asyncio

from palestra.client import Client
from palestra.contract.definition import read_definition
from palestra.contract.job_options import JobOptions
from palestra.contract.queries import EventView
from palestra.contract.resources import SubmittedExperiment
from palestra.contract.states import RunState
from palestra.downloads import DownloadError
from palestra.event_feed import EventFeed
from tests.app.api.serving import AppServer
from tests.support.api_samples import RUN, make_page
from tests.support.documented_statuses import read_paths
from tests.support.fake_http_server import Answer, run_fake_server
from tests.support.listening import listening
from tests.support.proxy import run_proxy
from tests.support.records import make_points
from tests.support.server_fixture import make_definition
from tests.support.waiting import PATIENCE_SECONDS, until

pytestmark = pytest.mark.asyncio(loop_scope="module")

LISTS: dict[str, Callable[[Client], Iterable[object]]] = {
    "/audit": lambda client: client.audit(),
    "/projects": lambda client: client.projects(),
    "/projects:deleted": lambda client: client.deleted_projects(),
    "/projects/{slug}/members": lambda client: client.members("lab"),
    "/projects/{slug}/thresholds": lambda client: client.thresholds("lab"),
    "/account/sessions": lambda client: client.login_sessions(),
    "/tokens": lambda client: client.tokens(),
    "/invitations": lambda client: client.invitations(),
    "/users": lambda client: client.users(),
    "/experiments": lambda client: client.experiments(),
    "/runs": lambda client: client.runs(),
    "/runs:groups": lambda client: client.run_groups(),
    "/views": lambda client: client.views(),
    "/jobs": lambda client: client.jobs(),
    "/workers": lambda client: client.workers(),
    "/pools": lambda client: client.pools(),
    "/definitions/presets": lambda client: client.presets(),
    "/pools/{pool}/windows": lambda client: client.pool_windows("gpu"),
    "/pools/{pool}/enrolment-tokens": lambda client: client.enrolment_tokens("gpu"),
    "/runs/{run_id}/snapshots": lambda client: client.snapshots(RUN),
    "/runs/{run_id}/evaluations": lambda client: client.evaluations(RUN),
    "/runs/{run_id}/series": lambda client: client.series_names(RUN),
    "/runs/{run_id}/artifacts": lambda client: client.artifacts(RUN),
}
NOT_IN_CLIENT = {
    "/experiments/{experiment_id}/runs": "the same as /runs?experiment=",
}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def client(shared: AppServer) -> AsyncIterator[Client]:
    async with listening(shared.app) as url:
        with Client(url, shared.tokens["user"]) as made:
            yield made


async def test_events_filtered_by_type_have_only_those_types(
    shared: AppServer, client: Client
) -> None:
    """Regression: the client sent the unknown parameter `types` and received events of every
    type.
    """
    every = await asyncio.to_thread(lambda: list(islice(client.events(after=0), 10)))
    assert {"run", "job"} < {event.type for event in every}
    expected = [event.id for event in every if event.type in {"run", "attempt"}]

    def take() -> list[EventView]:
        return list(islice(client.events(after=0, types=["run", "attempt"]), len(expected)))

    assert [event.id for event in await asyncio.to_thread(take)] == expected


async def test_events_pass_a_proxy_that_holds_back_streams(shared: AppServer) -> None:
    async with listening(shared.app) as url:
        with run_proxy(int(url.rpartition(":")[2])) as proxy:
            proxy.collects_streams = True
            with Client(proxy.url, shared.tokens["user"]) as client:
                client._feed = EventFeed(client._connection, silence=1.0)
                events = client.events(types=["job"])
                waiting = asyncio.create_task(asyncio.to_thread(next, events))
                await _wait_for_a_poll(shared)
                job = shared.names["queued_job"]
                assert await asyncio.to_thread(client.pause, job)
                event = await asyncio.wait_for(waiting, PATIENCE_SECONDS)
                assert (event.job_id, event.data["state"]) == (job, "paused")
                waiting = asyncio.create_task(asyncio.to_thread(next, events))
                assert await asyncio.to_thread(client.resume, job)
                again = await asyncio.wait_for(waiting, PATIENCE_SECONDS)
                assert (again.data["state"], again.id > event.id) == ("queued", True)


async def _wait_for_a_poll(shared: AppServer) -> None:
    """Waits until a long poll with a cursor waits at the server."""
    streams = shared.app.state.hub
    await until(lambda: any(one.numbered and one.cursors for one in streams.streams))


async def test_a_refused_login_names_the_ways_to_log_in(shared: AppServer) -> None:
    """The message says how to set a password and which command makes a login link."""
    async with shared.client() as http:
        wrong = (
            await http.post("/api/v1/session", json={"user": "admin", "password": "never set"})
        ).json()
        used = (await http.post("/api/v1/session:redeem", json={"code": "pll_" + "x" * 43})).json()
    for answer in (wrong, used):
        assert answer["status"] == 401
        assert "`palestra login-link` prints a new link" in answer["detail"]
        assert "--data-dir" in answer["detail"]


async def test_an_admin_revokes_the_secret_of_a_worker(shared: AppServer, client: Client) -> None:
    """A worker whose secret was lost can be enrolled again."""
    made = await shared.world.register(name="forgotten", enrolment="3" * 64)
    forgotten = await asyncio.to_thread(client.forget_worker, made.worker_id)
    assert (forgotten.id, forgotten.name) == (made.worker_id, "forgotten")
    again = await shared.world.register(
        name="forgotten", by=await shared.world.make_enrolment(), enrolment="4" * 64
    )
    assert again.worker_id != made.worker_id
    assert again.secret not in {made.secret, None}


async def test_more_seeds_than_the_server_takes_at_once_are_sent_as_several_submissions(
    shared: AppServer, client: Client
) -> None:
    """Those that arrived before a break are not doubled by the next call."""
    definition = read_definition(json.dumps(make_definition(loop={"env_steps": 78})))

    def submit(number: int) -> SubmittedExperiment:
        return client.submit(definition, JobOptions(seeds=tuple(range(number))))

    before_the_break = await asyncio.to_thread(submit, 1_000)
    for _ in range(2):
        experiment = await asyncio.to_thread(submit, 2_300)
        assert experiment.id == before_the_break.id
        assert experiment.runs == {RunState.QUEUED: 2_300}


async def test_an_archived_experiment_can_be_restored(shared: AppServer, client: Client) -> None:
    """Regression: the API and the client had no way to restore an archived experiment."""
    experiment = (await shared.world.submit(make_definition(loop={"env_steps": 77})))[0]

    def archive_and_restore() -> list[bool]:
        for job in client.jobs(experiment_id=experiment.id):
            client.cancel(job.id)
        shown = [client.archive(experiment.id).archived_at is None]
        shown.append(client.unarchive(experiment.id).archived_at is None)
        return [
            *shown,
            client.unarchive(experiment.id).archived_at is None,
            experiment.id in {row.id for row in client.experiments()},
        ]

    assert await asyncio.to_thread(archive_and_restore) == [False, True, True, True]


def _list_routes() -> list[str]:
    answers = {
        path: str(item["get"]["responses"].get("200"))
        for path, item in read_paths().items()
        if "get" in item
    }
    return sorted(
        path.removeprefix("/api/v1")
        for path, answer in answers.items()
        if "schemas/Page_" in answer and "{project}" not in path
    )


@pytest.mark.parametrize("path", [path for path in _list_routes() if path not in NOT_IN_CLIENT])
async def test_every_list_of_the_client_reads_all_pages(path: str) -> None:
    """Regression: `Client.series_names` returned the first 100 series.

    A new list route needs an entry in `LISTS`.
    """
    with run_fake_server() as peer, Client(peer.url, "plr_test") as client:
        peer.set_answers(
            "GET",
            path.replace("{run_id}", RUN).replace("{slug}", "lab").replace("{pool}", "gpu"),
            Answer(200, make_page(cursor="second")),
            Answer(200, make_page()),
        )
        assert list(LISTS[path](client)) == []
    assert [asked.query.get("cursor") for asked in peer.asked] == [None, "second"]


async def test_series_names_returns_all_series_of_a_run(shared: AppServer, client: Client) -> None:
    """Regression: of 250 series the client returned 100."""
    run, attempt = shared.names["live_run"], shared.names["live_attempt"]
    acked = next(
        one.acked_seq for one in (await shared.world.run(run)).attempts if one.id == attempt
    )
    async with shared.client("live_attempt") as http:
        path = f"/api/v1/attempts/{attempt}/telemetry"
        records = [make_points(run, f"metric/{number:03d}", [1]) for number in range(250)]
        assert (await http.post(path, json={"first_seq": acked + 1, "records": records})).is_success
    names = [info.name for info in await asyncio.to_thread(client.series_names, run)]
    assert [name for name in names if name.startswith("metric/")] == [
        f"metric/{number:03d}" for number in range(250)
    ]


async def _upload(
    shared: AppServer, name: str, content: bytes, kind: str, snapshot_id: str | None = None
) -> None:
    """Declares and uploads a file as the live attempt; returns its artifact ID."""
    attempt, run = shared.names["live_attempt"], shared.names["live_run"]
    document = {
        "run_id": run,
        "name": name,
        "kind": kind,
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    async with shared.client("live_attempt") as http:
        answer = await http.post(
            f"/api/v1/attempts/{attempt}/artifacts", json={**document, "snapshot_id": snapshot_id}
        )
        assert answer.status_code == 201, answer.text
        if not answer.json()["stored"]:
            place = f"/api/v1/attempts/{attempt}/artifacts/{answer.json()['id']}"
            assert (await http.put(place, content=content)).is_success


async def test_a_downloaded_export_equals_the_uploaded_one(
    shared: AppServer, client: Client, tmp_path: Path
) -> None:
    """Regression: the client could not download the files of a run."""
    run = shared.names["live_run"]
    contents = {
        "weights.safetensors": os.urandom(700_000),
        "policy.json": b"{}",
        "policy.pt2": b"program",
    }
    for name, content in contents.items():
        await _upload(shared, name, content, "export")
    assert {
        row.name
        for row in await asyncio.to_thread(lambda: list(client.artifacts(run, kind="export")))
    } == set(contents)
    paths = await asyncio.to_thread(client.download_export, run, tmp_path)
    assert {path.name: path.read_bytes() for path in paths} == {
        name: contents[name] for name in ("weights.safetensors", "policy.json")
    }
    (program,) = await asyncio.to_thread(
        lambda: client.download_export(run, tmp_path, format="program")
    )
    assert program.read_bytes() == b"program"
    with pytest.raises(DownloadError, match="--format onnx"):
        await asyncio.to_thread(lambda: client.download_export(run, tmp_path, format="onnx"))


async def test_a_snapshot_is_downloaded_once_it_is_verified(
    shared: AppServer, client: Client, tmp_path: Path
) -> None:
    """The newest, the best or a named snapshot can be downloaded if it is verified."""
    run, snapshot = shared.names["live_run"], shared.names["uploading_snapshot"]
    with pytest.raises(DownloadError, match="no stored snapshot 'newest'"):
        await asyncio.to_thread(lambda: client.download_snapshot(run, tmp_path, snapshot="newest"))
    async with shared.client("user") as http:
        answer = await http.get(f"/api/v1/runs/{run}/snapshots/{snapshot}/archive")
    assert answer.status_code == 404, "its file has not arrived"
    await _upload(shared, "weights.safetensors", b"1234", "snapshot", snapshot)
    for choice in ("newest", snapshot):
        place = await asyncio.to_thread(
            lambda choice=choice: client.download_snapshot(run, tmp_path, snapshot=choice)
        )
        assert place == tmp_path / snapshot
        assert {path.name: path.read_bytes() for path in place.iterdir()} == {
            "weights.safetensors": b"1234"
        }
    archive = f"/api/v1/runs/{run}/snapshots/{snapshot}/archive"
    async with shared.client("user") as http:
        answer = await http.get(archive)
        other_run = await http.get(archive.replace(run, shared.names["finished_run"]))
    assert answer.headers["content-disposition"].startswith(
        f'attachment; filename="{snapshot}.zip"'
    )
    with zipfile.ZipFile(io.BytesIO(answer.content)) as unpacked:
        assert unpacked.testzip() is None
        assert unpacked.namelist() == [f"{snapshot}/weights.safetensors"]
        assert unpacked.read(f"{snapshot}/weights.safetensors") == b"1234"
    assert other_run.status_code == 404
    with pytest.raises(DownloadError, match=f"no stored snapshot 'best' .*{snapshot}"):
        await asyncio.to_thread(lambda: client.download_snapshot(run, tmp_path))

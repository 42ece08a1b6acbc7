"""The route that exports records: its parameters, headers and refusals."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from palestra.contract.record_exports import MEDIA_TYPES
from tests.app.api.serving import AppServer

pytestmark = pytest.mark.asyncio(loop_scope="module")
EXPORT = "/api/v1/records:export"


async def test_each_format_has_its_media_type_and_file_name(shared: AppServer) -> None:
    run = shared.names["finished_run"]
    async with shared.client("user") as client:
        answers = {
            form: await client.get(EXPORT, params={"run": run, "format": form})
            for form in MEDIA_TYPES
        }
    for form, answer in answers.items():
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == MEDIA_TYPES[form]
        ending = {"arrow": "arrows"}.get(form, form)
        name = f'attachment; filename="{run}-points.{ending}"'
        assert answer.headers["content-disposition"] == name
    table = pa.ipc.open_stream(answers["arrow"].content).read_all()
    assert table.column_names[:3] == ["run_id", "series", "env_step"]
    assert pq.read_table(io.BytesIO(answers["parquet"].content)).equals(table)
    assert len(answers["csv"].text.splitlines()) == table.num_rows + 1


async def test_parameters_that_name_several_things_are_repeated(shared: AppServer) -> None:
    runs = [shared.names["finished_run"], shared.names["live_run"]]
    async with shared.client("user") as client:
        answer = await client.get(
            EXPORT, params={"run": runs, "column": ["run_id", "value"], "series": "episode/return"}
        )
        assert answer.status_code == 200, answer.text
        assert answer.text.splitlines()[0] == "run_id,value"
        assert answer.headers["content-disposition"] == 'attachment; filename="points.csv"'
        twice = await client.get(EXPORT, params={"run": runs, "kind": ["points", "episodes"]})
        assert (twice.status_code, twice.json()["code"]) == (422, "repeated_parameter")


@pytest.mark.parametrize(
    ("query", "status", "code", "pointer"),
    [
        ("", 422, "empty_selection", "query/run"),
        ("run=nonsense", 422, "invalid_parameter", "query/run/0"),
        ("run={run}&format=xlsx", 422, "invalid_parameter", "query/format"),
        ("run={run}&start=NaN", 422, "invalid_parameter", "query/start"),
        ("run={run}&start=2&end=1", 422, "invalid_range", "query/start"),
        ("run={run}&series=evaluation/mean", 422, "computed_series", "query/series"),
        ("run={run}&column=valu", 422, "unknown_column", "query/column"),
        ("experiment=nothing", 404, "not_found", None),
        ("run={foreign}", 404, "not_found", None),
        ("runs={run}", 422, "unknown_parameter", "query/runs"),
    ],
)
async def test_wrong_requests_are_refused_before_the_file_begins(
    shared: AppServer, query: str, status: int, code: str, pointer: str | None
) -> None:
    names = {"run": shared.names["finished_run"], "foreign": shared.names["foreign_run"]}
    async with shared.client("user") as client:
        answer = await client.get(f"{EXPORT}?{query.format(**names)}")
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (status, code), problem
    if pointer is not None:
        assert [error["pointer"] for error in problem["errors"]] == [pointer]


async def test_a_query_of_a_project_exports_that_project_only(shared: AppServer) -> None:
    experiment = shared.names["experiment"]
    async with shared.client("user") as client:
        limits = {"project": "default"}
        own = await client.get(EXPORT, params={**limits, "experiment": experiment})
        assert own.status_code == 200
        foreign = await client.get(
            EXPORT, params={**limits, "experiment": shared.names["foreign_experiment"]}
        )
        assert foreign.status_code == 404

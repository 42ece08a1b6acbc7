import json
import math

import pytest
from pydantic import ValidationError

from palestra.contract.names import new_id
from palestra.contract.telemetry import Points, TelemetryBatch

RUN = new_id("run")


def make_points(*values: object, series: str = "loss/td") -> dict[str, object]:
    n = len(values)
    return {
        "type": "points",
        "run": RUN,
        "series": series,
        "env_step": list(range(n)),
        "update": [0] * n,
        "episode": [0] * n,
        "wall": [0.0] * n,
        "value": list(values),
    }


def read(*records: dict[str, object], first_seq: int = 1) -> TelemetryBatch:
    return TelemetryBatch.model_validate_json(
        json.dumps({"first_seq": first_seq, "records": records})
    )


def test_numbers_are_read_back_exactly() -> None:
    values = [0.0, -0.0, 5e-324, 1e308, float(2**53 + 1), 0.1]
    (record,) = read(make_points(*values)).records
    assert isinstance(record, Points)
    again = TelemetryBatch.model_validate_json(
        TelemetryBatch(first_seq=1, records=(record,)).model_dump_json()
    ).records[0]
    assert isinstance(again, Points)
    assert [value.hex() for value in again.value] == [value.hex() for value in values]


def test_non_finite_numbers_are_sent_as_strings() -> None:
    batch = read(make_points("NaN", "Infinity", "-Infinity"))
    (record,) = batch.records
    assert isinstance(record, Points)
    assert math.isnan(record.value[0])
    assert record.value[1:] == (math.inf, -math.inf)
    assert json.loads(batch.model_dump_json())["records"][0]["value"] == [
        "NaN",
        "Infinity",
        "-Infinity",
    ]


@pytest.mark.parametrize("value", ["nan ", "nan", "1", True, None])
def test_other_strings_and_types_are_refused(value: object) -> None:
    with pytest.raises(ValidationError):
        read(make_points(value))


@pytest.mark.parametrize("series", ["a b", "../x", "x" * 129, "été", "", "-a"])
def test_bad_series_names_are_refused(series: str) -> None:
    with pytest.raises(ValidationError):
        read(make_points(1.0, series=series))


def test_columns_of_unequal_length_are_refused() -> None:
    with pytest.raises(ValidationError, match="equal lengths"):
        read(make_points(1.0) | {"update": [1, 2]})


@pytest.mark.parametrize("first_seq", [0, -1, 2**63])
def test_sequence_numbers_out_of_range_are_refused(first_seq: int) -> None:
    with pytest.raises(ValidationError):
        read(make_points(1.0), first_seq=first_seq)

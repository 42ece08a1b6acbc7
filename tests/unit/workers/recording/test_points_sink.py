from palestra.contract.names import new_id
from palestra.contract.telemetry import Note, Points, RunRecord, Table
from workers.recording.points_sink import PointsSink

RUN = new_id("run")
AXES = {"run": RUN, "env_step": (1, 2), "update": (0, 1), "episode": (0, 0), "wall": (1.0, 2.0)}


class KeptRecords:
    def __init__(self) -> None:
        self.records: list[RunRecord] = []

    def append(self, records: list[RunRecord]) -> int:
        self.records += records
        return len(self.records)


def test_a_table_becomes_the_points_of_its_series_and_other_records_stay() -> None:
    kept = KeptRecords()
    note = Note(run=RUN, wall=1.0, code="x", message="y")
    single = Points(**AXES, series="a", value=(5.0, 6.0))
    table = Table(**AXES, series={"loss/td": (1.0, 2.0), "q/mean": (3.0, float("inf"))})
    assert PointsSink(kept).append([single, table, note]) == 4
    assert kept.records == [
        single,
        Points(**AXES, series="loss/td", value=(1.0, 2.0)),
        Points(**AXES, series="q/mean", value=(3.0, float("inf"))),
        note,
    ]

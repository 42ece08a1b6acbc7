"""progress.csv of a training: columns that appear late, kills and resumes."""

import itertools
from pathlib import Path

from workers.entrypoints.trainer_parts.progress_csv import ProgressCsv, read_rows


def test_late_columns_extend_the_header_and_missing_cells_are_empty(tmp_path: Path) -> None:
    table = ProgressCsv(tmp_path / "progress.csv")
    table.begin()
    for row in ({"a": 1, "b": "x,y"}, {"b": 2.5}, {"a": 3, "c": float("nan")}):
        table.append(row)
    assert (tmp_path / "progress.csv").read_text() == 'a,b,c\n1,"x,y",\n,2.5,\n3,,nan\n'
    assert table.state_dict() == {"columns": ["a", "b", "c"], "rows": 3}


def test_a_resume_truncates_the_table_to_its_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "progress.csv"
    table = ProgressCsv(path)
    table.begin()
    table.append({"a": 1})
    state = table.state_dict()
    table.append({"a": 2, "late": 1})
    with path.open("a") as file:
        file.write("3,to")
    assert read_rows(path) == (["a", "late"], [["1", ""], ["2", "1"]])
    again = ProgressCsv(path)
    again.begin(*read_rows(path, state))
    assert path.read_text() == "a\n1\n"
    again.append({"a": 5})
    assert path.read_text() == "a\n1\n5\n"
    assert [one.name for one in tmp_path.iterdir()] == ["progress.csv"]


def test_an_incomplete_row_is_not_joined_with_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "progress.csv"
    path.write_text("a,b\n1,2\n3")
    again = ProgressCsv(path)
    again.begin(*read_rows(path, {"columns": ["a", "b"], "rows": 9}))
    again.append({"a": 7})
    assert path.read_text() == "a,b\n1,2\n7,\n"


def test_a_resume_into_another_directory_copies_the_rows(tmp_path: Path) -> None:
    path = tmp_path / "new" / "progress.csv"
    table = ProgressCsv(path)
    table.begin(["a"], [["1"], ["2"]])
    table.append({"a": 3})
    assert path.read_text() == "a\n1\n2\n3\n"


def test_the_table_of_another_training_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "progress.csv"
    for text, rows in itertools.product(("a\n1\n",), ([], [["9"]])):
        path.write_text(text)
        ProgressCsv(path).begin(["a"], rows)
    assert (
        (tmp_path / "progress.1.csv").read_text()
        == (tmp_path / "progress.2.csv").read_text()
        == "a\n1\n"
    )


def test_no_file_is_no_table(tmp_path: Path) -> None:
    assert read_rows(tmp_path / "nothing.csv", {"columns": ["a"], "rows": 3}) == ([], [])

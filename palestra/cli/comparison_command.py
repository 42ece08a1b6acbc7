"""`palestra compare`: how runs, or groups of runs, differ, and what their scores vary with."""

import json as json_text
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from pydantic import JsonValue

from palestra.cli.output import build_table, emit_json, say, show
from palestra.cli.request_documents import name_options, read_request
from palestra.cli.scored_runs import Filter, Ids, Score
from palestra.cli.server_address import Json, Project, Server, TokenFile, connect
from palestra.contract.comparison import (
    ComparedField,
    ComparisonQuery,
    ComparisonResult,
    EnvironmentImportance,
)
from palestra.contract.statistics import EnvironmentStatistics

_WIDEST = 40
_MAX_ALIKE = 3

By = Annotated[
    list[str] | None,
    typer.Option(
        help="Field of the definition to group by, several times; `experiment` groups the seeds "
        "of each experiment. Without it single runs are compared."
    ),
]


def register(app: typer.Typer) -> None:
    """Adds the command of this module to a group."""
    app.command("compare")(compare_runs)


def compare_runs(
    ids: Ids = None,
    wanted: Filter = "",
    by: By = None,
    score: Score = "final",
    last: Annotated[int, typer.Option(min=1, help="Last evaluations of a final score.")] = 1,
    all_fields: Annotated[
        bool, typer.Option("--all", help="Shows the fields that are equal, too.")
    ] = False,
    project: Project = None,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Shows how 2 to 30 runs or groups differ: definition, versions, code, scores, importance."""
    members: dict[str, Any] = {
        "runs": [one for one in ids or () if one.startswith("run_")],
        "experiments": [one for one in ids or () if not one.startswith("run_")],
        "filter": wanted,
        "group_by": list(dict.fromkeys(by or [])),
        "score": {"kind": score, "last": last, "missing": "leave_out"},
    }
    query = read_request(ComparisonQuery, members, name_options({"group_by": "by"}))
    with connect(server, token_file, project) as client:
        found = client.compare_runs(query)
    if json:
        return emit_json(found)
    return _show(found, all_fields=all_fields)


def _show(found: ComparisonResult, *, all_fields: bool) -> None:
    for warning in found.warnings:
        say(warning)
    names = [f"{index}" for index in range(1, len(found.members) + 1)]
    _show_members(found)
    fields = [one for one in (*found.definition, *found.origin) if all_fields or one.differs]
    if fields:
        rows = [(one.path, *_list_values(one)) for one in fields]
        show(build_table(("field", *names), rows))
    else:
        say("The definitions are equal.")
    for one in found.importance:
        _show_importance(one)
    for note in found.notes:
        say(note)
    say(f"Score: {found.method.score}. Importance: {found.method.importance}.")


def _show_members(found: ComparisonResult) -> None:
    headings = ("", "run or group", "runs", "environment", "scores", "mean", "stdev", "IQM")
    rows = []
    for index, member in enumerate(found.members):
        scores = {one.environment: one for one in member.environments}
        counts = Counter(run.environment for run in found.runs if run.member == index)
        rows += [
            (f"{index + 1}", member.name, str(n), environment, *_describe(scores.get(environment)))
            for environment, n in counts.items()
        ]
    show(build_table(headings, rows, numbers=("runs", "scores", "mean", "stdev", "IQM")))


def _describe(scores: EnvironmentStatistics | None) -> tuple[str, str, str, str]:
    """Returns the number of scores, their mean, their standard deviation and their IQM."""
    if scores is None:
        return ("0", "-", "-", "-")
    iqm = f"{scores.iqm.value:.4g}"
    if scores.iqm.low is not None and scores.iqm.high is not None:
        iqm += f" [{scores.iqm.low:.4g}, {scores.iqm.high:.4g}]"
    stdev = "-" if scores.stdev is None else f"{scores.stdev:.4g}"
    return (str(scores.n), f"{scores.mean:.4g}", stdev, iqm)


def _list_values(field: ComparedField) -> list[str]:
    return [", ".join(_format(value) for value in some) or "-" for some in field.values]


def _format(value: JsonValue) -> str:
    text = value if isinstance(value, str) else json_text.dumps(value)
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"


def _show_importance(found: EnvironmentImportance) -> None:
    headings = ("importance", "values", "rank correlation", "variance explained", "p", "same split")
    rows = [
        (
            one.path,
            str(one.levels),
            _number(one.correlation),
            _number(one.explained),
            _number(one.p_value),
            _list_alike(one.same_split),
        )
        for one in found.parameters
    ]
    say(f"{found.environment}, {found.runs} runs with a score:")
    show(build_table(headings, rows, numbers=headings[1:5]))


def _list_alike(paths: Sequence[str]) -> str:
    shown = ", ".join(paths[:_MAX_ALIKE]) or "-"
    return shown if len(paths) <= _MAX_ALIKE else f"{shown} and {len(paths) - _MAX_ALIKE} more"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"

"""`palestra statistics`: scores of groups of runs with intervals, as papers report them."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final

import typer

from palestra.cli.output import build_table, emit_json, fail_usage, say, show
from palestra.cli.request_documents import name_options, read_request
from palestra.cli.scored_runs import Filter, Ids, Score
from palestra.cli.server_address import Json, Project, Server, TokenFile, connect
from palestra.contract.names import EvaluationSource
from palestra.contract.statistics import (
    PARTS,
    EstimateView,
    GroupStatistics,
    PairStatistics,
    StatisticsQuery,
    StatisticsResult,
)

By = Annotated[
    list[str] | None,
    typer.Option(help="Field of the definition to group by, several times; by default experiment."),
]
Normalise = Annotated[
    str | None,
    typer.Option(
        metavar="TABLE",
        help="Published scores: atari-human-1 or mujoco-d4rl-1; min-max: extremes of these runs.",
    ),
]
Reference = Annotated[
    list[str] | None,
    typer.Option(metavar="ENV=RANDOM,REFERENCE", help="Scores of an environment that become 0, 1."),
]
Last = Annotated[int, typer.Option(min=1, help="Last evaluations that count in a final score.")]
Part = Annotated[
    list[str] | None,
    typer.Option(
        help=f"Part of the answer, several times; by default aggregates. {', '.join(PARTS)}."
    ),
]
LeaveOut = Annotated[
    bool, typer.Option("--leave-out", help="Leaves runs without a score out, and says so.")
]


_OPTIONS: Final = {"group_by": "by", "normalisation": "normalise", "parts": "part"}
"""Options of the members whose names differ."""
_ROWS: Final = 11
"""Rows of the tables of profiles and of sample efficiency."""


def register(app: typer.Typer) -> None:
    """Adds the command of this module to a group."""
    app.command("statistics")(show_statistics)


def show_statistics(
    ids: Ids = None,
    wanted: Filter = "",
    by: By = None,
    score: Score = "final",
    last: Last = 1,
    source: Annotated[
        EvaluationSource, typer.Option(help="Kind of evaluations.")
    ] = EvaluationSource.EVALUATION,
    normalise: Normalise = None,
    reference: Reference = None,
    part: Part = None,
    leave_out: LeaveOut = False,
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples.")] = 2_000,
    rng_seed: Annotated[int, typer.Option(help="Seed of the resamples.")] = 0,
    project: Project = None,
    server: Server = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Shows aggregate scores of groups of runs with intervals, and whether seeds are enough."""
    members: dict[str, Any] = {
        "runs": [one for one in ids or () if one.startswith("run_")],
        "experiments": [one for one in ids or () if not one.startswith("run_")],
        "filter": wanted,
        "group_by": list(dict.fromkeys(by or ["experiment"])),
        "score": {
            "kind": score,
            "last": last,
            "source": source.value,
            "missing": "leave_out" if leave_out else "refuse",
        },
        "normalisation": _read_normalisation(normalise, reference or []),
        "parts": list(dict.fromkeys(part or ["aggregates"])),
        "resamples": resamples,
        "rng_seed": rng_seed,
    }
    query = read_request(StatisticsQuery, members, name_options(_OPTIONS))
    with connect(server, token_file, project) as client:
        found = client.aggregate_statistics(query)
    if json:
        return emit_json(found)
    _show(found)
    pairs = {"improvement", "paired"} & set(query.parts)
    if pairs and len(found.groups) < 2:
        say(
            f"There is one group, so {' and '.join(sorted(pairs))} compare nothing: give runs of "
            "two groups, or another --by."
        )
    return None


def _read_normalisation(table: str | None, references: Sequence[str]) -> dict[str, Any] | None:
    given = dict(_read_reference(text) for text in references)
    if table is None:
        return {"kind": "given", "references": given} if given else None
    if table == "min-max":
        return {"kind": "min_max", "references": given}
    return {"kind": "table", "table": table, "references": given}


def _read_reference(text: str) -> tuple[str, dict[str, float]]:
    environment, _, scores = text.rpartition("=")
    try:
        random, reference = (float(one) for one in scores.split(","))
    except ValueError:
        fail_usage(
            f"--reference must be ENV=RANDOM,REFERENCE, for example CartPole-v1=22,500: {text}"
        )
    return environment, {"random": random, "reference": reference}


def _show(found: StatisticsResult) -> None:
    headings = ("group", "runs", "seeds", "mean", "median", "IQM", "optimality gap")
    rows = [_row(group) for group in found.groups]
    show(build_table(headings, rows, numbers=headings[1:]))
    names = {group.name for group in found.groups}
    if len(found.environments) > 1 or not any(group.aggregates for group in found.groups):
        _show_environments(found.groups)
    for group in found.groups:
        if group.advice is not None and len(names) > 1:
            say(f"{group.name}: {group.advice.sentence}")
    _show_profiles(found)
    _show_efficiency(found)
    for pair in found.pairs:
        for sentence in _describe_pair(pair):
            say(sentence)
    for note in found.notes:
        say(note)
    method = found.method
    say(
        f"Score: {method.score}"
        f"{'' if method.normalisation is None else f'; normalised by {method.normalisation}'}. "
        f"Intervals: {100 * method.level:g} % stratified bootstrap, {method.resamples} resamples, "
        f"seed {method.rng_seed}. Data {method.data_hash[:12]}."
    )


def _row(group: GroupStatistics) -> tuple[str, ...]:
    estimates = (group.aggregates.get(name) for name in ("mean", "median", "iqm", "optimality_gap"))
    cells = ["-" if one is None else _format(one) for one in estimates]
    return (group.name, str(len(group.scores)), str(group.seeds), *cells)


def _show_environments(groups: Sequence[GroupStatistics]) -> None:
    headings = ("group", "environment", "runs", "mean", "stdev", "IQM")
    rows = [
        (
            group.name,
            one.environment,
            one.n,
            f"{one.mean:.4g}",
            "-" if one.stdev is None else f"{one.stdev:.4g}",
            _format(one.iqm),
        )
        for group in groups
        for one in group.environments
    ]
    show(build_table(headings, rows, numbers=headings[2:]))


def _show_profiles(found: StatisticsResult) -> None:
    """Prints the share of runs above some of the thresholds; --json has all of them."""
    _show_columns(
        "Share of the runs with a score above each threshold:",
        ("score above", [f"{one:.4g}" for one in found.thresholds]),
        [
            (group.name, [f"{one:.3g}" for one in group.profile.share])
            for group in found.groups
            if group.profile is not None
        ],
    )


def _show_efficiency(found: StatisticsResult) -> None:
    """Prints the IQM of the scores at some positions on env_step; --json has all of them."""
    _show_columns(
        "IQM of the scores over env_steps:",
        ("env_step", [f"{one:,.0f}" for one in found.grid]),
        [
            (group.name, [_write_value(one) for one in group.efficiency.iqm])
            for group in found.groups
            if group.efficiency is not None
        ],
    )


def _show_columns(
    title: str,
    positions: tuple[str, Sequence[str]],
    groups: Sequence[tuple[str, Sequence[str]]],
) -> None:
    """Prints a column for each group at some of the positions; nothing without groups."""
    if not groups:
        return
    heading, places = positions
    headings = (heading, *(name for name, _ in groups))
    rows = [(places[i], *(values[i] for _, values in groups)) for i in _choose_rows(len(places))]
    say(title)
    show(build_table(headings, rows, numbers=headings))


def _choose_rows(count: int) -> list[int]:
    """Returns at most `_ROWS` positions, the first and the last included."""
    if count <= _ROWS:
        return [*range(count)]
    return [round(i * (count - 1) / (_ROWS - 1)) for i in range(_ROWS)]


def _write_value(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _format(estimate: EstimateView) -> str:
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.4g}"
    return f"{estimate.value:.4g} [{estimate.low:.4g}, {estimate.high:.4g}]"


def _describe_pair(pair: PairStatistics) -> Iterator[str]:
    if pair.improvement is not None:
        yield (
            f"{pair.first} scores higher than {pair.second} with probability "
            f"{_format(pair.improvement)}."
        )
    if pair.paired is not None:
        yield (
            f"{pair.first} less {pair.second} over {pair.pairs} pairs of the same seed: "
            f"{_format(pair.paired)}."
        )

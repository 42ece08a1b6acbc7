"""`palestra statistics`: scores of groups of runs with intervals, as papers report them."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from palestra.cli.output import build_table, emit_json, fail_usage, say, show
from palestra.cli.request_documents import read_request
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
from palestra.contract.views import FieldProblem

By = Annotated[
    list[str] | None,
    typer.Option(help="Field of the definition to group by, several times; by default agent."),
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
        "group_by": list(dict.fromkeys(by or ["agent"])),
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
    query = read_request(StatisticsQuery, members, _sentence)
    with connect(server, token_file, project) as client:
        found = client.aggregate_statistics(query)
    if json:
        return emit_json(found)
    return _show(found)


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


def _sentence(fault: FieldProblem) -> str:
    name = fault.pointer.removeprefix("/").partition("/")[0]
    option = {"group_by": "by", "normalisation": "normalise", "parts": "part"}.get(name, name)
    return f"--{option.replace('_', '-')} {fault.message}"


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

"""Checks that the time of an answer does not reveal IDs in projects that the caller cannot see.

Two projects with the same content are on one server. A maintainer of one asks for objects of the
other and for IDs of the same form that no object has, in random order over one connection. All are
answered with 404; the medians of both kinds are compared for each kind of object.

    python -m benchmarks.hidden_ids [--times 2000] [--database sqlite | postgresql]
"""

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path

import httpx

from app.db.migrate import upgrade
from benchmarks._report import align_columns, describe_machine
from benchmarks.audit_log import database_url
from tests.app.api.serving import serve
from tests.support.listening import listening
from tests.support.marked_project import MarkedProject, make_marked_project, make_missing_id

PATHS = {
    "run": ("run_id", "/api/v1/runs/{}"),
    "experiment": ("experiment_id", "/api/v1/experiments/{}?project={project}"),
    "job": ("job_id", "/api/v1/jobs/{}"),
    "artifact": ("artifact_id", "/api/v1/artifacts/{}"),
}
"""For each kind of object, the parameter that names it and the path of one."""
KINDS = ("foreign", "missing")
WARM_UP = 100
"""First requests of each kind of object, which are not counted."""
BOUND = 1.05


async def measure(url: str, directory: Path, times: int) -> dict[str, dict[str, list[float]]]:
    """Returns the seconds until the answers to hidden and to missing IDs, by kind of object."""
    upgrade(url)
    async with serve(url, directory) as served:
        own = await make_marked_project(served, "alpha")
        other = await make_marked_project(served, "beta")
        headers = {"Authorization": f"Bearer {served.tokens['alpha maintainer']}"}
        async with (
            listening(served.app) as address,
            httpx.AsyncClient(base_url=address, headers=headers) as client,
        ):
            return {name: await _time(client, _urls(name, own, other), times) for name in PATHS}


def _urls(name: str, own: MarkedProject, other: MarkedProject) -> dict[str, list[str]]:
    parameter, path = PATHS[name]
    foreign = other.ids[parameter]
    known = {"project": own.project.slug}
    return {
        "foreign": [path.format(value, **known) for value in foreign],
        "missing": [path.format(make_missing_id(value), **known) for value in foreign],
    }


async def _time(
    client: httpx.AsyncClient, urls: dict[str, list[str]], times: int
) -> dict[str, list[float]]:
    chooser = random.Random(0)
    order = [kind for kind in KINDS for _ in range(times // 2)]
    chooser.shuffle(order)
    found: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for number, kind in enumerate([*chooser.choices(KINDS, k=WARM_UP), *order]):
        url = chooser.choice(urls[kind])
        began = time.perf_counter()
        answer = await client.get(url)
        seconds = time.perf_counter() - began
        assert answer.status_code == HTTPStatus.NOT_FOUND, answer.text
        if number >= WARM_UP:
            found[kind].append(seconds)
    return found


def report(database: str, found: dict[str, dict[str, list[float]]]) -> bool:
    """Prints medians and quartiles; returns whether all ratios are within the bound."""
    rows = [["database", "object", "foreign, ms: median (quartiles)", "missing, ms", "ratio", ""]]
    ratios = []
    for name, seconds in found.items():
        medians = [statistics.median(seconds[kind]) for kind in KINDS]
        ratios.append(max(medians) / min(medians))
        comparison = "ok" if ratios[-1] < BOUND else f"OVER {BOUND:g}"
        spreads = [_spread(seconds[kind]) for kind in KINDS]
        rows.append([database, name, *spreads, f"{ratios[-1]:.4f}", comparison])
    print(align_columns(rows))
    return max(ratios) < BOUND


def _spread(seconds: Sequence[float]) -> str:
    lower, median, upper = (1e3 * value for value in statistics.quantiles(seconds, n=4))
    return f"{median:.3f} ({lower:.3f} to {upper:.3f})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=2_000, help="requests for each object")
    parser.add_argument("--database", choices=["sqlite", "postgresql"])
    arguments = parser.parse_args()
    print(describe_machine())
    kinds = [arguments.database] if arguments.database else ["sqlite", "postgresql"]
    is_even = []
    for kind in kinds:
        with database_url(kind) as url, tempfile.TemporaryDirectory() as directory:
            found = asyncio.run(measure(url, Path(directory), arguments.times))
        is_even.append(report(kind, found))
    return 0 if all(is_even) else 1


if __name__ == "__main__":
    raise SystemExit(main())

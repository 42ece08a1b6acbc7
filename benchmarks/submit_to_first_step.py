"""Time from the submission of a job on an idle machine to its first env_steps.

The end is the wall time of the first finished episode in the worker's spool, a few milliseconds
after the first env_step: an upper bound.

    python -m benchmarks.submit_to_first_step [--repeat 9]
"""

import argparse
import tempfile
import time
from pathlib import Path

from benchmarks._report import describe_machine, show
from tests.e2e.run_history import make_cartpole_definition, read_spooled_records
from tests.support.process_stack import Stack
from tests.support.waiting import wait_for


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=9)
    repeat = parser.parse_args().repeat
    with (
        tempfile.TemporaryDirectory(prefix="plr-", dir="/tmp") as directory,
        Stack(Path(directory)) as stack,
    ):
        seconds = [_once(stack, number) for number in range(repeat)]
    print(describe_machine())
    return 0 if show("submit to first env_step", seconds, "s", bound=6) else 1


def _once(stack: Stack, number: int) -> float:
    started = time.time()
    (run,) = stack.submit(make_cartpole_definition(400 + number, name="first step"))
    done = wait_for(lambda: _finished(stack, run["id"]), "the run ends", patience_seconds=60)
    time.sleep(1)
    directory = stack.attempt_directory(done["attempts"][0]["id"])
    first = next(
        record["wall"][0]
        for record in read_spooled_records(directory)
        if record["type"] == "episodes"
    )
    return float(first) - started


def _finished(stack: Stack, run_id: str) -> dict[str, object] | None:
    run: dict[str, object] = stack.get(f"runs/{run_id}")
    return run if run["state"] == "succeeded" else None


if __name__ == "__main__":
    raise SystemExit(main())

"""Runs every attack in full: `python -m tests.security`.

Uses only the loopback interface. The exit code is 1 if an attack succeeds.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.security import bodies, slow
from tests.security.target import LONGEST_DELAY, LatencyProbe, Target, measure_delay, send

SLOW = 2_000
DESCRIPTORS = 1_024


def main() -> int:
    """Runs every attack and prints how long other clients had to wait."""
    with tempfile.TemporaryDirectory(prefix="palestra-attack-") as directory:
        longest = [
            _send_bodies(Path(directory) / "bodies"),
            _hold_connections(Path(directory) / "slow"),
        ]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-qs",
        *(
            str(Path(__file__).with_name(f"test_{name}.py"))
            for name in ("matrix", "existing_objects")
        ),
    ]
    cells = subprocess.run(command, check=False).returncode
    return 0 if max(longest) <= LONGEST_DELAY and cells == 0 else 1


def _send_bodies(directory: Path) -> float:
    worst = 0.0
    with Target(directory) as target:
        witness = LatencyProbe(target)
        for attack in [*bodies.yield_documents(target.names), *bodies.yield_malformed_bodies()]:
            held = measure_delay(
                witness, lambda sent=attack: send(target, *sent[1:3], sent.body, sent.who)
            )
            worst = max(worst, held)
            print(f"{held * 1_000:6.0f} ms  {len(attack.body):9,} B  {attack.name}")
    print(f"{worst * 1_000:6.0f} ms  the longest that one body held others")
    return worst


def _hold_connections(directory: Path) -> float:
    """Opens incomplete requests from many addresses and keeps them open.

    Returns the seconds for which a request from another address waits meanwhile.
    """
    settings = {"PALESTRA_REQUEST_HEAD_SECONDS": "60"}
    with Target(directory, descriptors=DESCRIPTORS, settings=settings) as target:
        witness = LatencyProbe(target)
        with slow.send_half_requests(target.port, SLOW, 250), witness.watch():
            time.sleep(10)
        served, failed = len(witness.waits), len(witness.failures)
    print(
        f"{witness.longest * 1_000:6.0f} ms  the longest beside {SLOW} half-sent "
        f"requests; {served} served, {failed} failed"
    )
    return float("inf") if failed else witness.longest


if __name__ == "__main__":
    sys.exit(main())

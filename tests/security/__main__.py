"""The long form of the attacks: `python -m tests.security`.

Everything on loopback; ends by itself; exit code 1 if one succeeds.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.security import bodies, slow
from tests.security.target import PATIENCE, Target, Witness, send, shortest_hold

SLOW = 2_000
DESCRIPTORS = 1_024


def main() -> int:
    """Runs every attack and prints what it did to others."""
    with tempfile.TemporaryDirectory(prefix="palestra-attack-") as directory:
        longest = [
            _send_bodies(Path(directory) / "bodies"),
            _hold_connections(Path(directory) / "slow"),
        ]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        str(Path(__file__).with_name("test_matrix.py")),
    ]
    cells = subprocess.run(command, check=False).returncode
    return 0 if max(longest) <= PATIENCE and cells == 0 else 1


def _send_bodies(directory: Path) -> float:
    worst = 0.0
    with Target(directory) as target:
        witness = Witness(target)
        for attack in [*bodies.documents(target.names), *bodies.forms()]:
            held = shortest_hold(
                witness, lambda sent=attack: send(target, *sent[1:3], sent.body, sent.who)
            )
            worst = max(worst, held)
            print(f"{held * 1_000:6.0f} ms  {len(attack.body):9,} B  {attack.name}")
    print(f"{worst * 1_000:6.0f} ms  the longest that one body held others")
    return worst


def _hold_connections(directory: Path) -> float:
    """Opens half-sent requests from many addresses and keeps them open.

    Returns how long a request from another address waits meanwhile.
    """
    settings = {"PALESTRA_REQUEST_HEAD_SECONDS": "60"}
    with Target(directory, descriptors=DESCRIPTORS, settings=settings) as target:
        witness = Witness(target)
        with slow.half_sent(target.port, SLOW, 250), witness.watching():
            time.sleep(10)
        served, failed = len(witness.waits), len(witness.failures)
    print(
        f"{witness.longest * 1_000:6.0f} ms  the longest beside {SLOW} half-sent "
        f"requests; {served} served, {failed} failed"
    )
    return float("inf") if failed else witness.longest


if __name__ == "__main__":
    sys.exit(main())

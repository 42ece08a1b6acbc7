"""The long form of the attacks: `python -m tests.security`. Everything on loopback; ends by itself; exit code 1 if one succeeds."""

import sys
import tempfile
from pathlib import Path

from tests.security import bodies
from tests.security.target import PATIENCE, Target, Witness, send, shortest_hold


def main() -> int:
    """Runs every attack and prints what it did to others."""
    with tempfile.TemporaryDirectory(prefix="palestra-attack-") as directory:
        worst = _send_bodies(Path(directory) / "bodies")
    return 0 if worst <= PATIENCE else 1


def _send_bodies(directory: Path) -> float:
    worst = 0.0
    with Target(directory) as target:
        witness = Witness(target)
        for attack in [*bodies.documents(target.names), *bodies.forms()]:
            held = shortest_hold(witness, lambda sent=attack: send(target, *sent[1:3], sent.body, sent.who))
            worst = max(worst, held)
            print(f"{held * 1_000:6.0f} ms  {len(attack.body):9,} B  {attack.name}")
    print(f"{worst * 1_000:6.0f} ms  the longest that one body held others")
    return worst


if __name__ == "__main__":
    sys.exit(main())

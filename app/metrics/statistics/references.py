"""Published scores that raw ones are normalised by.

A table never changes under its name: corrected or further numbers get a new version, so an answer
that names its table can be computed again.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from app.metrics.columns import Floats


class Reference(NamedTuple):
    """Scores of an environment that become 0 and 1."""

    random: float
    reference: float


@dataclass(frozen=True, slots=True)
class ReferenceTable:
    """Reference scores by environment.

    Attributes:
        name: Name with version, for example `atari-human-1`.
        source: Where the numbers were published, and what they are of.
        scores: By the part of the environment's ID that `environment` captures as `name`.
        environment: Matches the IDs that the numbers hold for.
    """

    name: str
    source: str
    scores: Mapping[str, Reference]
    environment: re.Pattern[str]

    def find(self, environment: str) -> Reference | None:
        """Returns the reference of an environment's ID, `None` where the table has none."""
        match = self.environment.fullmatch(environment)
        return None if match is None else self.scores.get(match["name"])


def normalise(scores: Floats, reference: Reference) -> Floats:
    """Maps the score of the random policy to 0 and the reference score to 1.

    Raises:
        ValueError: If the two are equal.
    """
    span = reference.reference - reference.random
    if span == 0:
        raise ValueError("the random and the reference score are equal")
    return (scores - reference.random) / span


def find_extremes(scores: Floats) -> Reference:
    """Returns the lowest and the highest of some scores as the reference of min-max scaling."""
    return Reference(float(np.min(scores)), float(np.max(scores)))


_ATARI: Final = {
    "Alien": Reference(227.8, 7127.7),
    "Amidar": Reference(5.8, 1719.5),
    "Assault": Reference(222.4, 742.0),
    "Asterix": Reference(210.0, 8503.3),
    "Asteroids": Reference(719.1, 47388.7),
    "Atlantis": Reference(12850.0, 29028.1),
    "BankHeist": Reference(14.2, 753.1),
    "BattleZone": Reference(2360.0, 37187.5),
    "BeamRider": Reference(363.9, 16926.5),
    "Berzerk": Reference(123.7, 2630.4),
    "Bowling": Reference(23.1, 160.7),
    "Boxing": Reference(0.1, 12.1),
    "Breakout": Reference(1.7, 30.5),
    "Centipede": Reference(2090.9, 12017.0),
    "ChopperCommand": Reference(811.0, 7387.8),
    "CrazyClimber": Reference(10780.5, 35829.4),
    "Defender": Reference(2874.5, 18688.9),
    "DemonAttack": Reference(152.1, 1971.0),
    "DoubleDunk": Reference(-18.6, -16.4),
    "Enduro": Reference(0.0, 860.5),
    "FishingDerby": Reference(-91.7, -38.7),
    "Freeway": Reference(0.0, 29.6),
    "Frostbite": Reference(65.2, 4334.7),
    "Gopher": Reference(257.6, 2412.5),
    "Gravitar": Reference(173.0, 3351.4),
    "Hero": Reference(1027.0, 30826.4),
    "IceHockey": Reference(-11.2, 0.9),
    "Jamesbond": Reference(29.0, 302.8),
    "Kangaroo": Reference(52.0, 3035.0),
    "Krull": Reference(1598.0, 2665.5),
    "KungFuMaster": Reference(258.5, 22736.3),
    "MontezumaRevenge": Reference(0.0, 4753.3),
    "MsPacman": Reference(307.3, 6951.6),
    "NameThisGame": Reference(2292.3, 8049.0),
    "Phoenix": Reference(761.4, 7242.6),
    "Pitfall": Reference(-229.4, 6463.7),
    "Pong": Reference(-20.7, 14.6),
    "PrivateEye": Reference(24.9, 69571.3),
    "Qbert": Reference(163.9, 13455.0),
    "Riverraid": Reference(1338.5, 17118.0),
    "RoadRunner": Reference(11.5, 7845.0),
    "Robotank": Reference(2.2, 11.9),
    "Seaquest": Reference(68.4, 42054.7),
    "Skiing": Reference(-17098.1, -4336.9),
    "Solaris": Reference(1236.3, 12326.7),
    "SpaceInvaders": Reference(148.0, 1668.7),
    "StarGunner": Reference(664.0, 10250.0),
    "Surround": Reference(-10.0, 6.5),
    "Tennis": Reference(-23.8, -8.3),
    "TimePilot": Reference(3568.0, 5229.2),
    "Tutankham": Reference(11.4, 167.6),
    "UpNDown": Reference(533.4, 11693.2),
    "Venture": Reference(0.0, 1187.5),
    "VideoPinball": Reference(16256.9, 17667.9),
    "WizardOfWor": Reference(563.5, 4756.5),
    "YarsRevenge": Reference(3092.9, 54576.9),
    "Zaxxon": Reference(32.5, 9173.3),
}

_D4RL: Final = {
    "HalfCheetah": Reference(-280.178953, 12135.0),
    "Hopper": Reference(-20.272305, 3234.3),
    "Walker2d": Reference(1.629008, 4592.3),
    "Ant": Reference(-325.6, 3879.7),
}

TABLES: Final[Mapping[str, ReferenceTable]] = {
    table.name: table
    for table in (
        ReferenceTable(
            name="atari-human-1",
            source=(
                "Random policy and professional human tester on 57 Atari games, up to 30 no-op "
                "starts and 30 minutes an episode: Mnih et al. (2015), Wang et al. (2016), "
                "Badia et al. (2020), as in DeepMind's DQN Zoo"
            ),
            scores=_ATARI,
            environment=re.compile(
                r"(?:ALE/)?(?P<name>[A-Za-z]+?)(?:NoFrameskip|Deterministic)?-v[0-9]+"
            ),
        ),
        ReferenceTable(
            name="mujoco-d4rl-1",
            source=(
                "Random policy and SAC expert on MuJoCo locomotion, versions 2 to 4 of the "
                "environments (version 5 has other rewards): Fu et al. (2020), D4RL"
            ),
            scores=_D4RL,
            environment=re.compile(r"(?P<name>[A-Za-z0-9]+)-v[234]"),
        ),
    )
}
"""All tables by name."""

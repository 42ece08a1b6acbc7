"""The presets: one definition per algorithm and environment, with the return to reach.

Imports neither torch nor gymnasium.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

import yaml

from palestra.contract.definition import RlDefinition
from palestra.contract.job_options import Submission

FOLDER: Final = Path(__file__).parents[2] / "examples" / "learning"

TARGETS: Final = {"CartPole-v1": 475.0, "Pendulum-v1": -200.0, "LunarLander-v3": 200.0}
"""Mean return to reach by environment.

Other environments take `stop.success_score` of the preset.
"""

EASED: Final = {
    ("CartPole-v1", "reinforce"): 400.0,
    ("CartPole-v1", "cem"): 400.0,
    ("Pendulum-v1", "naf"): -300.0,
}
"""Mean return to reach by environment and agent, for algorithms known to reach less."""


@dataclass(frozen=True, slots=True)
class Preset:
    """A definition file of `examples/learning`."""

    name: str
    """Name of the file without its suffix."""
    submission: Submission
    target: float
    """Mean return to reach."""

    @property
    def definition(self) -> RlDefinition:
        """The reinforcement-learning definition; `read_preset` has checked its kind."""
        return cast("RlDefinition", self.submission.definition)


def read_preset(path: Path) -> Preset:
    """Returns the preset of a file that `palestra submit` takes.

    Raises:
        ValueError: If the file is not a submission, or no return to reach is known for it.
    """
    submission = Submission.model_validate_json(json.dumps(yaml.safe_load(path.read_text("utf-8"))))
    definition = submission.definition
    if definition.kind != "rl":
        raise ValueError(f"{path.name}: a preset is a definition of kind rl")
    env, agent = definition.env.id, definition.agent.name
    target = EASED.get((env, agent), TARGETS.get(env, definition.stop.success_score))
    if target is None:
        raise ValueError(
            f"{path.name}: set stop.success_score to the mean return that it is to reach on {env}"
        )
    return Preset(path.stem, submission, target)


def list_preset_paths(only: list[str] | None = None, folder: Path = FOLDER) -> list[Path]:
    """Returns the files of the presets by name; `only` selects some of them.

    Raises:
        ValueError: If a selected preset does not exist.
    """
    paths = {path.stem: path for path in sorted(folder.glob("*.yaml"))}
    if unknown := [name for name in only or [] if name not in paths]:
        raise ValueError(f"no preset is called {unknown[0]}; there are {', '.join(paths)}")
    return [path for name, path in paths.items() if not only or name in only]

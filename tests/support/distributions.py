"""Installs the distributions of tests/assets/third_party into a directory.

Writes the files and a .dist-info directory, as an installer does.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "assets" / "third_party" / "tiny_agents"
AGENTS = {
    "hill_climber": "tiny_agents:make_climber",
    "fragile": "tiny_agents:make_agent_with_broken_schema",
    "odd": "tiny_agents:make_object_without_methods",
    "missing": "tiny_agents.nowhere:factory",
    "dqn": "tiny_agents:make_climber",
    "../odd": "tiny_agents:make_object_without_methods",
}
"""Entry points: one valid agent, and others that a worker cannot offer or train."""

FUNCTIONS = """
[palestra.model_functions]
line = tiny_agents.models:fit_line
[palestra.input_functions]
points = tiny_agents.models:yield_points
"""


ENVIRONMENTS = """
[palestra.environments]
tiny = tiny_envs
"""


def install(
    directory: Path,
    version: str = "1.2.0",
    *,
    name: str = "tiny-agents",
    agents: Mapping[str, str] = AGENTS,
    groups: str = FUNCTIONS,
    source: Path = SOURCE,
) -> Path:
    """Installs a distribution and returns its directory, which must be on Python's path.

    Args:
        directory: Directory to install into.
        version: Version of the distribution.
        name: Name of the distribution.
        agents: Entry points of the group `palestra.agents`.
        groups: Further groups of `entry_points.txt`.
        source: Directory of the package to install.
    """
    package = directory / source.name
    shutil.copytree(
        source, package, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True
    )
    metadata = directory / f"{name.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (metadata / "INSTALLER").write_text("a test\n")
    lines = [f"{agent} = {target}" for agent, target in agents.items()]
    (metadata / "entry_points.txt").write_text(
        "\n".join([*(["[palestra.agents]", *lines] if lines else []), groups])
    )
    files = [
        path.relative_to(directory).as_posix()
        for root in (package, metadata)
        for path in sorted(root.rglob("*"))
        if path.is_file()
    ]
    (metadata / "RECORD").write_text(
        "".join(f"{file},,\n" for file in [*files, f"{metadata.name}/RECORD"])
    )
    return directory


def install_environments(
    directory: Path, version: str = "2.0", *, groups: str = ENVIRONMENTS
) -> Path:
    """Installs the distribution `tiny-envs`; the arguments are those of `install`."""
    return install(
        directory,
        version,
        name="tiny-envs",
        agents={},
        groups=groups,
        source=SOURCE.with_name("tiny_envs"),
    )

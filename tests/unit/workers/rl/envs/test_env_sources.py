"""Environments of installed distributions and of `--import`, and the digest of their code."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from palestra.contract.code import (
    BuiltinCode,
    DistributionCode,
    EntrypointCode,
    GitCode,
    ModuleCode,
    add_environment,
)
from palestra.contract.definition import read_definition
from palestra.contract.envs import EnvDefinition
from palestra.contract.names import WORKER_IMPORTS
from tests.support.distributions import install, install_environments
from tests.support.trainings import TrainingAttempt, make_definition, make_work_order
from workers.assembly import registered_parts
from workers.assembly.registry import check_code
from workers.core import installed_code
from workers.core.errors import CodeChangedError, DefinitionError, PartNotFoundError
from workers.ipc.worker_imports import check_imports, set_allowed_imports
from workers.rl.envs.env_sources import environment_code, register_games, register_sources
from workers.rl.envs.factory import make_vector

REGISTERS = """
import gymnasium as gym
gym.register("{id}", entry_point="tiny_envs.walk:Walk", max_episode_steps=9)
"""


@pytest.fixture
def site_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory on Python's path; environments registered by the test are removed afterwards."""
    register_games()  # They are registered when ale-py is imported, once in a process.
    before = dict(gym.registry)
    directory = tmp_path / "site"
    directory.mkdir()
    monkeypatch.syspath_prepend(directory)
    forget(before)
    yield directory
    forget(before)


def forget(registry: dict[str, Any]) -> None:
    for cached in (
        register_sources,
        installed_code.code_of_distribution,
        installed_code.code_of_module,
        registered_parts.discover,
    ):
        cached.cache_clear()
    gym.registry.clear()
    gym.registry.update(registry)
    for name in [
        name
        for name in sys.modules
        if name.split(".")[0] in {"tiny_envs", "tiny_agents", "loose", "corp", "other"}
    ]:
        del sys.modules[name]


@pytest.fixture
def reset_registries() -> Callable[[], None]:
    """Clears all state that a new process would not have."""
    builtin = {
        name: spec
        for name, spec in gym.registry.items()
        if name.startswith("palestra/") or "gymnasium." in str(spec.entry_point)
    }
    return lambda: forget(builtin)


def get_code(name: str) -> DistributionCode:
    found = environment_code(name)
    assert isinstance(found, DistributionCode)
    return found


def write_loose_module(site: Path, text: str = REGISTERS.format(id="Loose-v0")) -> Path:
    install_environments(site)
    (site / "loose.py").write_text(text)
    return site / "loose.py"


def test_environments_of_the_entry_point_group_have_their_distributions_code(
    site_directory: Path,
) -> None:
    install_environments(site_directory)
    assert (get_code("tiny/Walk-v0").distribution, get_code("tiny/Walk-v0").version) == (
        "tiny-envs",
        "2.0",
    )
    assert get_code("tiny/Pole-v0") == get_code("tiny/Walk-v0"), (
        "it is who registers that counts, not whose class it is"
    )
    env = make_vector(EnvDefinition(id="tiny/Walk-v0", num_envs=2))
    env.close()
    assert env.single_observation_space == gym.spaces.Box(0, 1, (5,), np.float32)


def test_a_changed_reward_changes_the_digest(
    site_directory: Path, reset_registries: Callable[[], None]
) -> None:
    install_environments(site_directory)
    before = get_code("tiny/Walk-v0")
    source = site_directory / "tiny_envs" / "walk.py"
    source.write_text(source.read_text().replace("REWARD = 1.0", "REWARD = 2.0"))
    reset_registries()
    after = get_code("tiny/Walk-v0")
    assert (before.version, before.digest != after.digest) == (after.version, True)


@pytest.mark.parametrize(
    "name",
    [
        "CartPole-v1",
        "Pendulum-v1",
        "LunarLander-v3",
        "HalfCheetah-v5",
        "ALE/Pong-v5",
        "palestra/Recall-v0",
        "Nowhere-v0",
    ],
)
def test_environments_of_gymnasium_ale_py_and_palestra_have_no_code(
    site_directory: Path, name: str
) -> None:
    """IDs of existing experiments therefore do not change."""
    install_environments(site_directory)
    assert environment_code(name) is None
    register_sources()
    assert environment_code(name) is None, "also once the sources were run"


def test_an_id_of_gymnasium_cannot_be_replaced(site_directory: Path) -> None:
    before = gym.registry["CartPole-v1"]
    install_environments(site_directory)
    assert "would replace" in register_sources().left_out["CartPole-v1"]
    assert gym.registry["CartPole-v1"] is before


def test_the_group_of_gymnasium_gives_a_namespace(site_directory: Path) -> None:
    (site_directory / "corp.py").write_text(
        "import gymnasium as gym\ndef register():\n    gym.register('Walk-v3', "
        "entry_point='tiny_envs.walk:Walk')\n"
    )
    install_environments(
        site_directory,
        groups="[gymnasium.envs]\ncorp = corp:register\n__root__ = tiny_envs:register\n",
    )
    assert register_sources().owners["corp/Walk-v3"] == "corp"
    assert register_sources().owners["tiny/Walk-v0"] == "tiny_envs"
    assert gym.envs.registration.current_namespace is None
    assert get_code("corp/Walk-v3").distribution == "tiny-envs", (
        "the distribution whose entry point names the module"
    )


def test_an_environment_belongs_to_the_module_that_registers_it_whoever_imports_that(
    site_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_loose_module(site_directory, "import tiny_envs\n" + REGISTERS.format(id="Loose-v0"))
    monkeypatch.setenv(WORKER_IMPORTS, "loose")
    metadata = next(site_directory.glob("*.dist-info")) / "entry_points.txt"
    metadata.write_text("[palestra.environments]\na = loose\nb = tiny_envs\n")
    assert register_sources().owners == {
        name: "loose" if name == "Loose-v0" else "tiny_envs" for name in register_sources().owners
    }
    assert {"Loose-v0", "tiny/Walk-v0"} <= set(register_sources().owners)


def test_an_id_that_two_modules_register_is_not_offered(
    site_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_loose_module(site_directory, REGISTERS.format(id="tiny/Walk-v0"))
    monkeypatch.setenv(WORKER_IMPORTS, "loose")
    assert (
        "loose and tiny_envs both register this id" in register_sources().left_out["tiny/Walk-v0"]
    )
    with pytest.raises(PartNotFoundError, match=r"env\.id tiny/Walk-v0 .*both register this id"):
        make_vector(EnvDefinition(id="tiny/Walk-v0"))


def test_a_source_that_fails_leaves_the_others(
    site_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_loose_module(site_directory, "raise RuntimeError('no licence')")
    monkeypatch.setenv(WORKER_IMPORTS, "loose")
    assert (
        register_sources().left_out["--import loose"]
        == "cannot be imported: RuntimeError: no licence"
    )
    assert "tiny/Walk-v0" in register_sources().owners


def test_a_module_of_no_distribution_has_a_digest_of_its_sources(
    site_directory: Path, monkeypatch: pytest.MonkeyPatch, reset_registries: Callable[[], None]
) -> None:
    file = write_loose_module(site_directory)
    monkeypatch.setenv(WORKER_IMPORTS, "loose")
    before = environment_code("Loose-v0")
    assert isinstance(before, ModuleCode)
    assert before.module == "loose"
    file.write_text(file.read_text() + "# changed\n")
    reset_registries()
    assert environment_code("Loose-v0") != before


def test_a_definition_names_only_modules_that_the_administrator_allows(
    site_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_loose_module(site_directory)
    with pytest.raises(
        PartNotFoundError,
        match=(
            r"env\.id loose:Loose-v0: this worker may not import loose; it imports none.*--import "
            r"loose"
        ),
    ):
        make_vector(EnvDefinition(id="loose:Loose-v0"))
    assert "loose" not in sys.modules
    monkeypatch.setenv(WORKER_IMPORTS, "loose")
    env = make_vector(EnvDefinition(id="loose:Loose-v0"))
    env.close()
    assert environment_code("loose:Loose-v0") == environment_code("Loose-v0")


def test_environments_that_an_agents_package_registers_are_known_without_the_agent(
    site_directory: Path,
) -> None:
    install(site_directory, agents={"mine": "other:factory"}, groups="")
    install_environments(site_directory, groups="")
    (site_directory / "other.py").write_text(
        REGISTERS.format(id="Other-v0") + "def factory(parameters, context): ...\n"
    )
    assert get_code("Other-v0").distribution == "tiny-agents"


def test_a_registered_environment_is_made_in_other_processes_too(
    site_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_environments(site_directory)
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(site_directory), os.environ.get("PYTHONPATH", "")])
    )
    env = make_vector(EnvDefinition(id="tiny/Walk-v0", num_envs=2, vectorization="async"))
    try:
        assert env.single_observation_space.shape == (5,)
    finally:
        env.close()


def test_faults_name_the_field(site_directory: Path) -> None:
    install_environments(site_directory)
    with pytest.raises(
        DefinitionError,
        match=r"env\.id tiny/Words-v0, observation_space: Text spaces cannot be stored",
    ):
        make_vector(EnvDefinition(id="tiny/Words-v0"))
    with pytest.raises(
        DefinitionError,
        match=r"env\.id tiny/Given-v0 cannot be made with env\.kwargs \{\}: TypeError",
    ):
        make_vector(EnvDefinition(id="tiny/Given-v0"))
    make_vector(EnvDefinition(id="tiny/Given-v0", kwargs={"length": 3})).close()


def make_walk_definition(**changes: Any) -> dict[str, Any]:
    return make_definition(env={"id": "tiny/Walk-v0"}, **changes)


def test_a_worker_refuses_an_environment_of_other_code_unless_that_is_allowed(
    site_directory: Path,
) -> None:
    install_environments(site_directory)
    document = read_definition(json.dumps(make_walk_definition()))
    mine = get_code("tiny/Walk-v0")
    assert check_code(document, BuiltinCode(environment=mine)) is None
    older = BuiltinCode(environment=mine.model_copy(update={"digest": "0" * 64}))
    loose = BuiltinCode(environment=ModuleCode(module="loose", digest="0" * 64))
    for other in (BuiltinCode(), older, loose):
        told = (
            r"made with built-in parts.*this worker has built-in parts and an environment "
            r"of tiny-envs 2\.0 .*submit the definition again"
        )
        with pytest.raises(CodeChangedError, match=told):
            check_code(document, other)
    assert check_code(document, older, allows_change=True) == BuiltinCode(environment=mine)
    with pytest.raises(CodeChangedError):
        check_code(document, loose, allows_change=True)
    with pytest.raises(CodeChangedError, match="this worker has built-in parts:"):
        check_code(read_definition(json.dumps(make_definition())), BuiltinCode(environment=mine))
    with pytest.raises(CodeChangedError, match="the work tree at aaaaaaaaaaaa"):
        check_code(document, GitCode(kind="git", head="a" * 40))


def test_agent_and_environment_may_be_of_two_distributions_or_of_one(site_directory: Path) -> None:
    install(site_directory)
    install_environments(site_directory)
    document = read_definition(
        json.dumps({**make_walk_definition(), "agent": {"name": "hill_climber"}})
    )
    agent = registered_parts.discover("agents").parts["hill_climber"].code
    both = add_environment(agent, get_code("tiny/Walk-v0"))
    check_code(document, both)
    with pytest.raises(
        CodeChangedError,
        match=(
            r"made with tiny-agents 1\.2\.0 \(digest \w+\), this worker has .* and an environment "
            r"of tiny-envs"
        ),
    ):
        check_code(document, agent)
    with pytest.raises(CodeChangedError, match="made with built-in parts"):
        check_code(document, BuiltinCode(environment=get_code("tiny/Walk-v0")))
    one = EntrypointCode(kind="entrypoint", **get_code("tiny/Walk-v0").model_dump(exclude={"kind"}))
    assert add_environment(one, get_code("tiny/Walk-v0")) == one, (
        "the ID of an agent and an environment of one package stands"
    )


def test_a_registered_environment_trains_to_its_end(site_directory: Path, tmp_path: Path) -> None:
    install_environments(site_directory)
    order = make_work_order(make_walk_definition(loop={"env_steps": 300, "epoch_env_steps": 100}))
    trained = TrainingAttempt(order, tmp_path / "run").run()
    finals = [row for row in trained.list_points() if row[0] == "evaluation" and row[-1]]
    assert len(finals) == 1


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("a-b", "not the name of a module"),
        ("os; x", "not the name"),
        ("", "not the name"),
        ("nowhere_at_all", "Python finds no module 'nowhere_at_all'"),
    ],
)
def test_the_option_is_checked_without_an_import(name: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        check_imports([name])


def test_a_module_of_the_working_directory_is_found_by_trainers(
    site_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trainers run in another working directory."""
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "loose.py").write_text("")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.syspath_prepend(tmp_path / "here")
    environ = {"PYTHONPATH": "/first"}
    set_allowed_imports(check_imports(["loose", "json", "loose"]), environ)
    assert environ == {
        WORKER_IMPORTS: "loose,json",
        "PYTHONPATH": os.pathsep.join(["/first", str(tmp_path / "here")]),
    }
    assert "loose" not in sys.modules
    untouched: dict[str, str] = {}
    set_allowed_imports((), untouched)
    assert untouched == {}

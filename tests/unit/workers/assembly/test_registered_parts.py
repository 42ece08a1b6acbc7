"""Agents of installed distributions.

They are found by entry points, identified by the digest of their code, and built or refused.
"""

import json
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from palestra.contract.agents import BUILTIN_AGENTS, RegisteredAgent
from palestra.contract.code import BuiltinCode, EntrypointCode, GitCode
from palestra.contract.definition import read_definition
from tests.support.distributions import install
from tests.support.pfrl_agents import ScriptedBatch
from tests.support.trainings import (
    TrainingAttempt,
    load_order_snapshot,
    make_definition,
    make_work_order,
)
from workers.assembly import registered_parts, registry
from workers.assembly.catalogue import make_catalogue
from workers.assembly.registered_parts import discover
from workers.core import installed_code
from workers.core.errors import CodeChangedError, DefinitionError, PartNotFoundError
from workers.core.installed_code import digest_of
from workers.core.types import AgentContext
from workers.rl.agents.pfrl_adapter import ExternalAgent
from workers.rl.envs.factory import make_vector
from workers.trainer_process.schedules import native

HILL = {"name": "hill_climber", "parameters": {"noise": 0.5}}


@pytest.fixture
def installed_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    directory = install(tmp_path / "site")
    monkeypatch.syspath_prepend(directory)
    forget()
    yield directory
    forget()


def forget() -> None:
    registered_parts.discover.cache_clear()
    installed_code.code_of_distribution.cache_clear()
    for name in [name for name in sys.modules if name.split(".")[0] == "tiny_agents"]:
        del sys.modules[name]


def discover_code() -> EntrypointCode:
    return discover("agents").parts["hill_climber"].code


def make_definition_with(agent: dict[str, Any] = HILL, **changes: Any) -> Any:
    return read_definition(json.dumps({**make_definition(**changes), "agent": agent}))


def make_context(num_envs: int = 1) -> AgentContext:
    env = make_vector(make_definition_with().env, 1)
    env.close()
    spaces = {
        "observation_space": env.single_observation_space,
        "action_space": env.single_action_space,
    }
    return AgentContext(**spaces, num_envs=num_envs, seed=1)


def test_discovery_imports_nothing_and_skips_invalid_names(installed_site: Path) -> None:
    found = discover("agents")
    assert set(found.parts) >= {"hill_climber", "odd", "missing"}
    assert "letters, digits" in found.left_out["../odd"]
    assert not any(name.startswith("tiny_agents") for name in sys.modules)
    assert (discover_code().distribution, discover_code().version) == ("tiny-agents", "1.2.0")
    assert set(discover("model_functions").parts) == {"line"}
    assert set(discover("input_functions").parts) == {"points"}


def test_the_digest_covers_the_code_and_no_generated_files(
    installed_site: Path, tmp_path: Path
) -> None:
    first = digest_of(distribution("tiny-agents"))
    (installed_site / "tiny_agents" / "__pycache__").mkdir()
    (installed_site / "tiny_agents" / "__pycache__" / "x.pyc").write_bytes(b"1")
    metadata = next(installed_site.glob("*.dist-info"))
    (metadata / "INSTALLER").write_text("another")
    assert digest_of(distribution("tiny-agents")) == first
    elsewhere = next(
        iter(
            distribution("tiny-agents").discover(
                name="tiny-agents", path=[str(install(tmp_path / "other"))]
            )
        )
    )
    assert digest_of(elsewhere) == first, "the place does not matter"
    (installed_site / "tiny_agents" / "climber.py").write_text("changed = 1\n")
    assert digest_of(distribution("tiny-agents")) != first
    (metadata / "RECORD").unlink()
    assert digest_of(distribution("tiny-agents")) != first, (
        "an editable install has no record of its package"
    )


def test_a_distribution_without_files_is_skipped(installed_site: Path) -> None:
    shutil.rmtree(installed_site / "tiny_agents")
    assert "install it as a wheel" in discover("agents").left_out["hill_climber"]
    with pytest.raises(PartNotFoundError, match="install it as a wheel"):
        registry.registered_part("agents", "hill_climber")


def test_a_name_that_two_distributions_register_is_not_offered(installed_site: Path) -> None:
    install(
        installed_site,
        "3.0",
        name="copycat",
        agents={"hill_climber": "tiny_agents:make_object_without_methods"},
    )
    found = discover("agents")
    assert "two distributions" in found.left_out["hill_climber"]
    assert "hill_climber" not in found.parts
    assert "odd" in found.parts


def test_a_worker_refuses_a_job_with_other_code(installed_site: Path) -> None:
    registry.check_code(make_definition_with(), discover_code())
    for other in (
        discover_code().model_copy(update={"digest": "0" * 64}),
        discover_code().model_copy(update={"version": "1.3.0"}),
        BuiltinCode(),
    ):
        with pytest.raises(
            CodeChangedError,
            match=r"this worker has tiny-agents 1\.2\.0 .*submit the definition again",
        ):
            registry.check_code(make_definition_with(), other)
    with pytest.raises(CodeChangedError, match="the work tree at aaaaaaaaaaaa"):
        registry.check_code(make_definition_with(), GitCode(kind="git", head="a" * 40))
    with pytest.raises(CodeChangedError, match="no installed distribution registers 'other'"):
        registry.check_code(make_definition_with({"name": "other"}), discover_code())
    with pytest.raises(PartNotFoundError, match="no installed distribution registers 'other'"):
        registry.check_code(make_definition_with({"name": "other"}), BuiltinCode())
    builtin = make_definition_with({"name": "dqn"})
    registry.check_code(builtin, BuiltinCode())
    with pytest.raises(DefinitionError, match="names none"):
        registry.check_code(builtin, discover_code())


def test_other_code_of_the_same_distribution_can_be_allowed(installed_site: Path) -> None:
    """The work order permits the other code, and the run's log names the code that is used."""
    newer = discover_code().model_copy(update={"digest": "0" * 64, "version": "1.3.0"})
    assert registry.check_code(make_definition_with(), discover_code(), allows_change=True) is None
    assert registry.check_code(make_definition_with(), newer, allows_change=True) == discover_code()
    stranger = newer.model_copy(update={"distribution": "other-agents"})
    with pytest.raises(CodeChangedError, match="made with other-agents"):
        registry.check_code(make_definition_with(), stranger, allows_change=True)


def test_a_factory_gets_its_model_of_parameters(installed_site: Path) -> None:
    agent = registry.make_agent(
        RegisteredAgent(name="hill_climber", parameters={"noise": 2.5}), make_context()
    )
    assert isinstance(agent, ExternalAgent)
    assert (agent.wrapped.noise, agent.wrapped.patience) == (2.5, 1)
    with pytest.raises(DefinitionError, match=r"agent\.parameters do not fit 'hill_climber'"):
        registry.make_agent(
            RegisteredAgent(name="hill_climber", parameters={"noise": -1}), make_context()
        )


def test_an_object_without_an_agents_methods_is_refused(installed_site: Path) -> None:
    with pytest.raises(
        DefinitionError,
        match=(
            r"'odd' of tiny-agents 1\.2\.0 returned cannot be trained: "
            "agent: object has no method"
        ),
    ):
        registry.make_agent(RegisteredAgent(name="odd"), make_context())
    with pytest.raises(PartNotFoundError, match="ModuleNotFoundError"):
        registry.make_agent(RegisteredAgent(name="missing"), make_context())
    with pytest.raises(DefinitionError, match="has no method batch_act"):
        registry.make_agent(RegisteredAgent(**HILL), make_context(num_envs=4))


def test_several_environments_take_the_batch_forms(
    installed_site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted = ScriptedBatch()
    monkeypatch.setattr(
        registered_parts.RegisteredPart, "load", lambda _: lambda parameters, context: scripted
    )
    observation = np.zeros((4, 4), np.float32)
    registry.make_agent(RegisteredAgent(name="odd"), make_context(num_envs=4)).act(
        observation, explore=True
    )
    registry.make_agent(RegisteredAgent(name="odd"), make_context()).act(
        observation[:1], explore=True
    )
    assert [call[0] for call in scripted.calls] == ["batch_act", "act"]


def test_an_agent_with_palestras_protocol_is_not_wrapped(
    installed_site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.support.trainer_fakes import FakeAgent
    from workers.core.types import CollectPlan, LearnSchedule

    own = FakeAgent([], CollectPlan(vector_steps=1), LearnSchedule(every_env_steps=1, updates=1))
    monkeypatch.setattr(
        registered_parts.RegisteredPart, "load", lambda _: lambda parameters, context: own
    )
    assert registry.make_agent(RegisteredAgent(name="odd"), make_context()) is own


def test_the_catalogue_lists_usable_agents_and_reasons_for_others(
    installed_site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    catalogue = make_catalogue().model_dump(mode="json")
    agents = {agent["name"]: agent for agent in catalogue["agents"]}
    assert set(agents) == {*BUILTIN_AGENTS, "hill_climber", "odd"}
    functions = {part["name"]: part for part in catalogue["model_functions"]}
    assert (functions["classifier"]["code"], functions["line"]["code"]) == (
        None,
        discover_code().model_dump(),
    )
    assert functions["line"]["parameters_schema"]["properties"]["rate"]["default"] == 0.1
    assert functions["classifier"]["parameters_schema"]["required"] == ["classes"]
    assert agents["hill_climber"]["code"] == discover_code().model_dump()
    assert agents["hill_climber"]["action_spaces"] == ["discrete"]
    assert agents["hill_climber"]["parameters_schema"]["properties"]["noise"]["default"] == 0.5
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("left out: ")]
    assert [line.split()[2] for line in told] == ["../odd:", "dqn:", "fragile:", "missing:"]


def test_a_registered_agent_trains_saves_its_files_and_resumes(
    installed_site: Path, tmp_path: Path
) -> None:
    document = {**make_definition(loop={"env_steps": 1_500, "epoch_env_steps": 500}), "agent": HILL}
    order = make_work_order(document)
    first = TrainingAttempt(order, tmp_path / "one").run(pause_at=700)
    snapshot, env_step = first.get_snapshot("stop")
    loaded = load_order_snapshot(order, snapshot)
    assert not loaded.manifest.resume_exact
    assert {"policy/weights.npy", "climber.json"} <= {file.name for file in loaded.manifest.files}
    second = TrainingAttempt(order, tmp_path / "two", snapshot).run()
    gauges = [row for row in second.list_points() if row[0] == "agent/climbs"]
    assert gauges[0][1] > env_step
    assert gauges[0][-1] >= json.loads((snapshot / "climber.json").read_text())["climbs"] > 0
    finals = [row for row in second.list_points() if row[0] == "evaluation" and row[-1]]
    assert len(finals) == 1


def test_an_agent_that_cannot_be_exported_is_refused_before_it_trains(
    installed_site: Path, tmp_path: Path
) -> None:
    document = {**make_definition(export={"formats": ["weights"]}), "agent": HILL}
    with pytest.raises(
        DefinitionError, match=r"export\.formats: the agent 'hill_climber' cannot be exported"
    ):
        TrainingAttempt(make_work_order(document), tmp_path).run()
    agent = registry.make_agent(RegisteredAgent(**HILL), make_context())
    assert native.export_formats(make_definition_with(), agent, exports_by_default=True) == ()


def test_registered_functions_train_a_supervised_definition_to_the_same_bits_after_a_resume(
    installed_site: Path, tmp_path: Path
) -> None:
    named = {
        "estimator": {"name": "line", "params": {"rate": 0.2}},
        "train_input": {"name": "points"},
        "evaluation_input": {"name": "points"},
    }
    document = {
        "kind": "supervised",
        "name": "line",
        "loop": {"updates": 60},
        "evaluation": {"every_updates": 20},
        **named,
    }
    registry.check_code(read_definition(json.dumps(document)), discover_code())
    with pytest.raises(CodeChangedError, match="made with built-in parts"):
        registry.check_code(read_definition(json.dumps(document)), BuiltinCode())
    order = make_work_order(document)
    straight = TrainingAttempt(order, tmp_path / "straight").run()
    losses = [-row[3][0] for row in straight.list_points() if row[0] == "evaluation"]
    assert losses[-1] < 0.01 < losses[0]
    first = TrainingAttempt(order, tmp_path / "first").run(pause_at=30)
    second = TrainingAttempt(order, tmp_path / "second", first.get_snapshot("stop")[0]).run()
    assert second.hash_weights() == straight.hash_weights(), (
        "an input without a state of its own is drawn again up to its place"
    )

"""The cache of compiled libraries on disk.

A library is loaded again only for the same code, torch version and machine.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from gymnasium import spaces

import palestra
import workers
from palestra.contract.agents import C51Parameters, DqnParameters, PpoParameters
from tests.unit.workers.rl.agents.agent_kit import make_context
from tests.unit.workers.rl.agents.test_agent_contract import CASES, TRACED, train_agent
from workers.acceleration import library_cache
from workers.acceleration.library_cache import CODE_VARIABLE, MAX_LIBRARIES, identity_of
from workers.rl.agents import a3c, c51, dqn, ppo
from workers.rl.agents.a3c import A3cMath

OURS = [Path(package.__file__).parent for package in (workers, palestra)]
UNCOMPILED = {"a3c", "cem", "recurrent_ppo", "reinforce", "trpo"}
"""Cases whose updates in the test are too few to be traced."""
EXAMPLES = [torch.arange(3.0), torch.ones(3)]


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Replaces the compiler, which takes more than ten seconds.

    The written file contains the source of the graph; returns the list of written files.
    """
    made: list[Path] = []

    def write_library(graph, examples, library):
        library.write_text(graph.code)
        made.append(library)

    monkeypatch.setattr(library_cache, "_compile", write_library)
    monkeypatch.setattr(library_cache, "_load", Path.read_text)
    return made


def double_and_add(one, other):
    return [one * 2 + other]


def triple_and_add(one, other):
    return [one * 3 + other]


def make_graph_with_constant(scale):
    held = torch.tensor([scale, 1.0, 2.0])
    return lambda one, other: [one * held + other]


def test_each_identity_and_each_graph_is_compiled_once(compiler) -> None:
    first = library_cache.machine_code("one", "sizes", double_and_add, EXAMPLES)
    assert library_cache.machine_code("one", "sizes", triple_and_add, EXAMPLES) == first, (
        "not even traced"
    )
    assert library_cache.machine_code("other", "sizes", double_and_add, EXAMPLES) == first
    assert len(compiler) == 1
    assert library_cache.machine_code("third", "sizes", triple_and_add, EXAMPLES) != first
    library_cache.machine_code("one", "other sizes", double_and_add, EXAMPLES)
    library_cache.machine_code(None, "sizes", double_and_add, EXAMPLES)
    assert len(compiler) == 3


def test_graphs_with_different_constants_are_compiled_separately(compiler) -> None:
    for scale in (1.0, 2.0, 1.0):
        library_cache.machine_code(None, "sizes", make_graph_with_constant(scale), EXAMPLES)
    assert len(compiler) == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("torch.__version__", "0.0"),
        ("workers.acceleration.library_cache._processor", lambda: "flags: none"),
    ],
)
def test_libraries_of_another_machine_or_torch_version_are_not_loaded(
    compiler, monkeypatch, name: str, value: object
) -> None:
    library_cache.machine_code("one", "sizes", double_and_add, EXAMPLES)
    library_cache._code_environment.cache_clear()
    try:
        with monkeypatch.context() as patch:
            patch.setattr(name, value)
            library_cache.machine_code("one", "sizes", double_and_add, EXAMPLES)
    finally:
        library_cache._code_environment.cache_clear()
    assert len(compiler) == 2


def test_a_changed_byte_in_any_folder_of_traced_sources_gives_another_key(tmp_path: Path) -> None:
    """If the key left a folder out, outdated machine code would be loaded after an edit there."""
    originals = library_cache.traced_folders()
    folders = [
        Path(shutil.copytree(one, tmp_path / str(index))) for index, one in enumerate(originals)
    ]
    before = library_cache.digest_of_sources(folders)
    assert before == library_cache.digest_of_sources(originals)
    touched = list(_find_source_of_each_folder(folders))
    assert len(touched) >= len(originals)
    for source in touched:
        content = source.read_bytes()
        source.write_bytes(content[:-1] + b" ")
        assert library_cache.digest_of_sources(folders) != before, source
        source.write_bytes(content)
    assert library_cache.digest_of_sources(folders) == before


def test_libraries_of_other_sources_in_a_subfolder_are_not_loaded(
    compiler, monkeypatch, tmp_path: Path
) -> None:
    source = tmp_path / "sources" / "common" / "losses.py"
    source.parent.mkdir(parents=True)
    monkeypatch.setattr(library_cache, "traced_folders", lambda: [tmp_path / "sources"])
    try:
        for content in ("factor = 1", "factor = 2", "factor = 1"):
            source.write_text(content)
            library_cache._code_environment.cache_clear()
            library_cache.machine_code("one", "sizes", double_and_add, EXAMPLES)
    finally:
        library_cache._code_environment.cache_clear()
    assert len(compiler) == 2


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in TRACED else pytest.mark.slow)
        for name in CASES
        if name not in UNCOMPILED
    ],
)
def test_all_modules_that_run_during_tracing_are_part_of_the_key(
    name: str, traced_examples, monkeypatch
) -> None:
    """If a module is not part of the key, outdated machine code is loaded after an edit of it."""
    ran: set[str] = set()
    trace = library_cache._trace

    def trace_and_record(function, examples):
        sys.setprofile(lambda frame, event, argument: ran.add(frame.f_code.co_filename))
        try:
            return trace(function, examples)
        finally:
            sys.setprofile(None)

    monkeypatch.setattr(library_cache, "_trace", trace_and_record)
    train_agent(CASES[name], compile="compiled")
    ours = {Path(file) for file in ran if any(Path(file).is_relative_to(one) for one in OURS)}
    folders = library_cache.traced_folders()
    assert len(ours) > 2
    assert [
        file for file in ours if not any(file.is_relative_to(folder) for folder in folders)
    ] == []


def _find_source_of_each_folder(folders: list[Path]) -> Iterator[Path]:
    for folder in folders:
        by_folder = {
            source.parent: source
            for source in sorted(folder.rglob("*.py"))
            if source.stat().st_size
        }
        yield from by_folder.values()


def test_the_least_recently_loaded_libraries_are_deleted(
    compiler, libraries: Path, monkeypatch
) -> None:
    assert MAX_LIBRARIES > 3
    monkeypatch.setattr(library_cache, "MAX_LIBRARIES", 3)
    abandoned, busy = libraries / "making-1", libraries / "making-2"
    for directory in (abandoned, busy):
        directory.mkdir(parents=True)
    os.utime(abandoned, (1, 1))
    library_cache.machine_code(None, "0", double_and_add, EXAMPLES)
    assert (abandoned.exists(), busy.exists()) == (False, True)
    for signature in "1234":
        for age, library in enumerate(
            sorted(libraries.glob("*.so"), key=lambda one: one.stat().st_mtime)
        ):
            os.utime(library, (age, age))
        library_cache.machine_code(None, signature, double_and_add, EXAMPLES)
    assert {one.name for one in libraries.glob("*.so")} == {one.name for one in compiler[-3:]}


def test_libraries_in_a_directory_of_another_user_are_not_loaded(compiler, monkeypatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 4_242)
    with pytest.raises(PermissionError, match=f"set {CODE_VARIABLE} to a directory of your own"):
        library_cache.machine_code("one", "sizes", double_and_add, EXAMPLES)
    assert not compiler


@pytest.mark.parametrize("name", [name for name in CASES if name not in {"a3c", "cem"}])
def test_every_algorithm_has_an_identity_of_all_values_it_reads(name: str) -> None:
    build, hyper, space = CASES[name]
    algorithm, again = (build(hyper, make_context(space, seed=seed)).algorithm for seed in (0, 1))
    identities = [identity_of(update) for update in algorithm.cycle]
    assert None not in identities
    assert identities == [identity_of(update) for update in again.cycle]
    changed = build(hyper.model_copy(update={"gamma": 0.5}), make_context(space)).algorithm
    assert identity_of(changed.update) != identity_of(algorithm.update)


def test_identities_differ_for_other_functions_values_and_spaces() -> None:
    wide, narrow = (spaces.Box(-bound, bound, (2_000,), np.float32) for bound in (2.0, 1.0))
    uneven = spaces.Box(np.where(np.arange(2_000) == 1_000, -2, -1).astype(np.float32), narrow.high)
    discrete = spaces.Discrete(4)
    algorithms = [
        *(
            ppo.build(
                PpoParameters(rollout_steps=8, minibatch_size=8), make_context(space)
            ).algorithm
            for space in (wide, narrow, uneven, discrete)
        ),
        dqn.build(DqnParameters(), make_context(discrete)).algorithm,
        dqn.build(DqnParameters(double=False), make_context(discrete)).algorithm,
        dqn.build(DqnParameters(), make_context(discrete, observation_space=wide)).algorithm,
        c51.build(C51Parameters(), make_context(discrete)).algorithm,
        c51.build(C51Parameters(v_max=5.0), make_context(discrete)).algorithm,
    ]
    found = [identity_of(one.update) for one in algorithms]
    assert len(set(found)) == len(found)
    assert None not in found
    actor_learner = a3c.A3c(CASES["a3c"][1], make_context().observation_space, discrete)
    assert (
        identity_of(A3cMath(actor_learner._model, actor_learner._hyper).clipped_gradient)
        is not None
    )


def test_a_function_with_unknown_inputs_has_no_identity() -> None:
    algorithm = dqn.build(DqnParameters(), make_context(spaces.Discrete(4))).algorithm

    @dataclass(frozen=True)
    class UnknownInputsFunction:
        network: object

        def __call__(self, parameters, observation, noise=None): ...

        def shapes(self):
            return algorithm.network.shapes()

    assert identity_of(double_and_add) is None
    assert (
        identity_of(replace(algorithm, network=UnknownInputsFunction(algorithm.network)).update)
        is None
    )


PROGRAM = """
import sys, torch
from gymnasium import spaces
from palestra.contract.agents import Td3Parameters
from tests.unit.workers.rl.agents.agent_kit import make_context
from tests.unit.workers.acceleration.test_compiled_update import make_batch
from workers.rl.agents import td3
from workers.acceleration.update_runner import runnable
parameters = Td3Parameters(batch_size=16, hidden_sizes=(16,))
agent = td3.build(parameters, make_context(spaces.Box(-1, 1, (2,))))
batch = make_batch(16)._replace(action=torch.zeros(16, 2), noise=(torch.ones(16, 2),))
update = agent.algorithm.cycle[0]
quick = runnable(update, mode="compiled")(agent.learning_state, batch)
plain = runnable(update, mode="eager")(agent.learning_state, batch)
torch.testing.assert_close(quick.state, plain.state, rtol=1e-4, atol=1e-6)
assert torch.equal(quick.state.actor, agent.learning_state.actor), "an output that is an input"
print("torch._inductor" in sys.modules)
"""


@pytest.mark.slow
def test_a_second_process_does_not_import_the_compiler() -> None:
    for compiles in ("True", "False"):
        finished = subprocess.run(
            [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
        )
        assert (finished.stdout.strip(), finished.stderr) == (compiles, "")

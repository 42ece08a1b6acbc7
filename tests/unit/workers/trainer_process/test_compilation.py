"""What a training says while it compiles an update, and where it cannot."""

import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from palestra.contract.states import Outcome
from tests.support.trainings import make_definition, make_work_order
from tests.support.waiting import PATIENCE_SECONDS
from tests.unit.workers.rl.agents.conftest import libraries as libraries
from tests.unit.workers.trainer_process.test_schedules import execute, make_attempt, read_records
from workers.acceleration import compiled_update, library_cache
from workers.acceleration.compilations import COMPILATIONS
from workers.ipc.attempt_directory import AttemptDirectory, read_json
from workers.recording.progress_file import ProgressFile
from workers.trainer_process import train_attempt


def make_compiled_attempt(root: Path, mode: str = "compiled", **changes: Any) -> AttemptDirectory:
    definition = make_definition(loop={"env_steps": 200})
    order = make_work_order({**definition, **changes})
    resources = order.resources.model_copy(update={"compile": mode})
    return make_attempt(root, order.model_copy(update={"resources": resources}))


def test_the_progress_says_that_an_update_is_being_compiled(
    tmp_path: Path, libraries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, seen = make_compiled_attempt(tmp_path), []

    def trace_instead(identity, signature, function, examples):
        del identity, signature
        while not seen or seen[-1].get("compiling") is not True:
            written.clear()
            assert written.wait(PATIENCE_SECONDS)
            seen.append(read_json(directory.progress))
        graph = library_cache._trace(function, examples)
        return lambda leaves: graph(*leaves)

    written, write = threading.Event(), ProgressFile.write

    def write_and_tell(self):
        write(self)
        written.set()

    monkeypatch.setattr(ProgressFile, "write", write_and_tell)
    monkeypatch.setattr(compiled_update, "machine_code", trace_instead)
    report = execute(directory)
    assert report.outcome is Outcome.SUCCEEDED
    assert seen[-1]["update"] == 0
    assert seen[-1]["compile"] == "compiled"
    last = read_json(directory.progress)
    assert (last["compile"], last["compiling"]) == ("compiled", False)
    assert report.provenance["compile"] == "compiled"
    assert read_records(directory, "note") == []


def test_an_update_that_cannot_be_compiled_runs_eagerly_and_a_note_says_why(
    tmp_path: Path, libraries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(graph, examples, library):
        raise OSError("no compiler here")

    monkeypatch.setattr(library_cache, "_compile", fail)
    directory = make_compiled_attempt(tmp_path)
    report = execute(directory)
    assert report.outcome is Outcome.SUCCEEDED
    assert report.update > 0
    (note,) = read_records(directory, "note")
    assert note["code"] == "compile_failed"
    assert "runs eagerly" in note["message"]
    assert "no compiler here" in note["message"]
    assert not COMPILATIONS.are_under_way


def test_an_agent_whose_updates_are_never_compiled_states_no_mode(tmp_path: Path) -> None:
    directory = make_compiled_attempt(tmp_path, "auto", agent={"name": "trpo", "rollout_steps": 50})
    report = execute(directory)
    assert report.outcome is Outcome.SUCCEEDED
    assert "compile" not in report.provenance
    assert read_json(directory.progress)["compile"] is None


def test_the_progress_says_that_a_process_of_a3c_compiles(
    tmp_path: Path, libraries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")  # The compilation ends when it needs the C++ compiler.
    often = partial(ProgressFile, seconds=0.01)
    monkeypatch.setattr(train_attempt, "ProgressFile", often)
    directory, seen = make_compiled_attempt(tmp_path, agent=make_definition("a3c")["agent"]), []
    write = ProgressFile.write

    def write_and_read(self):
        write(self)
        seen.append(read_json(directory.progress).get("compiling"))

    monkeypatch.setattr(ProgressFile, "write", write_and_read)
    assert execute(directory).outcome is Outcome.SUCCEEDED
    assert True in seen
    assert seen[-1] is False

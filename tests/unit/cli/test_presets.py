"""Presets: listed by the command, and every one of them is a submission."""

from pathlib import Path

import pytest

from palestra.cli.documents import read_submission
from palestra.contract.presets import PresetView
from palestra.presets import find_directory, list_presets
from tests.support.commands import RunCommand

PRESETS = list_presets()


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_a_preset_is_a_submission_that_says_what_it_trains(
    preset: PresetView, tmp_path: Path
) -> None:
    file = tmp_path / "preset.yaml"
    file.write_text(preset.document)
    definition = read_submission(str(file)).definition
    assert (definition.name, preset.description != "") == (preset.title, True)
    if definition.kind == "rl":
        assert (definition.agent.name, definition.env.id) == (preset.agent, preset.env)


def test_every_file_of_the_examples_is_a_preset_and_fast_ones_come_first() -> None:
    directory = find_directory()
    assert directory is not None
    assert len(PRESETS) == len(list(directory.rglob("*.yaml"))) > 30
    names = [preset.name for preset in PRESETS]
    assert names[:2] == ["cartpole-ppo", "cartpole-dqn"]
    assert names.index("digits-classifier") < names.index("learning/cartpole-a2c")


def test_the_command_lists_presets_and_prints_one(palestra: RunCommand) -> None:
    code, out, _ = palestra("presets")
    assert code == 0
    assert "learning/pendulum-sac" in out
    code, out, _ = palestra("presets", "cartpole-ppo")
    assert (code, out) == (0, PRESETS[0].document)
    code, _, error = palestra("presets", "cartpole-pppo")
    assert code == 2
    assert "did you mean cartpole-ppo?" in error

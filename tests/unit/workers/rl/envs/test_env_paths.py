"""Definitions name no files of a worker's machine, but for directories that the worker allows."""

import os
from pathlib import Path
from typing import Any

import pytest

from palestra.contract.envs import EnvDefinition
from palestra.contract.names import WORKER_ALLOWED_PATHS
from workers.core.errors import DefinitionError
from workers.ipc.allowed_paths import check_allowed_paths, list_allowed_paths, set_allowed_paths
from workers.rl.envs.env_paths import check_paths
from workers.rl.envs.factory import make_vector

PATHS = (
    "/etc/passwd",
    "//etc/passwd",
    "~/secrets.xml",
    "~root/x",
    "./ant.xml",
    "../ant.xml",
    "..",
    "meshes/../../../etc/passwd",
    "meshes/..",
    "\\\\server\\share",
    "C:\\Windows\\win.ini",
    "file:///etc/passwd",
    "FILE:/etc/passwd",
    "/",
    ".",
    "/etc/passwd\0.xml",
    "line\n/../x",
)
OTHERS = ("ant.xml", "v5", "rgb", "ALE/Pong-v5", "cartpole/balance", "a..b", "", "...", ".5", "x~")


@pytest.mark.parametrize("path", PATHS)
def test_a_path_is_refused_with_its_name_and_the_remedy(path: str) -> None:
    with pytest.raises(DefinitionError, match=r"env\.kwargs\.map: .*--allow-path") as refused:
        check_paths({"speed": 2, "map": path}, ())
    assert repr(path) in str(refused.value)


@pytest.mark.parametrize("text", OTHERS)
def test_other_texts_are_taken(text: str) -> None:
    check_paths({"name": text, "count": 3, "is_wide": True, "nothing": None}, ())


@pytest.mark.parametrize("vectorization", ["sync", "async"])
@pytest.mark.parametrize("env_id", ["Ant-v5", "CartPole-v1"])
def test_no_environment_is_made_with_a_path(
    env_id: str, vectorization: str, tmp_path: Path
) -> None:
    """The file is not opened: MuJoCo would say what it holds."""
    file = tmp_path / "secret.xml"
    file.write_text("<secret/>")
    spec = EnvDefinition.model_validate(
        {"id": env_id, "kwargs": {"xml_file": str(file)}, "vectorization": vectorization}
    )
    with pytest.raises(DefinitionError, match=r"env\.kwargs\.xml_file"):
        make_vector(spec)


def test_files_below_an_allowed_directory_are_taken(tmp_path: Path) -> None:
    data, outside = tmp_path / "data", tmp_path / "outside"
    for directory in (data / "mazes", outside):
        directory.mkdir(parents=True)
    (data / "link").symlink_to(outside)
    allowed = check_allowed_paths([str(data)])
    check_paths({"map": str(data / "mazes" / "a.xml"), "whole": str(data)}, allowed)
    for path in (
        outside / "a.xml",
        data / "link" / "a.xml",
        data / ".." / "outside" / "a.xml",
        Path(f"{data}-other") / "a.xml",
    ):
        with pytest.raises(DefinitionError):
            check_paths({"map": str(path)}, allowed)


def test_allowed_directories_reach_the_processes_of_a_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b c"):
        (tmp_path / name).mkdir()
    allowed = check_allowed_paths([str(tmp_path / "a"), str(tmp_path / "a" / ".." / "b c")])
    environ: dict[str, str] = {}
    set_allowed_paths(allowed, environ)
    monkeypatch.setitem(os.environ, WORKER_ALLOWED_PATHS, environ[WORKER_ALLOWED_PATHS])
    assert list_allowed_paths() == (tmp_path / "a", tmp_path / "b c")


@pytest.mark.parametrize("make", [lambda path: path / "missing", lambda path: path / "file"])
def test_what_is_no_directory_is_not_allowed(make: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="is not a directory"):
        check_allowed_paths([str(make(tmp_path))])

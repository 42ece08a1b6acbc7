from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from torch import Tensor

from workers.agents import compiled, machine_code
from workers.agents.machine_code import CODE_VARIABLE


@pytest.fixture(autouse=True)
def libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where compiled code is kept: nothing is found that another test or another day left there."""
    monkeypatch.setenv(CODE_VARIABLE, str(tmp_path))
    return tmp_path / "updates"


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[Tensor]]:
    """The examples of the graphs that were made instead of machine code, which run as they are."""
    made: list[Sequence[Tensor]] = []

    def kept(identity: str | None, signature: str, function: Callable[..., list[Tensor]], examples: Sequence[Tensor]) -> machine_code.Code:
        del identity, signature
        made.append(examples)
        graph = machine_code._traced(function, examples)
        return lambda leaves: graph(*leaves)

    monkeypatch.setattr(compiled, "machine_code", kept)
    return made

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from torch import Tensor

from workers.acceleration import compiled_update, library_cache
from workers.acceleration.library_cache import CODE_VARIABLE


@pytest.fixture(autouse=True)
def libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keeps compiled libraries in a temporary directory, so that tests load no earlier ones."""
    monkeypatch.setenv(CODE_VARIABLE, str(tmp_path))
    return tmp_path / "updates"


@pytest.fixture
def traced_examples(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[Tensor]]:
    """Runs traced graphs instead of compiling them; returns the list of their example inputs."""
    made: list[Sequence[Tensor]] = []

    def kept(
        identity: str | None,
        signature: str,
        function: Callable[..., list[Tensor]],
        examples: Sequence[Tensor],
    ) -> library_cache.Code:
        del identity, signature
        made.append(examples)
        graph = library_cache._trace(function, examples)
        return lambda leaves: graph(*leaves)

    monkeypatch.setattr(compiled_update, "machine_code", kept)
    return made

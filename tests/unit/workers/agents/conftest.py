from pathlib import Path

import pytest

from workers.agents.machine_code import CODE_VARIABLE


@pytest.fixture(autouse=True)
def libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where compiled code is kept: nothing is found that another test or another day left there."""
    monkeypatch.setenv(CODE_VARIABLE, str(tmp_path))
    return tmp_path / "updates"

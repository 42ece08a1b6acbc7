from pathlib import Path

import pytest

from palestra.contract.telemetry import Points

RUN = "run_" + "0" * 26


@pytest.fixture
def spool_directory(tmp_path: Path) -> Path:
    return tmp_path / "spool"


@pytest.fixture(scope="session")
def make_point():
    def make(step: int, value: float = 1.0, series: str = "loss/td") -> Points:
        return Points(
            run=RUN,
            series=series,
            env_step=(step,),
            update=(step,),
            episode=(0,),
            wall=(1.0,),
            value=(value,),
        )

    return make

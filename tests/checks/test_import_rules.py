"""Every import rule detects a violation.

import-linter checks a copy of the packages to which one forbidden import was added.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PACKAGES = ("palestra", "app", "workers")
CONTRACTS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["importlinter"][
    "contracts"
]

BREACHES: dict[str, list[tuple[str, str]]] = {
    "palestra imports neither app nor workers nor their heavy libraries": [
        ("palestra/client.py", "import app.settings"),
        ("palestra/cli/up.py", "import workers"),
        ("palestra/contract/names.py", "import torch"),
        ("palestra/client.py", "import fastapi"),
    ],
    "telemetry is standard library, httpx and the contract only": [
        ("palestra/telemetry/spool.py", "import palestra.client")
    ],
    "app and workers never import each other": [
        ("app/settings.py", "import workers"),
        ("workers/host/slots.py", "import app.settings"),
    ],
    "the server holds no training library": [
        ("app/services/runs/runs.py", "import torch"),
        ("app/metrics/__init__.py", "import gymnasium"),
    ],
    "layers of the server": [
        ("app/domain/errors.py", "import app.db.engine"),
        ("app/services/runs/runs.py", "import app.api.errors"),
        ("app/db/engine.py", "import app.services.runs.runs"),
        ("app/metrics/__init__.py", "import app.db.engine"),
        ("app/settings.py", "import app.domain.errors"),
    ],
    "sqlalchemy only in app.db": [
        ("app/services/runs/runs.py", "import sqlalchemy"),
        ("app/api/deps.py", "import sqlalchemy.orm"),
    ],
    "celery in the server only in the dispatcher": [
        ("app/services/jobs/jobs.py", "import celery"),
        ("app/daemons/reaper.py", "import kombu"),
    ],
    "celery in the workers only in the worker and its task, kombu also in the broker's transport": [
        ("workers/supervisor/__main__.py", "import celery"),
        ("workers/core/rng.py", "import kombu"),
    ],
    "worker parents never load torch": [
        ("workers/supervisor/__main__.py", "import torch"),
        ("workers/host/slots.py", "import workers.core.rng"),
    ],
    "layers of the trainer": [
        ("workers/core/rng.py", "import workers.rl.envs"),
        ("workers/rl/memory/__init__.py", "import workers.rl.agents"),
        ("workers/rl/agents/__init__.py", "import workers.assembly"),
        ("workers/rl/evaluate/__init__.py", "import workers.hooks"),
        ("workers/assembly/__init__.py", "import workers.entrypoints"),
        ("workers/assembly/__init__.py", "import workers.estimators"),
        ("workers/acceleration/__init__.py", "import workers.rl.networks"),
    ],
    "host and supervisor meet in ipc alone": [
        ("workers/host/slots.py", "import workers.supervisor.limits")
    ],
    "parts of a training know nothing of attempts and machines": [
        ("workers/rl/agents/dqn.py", "import workers.ipc.run_log")
    ],
    "layers of the services": [("app/services/views/pages.py", "import app.services.jobs.jobs")],
    "the engine knows the protocols of core and nothing else": [
        ("workers/engine/engine.py", "import torch"),
        ("workers/engine/clock.py", "import workers.rl.agents"),
    ],
    "clock and triggers are reached as protocols of core": [
        ("workers/rl/collect/__init__.py", "import workers.engine.clock")
    ],
}


def lint(directory: Path) -> subprocess.CompletedProcess[str]:
    """Runs import-linter on the packages in a directory."""
    program = (
        "import sys; from importlinter.cli import lint_imports; "
        "sys.exit(lint_imports(no_cache=True, is_debug_mode=False))"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": str(directory),
        "NO_COLOR": "1",
        "COLUMNS": "500",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-c", program]
    return subprocess.run(
        command,
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the path of a copy of the packages and of the contracts."""
    directory = tmp_path_factory.mktemp("rules")
    for package in PACKAGES:
        shutil.copytree(
            REPOSITORY / package, directory / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    shutil.copy(REPOSITORY / "pyproject.toml", directory)
    return directory


def test_the_packages_keep_the_rules(sources: Path) -> None:
    done = lint(sources)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


def test_every_rule_has_a_violation() -> None:
    assert {contract["name"] for contract in CONTRACTS} == set(BREACHES)


@pytest.mark.parametrize("round_", range(max(map(len, BREACHES.values()))))
def test_violations_are_detected(sources: Path, round_: int) -> None:
    """One violation of each rule is tested at a time."""
    breaches = {
        name: of_rule[round_] for name, of_rule in BREACHES.items() if round_ < len(of_rule)
    }
    texts = {file: (sources / file).read_text() for file, _ in breaches.values()}
    try:
        for file, line in breaches.values():
            with (sources / file).open("a") as target:
                target.write(f"\n{line}\n")
        done = lint(sources)
    finally:
        for file, text in texts.items():
            (sources / file).write_text(text)
    assert done.returncode != 0
    told = _parse_broken_rules(done.stdout)
    for name, (file, line) in breaches.items():
        module = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        imported = line.removeprefix("import ")
        if imported.split(".")[0] not in PACKAGES:
            imported = imported.split(".")[0]
        assert f"{module} -> {imported} (l." in told.get(name, ""), (
            name,
            done.stdout + done.stderr,
        )


def _parse_broken_rules(output: str) -> dict[str, str]:
    """Returns the imports that import-linter reports for each broken rule, by the rule's name."""
    parts = re.split(
        r"^(.+)\n-{3,}$", output.rsplit("Broken contracts", maxsplit=1)[-1], flags=re.MULTILINE
    )
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_package_is_in_a_rule() -> None:
    """A package that is added later must be added to the lists of the contracts."""
    listed = {module for contract in CONTRACTS for module in _list_modules(contract)}
    parts = {
        f"{package}.{path.stem}"
        for package in ("app", "workers")
        for path in (REPOSITORY / package).iterdir()
        if _is_part(path)
    }
    assert parts <= {".".join(name.split(".")[:2]) for name in listed}


def _list_modules(contract: dict[str, list[str]]) -> list[str]:
    names = [
        *contract.get("source_modules", []),
        *contract.get("forbidden_modules", []),
        *contract.get("modules", []),
    ]
    layers = [part.strip() for layer in contract.get("layers", []) for part in layer.split("|")]
    return names + layers


def _is_part(path: Path) -> bool:
    return (path.suffix == ".py" and path.stem != "__init__") or (path / "__init__.py").exists()

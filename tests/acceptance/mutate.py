"""Changes one place of the code at a time and reports whether the test of its row fails.

    python -m tests.acceptance.mutate [ROW ...]

Works on a copy of the tracked files. The exit status is 1 if the tests did not notice a mutation or
if a mutation no longer fits the code.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.acceptance.mutations import MUTATIONS, Mutation

_ROOT = Path(__file__).parents[2]
_COPIED = ("palestra", "workers", "tests", "pyproject.toml")
_FAILED = 1
"""Exit code of pytest when tests failed; any other code means that they did not run."""


def main(rows: list[str]) -> int:
    chosen = [one for one in MUTATIONS if not rows or one.row in rows]
    missed = 0
    with tempfile.TemporaryDirectory(prefix="palestra-mutations-") as folder:
        copy = Path(folder)
        for name in _COPIED:
            source = _ROOT / name
            if source.is_dir():
                shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, copy / name)
        for mutation in chosen:
            verdict = _try(copy, mutation)
            missed += verdict != "noticed"
            print(f"{verdict:14} {mutation.row:4} {mutation.path}: {mutation.what}", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} mutations were noticed by their row")
    return 1 if missed else 0


def _try(copy: Path, mutation: Mutation) -> str:
    path = copy / mutation.path
    original = path.read_text(encoding="utf-8")
    if original.count(mutation.old) != 1:
        return f"does not fit ({original.count(mutation.old)}x)"
    path.write_text(original.replace(mutation.old, mutation.new), encoding="utf-8")
    command = [
        sys.executable,
        "-B",
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        *_find_modules(copy, mutation.row),
        "-k",
        f"test_{mutation.row}_",
    ]
    try:
        done = subprocess.run(
            command, cwd=copy, capture_output=True, text=True, timeout=300, check=False
        )
    except subprocess.TimeoutExpired:
        return "noticed"
    finally:
        path.write_text(original, encoding="utf-8")
    return "noticed" if done.returncode == _FAILED else f"NOT NOTICED ({done.returncode})"


def _find_modules(copy: Path, row: str) -> list[str]:
    """Returns the modules with tests of a row: collecting all of them takes longer than one test.

    All modules if none has one, which pytest then reports.
    """
    modules = sorted((copy / "tests/acceptance").rglob("test_*.py"))
    found = [str(one) for one in modules if f"def test_{row}_" in one.read_text(encoding="utf-8")]
    return found or ["tests/acceptance"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

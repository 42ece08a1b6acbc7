"""Records the origin of results: IDs, output directories, and the code and machine.

`generate_exp_id` and `prepare_output_dir` have the names, parameters and files of PFRL's
`pfrl.experiments`; corrected are its CRC-32 of the difference without untracked files, the default
`argv` bound at import, and the dump of the whole environment.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from palestra.contract.documents import hash_document
from palestra.redaction import redact, redact_arguments
from palestra.worktree import NoWorkTreeError, WorkTree, open_worktree

TIME_FORMAT: Final = "%Y%m%dT%H%M%S.%f"
"""Basic ISO 8601 with microseconds."""

_ALLOWED: Final = re.compile(
    r"^(CUDA|NCCL|OMP|MKL|OPENBLAS|TORCH|PYTORCH|PYTHON(HASHSEED|VERSION)|PALESTRA_|SLURM_JOB_"
    r"|CONDA_DEFAULT_ENV$|VIRTUAL_ENV$|LANG$|TZ$)"
)
_REFUSED: Final = re.compile(r"(?i)token|secret|passw|credential|(^|_)key(_|$)")
_OUTPUT_MARK: Final = ".gitignore"


def generate_exp_id(prefix: str | None = None, argv: Sequence[str] | None = None) -> str:
    """Returns an ID that is the same for the same code and arguments: `[PREFIX-]HEAD-DIGEST`.

    HEAD is the full name of the commit checked out in the current directory; DIGEST is 16
    hexadecimal digits of a SHA-256 over the head, every difference to it (untracked files included,
    ignored ones not) and the arguments.

    Args:
        prefix: Text to begin with.
        argv: Arguments of the experiment; `None` takes `sys.argv` now.

    Raises:
        RuntimeError: Outside a git work tree, or in one without a commit.
        ValueError: If the prefix could not be part of a file name.
    """
    if prefix is not None:
        _check_name(prefix, "prefix")
    return _exp_id(open_worktree(), prefix, sys.argv if argv is None else argv)


def prepare_output_dir(  # noqa: PLR0913 - the signature of PFRL, and one option of ours
    args: Mapping[str, Any] | argparse.Namespace,
    basedir: str | os.PathLike[str] | None = None,
    exp_id: str | None = None,
    argv: Sequence[str] | None = None,
    time_format: str = TIME_FORMAT,
    make_backup: bool = True,
    *,
    with_untracked: bool = False,
) -> str:
    """Makes a directory for the results of an experiment, records their origin, returns its path.

    Written are `args.txt` (JSON), `command.txt`, `environ.txt` (JSON of the allow-listed
    variables), `start.txt` (one line per start) and, in a git work tree, `git-head.txt`,
    `git-status.txt`, `git-log.txt`, `git-diff.txt` and, where there are any, `git-untracked.txt`
    (JSON: names, sizes and digests). Secrets in the command and in the output of git are replaced.
    In a work tree the directory ignores itself, so that results do not change the next ID.

    Args:
        args: Arguments of the experiment; must have a JSON form.
        basedir: Parent of the directory; `None` is the current directory.
        exp_id: Name of the directory; `None` takes `generate_exp_id(argv=argv)` in a work tree,
            else the time.
        argv: Command line to record; `None` takes `sys.argv` now.
        time_format: `strftime` format of directories named by time and of backups.
        make_backup: Copy an existing directory to `<directory>.<time>.backup` before anything in it
            changes.
        with_untracked: Like that of `capture`.

    Raises:
        TypeError: If `args` has no JSON form. Nothing was made then.
        ValueError: If `exp_id` is not a plain name.
    """
    now = datetime.now().astimezone()
    text = _args_json(args)
    argv = list(sys.argv if argv is None else argv)
    worktree = _worktree_or_none(None)
    if exp_id is None:
        exp_id = _exp_id(worktree, None, argv) if worktree else now.strftime(time_format)
    directory = Path(basedir if basedir is not None else "") / _check_name(exp_id, "exp_id")
    git = (
        _git_texts(worktree, with_untracked=with_untracked, log_limit=10_000)[0] if worktree else {}
    )
    if worktree and (untracked := worktree.list_untracked()):
        git["untracked"] = json.dumps(untracked, indent=1)
    if make_backup and directory.exists():
        shutil.copytree(
            directory,
            _free_name(f"{directory}.{now.strftime(time_format)}", ".backup"),
            symlinks=True,
        )
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "start.txt").open("a", encoding="utf-8") as starts:
        starts.write(f"{now.strftime(time_format)}\n")
    environment = json.dumps(read_allowed_environment(os.environ), indent=2, sort_keys=True)
    files = {"args": text, "environ": environment, "command": shlex.join(redact_arguments(argv)[0])}
    (directory / "git-untracked.txt").unlink(missing_ok=True)
    for name, content in {**files, **{f"git-{key}": value for key, value in git.items()}}.items():
        (directory / f"{name}.txt").write_text(content, "utf-8", "replace")
    if worktree and not (directory / _OUTPUT_MARK).exists():
        (directory / _OUTPUT_MARK).write_text(
            "# results are not part of the code that made them\n*\n", "utf-8"
        )
    return str(directory)


def capture(argv: Sequence[str] | None = None, *, with_untracked: bool = False) -> dict[str, Any]:
    """Returns a record of code, packages and machine as plain JSON; secrets are replaced.

    Args:
        argv: Command line; `None` takes `sys.argv`.
        with_untracked: Whether the difference holds the content of untracked files too, apart from
            files that hold secrets by their name.

    Returns:
        `command`, `arguments`, `started_at` (ISO 8601), `directory`, `git` (`head`, `dirty_digest`,
            `status`, `log`, `diff`, `untracked`: names, sizes and digests, `withheld`: changed
            files
        that hold secrets by their name; `None` outside a work tree), `packages`, `hardware`,
        `environment` and `redactions`: how many secrets were replaced.
    """
    arguments, in_arguments = redact_arguments(sys.argv if argv is None else argv)
    environment, in_environment = _environment(os.environ)
    git, in_git = _git_record(_worktree_or_none(None), with_untracked=with_untracked)
    record: dict[str, Any] = {
        "command": shlex.join(arguments),
        "arguments": arguments,
        "started_at": datetime.now(UTC).isoformat(),
        "directory": str(Path.cwd()),
        "git": git,
        "packages": list_packages(),
        "hardware": describe_hardware(),
        "environment": environment,
        "redactions": in_arguments + in_environment + in_git,
    }
    return {name: _replace_unstorable(value) for name, value in record.items()}


def read_allowed_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables that may be recorded.

    They are those in a list of names that matter to a training and that do not look like secrets.
    """
    return _environment(environ)[0]


def list_packages() -> dict[str, str]:
    """Returns name and version of every installed distribution."""
    found = {
        str(one.metadata["Name"]): one.version
        for one in importlib.metadata.distributions()
        if one.metadata["Name"]
    }
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def describe_hardware() -> dict[str, Any]:
    """Returns host, system, processor, usable cores, memory in MiB and GPUs of this machine."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "host": platform.node(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "processor": _processor(),
        "cores": cores,
        "memory_mib": pages // 2**20,
        "gpus": _gpus(),
    }


def _exp_id(worktree: WorkTree, prefix: str | None, argv: Sequence[str]) -> str:
    state = {"argv": list(argv), "dirty": worktree.dirty_digest(), "head": worktree.head}
    return "-".join(
        [
            *([prefix] if prefix else []),
            worktree.head,
            hash_document(_replace_unstorable(state))[:16],
        ]
    )


def _worktree_or_none(directory: Path | None) -> WorkTree | None:
    try:
        return open_worktree(directory)
    except NoWorkTreeError:
        return None


def _environment(environ: Mapping[str, str]) -> tuple[dict[str, str], int]:
    names = sorted(name for name in environ if _ALLOWED.match(name) and not _REFUSED.search(name))
    cleaned = {name: redact(environ[name]) for name in names}
    return {name: text for name, (text, _) in cleaned.items()}, sum(
        count for _, count in cleaned.values()
    )


def _git_record(
    worktree: WorkTree | None, *, with_untracked: bool
) -> tuple[dict[str, Any] | None, int]:
    if worktree is None:
        return None, 0
    texts, count = _git_texts(worktree, with_untracked=with_untracked, log_limit=100)
    listed = {"untracked": worktree.list_untracked(), "withheld": worktree.list_withheld()}
    return {**texts, **listed, "dirty_digest": worktree.dirty_digest()}, count


def _git_texts(
    worktree: WorkTree, *, with_untracked: bool, log_limit: int
) -> tuple[dict[str, str], int]:
    texts = {
        "status": worktree.status(),
        "log": worktree.log(log_limit),
        "diff": worktree.diff(with_untracked=with_untracked),
    }
    cleaned = {name: redact(text) for name, text in texts.items()}
    return {"head": worktree.head, **{name: text for name, (text, _) in cleaned.items()}}, sum(
        count for _, count in cleaned.values()
    )


def _args_json(args: Mapping[str, Any] | argparse.Namespace) -> str:
    value = vars(args) if isinstance(args, argparse.Namespace) else dict(args)
    return json.dumps(value, indent=2)


def _check_name(name: str, what: str) -> str:
    if not name or name in {".", ".."} or "/" in name or os.sep in name or "\0" in name:
        raise ValueError(f"{what} must be a plain name without path separators, not {name!r}")
    return name


def _free_name(stem: str, suffix: str) -> Path:
    for number in range(1_000_000):
        path = Path(f"{stem}{f'-{number}' if number else ''}{suffix}")
        if not path.exists():
            return path
    raise FileExistsError(f"{stem}{suffix}")


def _replace_unstorable(value: Any) -> Any:
    """Replaces characters that no database stores as text.

    These are NUL and the halves of surrogate pairs that `os.fsdecode` makes of odd file names.
    """
    if isinstance(value, dict):
        return {_replace_unstorable(key): _replace_unstorable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_replace_unstorable(item) for item in value]
    return (
        value.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
        if isinstance(value, str)
        else value
    )


def _processor() -> str:
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8") as lines:
            return next(
                line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")
            )
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _gpus() -> list[dict[str, str]]:
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    query = [program, "--query-gpu=name,uuid,memory.total,driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(  # noqa: S603 - found on the path, fixed arguments
            query, capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return []
    rows = [[cell.strip() for cell in line.split(",")] for line in done.stdout.splitlines()]
    return [dict(zip(("name", "uuid", "memory", "driver"), row, strict=False)) for row in rows]

"""Reads the state of a git work tree: head, status, log, diff and untracked files.

Makes all calls of git.

A repository's configuration can name programs (filters, text conversions, signature checks and
others), which git would run. So git reads the work tree with a git directory of Palestra's own: it
has the repository's objects, index and ignored files, and of its configuration only settings that
name nothing. The user's own configuration is trusted.
"""

import hashlib
import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from palestra.secret_names import is_secret_name

MAX_TEXT: Final = 1_048_576
"""Largest number of characters of a status, log or difference that is recorded."""

MAX_UNTRACKED: Final = 1_000
"""Largest number of untracked files that are listed."""

_TIMEOUT: Final = 60.0

_GITLINK: Final = b"160000 "
"""Mode of a submodule's entry in the index."""
_SUBMODULES: Final = "--ignore-submodules=dirty"
"""Compares the commit of a submodule; git would read its configuration for more."""
_COMPARE: Final = ("diff", "--no-color", "--no-ext-diff", "--no-textconv", _SUBMODULES)
_DIFF: Final = (*_COMPARE, "--no-renames")
_SETTINGS: Final = (
    "core.autocrlf",
    "core.checkstat",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.safecrlf",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "core.symlinks",
    "core.trustctime",
    "extensions.objectformat",
)
"""Settings of a repository that decide what differs, and name neither programs nor files."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9]+")
_SHARED: Final = ("info/exclude", "info/attributes", "shallow")
"""Files of the common git directory that are read, where they exist."""
_OWN: Final = ("info/sparse-checkout", "sharedindex.*")
"""Files of the work tree's git directory that are read, where they exist."""


class NoWorkTreeError(RuntimeError):
    """The directory is not in a git work tree with a commit, or git is not installed."""


@dataclass(frozen=True, slots=True)
class WorkTree:
    """A git work tree that has at least one commit."""

    root: Path
    head: str
    """Full name of the commit that is checked out."""
    repository: "_Repository"

    def dirty_digest(self) -> str | None:
        """Returns the SHA-256 of all that differs from the head, untracked files included.

        `None` for a clean tree.
        """
        changes = self._raw(*_COMPARE, "--binary", "--full-index", "HEAD")
        untracked = self._untracked()
        submodules = self._digest_submodules()
        if not changes and not untracked and not submodules:
            return None
        digest = hashlib.sha256(hashlib.sha256(changes).digest())
        for name in untracked:
            digest.update(
                hashlib.sha256(name).digest() + _content_digest(self.root / os.fsdecode(name))
            )
        for path, changed in submodules:
            digest.update(hashlib.sha256(path).digest() + bytes.fromhex(changed))
        return digest.hexdigest()

    def _digest_submodules(self) -> list[tuple[bytes, str]]:
        """Returns path and digest of each submodule that differs from its own head."""
        entries = self._raw("ls-files", "--stage", "-z").split(b"\0")
        paths = [entry.partition(b"\t")[2] for entry in entries if entry.startswith(_GITLINK)]
        digests = []
        for path in paths:
            place = self.root / os.fsdecode(path)
            if os.path.lexists(place / ".git"):
                changed = open_worktree(place).dirty_digest()
                digests += [] if changed is None else [(path, changed)]
        return digests

    def status(self) -> str:
        """Returns `git status`, short form with the branch."""
        return self._text("status", "--short", "--branch", "--untracked-files=all", _SUBMODULES)

    def log(self, limit: int = 100) -> str:
        """Returns the latest `limit` commits."""
        options = ("--no-color", "--no-decorate", "--no-show-signature")
        return self._text("log", *options, f"--max-count={limit}")

    def diff(self, *, with_untracked: bool = False) -> str:
        """Returns the difference to the head as a patch of at most `MAX_TEXT` characters.

        It is cut between lines.

        Args:
            with_untracked: Untracked files appear as new ones. Files that hold secrets by their
                name are named, never shown.
        """
        left_out = self.list_withheld()
        pathspecs = [f":(top,exclude,literal){name}" for name in left_out]
        parts = [self._text(*_DIFF, "HEAD", "--", ":(top)", *pathspecs)]
        parts += [
            f"diff --git a/{name} b/{name}\nnot recorded: files of this name hold secrets\n"
            for name in left_out
        ]
        size = sum(map(len, parts))
        for name in map(os.fsdecode, self._untracked() if with_untracked else ()):
            if size > MAX_TEXT:
                break
            if not is_secret_name(name):
                parts.append(self._patch_of_new(name))
                size += len(parts[-1])
        return _cut("".join(parts))

    def list_untracked(self) -> list[dict[str, str | int]]:
        """Returns `name`, `bytes` and `sha256` of each untracked file, at most `MAX_UNTRACKED`.

        Files that hold secrets by their name have only a name, since a digest would let a short
        secret be guessed.
        """
        return [
            {"name": _decode(raw), **_facts_of(self.root, os.fsdecode(raw))}
            for raw in self._untracked()[:MAX_UNTRACKED]
        ]

    def list_withheld(self) -> list[str]:
        """Returns the tracked files that differ from the head and hold secrets by their name."""
        changed = self._raw(*_DIFF, "--name-only", "-z", "HEAD").split(b"\0")
        return [name for name in map(os.fsdecode, changed) if name and is_secret_name(name)]

    def _patch_of_new(self, name: str) -> str:
        path = self.root / name
        if path.is_file() and not path.is_symlink() and path.stat().st_size > MAX_TEXT:
            return (
                f"diff --git a/{name} b/{name}\nnew file of {path.stat().st_size} bytes, not "
                "recorded\n"
            )
        # exit status 1 says that the two differ
        return _decode(self._raw(*_DIFF, "--no-index", "--", os.devnull, name, ok=(0, 1)))

    def _untracked(self) -> list[bytes]:
        return sorted(
            name
            for name in self._raw("ls-files", "--others", "--exclude-standard", "-z").split(b"\0")
            if name
        )

    def _raw(self, *arguments: str, ok: tuple[int, ...] = (0,)) -> bytes:
        with self.repository.open(self.root, self.head) as environment:
            return _git(self.root, *arguments, ok=ok, environment=environment)

    def _text(self, *arguments: str) -> str:
        return _cut(_decode(self._raw(*arguments)))


@dataclass(frozen=True, slots=True)
class _Repository:
    """What is read of a repository beside the work tree."""

    directory: Path
    """The git directory of the work tree."""
    common: Path
    """The git directory of the repository; the same, but for linked work trees."""
    branch: str | None
    """Full name of the branch that is checked out; `None` for none."""
    settings: Mapping[str, str]
    """Those of `_SETTINGS` that are set."""

    @classmethod
    def read(cls, root: Path) -> "_Repository":
        """Reads the places and settings of the repository of a work tree. No program is run."""
        places = _git(root, "rev-parse", "--absolute-git-dir", "--git-common-dir").splitlines()
        directory, common = (root / os.fsdecode(place) for place in places)
        branch = _git(root, "symbolic-ref", "--quiet", "HEAD", ok=(0, 1)).decode().strip()
        pattern = "|".join(re.escape(name) for name in _SETTINGS)
        listed = _git(root, "config", "--null", "--get-regexp", f"^({pattern})$", ok=(0, 1))
        settings = dict(
            entry.decode().split("\n", 1) for entry in listed.split(b"\0") if b"\n" in entry
        )
        plain = {name: value for name, value in settings.items() if _PLAIN.fullmatch(value)}
        return cls(directory, common.resolve(), branch or None, plain)

    @contextmanager
    def open(self, root: Path, head: str) -> Iterator[dict[str, str]]:
        """Makes a git directory without the repository's configuration.

        Yields:
            The environment variables with which git uses it.
        """
        with tempfile.TemporaryDirectory(prefix="palestra-git-") as name:
            place = Path(name)
            for folder in ("info", "refs"):
                (place / folder).mkdir()
            for common, patterns in ((self.common, _SHARED), (self.directory, _OWN)):
                for file in (file for pattern in patterns for file in common.glob(pattern)):
                    (place / file.relative_to(common)).symlink_to(file)
            checked_out = head
            if self.branch is not None and self.branch.startswith("refs/heads/"):
                (place / "packed-refs").write_text(f"{head} {self.branch}\n", encoding="utf-8")
                checked_out = f"ref: {self.branch}"
            (place / "HEAD").write_text(f"{checked_out}\n", encoding="utf-8")
            (place / "config").write_text(self._build_configuration(), encoding="utf-8")
            yield {
                "GIT_DIR": str(place),
                "GIT_COMMON_DIR": str(place),
                "GIT_WORK_TREE": str(root),
                "GIT_INDEX_FILE": str(self.directory / "index"),
                "GIT_OBJECT_DIRECTORY": str(self.common / "objects"),
            }

    def _build_configuration(self) -> str:
        version = 1 if "extensions.objectformat" in self.settings else 0
        lines = ["[core]", f"repositoryformatversion = {version}"]
        for name, value in self.settings.items():
            section, _, key = name.partition(".")
            lines += [f"[{section}]", f"{key} = {value}"]
        return "\n".join(lines) + "\n"


def open_worktree(directory: Path | str | None = None) -> WorkTree:
    """Returns the work tree that holds `directory` (default: the current one).

    Raises:
        NoWorkTreeError: If there is none, it has no commit yet, or git is missing.
    """
    place = Path(directory) if directory is not None else Path.cwd()
    if shutil.which("git") is None:
        raise NoWorkTreeError("git is not installed: install it, or give an ID yourself")
    outside = f"{place} is not in a git work tree: run inside one, or give an ID yourself"
    try:
        root = Path(os.fsdecode(_git(place, "rev-parse", "--show-toplevel").rstrip(b"\n")))
    except NoWorkTreeError:
        raise NoWorkTreeError(outside) from None
    # A folder that looks like a git directory, which a clone may contain, makes no work tree.
    if not os.path.lexists(root / ".git"):
        raise NoWorkTreeError(outside)
    try:
        head = _git(root, "rev-parse", "--verify", "HEAD^{commit}").decode().strip()
    except NoWorkTreeError:
        raise NoWorkTreeError(
            f"{root} has no commit yet: commit once, or give an ID yourself"
        ) from None
    return WorkTree(root, head, _Repository.read(root))


def _git(
    directory: Path,
    *arguments: str,
    ok: tuple[int, ...] = (0,),
    environment: Mapping[str, str] | None = None,
) -> bytes:
    # Reading must not take locks, open pagers or ask for input, nor run hooks and fsmonitors.
    command = [
        "git",
        "-c",
        "core.quotepath=off",
        "-c",
        "core.fsmonitor=false",
        "-c",
        "core.hooksPath=/dev/null",
        "-c",
        "safe.bareRepository=explicit",
        *arguments,
    ]
    variables = {
        **os.environ,
        **(environment or {}),
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_PAGER": "cat",
        "LC_ALL": "C",
    }
    try:
        done = subprocess.run(  # noqa: S603 - a fixed program, arguments of our own, no shell
            command,
            cwd=directory,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoWorkTreeError(f"git {arguments[0]} did not run in {directory}: {error}") from None
    if done.returncode not in ok:
        raise NoWorkTreeError(
            f"git {arguments[0]} failed in {directory}: {_decode(done.stderr).strip()[:300]}"
        )
    return done.stdout


def _cut(text: str) -> str:
    """Cuts text between lines, since half a secret would not be recognised as one."""
    return text if len(text) <= MAX_TEXT else "".join(text[:MAX_TEXT].rpartition("\n")[:2])


def _decode(raw: bytes) -> str:
    return raw.decode("utf-8", "replace").replace("\0", "\ufffd")


def _content_digest(path: Path) -> bytes:
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            return hashlib.sha256(b"link " + os.fsencode(path.readlink())).digest()
        if not stat.S_ISREG(mode):
            return hashlib.sha256(b"other").digest()
        content = bytes.fromhex(_sha256_of(path))
    except OSError:
        return hashlib.sha256(b"unreadable").digest()
    return content + (b"x" if mode & stat.S_IXUSR else b"-")


def _facts_of(root: Path, name: str) -> dict[str, str | int]:
    path = root / name
    if is_secret_name(name) or path.is_symlink() or not path.is_file():
        return {}
    try:
        return {"bytes": path.stat().st_size, "sha256": _sha256_of(path)}
    except OSError:
        return {}


def _sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

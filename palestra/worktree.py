"""Reads the state of a git work tree: head, status, log, diff and untracked files.

Makes all calls of git, and defines the names of files whose content is never recorded.
"""

import fnmatch
import hashlib
import os
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MAX_TEXT: Final = 1_048_576
"""Largest number of characters of a status, log or difference that is recorded."""

MAX_UNTRACKED: Final = 1_000
"""Largest number of untracked files that are listed."""

_TIMEOUT: Final = 60.0

_SECRET_NAMES: Final = (
    *(
        ".env",
        ".env.*",
        "*.env",
        ".envrc",
        ".netrc",
        "_netrc",
        ".pgpass",
        ".pypirc",
        ".npmrc",
        ".htpasswd",
        ".git-credentials",
    ),
    *(
        "*.pem",
        "*.key",
        "*.p12",
        "*.pfx",
        "*.jks",
        "*.keystore",
        "*.ppk",
        "*.kdbx",
        "*.gpg",
        "*.asc",
        "*.token",
        "*.tfvars",
        "*.tfstate",
    ),
    *(
        "id_rsa*",
        "id_dsa*",
        "id_ecdsa*",
        "id_ed25519*",
        "credentials*",
        "*credentials.*",
        "secrets",
        "secrets.*",
        "*.secret",
        "*.secrets",
    ),
    *(
        "client_secret*",
        "service-account*.json",
        "service_account*.json",
        "kubeconfig",
        ".dockercfg",
        ".dockerconfigjson",
        ".vault-token",
    ),
)
"""Patterns of the names of files that hold secrets, in lower case."""

_SECRET_DIRECTORIES: Final = frozenset(
    {".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure", ".gcloud"}
)


def is_secret_name(name: str) -> bool:
    """Returns whether a file holds secrets, decided by its path in the work tree."""
    *directories, last = name.lower().split("/")
    return not _SECRET_DIRECTORIES.isdisjoint(directories) or any(
        fnmatch.fnmatchcase(last, pattern) for pattern in _SECRET_NAMES
    )


_DIFF: Final = ("diff", "--no-color", "--no-ext-diff", "--no-renames")


class NoWorkTreeError(RuntimeError):
    """The directory is not in a git work tree with a commit, or git is not installed."""


@dataclass(frozen=True, slots=True)
class WorkTree:
    """A git work tree that has at least one commit."""

    root: Path
    head: str
    """Full name of the commit that is checked out."""

    def dirty_digest(self) -> str | None:
        """Returns the SHA-256 of all that differs from the head, untracked files included.

        `None` for a clean tree.
        """
        changes = self._raw(
            "diff",
            "--binary",
            "--full-index",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            "HEAD",
        )
        untracked = self._untracked()
        if not changes and not untracked:
            return None
        digest = hashlib.sha256(hashlib.sha256(changes).digest())
        for name in untracked:
            digest.update(
                hashlib.sha256(name).digest() + _content_digest(self.root / os.fsdecode(name))
            )
        return digest.hexdigest()

    def status(self) -> str:
        """Returns `git status`, short form with the branch."""
        return self._text("status", "--short", "--branch", "--untracked-files=all")

    def log(self, limit: int = 100) -> str:
        """Returns the latest `limit` commits."""
        return self._text("log", "--no-color", "--no-decorate", f"--max-count={limit}")

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
        return _decode(_git(self.root, *_DIFF, "--no-index", "--", os.devnull, name, ok=(0, 1)))

    def _untracked(self) -> list[bytes]:
        return sorted(
            name
            for name in self._raw("ls-files", "--others", "--exclude-standard", "-z").split(b"\0")
            if name
        )

    def _raw(self, *arguments: str) -> bytes:
        return _git(self.root, *arguments)

    def _text(self, *arguments: str) -> str:
        return _cut(_decode(self._raw(*arguments)))


def open_worktree(directory: Path | str | None = None) -> WorkTree:
    """Returns the work tree that holds `directory` (default: the current one).

    Raises:
        NoWorkTreeError: If there is none, it has no commit yet, or git is missing.
    """
    place = Path(directory) if directory is not None else Path.cwd()
    if shutil.which("git") is None:
        raise NoWorkTreeError("git is not installed: install it, or give an ID yourself")
    try:
        root = Path(os.fsdecode(_git(place, "rev-parse", "--show-toplevel").rstrip(b"\n")))
    except NoWorkTreeError:
        raise NoWorkTreeError(
            f"{place} is not in a git work tree: run inside one, or give an ID yourself"
        ) from None
    try:
        head = _git(root, "rev-parse", "--verify", "HEAD^{commit}").decode().strip()
    except NoWorkTreeError:
        raise NoWorkTreeError(
            f"{root} has no commit yet: commit once, or give an ID yourself"
        ) from None
    return WorkTree(root, head)


def _git(directory: Path, *arguments: str, ok: tuple[int, ...] = (0,)) -> bytes:
    # Reading must not take locks, open pagers or ask for input, nor run the hooks and fsmonitor
    # programs of a repository.
    command = [
        "git",
        "-c",
        "core.quotepath=off",
        "-c",
        "core.fsmonitor=false",
        "-c",
        "core.hooksPath=/dev/null",
        *arguments,
    ]
    environment = {
        **os.environ,
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_PAGER": "cat",
        "LC_ALL": "C",
    }
    try:
        done = subprocess.run(  # noqa: S603 - a fixed program, arguments of our own, no shell
            command,
            cwd=directory,
            env=environment,
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

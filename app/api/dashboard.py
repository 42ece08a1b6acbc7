"""Serves the built dashboard: its files, and `index.html` for the paths of its pages.

Holds nothing secret, so it needs no login.

The pages are those of `dashboard_pages.json`; a test of the dashboard compares the list with its
router.
"""

import hashlib
import json
import mimetypes
import re
from pathlib import Path
from typing import Final, NamedTuple

from fastapi import Request
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from app.api.accepted_codings import choose_coding
from app.api.entity_tags import is_held
from app.api.errors import HttpProblemError, build_not_found, build_problem_response

_MISSING: Final = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Palestra</title>
<h1>Palestra</h1><p>The server runs, but the dashboard is not built.
<code>make up</code> builds it; the API is at <code>{path}/api/v1</code>.</p>
"""
_FOR_EVER: Final = "public, max-age=31536000, immutable"
_ASSETS: Final = "/assets/"
_INDEX: Final = "/index.html"
_CODINGS: Final = {"br": ".br", "gzip": ".gz"}
"""Codings of the compressed copies that the build may store, the smallest first."""
_SUFFIXES: Final = tuple(_CODINGS.values())
_NOTHING: Final = (
    "Nothing is at this address. The dashboard is at {path}/, the API below {path}/api/v1."
)
_RELATIVE: Final = b'="./'
"""Begins the attributes of `index.html` that name the root of the dashboard or one of its files."""


def _build_page_pattern() -> re.Pattern[str]:
    """Returns the pattern of a page's path.

    A segment that begins with `$` matches any one segment; a trailing slash is allowed.
    """
    pages = json.loads(Path(__file__).with_name("dashboard_pages.json").read_text("utf-8"))
    paths = (
        "/".join(
            "[^/]+" if part.startswith("$") else re.escape(part)
            for part in page.rstrip("/").split("/")
        )
        for page in pages
    )
    return re.compile(f"(?:{'|'.join(paths)})/?")


_PAGE: Final = _build_page_pattern()


class Dashboard:
    """ASGI application for every path that no route takes.

    Only files of a list are ever opened: a path is looked up in it and never joined to a directory.

    Args:
        directory: The built dashboard; it may be missing.
        public_path: Path below which browsers reach it, without a slash at its end. Requests come
            without it (`app.api.public_path`).
    """

    def __init__(self, directory: Path, public_path: str = "") -> None:
        self._directory: Final = directory
        self._public_path: Final = public_path
        self._files: dict[str, Path] = {}
        self._contents: dict[Path, _Content] = {}
        """The files that were asked for.

        They are few and small, and a file that threads read costs ten times as much.
        """
        self._changes: dict[Path, int] = {}
        """Time of the last change of each folder when the files were listed, in nanoseconds."""
        self._list()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers GET; `HeadRequests` makes HEAD a GET.

        Any other path gets 404, with the dashboard's page as body if the client accepts HTML.
        """
        if scope["type"] != "http":
            return
        await self._answer(Request(scope))(scope, receive, send)

    def _answer(self, request: Request) -> Response:
        path = request.scope["path"]
        if path == "/api" or path.startswith("/api/"):
            return build_problem_response(request, build_not_found("route"))
        if request.method != "GET":
            refusal = HttpProblemError(
                405,
                "method_not_allowed",
                "Use one of the methods in the Allow header.",
                headers={"Allow": "GET, HEAD"},
            )
            return build_problem_response(request, refusal)
        return self._asset(request, path) if path.startswith(_ASSETS) else self._page(request, path)

    def _asset(self, request: Request, path: str) -> Response:
        asset = self._find(path)
        if asset is None or path.endswith(_SUFFIXES):
            return PlainTextResponse("no such file", status_code=404)
        return self._compressed_response(request, path, asset, _FOR_EVER)

    def _page(self, request: Request, path: str) -> Response:
        index = self._find(_INDEX)
        known = (path in self._files and not path.endswith(_SUFFIXES)) or _PAGE.fullmatch(
            path
        ) is not None
        if not known and "text/html" not in request.headers.get("accept", ""):
            nothing = _NOTHING.format(path=self._public_path)
            return build_problem_response(request, HttpProblemError(404, "not_found", nothing))
        if index is None:
            missing = _MISSING.format(path=self._public_path)
            return HTMLResponse(missing, status_code=404, headers={"Cache-Control": "no-store"})
        shown = path if path in self._files else _INDEX
        return self._compressed_response(
            request, shown, self._files.get(path, index), "no-cache", status=200 if known else 404
        )

    def _find(self, path: str) -> Path | None:
        """Returns the file for a path.

        If it is unknown, the files are listed again, provided that a folder has changed: the
        dashboard may have been rebuilt.
        """
        file = self._files.get(path)
        if (file is None or not file.is_file()) and self._changes != {
            folder: _read_change(folder) for folder in self._changes
        }:
            self._list()
        return self._files.get(path)

    def _list(self) -> None:
        root = self._directory
        # What changes while the files are listed is then seen as a change.
        folders = (root, *(place for place in root.rglob("*") if place.is_dir()))
        self._changes = {folder: _read_change(folder) for folder in folders}
        self._contents.clear()
        self._files = {
            f"/{file.relative_to(root).as_posix()}": file
            for file in root.rglob("*")
            if file.is_file()
        }

    def _compressed_response(
        self, request: Request, path: str, file: Path, caching: str, status: int = 200
    ) -> Response:
        """Returns a file in a coding that the client accepts.

        The build stores a compressed copy beside each file that compresses, except `index.html`,
        into which the server writes its path.
        """
        media_type = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        headers = {"Cache-Control": caching}
        codings = {} if path == _INDEX else _CODINGS
        copies = {coding: self._files.get(path + suffix) for coding, suffix in codings.items()}
        offered = [
            coding
            for coding, copy in copies.items()
            if copy is not None and _read_change(copy) >= _read_change(file)
        ]
        if offered:
            headers["Vary"] = "Accept-Encoding"
        coding = choose_coding(request.headers.get("accept-encoding", ""), offered)
        if coding is not None and (copy := copies[coding]) is not None:
            headers["Content-Encoding"] = coding
            file = copy
        content = self._read(file)
        headers["ETag"] = content.tag
        if status == 200 and is_held(request.headers.get("if-none-match"), content.tag):
            return Response(status_code=304, headers=headers)
        return Response(content.content, status, headers, media_type)

    def _read(self, file: Path) -> "_Content":
        changed_at = _read_change(file)
        held = self._contents.get(file)
        if held is None or held.changed_at != changed_at:
            content = file.read_bytes()
            if file == self._files.get(_INDEX):
                root = f'="{self._public_path}/'.encode()
                content = content.replace(_RELATIVE, root)
            tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            held = self._contents[file] = _Content(changed_at, tag, content)
        return held


class _Content(NamedTuple):
    """The content of a file, with the time of its last change and its entity tag."""

    changed_at: int
    tag: str
    content: bytes


def _read_change(place: Path) -> int:
    try:
        return place.stat().st_mtime_ns
    except OSError:
        return 0

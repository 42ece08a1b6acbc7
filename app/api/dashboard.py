"""Serves the built dashboard: its files, and its one page for every other address. Holds nothing secret, so it needs no login."""

import mimetypes
from pathlib import Path
from typing import Final

from fastapi import Request
from fastapi.responses import FileResponse, HTMLResponse, Response
from starlette.types import Receive, Scope, Send

from app.api.errors import ApiError, not_found, problem_response

_MISSING: Final = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Palestra</title>
<h1>Palestra</h1><p>The server runs, but the dashboard is not built. Run <code>make frontend</code>; the API is at <code>/api/v1</code>.</p>
"""
_FOR_EVER: Final = "public, max-age=31536000, immutable"


class Dashboard:
    """ASGI application for every path that no route takes.

    Only the files found at start are ever opened: a path is looked up in that list and never joined to a directory.

    Args:
        directory: The built dashboard; it may be missing.
    """

    def __init__(self, directory: Path) -> None:
        self._directory: Final = directory
        self._files: dict[str, Path] = {}

    def load(self) -> None:
        """Lists the files; again after each build."""
        root = self._directory
        self._files = {f"/{path.relative_to(root).as_posix()}": path for path in root.rglob("*") if path.is_file()} if root.is_dir() else {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers GET and HEAD; everything below `/api` that is no route is not found."""
        if scope["type"] != "http":
            return
        await self._answer(Request(scope))(scope, receive, send)

    def _answer(self, request: Request) -> Response:
        path = request.scope["path"]
        if path == "/api" or path.startswith("/api/"):
            return problem_response(request, not_found("route"))
        if request.method not in {"GET", "HEAD"}:
            refusal = ApiError(405, "method_not_allowed", "Use one of the methods in the Allow header.", headers={"Allow": "GET, HEAD"})
            return problem_response(request, refusal)
        if not self._files:
            self.load()
        return self._file(path)

    def _file(self, path: str) -> Response:
        found = self._files.get(path)
        if found is not None and found.name != "index.html":
            media_type = mimetypes.guess_type(found.name)[0] or "application/octet-stream"
            caching = _FOR_EVER if path.startswith("/assets/") else "no-cache"
            return FileResponse(found, media_type=media_type, headers={"Cache-Control": caching})
        index = self._files.get("/index.html")
        if index is None:
            return HTMLResponse(_MISSING, status_code=404, headers={"Cache-Control": "no-store"})
        return FileResponse(index, media_type="text/html", headers={"Cache-Control": "no-cache"})

"""The path below which proxies publish the server, as in `https://example.org/palestra`."""

from starlette.types import ASGIApp, Receive, Scope, Send


class PublicPath:
    """ASGI middleware, outside of all others, that removes the public path from requests.

    Everything inside serves below `/`, whether a proxy passes the path on or removes it, and
    programs on the server's host may leave it out. `root_path` stays empty: Starlette would remove
    it again from a path that begins with the same segment.

    Args:
        app: Serves the requests.
        path: Begins with a slash and does not end with one.
    """

    def __init__(self, app: ASGIApp, path: str) -> None:
        self._app = app
        self._path = path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        if scope["type"] == "http":
            path: str = scope["path"]
            if path == self._path or path.startswith(f"{self._path}/"):
                scope = {**scope, "path": path.removeprefix(self._path) or "/"}
        await self._app(scope, receive, send)

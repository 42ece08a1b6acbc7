"""Answers HEAD as GET, without the body (RFC 9110, section 9.3.2)."""

from fastapi import APIRouter
from fastapi.routing import RouteContext, iter_route_contexts
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.read_requests import is_streamed


def list_methods(context: RouteContext) -> frozenset[str]:
    """Returns the methods that a route answers: HEAD beside GET, unless its answer is streamed."""
    methods = frozenset(context.methods or ())
    has_head = "GET" in methods and not is_streamed(context.path_format or "")
    return methods | {"HEAD"} if has_head else methods


class HeadRequests:
    """ASGI middleware that serves HEAD as GET and sends the head of the answer alone.

    It is outside of the compression, so that the headers are those of the compressed answer. A HEAD
    request of a streamed answer is passed on and refused.

    Args:
        app: Serves the requests.
        router: Has the routes, all of them by now.
    """

    def __init__(self, app: ASGIApp, router: APIRouter) -> None:
        self._app = app
        self._streamed = [
            context.path_regex
            for context in iter_route_contexts(router.routes)
            if "GET" in (context.methods or ()) and "HEAD" not in list_methods(context)
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        if scope["type"] != "http" or scope["method"] != "HEAD" or self._is_streamed(scope):
            await self._app(scope, receive, send)
            return

        async def send_head(message: Message) -> None:
            if message["type"] != "http.response.body":
                await send(message)
                return
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            if message.get("more_body", False):
                raise _HeadSent

        try:
            await self._app({**scope, "method": "GET"}, receive, send_head)
        except _HeadSent:
            return

    def _is_streamed(self, scope: Scope) -> bool:
        return any(pattern.match(scope["path"]) for pattern in self._streamed)


class _HeadSent(Exception):  # noqa: N818 - no error
    """Ends a handler whose answer has more body than its first part."""

"""Routers of the API, which pass over requests whose paths cannot be of their routes."""

import re
from functools import cached_property
from typing import Final

from fastapi import APIRouter
from fastapi.routing import iter_route_contexts
from starlette.routing import Match
from starlette.types import Scope

_HEAD: Final = re.compile(r"/[^/{:]*")


class ResourceRouter(APIRouter):
    """A router that compares a request with its routes only if the path names its resource.

    FastAPI compares a request with all routes of all routers. With 145 of them a path that no route
    has would take longer than a whole request of a person, and anybody may ask for such paths
    (`benchmarks.attacks`).
    """

    @cached_property
    def _resources(self) -> re.Pattern[str]:
        """The first segments of the paths of all routes, without what follows a colon."""
        paths = [str(context.path) for context in iter_route_contexts(self.routes)]
        heads = {head[0] if (head := _HEAD.match(path)) else "" for path in paths}
        return re.compile("|".join(map(re.escape, sorted(heads))))

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Returns whether a route serves a request, and what it adds to the request's scope."""
        if self._resources.search(scope["path"]) is None:
            return Match.NONE, {}
        return super().matches(scope)

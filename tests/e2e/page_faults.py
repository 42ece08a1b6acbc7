"""What a browser reports as wrong while a test uses the dashboard: it fails the test.

A test that causes faults names them by the mark `page_faults`, with regular expressions.
"""

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from playwright.async_api import BrowserContext, ConsoleMessage, Request, Response, WebError

_BAD_STATUS: Final = 400
_OF_RESOURCE: Final = "Failed to load resource"
"""Begin of the console's message about an answer or a failed request, which are noted as such."""
_ABORTED: Final = "net::ERR_ABORTED"
"""The page was left or closed, or it ended the request itself."""


class PageFaults:
    """The faults of the contexts that are watched, until they are taken."""

    def __init__(self) -> None:
        self._faults: list[str] = []
        self.is_noting = True
        """Whether a test runs; after it servers end before the pages that they serve are closed."""

    def watch(self, context: BrowserContext) -> None:
        """Notes errors of the console and of scripts, failed requests and refused ones."""
        context.on("console", self._on_console)
        context.on("weberror", self._on_error)
        context.on("response", self._on_response)
        context.on("requestfailed", self._on_failed_request)

    def take_unexpected(self, patterns: Iterable[str]) -> list[str]:
        """Returns the faults that no pattern matches, and forgets all."""
        expected = [re.compile(pattern) for pattern in patterns]
        faults, self._faults = self._faults, []
        return [fault for fault in faults if not any(pattern.search(fault) for pattern in expected)]

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith(_OF_RESOURCE):
            self._note(f"console: {message.text}")

    def _on_error(self, error: WebError) -> None:
        self._note(f"script: {error.error}")

    def _on_response(self, response: Response) -> None:
        if response.status >= _BAD_STATUS:
            self._note(f"{response.status} {_describe(response.request)}")

    def _on_failed_request(self, request: Request) -> None:
        if request.failure != _ABORTED:
            self._note(f"{request.failure} {_describe(request)}")

    def _note(self, fault: str) -> None:
        if self.is_noting:
            self._faults.append(fault)


def _describe(request: Request) -> str:
    address = urlsplit(request.url)
    return f"{request.method} {address.path}{address.query and '?'}{address.query}"


PAGE_FAULTS: Final = PageFaults()
"""The faults of the pages of this process, which runs one test at a time."""

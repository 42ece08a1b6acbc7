"""Reads JSON bodies strictly: exact content type, bounded size, valid text, then the model's rules.

A route declares its body as `Annotated[Model, Depends(JsonBody(Model))]`. FastAPI's own body
parsing is not used: it reads before authentication, keeps the last of two equal keys, takes bare
NaN and cannot validate strict models.

Large bodies are not parsed on the event loop: one thread parses those of all requests, one after
the other.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, Generic, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError

from app.api.errors import HttpProblemError, build_invalid_document
from palestra.contract.documents import encode_canonical_json
from palestra.contract.strict_json import JsonError, check_json
from palestra.contract.upgrade import UnsupportedSchemaError
from palestra.contract.views import FieldProblem

Model = TypeVar("Model", bound=BaseModel)
Result = TypeVar("Result")
Upgrade = Callable[[dict[str, Any]], dict[str, Any]]

TINY: Final = 4_096
"""Largest body in bytes on routes that need no credential."""

SMALL: Final = 65_536
"""Largest body in bytes of documents that consist of names and numbers."""

LARGE: Final = 0
"""Value of the argument `limit` that stands for the setting `max_body_bytes`."""

_MAX_BYTES_ON_LOOP: Final = 16_384
"""Bytes up to which reading takes less time than handing the body to the thread."""

_reader: Final = ThreadPoolExecutor(1, "palestra-bodies")


class JsonBody(Generic[Model]):
    """Dependency that reads a model from the body of a request.

    Args:
        model: The document to read.
        limit: Largest body in bytes; `LARGE` takes the setting `max_body_bytes`.
        required: Without it an absent body reads as `model()`.
        upgraded: Converts an older version of the document, as plain JSON, to the current one.
    """

    def __init__(
        self,
        model: type[Model],
        *,
        limit: int = SMALL,
        required: bool = True,
        upgraded: Upgrade | None = None,
    ) -> None:
        self.model: Final = model
        self.limit: Final = limit
        self.required: Final = required
        self._upgraded: Final = upgraded

    async def __call__(self, request: Request) -> Model:
        """Returns the document; raises an HTTP problem where it is invalid."""
        raw = await read_bytes(request, self.limit or request.app.state.settings.max_body_bytes)
        request.state.raw_body = raw
        if not raw and not self.required:
            return self.model()
        check_content_type(request)
        return await read_document(raw, self.model, upgraded=self._upgraded)


def check_content_type(request: Request) -> None:
    """Refuses everything but plain, uncompressed JSON: 415."""
    media_type, _, parameters = request.headers.get("content-type", "").partition(";")
    charset = parameters.strip().lower().removeprefix("charset=").strip('"')
    if media_type.strip().lower() != "application/json" or charset not in {"", "utf-8"}:
        raise HttpProblemError(
            415,
            "unsupported_media_type",
            "Send the body as `Content-Type: application/json` in UTF-8.",
        )
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise HttpProblemError(
            415,
            "compressed_body",
            "Send the body uncompressed: this server does not decompress requests.",
        )


async def read_bytes(request: Request, limit: int) -> bytes:
    """Returns the whole body; stops reading at `limit` with 413."""
    declared = request.headers.get("content-length", "0")
    if declared.isdecimal() and int(declared[:20]) > limit:
        raise _too_large(limit)
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise _too_large(limit)
        chunks.append(chunk)
    return b"".join(chunks)


async def read_document(
    raw: bytes, model: type[Model], *, upgraded: Upgrade | None = None
) -> Model:
    """Returns the document in `raw`, like `parse`; a large one is parsed in a separate thread."""
    return await run_for_body(len(raw), partial(parse, raw, model, upgraded=upgraded))


async def run_for_body(size: int, work: Callable[[], Result]) -> Result:
    """Returns the result of `work` for a body of `size` bytes.

    For a large body, `work` runs on the thread of large bodies.
    """
    if size <= _MAX_BYTES_ON_LOOP:
        return work()
    return await asyncio.get_running_loop().run_in_executor(_reader, work)


def parse(
    raw: bytes, model: type[Model], *, nul: bool = False, upgraded: Upgrade | None = None
) -> Model:
    """Returns the document in `raw`; raises an HTTP problem where it is invalid.

    `nul` permits the NUL character in texts.
    """
    if not raw.strip():
        raise _refused(422, "body_required", "is required")
    try:
        value = check_json(raw, nul=nul)
    except JsonError as error:
        raise _refused(
            400 if error.is_syntax_error else 422, error.code, error.message, error.pointer
        ) from None
    if not isinstance(value, dict):
        raise _refused(422, "wrong_type", "expected an object")
    try:
        return model.model_validate_json(
            raw if upgraded is None else encode_canonical_json(upgraded(value))
        )
    except UnsupportedSchemaError as error:
        raise _refused(
            422, "unsupported_schema", str(error), "/definition/schema_version"
        ) from None
    except ValidationError as error:
        raise build_invalid_document(error, model) from None


def _refused(status: int, code: str, message: str, where: str = "") -> HttpProblemError:
    sentence = (
        f"{where or 'The body'} {message}."
        if status == 400 or not where
        else f"{where}: {message}."
    )
    return HttpProblemError(
        status, code, sentence, errors=(FieldProblem(pointer=where, code=code, message=message),)
    )


def _too_large(limit: int) -> HttpProblemError:
    return HttpProblemError(
        413,
        "too_large",
        f"The body is larger than {limit} bytes. Send less at once.",
        headers={"Connection": "close"},
    )

"""Artifacts: declared and uploaded by attempts, listed and downloaded with the scope `read`."""

from typing import Annotated, Any, NamedTuple

from fastapi import Depends, Header, Request, Response
from fastapi.responses import StreamingResponse

from app.api.auth import AttemptCaller, Reader, ReaderOrAttempt
from app.api.deps import DatabaseDep, ReadSession, StoreDep
from app.api.download import (
    build_etag,
    parse_range,
    respond_not_modified,
    respond_with_attachment,
)
from app.api.entity_tags import is_held
from app.api.errors import HttpProblemError
from app.api.paging import declare_page_request
from app.api.resource_router import ResourceRouter
from app.api.strict_body import JsonBody
from app.api.zip_stream import ZIP_TYPE, ArchivedFile, respond_with_zip
from app.domain.paging import PageRequest
from app.services.artifacts import artifacts
from palestra.contract.resources import ArtifactDeclaration, ArtifactKind, ArtifactView
from palestra.contract.views import Page

router = ResourceRouter(tags=["artifacts"])

ArtifactPage = Annotated[
    PageRequest, Depends(declare_page_request("-created_at", ("created_at", "name")))
]

_BINARY: dict[str, Any] = {
    "application/octet-stream": {"schema": {"type": "string", "format": "binary"}}
}
_UPLOAD: dict[str, Any] = {"requestBody": {"required": True, "content": _BINARY}}
_CONTENT: dict[int | str, dict[str, Any]] = {
    200: {"content": _BINARY},
    206: {"content": _BINARY},
    304: {"description": "The caller has this content: its tag was in `If-None-Match`."},
    416: {},
}


@router.post("/attempts/{attempt_id}/artifacts", status_code=201, responses={409: {}})
async def declare_artifact(
    attempt_id: str,
    _caller: AttemptCaller,
    body: Annotated[ArtifactDeclaration, Depends(JsonBody(ArtifactDeclaration))],
    database: DatabaseDep,
    store: StoreDep,
) -> ArtifactView:
    """Declares a file with its size and SHA-256. A repeated declaration returns the same artifact.

    `stored` means that no upload is needed.
    """
    return await artifacts.declare(database, store, attempt_id, body)


@router.put(
    "/attempts/{attempt_id}/artifacts/{artifact_id}",
    openapi_extra=_UPLOAD,
    responses={409: {}, 413: {}, 415: {}},
)
async def upload_artifact(
    attempt_id: str,
    artifact_id: str,
    request: Request,
    _caller: AttemptCaller,
    database: DatabaseDep,
    store: StoreDep,
) -> ArtifactView:
    """Takes the content of a declared artifact as the plain body.

    The content is kept only if its size and SHA-256 are the declared ones.
    """
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise HttpProblemError(
            415,
            "compressed_body",
            "Send the content as it is: this server does not decompress requests.",
        )
    return await artifacts.upload(database, store, attempt_id, artifact_id, request.stream())


@router.get("/runs/{run_id}/artifacts")
async def list_artifacts(
    run_id: str,
    principal: Reader,
    session: ReadSession,
    page: ArtifactPage,
    kind: ArtifactKind | None = None,
) -> Page[ArtifactView]:
    """Lists a run's artifacts, of one kind or of all."""
    return await artifacts.list_for_run(session, principal, run_id, page, kind)


@router.get("/artifacts/{artifact_id}")
async def get_artifact(artifact_id: str, principal: Reader, session: ReadSession) -> ArtifactView:
    """Returns the description of an artifact."""
    return await artifacts.get(session, principal, artifact_id)


class _Conditions(NamedTuple):
    """The headers of a request that say which part of a content is sent, and whether any."""

    range: str | None
    if_range: str | None
    if_none_match: str | None


async def _read_conditions(
    range_: Annotated[str | None, Header(alias="Range")] = None,
    if_range: Annotated[str | None, Header(alias="If-Range")] = None,
    if_none_match: Annotated[str | None, Header(alias="If-None-Match")] = None,
) -> _Conditions:
    return _Conditions(range_, if_range, if_none_match)


@router.get("/artifacts/{artifact_id}/content", response_class=Response, responses=_CONTENT)
async def download_artifact(
    artifact_id: str,
    principal: ReaderOrAttempt,
    session: ReadSession,
    store: StoreDep,
    conditions: Annotated[_Conditions, Depends(_read_conditions)],
) -> Response:
    """Sends an artifact's content as an attachment, whole or one byte range of it.

    304 answers a request whose `If-None-Match` has its `ETag`.
    """
    content = await artifacts.find_content(session, principal, artifact_id, store)
    if is_held(conditions.if_none_match, build_etag(content.view)):
        return respond_not_modified(content.view)
    part = parse_range(conditions.range, conditions.if_range, content.view)
    return respond_with_attachment(content.view, content.path, part)


@router.get(
    "/runs/{run_id}/snapshots/{snapshot_id}/archive",
    response_class=Response,
    responses={200: {"content": {ZIP_TYPE: _BINARY["application/octet-stream"]}}},
)
async def download_snapshot(
    run_id: str, snapshot_id: str, principal: Reader, session: ReadSession, store: StoreDep
) -> StreamingResponse:
    """Sends all files of a verified snapshot as one ZIP archive."""
    found = await artifacts.find_snapshot_content(session, principal, run_id, snapshot_id, store)
    files = [
        ArchivedFile(f"{snapshot_id}/{name}", content.path, content.view.size)
        for name, content in found.items()
    ]
    return respond_with_zip(f"{snapshot_id}.zip", files)

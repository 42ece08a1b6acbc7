"""The OpenAPI document of this very server."""

from typing import Any

from fastapi import Request

from app.api.auth import Anyone
from app.api.resource_router import ResourceRouter

router = ResourceRouter(tags=["health"])


@router.get("/openapi.json")
async def get_openapi_document(
    request: Request,
    principal: Anyone,  # noqa: ARG001 - authorises
) -> dict[str, Any]:
    """Returns the OpenAPI 3.1 document."""
    document: dict[str, Any] = request.app.openapi()
    return document

"""The schema of a submission and the presets, from which the form of the dashboard is made."""

import asyncio
from functools import cache
from typing import Any

from app.api.auth import Reader
from app.api.resource_router import ResourceRouter
from palestra.contract.job_options import Submission
from palestra.contract.presets import PresetView
from palestra.contract.views import Page
from palestra.presets import list_presets

router = ResourceRouter(prefix="/definitions", tags=["definitions"])


@router.get("/schema")
async def get_definition_schema(principal: Reader) -> dict[str, Any]:  # noqa: ARG001 - authorises
    """Returns the JSON Schema of a submission: names, bounds, defaults and descriptions."""
    return _schema()


@router.get("/presets")
async def get_presets(principal: Reader) -> Page[PresetView]:  # noqa: ARG001 - authorises
    """Returns the submissions that come with Palestra, from which a new one can be begun."""
    presets = await asyncio.to_thread(list_presets)  # reads files, the first time
    return Page(items=list(presets), next_cursor=None)


@cache
def _schema() -> dict[str, Any]:
    return Submission.model_json_schema()

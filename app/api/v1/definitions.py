"""The definition's schema, which drives the submission form."""

from functools import cache
from typing import Any

from fastapi import APIRouter

from app.api.auth import Reader
from palestra.contract.job_options import Submission

router = APIRouter(prefix="/definitions", tags=["definitions"])


@router.get("/schema")
async def get_definition_schema(principal: Reader) -> dict[str, Any]:  # noqa: ARG001 - authorises
    """Returns the JSON Schema of a submission: names, bounds, defaults and descriptions."""
    return _schema()


@cache
def _schema() -> dict[str, Any]:
    return Submission.model_json_schema()

"""Statistics over runs and environments."""

from typing import Annotated, Final

from fastapi import Depends

from app.api.auth import Reader
from app.api.deps import DatabaseDep
from app.api.expensive_reads import ExpensiveRead
from app.api.resource_router import ResourceRouter
from app.api.strict_body import JsonBody
from app.services.statistics import comparison, statistics
from palestra.contract.comparison import ComparisonQuery, ComparisonResult
from palestra.contract.statistics import StatisticsQuery, StatisticsResult

router = ResourceRouter(tags=["statistics"])

MAX_QUERY: Final = 262_144
"""Bytes of a query: 2,000 runs need 70,000."""


@router.post("/statistics:aggregate", dependencies=[ExpensiveRead], responses={404: {}})
async def aggregate_statistics(
    principal: Reader,
    body: Annotated[StatisticsQuery, Depends(JsonBody(StatisticsQuery, limit=MAX_QUERY))],
    database: DatabaseDep,
) -> StatisticsResult:
    """Returns statistics over groups of runs as papers report them.

    Final scores, mean, median, interquartile mean and optimality gap with stratified bootstrap
    intervals; performance profiles, probability of improvement, paired differences and
    sample-efficiency curves on request. The same query of the same data gives the same numbers.
    """
    return await statistics.aggregate(database, principal, body)


@router.post("/runs:compare", tags=["runs"], dependencies=[ExpensiveRead], responses={404: {}})
async def compare_runs(
    principal: Reader,
    body: Annotated[ComparisonQuery, Depends(JsonBody(ComparisonQuery, limit=MAX_QUERY))],
    database: DatabaseDep,
) -> ComparisonResult:
    """Returns how runs, or groups of runs, differ: definitions, versions, devices, code, scores.

    Definitions are flattened, and each field has its values in every run or group. For the
    hyperparameters that differ it says how much the scores of an environment vary with each.
    """
    return await comparison.compare(database, principal, body)

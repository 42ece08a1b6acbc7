"""Views made of the columns of rows."""

from collections.abc import Mapping
from typing import Any, TypeVar

from palestra.contract.views import View

_View = TypeVar("_View", bound=View)


def build_view(kind: type[_View], values: Mapping[str, Any]) -> _View:
    """Returns a view of columns, some of which hold JSON.

    The models in a view are strict and accept only tuples and enumerations, but a JSON column
    yields lists and strings. The values were validated before they were stored.
    """
    return kind.model_validate(values, strict=False)


def columns_of(row: object, *names: str) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}

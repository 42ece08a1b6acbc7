"""The OpenAPI document can be read by programs that generate clients."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from fastapi import APIRouter, Depends, FastAPI
from pydantic import create_model

from app.api import openapi
from app.api.strict_body import JsonBody
from tests.support.documented_statuses import DOCUMENT, read_paths

SCHEMAS: Final[dict[str, Any]] = json.loads(DOCUMENT.read_text("utf-8"))["components"]["schemas"]
VALUES: Final = {"const", "default", "enum", "example", "examples"}


def iterate_schemas(value: Any) -> Iterator[dict[str, Any]]:
    """Yields each object of a part of the document that holds no value, the outermost first."""
    if isinstance(value, dict):
        yield value
        for key, member in value.items():
            if key not in VALUES:
                yield from iterate_schemas(member)
    elif isinstance(value, list):
        for member in value:
            yield from iterate_schemas(member)


def test_ids_of_operations_are_unique() -> None:
    ids = Counter(
        operation["operationId"]
        for methods in read_paths().values()
        for operation in methods.values()
    )
    assert len(ids) > 100
    assert {name for name, count in ids.items() if count > 1} == set()


def test_the_title_of_a_component_is_its_name() -> None:
    assert {name: schema["title"] for name, schema in SCHEMAS.items()} == {
        name: name for name in SCHEMAS
    }


def test_no_schema_within_a_component_or_an_operation_has_a_title() -> None:
    parts = [member for schema in SCHEMAS.values() for member in schema.values()]
    titles = [
        schema["title"]
        for schema in iterate_schemas([*parts, read_paths()])
        if isinstance(schema.get("title"), str)
    ]
    assert titles == []
    assert SCHEMAS["Problem"]["properties"]["title"], "a property may be called so"


def test_names_of_components_differ_as_names_of_classes() -> None:
    classes = Counter("".join(filter(str.isalnum, name)).lower() for name in SCHEMAS)
    assert {name for name, count in classes.items() if count > 1} == set()


def test_only_a_reference_has_an_object_as_default() -> None:
    """Generators of clients refuse it of an object or a union that is no component."""
    faulty = [
        schema
        for schema in iterate_schemas([SCHEMAS, read_paths()])
        if isinstance(schema.get("default"), dict) and "$ref" not in schema
    ]
    assert faulty == []


def test_a_model_of_a_body_and_of_an_answer_is_one_component() -> None:
    """Regression: `null` within defaults made two of those of definitions, with one title."""
    assert {name for name in SCHEMAS if name.endswith("Input") and name[:-5] in SCHEMAS} == set()


def test_a_body_that_differs_from_the_answer_of_its_name_has_a_title_of_its_own() -> None:
    answer, body = create_model("Part", name=(str, ...)), create_model("Part", name=(int, 1))
    app = FastAPI(openapi_url=None)
    router = APIRouter()

    @router.post("/parts", response_model=answer, dependencies=[Depends(JsonBody(body))])
    async def create_part() -> None: ...

    app.include_router(router)
    schemas = openapi.build(app)["components"]["schemas"]
    titles = {name: schema["title"] for name, schema in schemas.items() if "Part" in name}
    assert titles == {"Part": "Part", "PartInput": "PartInput"}

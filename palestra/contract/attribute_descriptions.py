"""Models whose attribute docstrings describe their members in JSON schemas."""

import ast
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler
from pydantic_core import CoreSchema


class DescribedModel(BaseModel):
    """A model that reads its attribute docstrings when a schema is asked for.

    Pydantic's `use_attribute_docstrings` reads the source of every class while the class is made:
    an eighth of the time that the server takes to import itself (2.8 s, without it 2.4), and nearly
    every process imports models without ever showing a schema.

    For the same reason a model's validator is built when it is first used: a command, which uses
    few of them, starts in 0.7 s in place of 1.0.
    """

    model_config = ConfigDict(defer_build=True)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Returns the schema with a description for each documented member that has none."""
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for name, text in _collect_docstrings(cls).items():
            field = cls.model_fields.get(name)
            member = properties.get((field.serialization_alias or name) if field else name)
            if member is not None:
                member.setdefault("description", text)
        return schema


def _collect_docstrings(model: type[BaseModel]) -> dict[str, str]:
    """Returns the docstrings of a model's attributes, its bases' included."""
    found: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if issubclass(base, DescribedModel):
            found |= _parse_docstrings(base.__module__).get(base.__qualname__, {})
    return found


@cache
def _parse_docstrings(module: str) -> dict[str, dict[str, str]]:
    """Returns the attribute docstrings of a module's top-level classes, by class.

    Nothing where there is no source.
    """
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (OSError, TypeError):
        return {}
    return {
        node.name: dict(_documented(node)) for node in tree.body if isinstance(node, ast.ClassDef)
    }


def _documented(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for member, text in zip(node.body, node.body[1:], strict=False):
        match member, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(
                value=ast.Constant(value=str(docstring))
            ):
                yield name, inspect.cleandoc(docstring)

"""Reads answers of the server: unknown keys are ignored, so that a newer server may send more.

Requests stay strict: the server refuses a key that it does not know. Identity-bearing documents
inside answers, the work order and definitions, stay strict too (`EXACT`): they have versions of
their own, and a reader that ignored one of their keys would not execute the training that they
describe.
"""

from functools import cache
from typing import Any, Final, TypeVar, cast

from pydantic import BaseModel, GetCoreSchemaHandler, TypeAdapter, ValidationInfo
from pydantic_core import CoreSchema, core_schema

from palestra.contract.documents import encode_canonical_json

Answer = TypeVar("Answer", bound=BaseModel)

CONTRACT_VERSION: Final = 2
"""Version of the answers to workers that this code knows.

Raised by the first new field of an answer after a release (`app/domain/answer_fields.py`). Since
version 2 readers ignore keys that they do not know; those of version 1 refuse the whole answer.
"""

CONTRACT_HEADER: Final = "Palestra-Contract"
"""Request header with the caller's `CONTRACT_VERSION`. Callers of version 1 do not send it."""


def read_answer(kind: type[Answer], raw: bytes | str) -> Answer:
    """Returns the body of an answer as a `kind`, ignoring unknown keys at every depth.

    Documents that are marked as `EXACT` are read strictly.

    Raises:
        pydantic.ValidationError: If a field is missing or has a wrong value.
    """
    return kind.model_validate_json(raw, extra="ignore")


class _Exact:
    """Annotation of a field whose document is read strictly, even inside an answer."""

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        def read(value: Any, inner: Any, info: ValidationInfo) -> Any:
            # An answer ignores unknown keys in every nested model, so the document is read again
            # from its own text. In Python mode the server passes a document that exists already.
            if info.mode != "json":
                return inner(value)
            return _adapter(source).validate_json(encode_canonical_json(value))

        return core_schema.with_info_wrap_validator_function(read, handler(source))


EXACT: Final = _Exact()


@cache
def _adapter(source: object) -> TypeAdapter[Any]:
    return TypeAdapter(cast("type[Any]", source))

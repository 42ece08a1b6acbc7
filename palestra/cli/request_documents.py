"""Makes request documents from options; an invalid option ends the command as wrong usage."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from palestra.cli.output import fail_usage
from palestra.contract.documents import encode_canonical_json
from palestra.contract.problems import explain
from palestra.contract.views import FieldProblem

Kind = TypeVar("Kind", bound=BaseModel)


def _sentence(fault: FieldProblem) -> str:
    return f"{fault.pointer.removeprefix('/')}: {fault.message}"


def name_options(options: Mapping[str, str]) -> Callable[[FieldProblem], str]:
    """Returns a `sentence` for `read_request` that names the option of a member.

    Args:
        options: Names of the options that differ from the names of their members.
    """

    def write(fault: FieldProblem) -> str:
        member = fault.pointer.removeprefix("/").partition("/")[0]
        return f"--{options.get(member, member).replace('_', '-')} {fault.message}"

    return write


def read_request(
    kind: type[Kind],
    members: Mapping[str, Any],
    sentence: Callable[[FieldProblem], str] = _sentence,
) -> Kind:
    """Returns the document of a request.

    Args:
        kind: Its model.
        members: Its members.
        sentence: Returns the message for the first fault; by default the member and the fault.
    """
    try:
        return kind.model_validate_json(encode_canonical_json(dict(members)))
    except ValidationError as error:
        fail_usage(sentence(explain(error, kind)[0]))

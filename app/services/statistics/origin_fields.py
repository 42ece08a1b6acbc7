"""What runs were trained with beside their definitions: versions, device, code."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import JsonValue, TypeAdapter, ValidationError

from app.db.repositories.origins import TrainingOrigin
from app.services.statistics.captions import list_some
from palestra.contract.code import AnyCode, describe_code
from palestra.contract.comparison import ComparedField

_PACKAGES: Final = ("torch", "numpy", "gymnasium")
_VERSIONS: Final = ("palestra", "python", *_PACKAGES, "cuda")
_WARNED: Final = {
    "device": "The runs were trained on different devices",
    "code": "The runs were trained with different code",
    "commit": "The runs were submitted from different commits",
    "changes": "The runs were submitted with different uncommitted changes",
    **{name: f"The runs were trained with different versions of {name}" for name in _VERSIONS},
}
_CODE: Final[TypeAdapter[AnyCode]] = TypeAdapter(AnyCode)


def describe_origin(
    origins: Sequence[TrainingOrigin], submission: Mapping[str, Any]
) -> dict[str, JsonValue]:
    """Returns the versions, device and code of a run's newest training attempt.

    Records are as workers and submitters sent them, so parts of another form are left out.

    Args:
        origins: The run's training attempts, oldest first.
        submission: What the run's submission recorded.
    """
    found: dict[str, JsonValue] = {}
    if origins:
        found |= _describe_attempt(origins[-1])
    git = _object(submission.get("git"))
    if isinstance(git.get("head"), str):
        found["commit"] = git["head"]
        digest = git.get("dirty_digest")
        found["changes"] = digest if isinstance(digest, str) else None
    return found


def warn_of_origins(fields: Sequence[ComparedField]) -> list[str]:
    """Returns a sentence for each field of the origin that differs."""
    return [
        f"{_WARNED[field.path]}{_list_values(field)}."
        for field in fields
        if field.differs and field.path in _WARNED
    ]


def _describe_attempt(origin: TrainingOrigin) -> dict[str, JsonValue]:
    report = _object(origin.report)
    ran_with = _object(origin.ran_with)
    packages = _object(ran_with.get("packages"))
    hardware = _object(ran_with.get("hardware"))
    versions = {
        "palestra": ran_with.get("palestra"),
        "python": hardware.get("python"),
        **{name: packages.get(name) for name in _PACKAGES},
        **_object(report.get("versions")),
    }
    device = report.get("device") or hardware.get("processor")
    texts = {name: versions.get(name) for name in _VERSIONS} | {
        "device": device,
        "code": _describe_code(ran_with.get("code")),
    }
    return {name: text for name, text in texts.items() if isinstance(text, str) and text}


def _describe_code(code: Any) -> str | None:
    try:
        return describe_code(_CODE.validate_python(code))
    except ValidationError:
        return None


def _list_values(field: ComparedField) -> str:
    values = dict.fromkeys(
        value[:12] if field.path in {"commit", "changes"} else value
        for some in field.values
        for value in some
        if isinstance(value, str)
    )
    return f" ({list_some(list(values))})" if len(values) > 1 else ", or some recorded none"


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}

"""Rules for submissions that the schema of the definition does not contain.

Stored definitions are validated against the schema only, so that a definition that was accepted
once stays readable.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic_core import InitErrorDetails, ValidationError

from palestra.contract.agents import PACKABLE_AGENTS
from palestra.contract.definition import Definition, LearningRateSchedule, RlDefinition
from palestra.contract.free_parameters import MAX_INTEGER
from palestra.contract.names import is_visible

Fault = tuple[tuple[str | int, ...], str]
"""Path in the submission, and the message."""


def check(definition: Definition, pack: object, provenance: Mapping[str, Any]) -> None:
    """Refuses submissions that are valid by the schema but cannot be executed as written.

    Args:
        definition: What to train.
        pack: Seeds per job, or a keyword, as in `Resources.pack`.
        provenance: The record of code and packages on the submitter's machine.

    Raises:
        pydantic_core.ValidationError: With every fault and its path.
    """
    faults = [
        *_check_definition(definition),
        *_check_pack(definition, pack),
        *find_huge_numbers(provenance, ("provenance",)),
    ]
    if faults:
        details: list[InitErrorDetails] = [
            {
                "type": "value_error",
                "loc": where,
                "input": None,
                "ctx": {"error": ValueError(message)},
            }
            for where, message in faults
        ]
        raise ValidationError.from_exception_data("Submission", details)


def _check_definition(definition: Definition) -> Iterator[Fault]:
    if not is_visible(definition.name):
        yield ("definition", "name"), "must have at least one visible character"
    for place in find_repeated(definition.export.formats):
        yield (
            ("definition", "export", "formats", place),
            "names a format for the second time: name each format once",
        )
    if isinstance(definition, RlDefinition):
        yield from find_huge_numbers(definition.env.kwargs, ("definition", "env", "kwargs"))
        schedules = [
            place
            for place, hook in enumerate(definition.hooks)
            if isinstance(hook, LearningRateSchedule)
        ]
        for place in schedules[1:]:
            yield (
                ("definition", "hooks", place),
                "is a second learning_rate_schedule: one learning rate has one schedule",
            )


def _check_pack(definition: Definition, pack: object) -> Iterator[Fault]:
    agent = definition.agent.name if isinstance(definition, RlDefinition) else ""
    if isinstance(pack, int) and agent not in PACKABLE_AGENTS:
        what = f"the agent {agent}" if agent else "a supervised definition"
        known = ", ".join(sorted(PACKABLE_AGENTS))
        yield (
            ("options", "resources", "pack"),
            f"{what} is not trained in packs, {known} are: set pack to off",
        )


def find_repeated(values: Sequence[object]) -> list[int]:
    """Returns the indices of values that occur earlier in `values`."""
    return [place for place, value in enumerate(values) if value in values[:place]]


def find_huge_numbers(value: Any, where: tuple[str | int, ...]) -> Iterator[Fault]:
    """Yields the paths of integers of more than 63 bits in a JSON value."""
    stack: list[tuple[tuple[str | int, ...], Any]] = [(where, value)]
    while stack:
        place, part = stack.pop()
        if isinstance(part, Mapping):
            stack += [((*place, key), member) for key, member in part.items()]
        elif isinstance(part, list | tuple):
            stack += [((*place, index), member) for index, member in enumerate(part)]
        elif isinstance(part, int) and not -MAX_INTEGER <= part < MAX_INTEGER:
            yield place, "must be a whole number of at most 63 bits"

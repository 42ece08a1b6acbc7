"""Finds the environment of a definition by its id in the workers' catalogues, with its code.

Nothing is imported.
"""

from collections.abc import Sequence
from typing import Final

from app.domain.errors import InvalidError
from palestra.contract.catalogue import Catalogue, EnvironmentDescription
from palestra.contract.code import (
    AnyCode,
    BuiltinCode,
    DistributionCode,
    GitCode,
    ModuleCode,
    shown_code,
    with_environment,
)
from palestra.contract.definition import RlDefinition

_ID: Final = "/definition/env/id"
_EnvironmentCode = DistributionCode | ModuleCode


def resolve(
    definition: RlDefinition, code: AnyCode, workers: Sequence[Catalogue], pool: str
) -> tuple[RlDefinition, _EnvironmentCode | None]:
    """Returns the definition with the plain id of its environment, and whose code that is.

    Args:
        definition: What was submitted, or is stored.
        code: What the submitter said, or what is stored: of two workers with different code the one
            that has this counts.
        workers: Catalogues of the pool's workers, the latest registration last.
        pool: Name of the pool, for the sentences.

    Raises:
        InvalidError: `unknown_environment` for `module:id` of a module that no worker of the pool
            imports.
    """
    module, _, name = definition.env.id.rpartition(":")
    if module:
        workers = [one for one in workers if module in one.imports] or _refuse_module(
            module, workers, pool
        )
    offered = [
        environment for one in workers for environment in one.environments if environment.id == name
    ]
    if module and not offered:
        message = (
            f"The module {module}, which workers of the pool {pool} import, registers no "
            f"environment {name!r}."
        )
        raise InvalidError("unknown_environment", message, pointer=_ID)
    plain = (
        definition.model_copy(update={"env": definition.env.model_copy(update={"id": name})})
        if module
        else definition
    )
    return plain, _code_among(offered, code)


def join(
    given: AnyCode, parts: AnyCode, environment: _EnvironmentCode | None, pool: str
) -> AnyCode:
    """Returns the code of the parts and of the environment.

    Args:
        given: What the submitter said, or what is stored.
        parts: The code of the agent.
        environment: That of the environment, `None` for one that needs none.
        pool: Name of the pool, for the sentences.

    Raises:
        InvalidError: `code_mismatch` if the environment's code was given and is another.
    """
    installed = with_environment(parts, environment)
    if given == BuiltinCode() or isinstance(given, GitCode) or given == installed:
        return installed
    message = (
        f"The workers of the pool {pool} have {shown_code(installed)}, not "
        f"{shown_code(given)}, which is named here. "
        "Leave `code` out to take theirs, or install the other one on a worker of the pool."
    )
    raise InvalidError("code_mismatch", message, pointer="/code/environment")


def _code_among(
    offered: Sequence[EnvironmentDescription], code: AnyCode
) -> _EnvironmentCode | None:
    """Returns the requested code if a worker has it or none reports any.

    Otherwise returns the code of the latest registration.
    """
    codes = [one.code for one in offered]
    wanted = [one for one in codes if one is not None and with_environment(code, one) == code]
    if not codes:
        return None if isinstance(code, GitCode) else code.environment
    return (wanted or codes)[-1]


def _refuse_module(module: str, workers: Sequence[Catalogue], pool: str) -> Sequence[Catalogue]:
    allowed = sorted({name for one in workers for name in one.imports})
    there_are = f"they import {', '.join(allowed)}" if allowed else "they import none"
    message = (
        f"No worker of the pool {pool} may import the module {module}; "
        f"{there_are if workers else 'the pool has no worker'}. "
        f"Start one with --import {module}, or register the environment by an entry "
        "point of its package and leave the module out."
    )
    raise InvalidError("unknown_environment", message, pointer=_ID)

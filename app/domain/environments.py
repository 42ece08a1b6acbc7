"""Resolves the environment ID of a definition in the workers' catalogues, and its code.

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
    add_environment,
    describe_code,
)
from palestra.contract.definition import RlDefinition

_ID: Final = "/definition/env/id"
_EnvironmentCode = DistributionCode | ModuleCode


def resolve(
    definition: RlDefinition, code: AnyCode, workers: Sequence[Catalogue], pool: str
) -> tuple[RlDefinition, _EnvironmentCode | None]:
    """Returns the definition without the module in its environment ID, and the environment's code.

    Args:
        definition: The submitted or stored definition.
        code: The submitted or stored code; preferred where workers report different code.
        workers: Catalogues of the pool's workers, the latest registration last.
        pool: Name of the pool, for error messages.

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
    return plain, _choose_code(offered, code)


def combine_code(
    requested: AnyCode, parts: AnyCode, environment: _EnvironmentCode | None, pool: str
) -> AnyCode:
    """Combines the code of the agent and of the environment, and checks it against the request.

    Args:
        requested: The submitted or stored code.
        parts: The code of the agent.
        environment: The code of the environment; `None` if it needs none.
        pool: Name of the pool, for error messages.

    Raises:
        InvalidError: `code_mismatch` if the requested code is not the one that the workers have.
    """
    installed = add_environment(parts, environment)
    if requested == BuiltinCode() or isinstance(requested, GitCode) or requested == installed:
        return installed
    message = (
        f"The workers of the pool {pool} have {describe_code(installed)}, not "
        f"{describe_code(requested)}, which is named here. "
        "Leave `code` out to take theirs, or install the other one on a worker of the pool."
    )
    raise InvalidError("code_mismatch", message, pointer="/code/environment")


def _choose_code(
    offered: Sequence[EnvironmentDescription], code: AnyCode
) -> _EnvironmentCode | None:
    """Returns the requested code if a worker has it or none reports any.

    Otherwise returns the code of the latest registration.
    """
    codes = [one.code for one in offered]
    wanted = [one for one in codes if one is not None and add_environment(code, one) == code]
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

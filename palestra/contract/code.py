"""The code of an experiment's parts and environment, which is part of its identity.

Holds the kinds of code and their description in words. Independent of definitions.
"""

from typing import Annotated, Literal

from pydantic import Field

from palestra.contract.documents import Document
from palestra.contract.names import Sha256, Title


class DistributionCode(Document):
    """The code of an environment that an installed distribution registers."""

    kind: Literal["distribution"] = "distribution"
    distribution: Title
    version: Title
    digest: Sha256


class ModuleCode(Document):
    """The code of an environment's module that belongs to no distribution.

    A worker imports such a module by its option `--import`.
    """

    kind: Literal["module"] = "module"
    module: Title
    digest: Sha256
    """SHA-256 of the sources of the top-level module."""


EnvironmentCode = Annotated[DistributionCode | ModuleCode, Field(discriminator="kind")]
"""Whose code an environment is."""


class _WithEnvironment(Document):
    """Code of the agent, and of the environment if that differs."""

    environment: Annotated[
        EnvironmentCode | None, Field(exclude_if=lambda value: value is None)
    ] = None
    """`null`, which is left out of the canonical form, for environments of Gymnasium, ale-py and
    Palestra, and for one of the same distribution as the agent.
    """


class BuiltinCode(_WithEnvironment):
    """The code of a definition whose parts, apart from the environment, belong to Palestra."""

    kind: Literal["builtin"] = "builtin"


class EntrypointCode(_WithEnvironment):
    """The code of parts that a distribution registers by entry points."""

    kind: Literal["entrypoint"]
    distribution: Title
    version: Title
    digest: Sha256


class GitCode(Document):
    """The state of a git work tree that a submission named.

    Only stored experiments of earlier versions have it; submissions with it are refused.
    """

    kind: Literal["git"]
    head: Annotated[str, Field(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")]
    """Commit of the work tree."""

    dirty_digest: Sha256 | None = None
    """SHA-256 of the difference to `head`, untracked files included; `null` for a clean tree."""


Code = Annotated[BuiltinCode | EntrypointCode | GitCode, Field(discriminator="kind")]


AnyCode = BuiltinCode | EntrypointCode | GitCode


def add_environment(code: AnyCode, environment: DistributionCode | ModuleCode | None) -> AnyCode:
    """Returns the code of an experiment's parts combined with that of its environment.

    `environment` is `None` for an environment without code of its own.

    If the environment comes from the agent's distribution, its code is not added.
    """
    if isinstance(code, GitCode):
        return code
    if isinstance(code, EntrypointCode) and isinstance(environment, DistributionCode):
        of_agent = code.model_dump(exclude={"kind", "environment"})
        environment = None if environment.model_dump(exclude={"kind"}) == of_agent else environment
    return code.model_copy(update={"environment": environment})


def describe_code(code: AnyCode | DistributionCode | ModuleCode) -> str:
    """Returns a description of code for messages."""
    environment = getattr(code, "environment", None)
    besides = (
        f" and an environment of {describe_code(environment)}" if environment is not None else ""
    )
    match code:
        case EntrypointCode() | DistributionCode():
            return f"{code.distribution} {code.version} (digest {code.digest[:12]}){besides}"
        case ModuleCode():
            return f"the module {code.module} (digest {code.digest[:12]})"
        case GitCode():
            return f"the work tree at {code.head[:12]}"
    return f"built-in parts{besides}"

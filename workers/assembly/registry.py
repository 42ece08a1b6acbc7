"""Names of parts and their factories: built-in, and registered by installed distributions."""

import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from pydantic import BaseModel, ValidationError

from palestra.contract.agents import BUILTIN_AGENTS, BuiltinAgent, RegisteredAgent
from palestra.contract.code import (
    AnyCode,
    BuiltinCode,
    DistributionCode,
    EntrypointCode,
    GitCode,
    ModuleCode,
    add_environment,
    describe_code,
)
from palestra.contract.definition import RlDefinition, SupervisedDefinition
from palestra.contract.estimators import INPUT_FUNCTIONS, MODEL_FUNCTIONS
from palestra.contract.sb3 import Sb3Parameters
from palestra.contract.wording import summarise_faults
from workers.assembly.registered_parts import Kind, RegisteredPart, discover
from workers.core.errors import CodeChangedError, DefinitionError, PartNotFoundError
from workers.core.protocols import AgentFactory, TrainableAgent
from workers.core.types import AgentContext
from workers.rl.agents.pfrl_adapter import ExternalAgent
from workers.rl.envs.env_sources import environment_code
from workers.rl.networks.observation_encoding import with_byte_bounds

_FACTORY_MODULES: Final[Mapping[str, str]] = {"a3c": "a3c_shared", "sb3": "sb3.build"}
"""Module in `workers.rl.agents` of the agents whose factory is not in the module of their name."""

_OWN_METHODS: Final = (
    "act",
    "observe",
    "learn",
    "state_dict",
    "load_state_dict",
    "metrics",
    "eval_mode",
)


def make_agent(
    parameters: BuiltinAgent | RegisteredAgent,
    context: AgentContext,
    *,
    scales_by_bounds: bool = True,
) -> TrainableAgent:
    """Returns a fresh agent.

    Args:
        parameters: Name and parameters.
        context: The agent's other arguments.
        scales_by_bounds: See `Manifest.scales_by_bounds`.

    Raises:
        PartNotFoundError: If no agent of that name is installed, or it cannot be imported.
        DefinitionError: If the parameters do not fit, or the factory does not return an agent.
    """
    if not isinstance(parameters, RegisteredAgent):
        if not scales_by_bounds and divides_bytes(parameters):
            space = with_byte_bounds(context.observation_space)
            context = replace(context, observation_space=space)
        return agent_factory(parameters.name)(parameters, context)
    part = registered_part("agents", parameters.name)
    factory = part.load()
    return _as_agent(factory(_parameters_for(factory, parameters), context), context, part)


def divides_bytes(parameters: BuiltinAgent | RegisteredAgent) -> bool:
    """Returns whether an agent has networks of Palestra, which divide uint8 observations."""
    return not isinstance(parameters, RegisteredAgent | Sb3Parameters)


def agent_factory(name: str) -> AgentFactory:
    """Returns the factory of a built-in agent.

    Raises:
        PartNotFoundError: If there is none, or it cannot be imported.
    """
    if name not in BUILTIN_AGENTS:
        known = ", ".join(BUILTIN_AGENTS)
        raise PartNotFoundError(f"no agent is called {name!r} here; there are {known}")
    module = f"workers.rl.agents.{_FACTORY_MODULES.get(name, name)}"
    try:
        return cast("AgentFactory", importlib.import_module(module).build)
    except (ImportError, AttributeError) as error:
        raise PartNotFoundError(f"the agent {name!r} cannot be imported: {error}") from error


def registered_part(kind: Kind, name: str) -> RegisteredPart:
    """Returns a part that an installed distribution registers.

    Raises:
        PartNotFoundError: If there is none.
    """
    found = discover(kind)
    if name in found.left_out:
        raise PartNotFoundError(f"{name!r} cannot be used on this worker: {found.left_out[name]}")
    if name not in found.parts:
        known = ", ".join(sorted(found.parts)) or "none"
        raise PartNotFoundError(
            f"no installed distribution registers {name!r} under palestra.{kind}; there are {known}"
        )
    return found.parts[name]


def check_code(
    definition: RlDefinition | SupervisedDefinition, code: AnyCode, *, allows_change: bool = False
) -> AnyCode | None:
    """Checks that the definition's parts and environment have the code of the experiment.

    Args:
        definition: Names the parts and the environment.
        code: The code that the experiment was created with.
        allows_change: Whether another version or digest of the same distributions is accepted.

    Returns:
        The installed code if it differs from `code`, else `None`.

    Raises:
        CodeChangedError: If name, version or digest of a distribution differ, or a part or the
            environment is not installed here any more.
        DefinitionError: If `code` is that of registered parts and the definition names none.
        PartNotFoundError: If a part is not installed here.
    """
    parts = _installed_parts(definition, code)
    if not parts and isinstance(code, EntrypointCode):
        raise DefinitionError(
            f"the experiment was made with parts of {code.distribution}, but its definition names "
            "none"
        )
    here = _installed_code(definition, parts, code)
    if here == code:
        return None
    if not allows_change or _origins(here) != _origins(code):
        raise CodeChangedError(
            f"the experiment was made with {describe_code(code)}, "
            f"this worker has {describe_code(here)}: "
            "put the code back on the "
            "workers of the pool and resume the run, resume it with --allow-code-change, or submit "
            "the definition again to make "
            "an experiment with this code"
        )
    return here


def _installed_code(
    definition: RlDefinition | SupervisedDefinition, parts: Sequence[RegisteredPart], code: AnyCode
) -> AnyCode:
    """Returns the installed code.

    If there are several parts, the first whose code differs from the experiment's is used.
    """
    made = add_environment(code, None)
    here = next((part.code for part in parts if part.code != made), made)
    environment = (
        environment_code(definition.env.id) if isinstance(definition, RlDefinition) else None
    )
    if isinstance(here, GitCode) and environment is not None:
        return BuiltinCode(environment=environment)
    return add_environment(here, environment)


def _origins(code: AnyCode) -> tuple[str | None, ...]:
    """Returns the code's kind and distribution, and the environment's distribution or module."""
    environment = None if isinstance(code, GitCode) else code.environment
    of_environment = environment.module if isinstance(environment, ModuleCode) else None
    of_environment = (
        environment.distribution if isinstance(environment, DistributionCode) else of_environment
    )
    return (
        code.kind,
        code.distribution if isinstance(code, EntrypointCode) else None,
        of_environment,
    )


def _installed_parts(
    definition: RlDefinition | SupervisedDefinition, code: AnyCode
) -> list[RegisteredPart]:
    try:
        return list(_registered_parts(definition))
    except PartNotFoundError as error:
        if not isinstance(code, EntrypointCode):
            raise
        raise CodeChangedError(
            f"the experiment was made with {describe_code(code)}, and here {error}"
        ) from error


def _registered_parts(definition: RlDefinition | SupervisedDefinition) -> Iterator[RegisteredPart]:
    if isinstance(definition, RlDefinition):
        if isinstance(definition.agent, RegisteredAgent):
            yield registered_part("agents", definition.agent.name)
        return
    if definition.estimator.name not in MODEL_FUNCTIONS:
        yield registered_part("model_functions", definition.estimator.name)
    for part in (definition.train_input, definition.evaluation_input):
        if part.name not in INPUT_FUNCTIONS:
            yield registered_part("input_functions", part.name)


def _parameters_for(factory: object, parameters: RegisteredAgent) -> Any:
    """Returns an instance of the factory's model `Parameters` if it has one.

    Else it returns `parameters`.
    """
    model = getattr(factory, "Parameters", None)
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        return dict(parameters.parameters)
    try:
        return model.model_validate(parameters.parameters)
    except ValidationError as error:
        faults = summarise_faults(error, "parameters")
        raise DefinitionError(
            f"agent.parameters do not fit {parameters.name!r}: {faults}"
        ) from error


def _as_agent(made: object, context: AgentContext, part: RegisteredPart) -> TrainableAgent:
    if hasattr(made, "collect_plan") and all(
        callable(getattr(made, name, None)) for name in _OWN_METHODS
    ):
        return cast("TrainableAgent", made)
    is_serial = callable(getattr(made, "act", None)) and callable(getattr(made, "observe", None))
    try:
        wrapped = ExternalAgent(
            made, num_envs=context.num_envs, is_batch=context.num_envs > 1 or not is_serial
        )
    except (TypeError, ValueError) as error:
        where = f"{part.code.distribution} {part.code.version}"
        raise DefinitionError(
            f"what the factory {part.name!r} of {where} returned cannot be trained: {error}"
        ) from error
    return cast("TrainableAgent", wrapped)

"""Lists the parts and environments of this machine; runs as a separate program.

It imports gymnasium and registered parts, which the worker must not.

`python -m workers.assembly.catalogue` prints a Catalogue as JSON to standard output, and the parts
that were left out, with reasons, to standard error.
"""

import contextlib
import importlib.util
import json
import logging
import sys
import warnings
from collections.abc import Collection, Iterator, Mapping
from typing import Final, get_args

import gymnasium
from gymnasium.envs.registration import EnvSpec

from palestra.contract.agents import BUILTIN_AGENTS
from palestra.contract.agents.actions import ACTION_SPACES, ActionKind
from palestra.contract.catalogue import (
    AgentDescription,
    Catalogue,
    EnvironmentDescription,
    PartDescription,
    SpaceDescription,
)
from palestra.contract.estimators import INPUT_FUNCTIONS, MODEL_FUNCTIONS
from palestra.contract.names import ExportFormat, Schedule
from workers.assembly.registered_parts import Kind, RegisteredPart, discover
from workers.core.types import JsonObject
from workers.export.onnx_packages import missing_packages
from workers.ipc.json_log import LEFT_OUT
from workers.ipc.worker_imports import allowed_imports
from workers.rl.envs.env_sources import environment_code, register_sources
from workers.rl.envs.env_types import Env
from workers.rl.envs.factory import is_game, log_mujoco

_ALL_SPACES: Final = get_args(ActionKind)
_ARRAY_SPACES: Final[Mapping[ActionKind, type[gymnasium.Space[object]]]] = {
    "box": gymnasium.spaces.Box,
    "multi_discrete": gymnasium.spaces.MultiDiscrete,
    "multi_binary": gymnasium.spaces.MultiBinary,
}
_PACKAGES: Final = {"sb3": "stable_baselines3"}
"""Package that a built-in agent needs beside the worker's dependencies, by name of the agent.

An agent whose package is missing is not listed.
"""


def make_catalogue() -> Catalogue:
    """Returns the parts and environments that this interpreter can import and build."""
    with _silenced():
        # Agents may register environments when they are imported, which would then have no owner.
        environments = _environments()
        return Catalogue(
            agents=(*_builtin_agents(), *_registered_agents()),
            model_functions=_functions("model_functions", MODEL_FUNCTIONS),
            input_functions=_functions("input_functions", INPUT_FUNCTIONS),
            environments=environments,
            schedules=tuple(Schedule),
            imports=allowed_imports(),
            export_formats=_export_formats(),
        )


@contextlib.contextmanager
def _silenced() -> Iterator[None]:
    """Drops log messages and warnings of parts and environments while the block runs."""
    log_level, gymnasium_level = logging.root.manager.disable, gymnasium.logger.min_level
    logging.disable(logging.CRITICAL)
    gymnasium.logger.min_level = gymnasium.logger.ERROR + 1
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(log_level)
        gymnasium.logger.min_level = gymnasium_level


def _export_formats() -> tuple[ExportFormat, ...]:
    return tuple(
        name for name in get_args(ExportFormat) if name != "onnx" or not missing_packages()
    )


def _builtin_agents() -> tuple[AgentDescription, ...]:
    described = {
        "agents": [
            {"name": name, "action_spaces": ACTION_SPACES[name]}
            for name in BUILTIN_AGENTS
            if _has_package(name)
        ]
    }
    return Catalogue.model_validate_json(json.dumps(described)).agents


def _has_package(name: str) -> bool:
    return name not in _PACKAGES or importlib.util.find_spec(_PACKAGES[name]) is not None


def _registered_agents() -> Iterator[AgentDescription]:
    for part in _registered_parts("agents", BUILTIN_AGENTS):
        with _leave_out_on_error(part.name):
            yield _describe_agent(part)


def _describe_agent(part: RegisteredPart) -> AgentDescription:
    with contextlib.redirect_stdout(sys.stderr):
        factory = part.load()
        document = {
            "name": part.name,
            "action_spaces": [
                space
                for space in getattr(factory, "action_spaces", _ALL_SPACES)
                if space in _ALL_SPACES
            ],
            "parameters_schema": _schema_of(factory),
            "code": part.code.model_dump(mode="json"),
        }
    return AgentDescription.model_validate_json(json.dumps(document))


def _functions(kind: Kind, builtin: Mapping[str, JsonObject]) -> tuple[PartDescription, ...]:
    described = [
        PartDescription(name=name, parameters_schema=schema) for name, schema in builtin.items()
    ]
    for part in _registered_parts(kind, builtin):
        with _leave_out_on_error(part.name), contextlib.redirect_stdout(sys.stderr):
            described.append(
                PartDescription(
                    name=part.name, parameters_schema=_schema_of(part.load()), code=part.code
                )
            )
    return tuple(described)


def _registered_parts(kind: Kind, taken: Collection[str]) -> Iterator[RegisteredPart]:
    """Yields the registered parts of a kind whose names are not in `taken`."""
    found = discover(kind)
    for name, reason in found.left_out.items():
        _report_left_out(name, reason)
    for name in sorted(found.parts):
        if name in taken:
            _report_left_out(name, "a built-in part has this name: rename it")
        else:
            yield found.parts[name]


def _schema_of(factory: object) -> JsonObject:
    """Returns the JSON Schema of a factory's parameters.

    It is the factory's `parameters_schema`, else that of its model `Parameters`, else one that
    permits anything.
    """
    model = getattr(factory, "Parameters", None)
    if hasattr(factory, "parameters_schema") or model is None:
        return dict(getattr(factory, "parameters_schema", {}))
    return dict(model.model_json_schema())


@contextlib.contextmanager
def _leave_out_on_error(name: str) -> Iterator[None]:
    """Reports a part whose description raises as left out, and suppresses the exception."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - whatever somebody else's code raises
        _report_left_out(name, f"{type(error).__name__}: {error}")


def _report_left_out(name: str, reason: str) -> None:
    sys.stderr.write(f"{LEFT_OUT}{name}: {' '.join(reason.split())[:500]}\n")


def _environments() -> tuple[EnvironmentDescription, ...]:
    sources = register_sources()
    for name, reason in sources.left_out.items():
        _report_left_out(name, reason)
    log_mujoco()
    described: dict[str, EnvironmentDescription | None] = {}
    for name, spec in list(gymnasium.registry.items()):
        if name in sources.owners:
            with _leave_out_on_error(name):
                described[name] = _describe_registered(spec)
        else:
            described[name] = _describe_game(spec) if is_game(spec) else _describe(spec)
    return tuple(
        sorted(
            (found for found in described.values() if found is not None), key=lambda found: found.id
        )
    )


def _describe_registered(spec: EnvSpec) -> EnvironmentDescription:
    """Describes a registered environment by building it once.

    An environment whose constructor needs arguments is described without its spaces.

    Raises:
        Exception: Any exception of the environment's import or constructor.
    """
    code = environment_code(spec.id)
    described = EnvironmentDescription(
        id=spec.id, max_episode_steps=spec.max_episode_steps, code=code
    )
    try:
        made = _make_and_describe(spec)
    except TypeError as error:
        if "required" not in str(error):
            raise
        return described
    return made.model_copy(update={"code": code})


def _describe_game(spec: EnvSpec) -> EnvironmentDescription | None:
    """Describes a game without loading its ROM, which takes a sixth of a second.

    Of a game's ids, only those that begin with `ALE/` or end with `NoFrameskip-v4` are listed.
    """
    if not spec.id.startswith("ALE/") and not spec.id.endswith("NoFrameskip-v4"):
        return None
    frames = spec.kwargs.get("max_num_frames_per_episode")
    return EnvironmentDescription(
        id=spec.id,
        action_space=SpaceDescription(kind="discrete", dtype="int64"),
        max_episode_steps=None if frames is None else frames // spec.kwargs["frameskip"],
    )


def _describe(spec: EnvSpec) -> EnvironmentDescription | None:
    """Describes an environment by building it once; returns `None` if it cannot be built."""
    if spec.id.split("/")[0] in {"phys2d", "tabular"}:
        return None
    try:
        return _make_and_describe(spec)
    except Exception:  # noqa: BLE001 - whatever an environment's import or constructor raises
        return None


def _make_and_describe(spec: EnvSpec) -> EnvironmentDescription:
    with contextlib.redirect_stdout(sys.stderr):
        environment: Env = gymnasium.make(spec.id)
    try:
        return EnvironmentDescription(
            id=spec.id,
            observation_space=_describe_space(environment.observation_space),
            action_space=_describe_space(environment.action_space),
            max_episode_steps=spec.max_episode_steps,
        )
    finally:
        environment.close()


def _describe_space(space: gymnasium.Space[object]) -> SpaceDescription:
    match space:
        case gymnasium.spaces.Discrete():
            return SpaceDescription(kind="discrete", n=int(space.n), dtype=str(space.dtype))
        case gymnasium.spaces.Dict() | gymnasium.spaces.Tuple():
            return SpaceDescription(
                kind="dict" if isinstance(space, gymnasium.spaces.Dict) else "tuple"
            )
    for kind, known in _ARRAY_SPACES.items():
        if isinstance(space, known):
            shape = tuple(int(size) for size in space.shape or ())
            return SpaceDescription(kind=kind, shape=shape, dtype=str(space.dtype))
    return SpaceDescription(kind="other")


if __name__ == "__main__":
    sys.stdout.write(make_catalogue().model_dump_json())

"""Registers environments of third-party packages and identifies their code.

Third-party means: not of Gymnasium, ale-py or Palestra.

Sources are, in this order: entry points of installed distributions in the groups `gymnasium.envs`
and `palestra.environments`; the modules of the worker's option `--import`; and the modules of
registered agents, which may register environments too. They are loaded when an id is requested
that is not registered yet. An environment belongs to the module that called `gymnasium.register`.
"""

import contextlib
import importlib
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial, wraps
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any, Final, NamedTuple

import gymnasium as gym
from gymnasium.envs import registration

import workers.rl.envs.builtin  # noqa: F401 - registers palestra/... before any source
from palestra.contract.code import DistributionCode, ModuleCode
from workers.core.errors import PartNotFoundError
from workers.core.installed_code import code_of_module, entry_points
from workers.ipc.worker_imports import allowed_imports

GYMNASIUM_GROUP: Final = "gymnasium.envs"
OUR_GROUP: Final = "palestra.environments"
GAMES: Final = "ale_py"
"""Module that registers the Atari games when it is imported."""
_AGENT_GROUP: Final = "palestra.agents"
_WITHOUT_NAMESPACE: Final = frozenset({"__root__", "__internal__"})
"""Names of entry points in Gymnasium's group whose environments have no namespace.

Any other name of an entry point is the namespace of its environments.
"""
_KNOWN: Final = frozenset({"gymnasium", GAMES, "palestra", "workers"})
"""Top-level packages whose environments need no code of their own in an experiment's identity."""


@dataclass(frozen=True, slots=True)
class RegisteredSources:
    """The result of loading all sources."""

    owners: Mapping[str, str]
    """Maps environment ids to the top-level module that registered them."""
    left_out: Mapping[str, str]
    """Maps ids, entry points or options that were left out to the reason, for messages."""


class _Source(NamedTuple):
    name: str
    """Name in messages."""
    top: str
    """Top-level module, the owner of ids that no module was seen to register."""
    run: Callable[[], None]
    """Loads the source, which registers its environments."""


def environment_code(env_id: str) -> DistributionCode | ModuleCode | None:
    """Returns the distribution or module that contains the code of an environment.

    Returns `None` for environments of Gymnasium, ale-py and Palestra, and for unknown ids.

    Raises:
        PartNotFoundError: If the code cannot be identified, or the id names a module that this
            worker may not import.
    """
    name = plain_id(env_id)
    owner = _owner_of(name)
    try:
        return None if owner is None else code_of_module(owner)
    except (ValueError, OSError) as error:
        raise PartNotFoundError(
            f"env.id {name} is registered by {owner}, whose code cannot be identified: {error}"
        ) from error


def ensure_registered(name: str) -> None:
    """Registers the Atari games and then the sources, until `name` is registered.

    `name` may still be unknown afterwards.
    """
    if name not in gym.registry:
        register_games()
    if name not in gym.registry:
        register_sources()


def register_games() -> None:
    """Registers the Atari games if ale-py is installed, and silences its log below errors."""
    with contextlib.suppress(ImportError):
        games = importlib.import_module(GAMES)
        games.ALEInterface.setLoggerMode(games.LoggerMode.Error)


def _owner_of(name: str) -> str | None:
    """Returns the top-level module that registered `name`; `None` if it is not third-party code.

    Sources are loaded only if `name` is not registered yet. Environments that were registered
    before any source was loaded have no owner.
    """
    ensure_registered(name)
    return register_sources().owners.get(name) if register_sources.cache_info().currsize else None


def plain_id(env_id: str) -> str:
    """Returns the id of `module:id` without the module.

    Raises:
        PartNotFoundError: If the worker's option `--import` does not list the module.
    """
    module, _, name = env_id.rpartition(":")
    if module and module not in allowed_imports():
        allowed = ", ".join(allowed_imports()) or "none"
        raise PartNotFoundError(
            f"env.id {env_id}: this worker may not import {module}; it imports {allowed}. "
            f"Start it with --import {module}, or register the environment by an entry point of "
            f"the group {OUR_GROUP}"
        )
    return name


@cache
def register_sources() -> RegisteredSources:
    """Loads every source, once per process, and returns what they registered.

    Sources that fail are left out. An id that two modules register is removed from the registry;
    an id that was registered before keeps its first registration.
    """
    register_games()
    before = dict(gym.registry)
    owners: dict[str, set[str]] = {}
    left_out: dict[str, str] = {}
    for source in _sources():
        known = set(gym.registry)
        try:
            with (
                _record_owners(owners),
                contextlib.redirect_stdout(sys.stderr),
                warnings.catch_warnings(),
            ):
                # Third-party code may warn. Ids that are registered twice are reported below.
                warnings.simplefilter("ignore")
                source.run()
        except Exception as error:  # noqa: BLE001 - third-party code may raise anything
            left_out[source.name] = f"cannot be imported: {type(error).__name__}: {error}"
        for name in set(gym.registry) - known - set(owners):
            owners[name] = {source.top}
    for name, tops in owners.items():
        if name in before:
            gym.registry[name] = before[name]
            left_out[name] = (
                f"{' and '.join(sorted(tops))} would replace an environment of this id: choose "
                "another id"
            )
        elif len(tops) > 1:
            gym.registry.pop(name, None)
            left_out[name] = (
                f"{' and '.join(sorted(tops))} both register this id: uninstall one, or rename its "
                "environment"
            )
    third_party = {name: next(iter(tops)) for name, tops in owners.items() if name not in left_out}
    return RegisteredSources(
        {name: top for name, top in third_party.items() if top not in _KNOWN}, left_out
    )


def _sources() -> Iterator[_Source]:
    for entry_point in entry_points(GYMNASIUM_GROUP):
        if _top_level(entry_point.module) not in _KNOWN:
            yield _source_of_entry_point(
                GYMNASIUM_GROUP, entry_point, partial(_run_plugin, entry_point)
            )
    for entry_point in entry_points(OUR_GROUP):
        yield _source_of_entry_point(
            OUR_GROUP, entry_point, partial(_load_entry_point, entry_point.load)
        )
    for module in allowed_imports():
        yield _Source(
            f"--import {module}",
            _top_level(module),
            partial(_load_entry_point, partial(importlib.import_module, module)),
        )
    for entry_point in entry_points(_AGENT_GROUP):
        yield _source_of_entry_point(
            _AGENT_GROUP, entry_point, partial(_import_quietly, entry_point.module)
        )


def _source_of_entry_point(group: str, entry_point: EntryPoint, run: Callable[[], None]) -> _Source:
    return _Source(f"{entry_point.name} of {group}", _top_level(entry_point.module), run)


def _run_plugin(entry_point: EntryPoint) -> None:
    """Loads an entry point of Gymnasium's group, with its name as the namespace of its ids."""
    before = registration.current_namespace
    registration.current_namespace = (
        None if entry_point.name in _WITHOUT_NAMESPACE else entry_point.name
    )
    try:
        _load_entry_point(entry_point.load)
    finally:
        registration.current_namespace = before


def _load_entry_point(load: Callable[[], Any]) -> None:
    """Loads an entry point and calls it unless it is a module, which registers when imported."""
    target = load()
    if not isinstance(target, ModuleType):
        target()


def _import_quietly(module: str) -> None:
    """Imports a module and ignores errors, which are reported where agents are described."""
    with contextlib.suppress(Exception):
        importlib.import_module(module)


@contextlib.contextmanager
def _record_owners(owners: dict[str, set[str]]) -> Iterator[None]:
    """Records in `owners` the top-level module of each call of `gymnasium.register`."""
    real = registration.register

    @wraps(real)
    # Gymnasium calls the parameter `id`.
    def register(id: str, *arguments: Any, **keywords: Any) -> None:  # noqa: A002
        real(id, *arguments, **keywords)
        namespace, name, version = registration.parse_env_id(id)
        full = registration.get_env_id(registration.current_namespace or namespace, name, version)
        # Only the frame of the caller shows which module registers the environment.
        caller = sys._getframe(1).f_globals.get("__name__", "")  # noqa: SLF001
        owners.setdefault(full, set()).add(_top_level(caller))

    places: tuple[Any, ...] = (registration, gym, gym.envs)
    for place in places:
        place.register = register
    try:
        yield
    finally:
        for place in places:
            place.register = real


def _top_level(module: str) -> str:
    return module.partition(".")[0]

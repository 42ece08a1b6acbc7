"""Finds environments of other packages, and the code that they consist of.

These are the ones that are neither Gymnasium's, ale-py's nor Palestra's.

Sources are the entry points of installed distributions, of Gymnasium's own group `gymnasium.envs`
and of `palestra.environments`; the modules of the worker's option `--import`; and last the modules
of registered agents, which may register environments beside them. Each is asked to register its
environments when an id is not known otherwise. An environment belongs to the module that called
`gymnasium.register`.
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

import workers.rl.envs.builtin  # noqa: F401 - registers palestra/..., which nobody replaces
from palestra.contract.code import DistributionCode, ModuleCode
from workers.core.errors import PartNotFoundError
from workers.core.installed_code import code_of_module, entry_points
from workers.ipc.worker_imports import allowed_imports

GYMNASIUM_GROUP: Final = "gymnasium.envs"
OUR_GROUP: Final = "palestra.environments"
GAMES: Final = "ale_py"
"""Registers the Atari games when it is imported."""
_AGENT_GROUP: Final = "palestra.agents"
_WITHOUT_NAMESPACE: Final = frozenset({"__root__", "__internal__"})
"""Names of entry points of Gymnasium's group whose environments stand in no namespace.

Any other name is the namespace.
"""
_KNOWN: Final = frozenset({"gymnasium", GAMES, "palestra", "workers"})
"""Top-level packages whose environments need no code of their own in an experiment's identity."""


@dataclass(frozen=True, slots=True)
class RegisteredSources:
    """What the sources registered."""

    owners: Mapping[str, str]
    """Environment id to the top-level module that registered it."""
    left_out: Mapping[str, str]
    """Environment id, entry point or option to the reason, a sentence."""


class _Source(NamedTuple):
    name: str
    """For the sentences."""
    top: str
    """Top-level module."""
    run: Callable[[], None]
    """Registers."""


def environment_code(env_id: str) -> DistributionCode | ModuleCode | None:
    """Returns whose code an environment is.

    `None` for those of Gymnasium, ale-py and Palestra, and for ids that nobody knows.

    Raises:
        PartNotFoundError: If its code cannot be found.
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
    """Has games and then the sources register their environments, where the id is not known yet."""
    if name not in gym.registry:
        register_games()
    if name not in gym.registry:
        register_sources()


def register_games() -> None:
    """Registers the Atari games, where ale-py is installed, and keeps its greeting from the log."""
    with contextlib.suppress(ImportError):
        games = importlib.import_module(GAMES)
        games.ALEInterface.setLoggerMode(games.LoggerMode.Error)


def _owner_of(name: str) -> str | None:
    """Without a need no source is run: what is registered before the first one has no owner."""
    ensure_registered(name)
    return register_sources().owners.get(name) if register_sources.cache_info().currsize else None


def plain_id(env_id: str) -> str:
    """Returns the id of `module:id` without the module.

    Raises:
        PartNotFoundError: If the worker's administrator does not allow that module.
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
    """Has every source register its environments, once.

    What fails is left out; an id that two modules claim is nobody's.
    """
    register_games()
    before = dict(gym.registry)
    owners: dict[str, set[str]] = {}
    left_out: dict[str, str] = {}
    for source in _sources():
        known = set(gym.registry)
        try:
            with _noting(owners), contextlib.redirect_stdout(sys.stderr), warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore"
                )  # somebody else's; ids that are registered twice are reported below
                source.run()
        except Exception as error:  # noqa: BLE001 - whatever somebody else's code raises
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
        if _top(entry_point.module) not in _KNOWN:
            yield _of_entry_point(GYMNASIUM_GROUP, entry_point, partial(_run_plugin, entry_point))
    for entry_point in entry_points(OUR_GROUP):
        yield _of_entry_point(OUR_GROUP, entry_point, partial(_run, entry_point.load))
    for module in allowed_imports():
        yield _Source(
            f"--import {module}",
            _top(module),
            partial(_run, partial(importlib.import_module, module)),
        )
    for entry_point in entry_points(_AGENT_GROUP):
        yield _of_entry_point(
            _AGENT_GROUP, entry_point, partial(_import_quietly, entry_point.module)
        )


def _of_entry_point(group: str, entry_point: EntryPoint, run: Callable[[], None]) -> _Source:
    return _Source(f"{entry_point.name} of {group}", _top(entry_point.module), run)


def _run_plugin(entry_point: EntryPoint) -> None:
    """Runs an entry point of Gymnasium's group in the namespace that its name is."""
    before = registration.current_namespace
    registration.current_namespace = (
        None if entry_point.name in _WITHOUT_NAMESPACE else entry_point.name
    )
    try:
        _run(entry_point.load)
    finally:
        registration.current_namespace = before


def _run(load: Callable[[], Any]) -> None:
    """A module has registered by being imported, anything else does it when it is called."""
    target = load()
    if not isinstance(target, ModuleType):
        target()


def _import_quietly(module: str) -> None:
    """Agents that cannot be imported are reported where agents are described."""
    with contextlib.suppress(Exception):
        importlib.import_module(module)


@contextlib.contextmanager
def _noting(owners: dict[str, set[str]]) -> Iterator[None]:
    """Records which module registers an id, whichever module is imported for it."""
    real = registration.register

    @wraps(real)
    # Gymnasium's name.
    def register(id: str, *arguments: Any, **keywords: Any) -> None:  # noqa: A002
        real(id, *arguments, **keywords)
        namespace, name, version = registration.parse_env_id(id)
        full = registration.get_env_id(registration.current_namespace or namespace, name, version)
        # Nobody else knows who calls.
        caller = sys._getframe(1).f_globals.get("__name__", "")  # noqa: SLF001
        owners.setdefault(full, set()).add(_top(caller))

    places: tuple[Any, ...] = (registration, gym, gym.envs)
    for place in places:
        place.register = register
    try:
        yield
    finally:
        for place in places:
            place.register = real


def _top(module: str) -> str:
    return module.partition(".")[0]

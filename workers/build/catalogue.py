"""What this machine can train: run as a program of its own, since it imports gymnasium and the worker must not.

python -m workers.build.catalogue        prints a Catalogue as JSON
"""

import contextlib
import json
import logging
import sys
import warnings
from typing import Any, Final, get_args

import gymnasium
from gymnasium.envs.registration import EnvSpec

from palestra.contract.agents import AgentParameters
from palestra.contract.names import Schedule
from palestra.contract.work_order import AgentDescription, Catalogue, EnvironmentDescription, SpaceDescription

_ACTION_SPACES: Final = {"dqn": ("discrete",), "ppo": ("discrete", "box")}
_SCHEDULES: Final = (Schedule.TRAIN, Schedule.TRAIN_AND_EVALUATE, Schedule.EVALUATE, Schedule.CONTINUOUS_EVAL, Schedule.EXPORT)


def make_catalogue() -> Catalogue:
    """Returns what this interpreter can import and make."""
    return Catalogue(agents=_agents(), environments=_environments(), schedules=_SCHEDULES)


def _agents() -> tuple[AgentDescription, ...]:
    union = get_args(AgentParameters)[0]
    names = [str(parameters.model_fields["name"].default) for parameters in get_args(union)]
    described = {"agents": [{"name": name, "action_spaces": _ACTION_SPACES.get(name, ())} for name in names]}
    return Catalogue.model_validate_json(json.dumps(described)).agents


def _environments() -> tuple[EnvironmentDescription, ...]:
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    gymnasium.logger.min_level = gymnasium.logger.ERROR + 1
    described = (_describe(spec) for spec in gymnasium.registry.values())
    return tuple(sorted((found for found in described if found is not None), key=lambda found: found.id))


def _describe(spec: EnvSpec) -> EnvironmentDescription | None:
    """Makes the environment once; one whose own dependencies are missing cannot be offered."""
    if spec.id.split("/")[0] in {"phys2d", "tabular"}:
        return None
    try:
        with contextlib.redirect_stdout(sys.stderr):
            environment: gymnasium.Env[Any, Any] = gymnasium.make(spec.id)
    except Exception:  # noqa: BLE001 - whatever an environment's import or constructor raises
        return None
    try:
        return EnvironmentDescription(
            id=spec.id,
            observation_space=_space(environment.observation_space),
            action_space=_space(environment.action_space),
            max_episode_steps=spec.max_episode_steps,
        )
    finally:
        environment.close()


def _space(space: gymnasium.Space[Any]) -> SpaceDescription:
    if isinstance(space, gymnasium.spaces.Discrete):
        return SpaceDescription(kind="discrete", n=int(space.n), dtype=str(space.dtype))
    if isinstance(space, gymnasium.spaces.Box):
        return SpaceDescription(kind="box", shape=tuple(int(size) for size in space.shape), dtype=str(space.dtype))
    return SpaceDescription(kind="other")


if __name__ == "__main__":
    sys.stdout.write(make_catalogue().model_dump_json())

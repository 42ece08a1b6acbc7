"""Default device and dtype within a trainer's `with`, and initialisation of lazy parameters."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.nn.parameter import is_lazy

from workers.rl.envs.env_types import Env


@dataclass(frozen=True, slots=True)
class TorchSession:
    """Default device and dtype of new tensors; passed in place of garage's TensorFlow session."""

    device: str | None = None
    """A torch device; `None` keeps the current default."""
    dtype: torch.dtype | None = None
    """A floating-point type; `None` keeps the current default."""

    @classmethod
    def from_value(cls, session: object) -> "TorchSession":
        """Converts a session, a device, a dtype or `None` to a session.

        Raises:
            TypeError: If the value has another type.
        """
        if session is None or isinstance(session, TorchSession):
            return session or cls()
        if isinstance(session, str | torch.device):
            return cls(device=str(torch.device(session)))
        if isinstance(session, torch.dtype):
            return cls(dtype=session)
        raise TypeError(
            "sess must be a TorchSession, a device, a dtype or None, "
            f"not a {type(session).__name__}"
        )

    @contextmanager
    def activate(self) -> Iterator[None]:
        """Sets torch's default device and dtype during the body, then restores the old defaults."""
        before = torch.get_default_dtype()
        device = nullcontext() if self.device is None else torch.device(self.device)
        try:
            torch.set_default_dtype(self.dtype or before)
            with device:
                yield
        finally:
            torch.set_default_dtype(before)


def initialise_lazy_parameters(part: object, env: Env | None, path: str) -> None:
    """Initialises the lazy parameters of modules by calling each module once with zeros.

    Other parameters are not changed.

    Args:
        part: A module, or an object whose attributes may be modules.
        env: Environment whose observation space and action space define the shapes of the input: an
            observation, or an observation and an action.
        path: Name of the part in error messages.

    Raises:
        ValueError: If `env` is `None` while there are lazy parameters, or if a module can be called
            with neither input.
    """
    for name, module in _lazy_modules(part, path):
        if env is None:
            raise ValueError(
                f"{name} has parameters without a shape: "
                "give setup an environment, or call the module once before"
            )
        _run_once(name, module, env)


def _lazy_modules(part: object, path: str) -> list[tuple[str, nn.Module]]:
    found = [(path, part)] if isinstance(part, nn.Module) else []
    if not found and hasattr(part, "__dict__"):
        found = [
            (f"{path}.{name}", value)
            for name, value in vars(part).items()
            if isinstance(value, nn.Module)
        ]
    return [
        (name, module)
        for name, module in found
        if any(is_lazy(one) for one in (*module.parameters(), *module.buffers()))
    ]


def _run_once(name: str, module: nn.Module, env: Env) -> None:
    """Calls a module in eval mode, which keeps running statistics unchanged, and restores modes."""
    observation, action = (
        _example(space, module) for space in (env.observation_space, env.action_space)
    )
    modes = {one: one.training for one in module.modules()}
    module.eval()
    try:
        with torch.no_grad():
            try:
                module(observation)
            except TypeError:
                module(observation, action)
    except (TypeError, RuntimeError) as error:
        message = (
            f"{name} takes neither an observation nor an observation and an action: "
            f"call it once before setup ({error})"
        )
        raise ValueError(message) from error
    finally:
        for one, mode in modes.items():
            one.training = mode


def _example(space: gym.Space[object], module: nn.Module) -> torch.Tensor:
    parameter = next(iter(module.parameters()))
    zero = torch.as_tensor(np.zeros((1, *(space.shape or ())), np.float32))
    return zero.to(device=parameter.device, dtype=parameter.dtype)
